# Random calls of every operation beside NumPy, through the shared library. They run
# in a thorough run only, and need NumPy.
if(Python3_FOUND AND TARGET kiln AND TARGET kiln_cpu_dropin)
  add_test(NAME device.numpy_differential COMMAND ${Python3_EXECUTABLE} -B
    ${CMAKE_CURRENT_LIST_DIR}/numpy_differential.py
    --library $<TARGET_FILE:kiln> --driver $<TARGET_FILE:kiln_cpu_dropin>
    --include ${PROJECT_SOURCE_DIR}/include)
  set_tests_properties(device.numpy_differential PROPERTIES LABELS device
    SKIP_RETURN_CODE 77 TIMEOUT 36000)
endif()
