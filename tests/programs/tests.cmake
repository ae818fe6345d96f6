# The programs of this folder need nvcc and some minutes, so they run only with
# KILN_TEST_THOROUGH=1.
if(TARGET kiln_cpu_dropin AND KILN_CLI AND NOT KILN_SANITIZE)
  add_test(NAME device.programs COMMAND ${CMAKE_CURRENT_LIST_DIR}/run.sh
    --thorough --check --build ${CMAKE_BINARY_DIR})
  set_tests_properties(device.programs PROPERTIES LABELS device
    SKIP_RETURN_CODE 77 TIMEOUT 3600)
endif()
