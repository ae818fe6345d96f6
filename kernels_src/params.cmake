# params.cmake -- one list per kernel feeds defaults, host and documentation.
#
# The head comment of each kernels_src/NAME.cu lists the kernel's parameters, one
# per line, in columns that two or more blanks separate:
#    *   KILN_BLOCK  256         threads per block
#    *   KILN_T      type float  type of an element
# CMakeLists.txt runs this script at build time as
#   cmake -DOUT=gen -DROOT=kernels_src -DPROGRAMS=a.cu|b.cu -P params.cmake
# and gets from these lines
#   OUT/kiln/params/NAME.cuh  the default of each macro that is not defined; the
#                             kernel includes it
#   OUT/kernel_params.h       an enumerator NAME_BLOCK per parameter and a list
#                             kiln__NAME_params of their names, for runtime/ops
#   OUT/kernel_params.c       these lists. Each is one text without pointers: a
#                             pointer costs 32 bytes in a shared library
string(REPLACE "|" ";" programs "${PROGRAMS}")
set(from "/* Made by params.cmake from kernels_src/. */\n")
set(declared "${from}#ifndef KILN_KERNEL_PARAMS_H\n#define KILN_KERNEL_PARAMS_H\n\n#include \"ops/ops.h\"\n")
set(defined "${from}#include \"kernel_params.h\"\n")

# Writes a file unless it holds this text already, so that what depends on it is
# not built again.
function(write path text)
  if(EXISTS "${path}")
    file(READ "${path}" old)
  endif()
  if(NOT "${old}" STREQUAL "${text}")
    file(WRITE "${path}" "${text}")
  endif()
endfunction()

foreach(program IN LISTS programs)
  string(REGEX REPLACE "\\.cu$" "" name "${program}")
  string(TOUPPER "${name}" upper)
  file(STRINGS "${ROOT}/${program}" lines REGEX "^ \\*   KILN_[A-Z0-9_]+  ")
  set(defaults "/* Made by params.cmake from the head of ${program}. */\n")
  set(enumerators "")
  set(rows "")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "  +" "|" line "${line}")
    if(NOT line MATCHES "^ \\*\\|KILN_([A-Z0-9_]+)\\|(type )?([^|]+)\\|")
      message(FATAL_ERROR "${program}: a parameter needs a name, a default and "
        "a meaning, separated by two blanks: ${line}")
    endif()
    set(parameter ${CMAKE_MATCH_1})
    if(CMAKE_MATCH_2)
      set(mark ":")
    else()
      set(mark "")
    endif()
    string(APPEND defaults "#ifndef KILN_${parameter}\n"
      "#define KILN_${parameter} ${CMAKE_MATCH_3}\n#endif\n")
    string(APPEND enumerators "  ${upper}_${parameter},\n")
    string(APPEND rows "\n    \"${mark}${parameter}\\0\"")
  endforeach()
  write("${OUT}/kiln/params/${name}.cuh" "${defaults}")
  if(enumerators) # C knows no empty enum, and a kernel may have no parameter
    string(APPEND declared "\nenum {\n${enumerators}};\n")
  endif()
  string(APPEND declared
    "extern const char kiln__${name}_params[];\n")
  string(APPEND defined
    "\nconst char kiln__${name}_params[] =${rows} \"\";\n")
endforeach()
write("${OUT}/kernel_params.h" "${declared}\n#endif\n")
write("${OUT}/kernel_params.c" "${defined}")
