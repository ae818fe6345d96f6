# The scripts that compare with NVIDIA's tools on a GPU; here only what reads the
# tools' texts.
add_test(NAME host.gpu_scripts COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/parse_test.sh)
set_tests_properties(host.gpu_scripts PROPERTIES LABELS host TIMEOUT 3600)
