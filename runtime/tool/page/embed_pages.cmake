# embed_pages.cmake -- turn the templates of HTML pages into C arrays.
#
# CMakeLists.txt runs this script at build time as
#   cmake -DOUT=html_pages.c -DPAGES=NAME|...
#         -DPAGE_NAME=page.html -DSTYLE_NAME=a.css|b.css -DSCRIPT_NAME=a.js|b.js
#         -P embed_pages.cmake
# The files of a style, and those of a script, are joined in this order. The
# SHA-256 of the joined text stands in the page's content security policy, so the
# text is embedded byte by byte.
function(emit symbol files)
  string(REPLACE "|" ";" files "${files}")
  set(hex "")
  foreach(file IN LISTS files)
    file(READ "${file}" part HEX)
    string(APPEND hex "${part}")
  endforeach()
  # CMake hashes texts and files only, so the joined bytes go through a file.
  execute_process(COMMAND "${CMAKE_COMMAND}" -E cat ${files}
    OUTPUT_FILE "${OUT}.joined" COMMAND_ERROR_IS_FATAL ANY)
  file(SHA256 "${OUT}.joined" sha)
  file(REMOVE "${OUT}.joined")
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," sha "${sha}")
  file(APPEND "${OUT}.tmp"
    "static const unsigned char ${symbol}[] = {\n${bytes}0x00};\n\n")
  set(row "{${symbol}, sizeof ${symbol} - 1, {${sha}}}" PARENT_SCOPE)
endfunction()

file(WRITE "${OUT}.tmp"
  "/* Made by embed_pages.cmake. */\n#include \"tool/page/html_page.h\"\n\n")
set(rows "")
string(REPLACE "|" ";" pages "${PAGES}")
foreach(page IN LISTS pages)
  emit(${page}_page "${PAGE_${page}}")
  string(APPEND rows "    {\"${page}\",\n     ${row},\n")
  emit(${page}_style "${STYLE_${page}}")
  string(APPEND rows "     ${row},\n")
  emit(${page}_script "${SCRIPT_${page}}")
  string(APPEND rows "     ${row}},\n")
endforeach()
file(APPEND "${OUT}.tmp"
  "const html_page kiln__html_pages[] = {\n${rows}    {NULL, {NULL, 0, {0}}, {NULL, 0, {0}}, {NULL, 0, {0}}}};\n")
file(RENAME "${OUT}.tmp" "${OUT}")
