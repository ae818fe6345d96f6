# The pages of the command, in a browser. They need NVRTC, nvdisasm and Chromium;
# what is missing is counted as a skip.
if(Python3_FOUND AND TARGET kiln_cli)
  add_test(NAME compile.explore_page COMMAND ${Python3_EXECUTABLE} -B
    ${CMAKE_CURRENT_LIST_DIR}/explore_page_test.py $<TARGET_FILE:kiln_cli>)
  set_tests_properties(compile.explore_page PROPERTIES LABELS compile
    SKIP_RETURN_CODE 77 TIMEOUT 3600)
endif()
