# Tests of the runtime libraries. They are linked to the libraries like any program, and
# once per major version that they support.
function(kiln_cudart_test name)
  foreach(major IN LISTS ARGN)
    set(target cudart_${name}_${major})
    add_executable(${target} cudart/${name}_test.c)
    target_include_directories(${target} PRIVATE ../runtime ../include)
    target_compile_definitions(${target} PRIVATE KILN__RT_MAJOR=${major})
    # The run path of a program does not serve the libraries that it loads, so each
    # test itself needs libcuda.so.1.
    target_link_options(${target} PRIVATE -Wl,--no-as-needed)
    target_link_libraries(${target} PRIVATE kiln_flags kiln_cudart_${major}
      kiln_cpu_dropin PkgConfig::CHECK Threads::Threads)
    target_compile_options(${target} PRIVATE -std=gnu11 -Wno-pedantic
      -Wno-missing-prototypes -O1)
    add_test(NAME host.${target} COMMAND ${target})
    set_tests_properties(host.${target} PROPERTIES LABELS host
      SKIP_RETURN_CODE 77 TIMEOUT 600)
  endforeach()
endfunction()

if(TARGET kiln_cudart_12)
  foreach(name core arguments arrays graphs)
    kiln_cudart_test(${name} 11 12 13)
  endforeach()
  kiln_cudart_test(reference 11)
endif()
