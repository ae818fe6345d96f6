# Turn files into C byte arrays: bytes, since C11 promises only 4,095 characters
# for a string literal. Called at build time with
#   -DOUT=file.c -DROOT=kernels_src -DPROGRAMS=a.cu|b.cu -DHEADERS=c.cuh|...
# Program "ladder/x.cu" becomes "ladder/x"; header "common/x.cuh" is included
# as <kiln/x.cuh>.
string(REPLACE "|" ";" programs "${PROGRAMS}")
string(REPLACE "|" ";" headers "${HEADERS}")

function(emit file symbol)
  file(READ "${ROOT}/${file}" hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  file(APPEND "${OUT}.tmp" "static const unsigned char ${symbol}[] = {\n${bytes}0x00};\n\n")
endfunction()

file(WRITE "${OUT}.tmp" "/* Made by embed.cmake from kernels_src/. */\n#include \"program/builtin.h\"\n\n")
set(program_rows "")
set(header_rows "")
set(i 0)
foreach(file IN LISTS programs)
  emit("${file}" "program_${i}")
  string(REGEX REPLACE "\\.cu$" "" name "${file}")
  string(APPEND program_rows "    {\"${name}\", (const char *)program_${i}, sizeof program_${i} - 1},\n")
  math(EXPR i "${i} + 1")
endforeach()
file(APPEND "${OUT}.tmp" "static const kiln_builtin programs[] = {\n${program_rows}};\n\n")
set(i 0)
foreach(file IN LISTS headers)
  emit("${file}" "header_${i}")
  string(REGEX REPLACE "^common/" "kiln/" name "${file}")
  string(APPEND header_rows "    {\"${name}\", (const char *)header_${i}},\n")
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
file(RENAME "${OUT}.tmp" "${OUT}")
