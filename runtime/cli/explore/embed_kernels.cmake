# embed_kernels.cmake -- turn the sources of the embedded programs, as a person
# wrote them, into C arrays.
#
# The library carries them without comments and indentation, which a compiler does
# not need. The page of `kiln explore` shows them, so the command carries them as
# they are. CMakeLists.txt runs this script at build time as
#   cmake -DOUT=kernel_texts.c -DROOT=kernels_src -DFILES=a.cu|kiln/b.cuh|...
#         -P embed_kernels.cmake
string(REPLACE "|" ";" files "${FILES}")
file(WRITE "${OUT}.tmp" "/* Made by embed_kernels.cmake. */\n#include \"cli/explore/explore_original.h\"\n\n")
set(rows "")
set(i 0)
foreach(file IN LISTS files)
  file(READ "${ROOT}/${file}" hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  file(APPEND "${OUT}.tmp"
    "static const unsigned char text_${i}[] = {\n${bytes}0x00};\n\n")
  string(REGEX REPLACE "^demo/" "" name "${file}")
  string(APPEND rows "    {\"${name}\", (const char *)text_${i}},\n")
  math(EXPR i "${i} + 1")
endforeach()
file(APPEND "${OUT}.tmp"
  "const explore_original kiln__explore_originals[] = {\n${rows}    {NULL, NULL}};\n")
file(RENAME "${OUT}.tmp" "${OUT}")
