# The tests of the `kiln` command run it as a child process and parse its JSON
# output.
foreach(target host_cli host_pictures compile_cli device_cli device_sweep
    device_bugs device_exec_reports
    device_exec_bugs)
  if(TARGET ${target} AND KILN_CLI)
    target_include_directories(${target} PRIVATE ${KILN_CJSON_INCLUDE})
    target_link_libraries(${target} PRIVATE ${KILN_CJSON_LIBRARY})
    target_compile_definitions(${target} PRIVATE KILN_TEST_CLI)
    add_dependencies(${target} kiln_cli)
  endif()
endforeach()
# It runs this sample, too.
if(TARGET device_cli AND TARGET sample_jit_life)
  add_dependencies(device_cli sample_jit_life)
endif()
