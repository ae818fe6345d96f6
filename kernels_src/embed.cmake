# embed.cmake -- turn the CUDA sources into C arrays that the library carries.
#
# The arrays hold bytes, since C11 promises only 4,095 characters for a string
# literal. CMakeLists.txt runs this script at build time as
#   cmake -DOUT=embedded.c -DROOT=kernels_src -DGEN=gen
#         -DPROGRAMS=a.cu|ladder/b.cu -DHEADERS=kiln/c.cuh|... -P embed.cmake
# where GEN is the folder in which params.cmake wrote kiln/params/.
# A program's name is its path without ".cu" and without "demo/": ladder/b.cu
# becomes "ladder/b", demo/hello.cu becomes "hello". A header keeps its path,
# kiln/c.cuh, so that `#include <kiln/c.cuh>` finds it under NVRTC as well as
# under nvcc with -I kernels_src.
string(REPLACE "|" ";" programs "${PROGRAMS}")
string(REPLACE "|" ";" headers "${HEADERS}")
# "NAME FILE", in the order of the names.
list(TRANSFORM programs REPLACE "^(demo/)?(.*)\\.cu$" "\\2 \\0")
list(SORT programs)

# Removes the comments of a source, and blanks at the ends of a line. Each line keeps
# its number, and texts in quotes stay as they are. A line that continues a macro keeps
# its blanks, since they may separate two words.
#
# The source is split into quoted texts, comments and what is between them. A list
# of CMake cannot hold ";", "[" and "]" as they are, so control characters stand
# for them in the meantime.
string(ASCII 1 semicolon)
string(ASCII 2 open)
string(ASCII 3 close)
set(piece [["([^"\]|\\.)*"|'([^'\]|\\.)*'|/\*([^*]|\*+[^*/])*\*+/|//[^#]*|["'/]|[^"'/]+]])
string(REPLACE "#" "\n" piece "${piece}")
function(strip_comments variable)
  set(text "${${variable}}")
  string(REPLACE ";" "${semicolon}" text "${text}")
  string(REPLACE "[" "${open}" text "${text}")
  string(REPLACE "]" "${close}" text "${text}")
  string(REGEX MATCHALL "${piece}" pieces "${text}")
  set(text "")
  foreach(part IN LISTS pieces)
    if(part MATCHES "^/[/*]")
      string(REGEX REPLACE "[^\n]" "" part "${part}")
    endif()
    string(APPEND text "${part}")
  endforeach()
  string(REGEX REPLACE " +\n" "\n" text "${text}")
  string(REGEX REPLACE "([^\\])\n +" "\\1\n" text "${text}")
  string(REPLACE "${semicolon}" ";" text "${text}")
  string(REPLACE "${open}" "[" text "${text}")
  string(REPLACE "${close}" "]" text "${text}")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

function(emit file symbol)
  if(file MATCHES "^kiln/params/")
    file(READ "${GEN}/${file}" text)
  else()
    file(READ "${ROOT}/${file}" text)
  endif()
  strip_comments(text)
  string(HEX "${text}" hex)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  file(APPEND "${OUT}.tmp" "static const unsigned char ${symbol}[] = {\n${bytes}0x00};\n\n")
endfunction()

file(WRITE "${OUT}.tmp" "/* Made by embed.cmake from kernels_src/. */\n#include \"program/builtin.h\"\n\n")
set(program_rows "")
set(header_rows "")
set(i 0)
foreach(row IN LISTS programs)
  string(REGEX MATCH "^([^ ]*) (.*)$" row "${row}")
  emit("${CMAKE_MATCH_2}" "program_${i}")
  string(APPEND program_rows "    {\"${CMAKE_MATCH_1}\", (const char *)program_${i}, sizeof program_${i} - 1},\n")
  math(EXPR i "${i} + 1")
endforeach()
file(APPEND "${OUT}.tmp" "static const kiln_builtin programs[] = {\n${program_rows}};\n\n")
set(i 0)
foreach(file IN LISTS headers)
  emit("${file}" "header_${i}")
  string(APPEND header_rows "    {\"${file}\", (const char *)header_${i}},\n")
  math(EXPR i "${i} + 1")
endforeach()
file(APPEND "${OUT}.tmp" "static const kiln_header headers[] = {\n${header_rows}};\n
const kiln_builtin *kiln_builtin_list(size_t *n)
{
  if (n != NULL)
    *n = sizeof programs / sizeof programs[0];
  return programs;
}

const kiln_header *kiln__builtin_headers(size_t *n)
{
  *n = sizeof headers / sizeof headers[0];
  return headers;
}
")
if(NOT programs) # runtime/ops/variants.c has the variants, and is not in this library
  file(APPEND "${OUT}.tmp" "
const kiln_variant *kiln_variant_list(size_t *n)
{
  if (n != NULL)
    *n = 0;
  return NULL;
}
")
endif()
file(RENAME "${OUT}.tmp" "${OUT}")
