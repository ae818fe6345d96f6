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

# Small programs that run with this library, and with NVIDIA's where there is a GPU.
if(TARGET kiln_cudart_13 AND NOT KILN_SANITIZE)
  file(GLOB cases CONFIGURE_DEPENDS cudart/differential/*.c)
  foreach(major 12 13)
    add_executable(runtime_cases_${major} ${cases})
    target_include_directories(runtime_cases_${major} PRIVATE ../runtime
      ../include)
    target_link_libraries(runtime_cases_${major} PRIVATE kiln_flags
      ${CMAKE_DL_LIBS})
    target_compile_definitions(runtime_cases_${major} PRIVATE
      KILN__RT_MAJOR=${major})
    target_compile_options(runtime_cases_${major} PRIVATE -std=gnu11
      -Wno-pedantic -Wno-missing-prototypes)
    add_test(NAME host.runtime_cases_${major} COMMAND ${CMAKE_COMMAND} -E env
      LD_LIBRARY_PATH=$<TARGET_FILE_DIR:kiln_cpu_dropin> KILN_CPU=9.0
      bash ${CMAKE_CURRENT_SOURCE_DIR}/cudart/differential/compare.sh
      $<TARGET_FILE:runtime_cases_${major}>
      $<TARGET_FILE:kiln_cudart_${major}>
      ${CMAKE_CURRENT_SOURCE_DIR}/golden/runtime_${major}_h200.txt)
    set_tests_properties(host.runtime_cases_${major} PROPERTIES LABELS host
      TIMEOUT 600)
  endforeach()
endif()
