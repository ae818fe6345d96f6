# Programs for `kiln exec`: built like anybody's, linked to libcuda.so.1 or
# opening it, and with no trace of where Kiln's lies.
if(TARGET kiln_cpu_dropin AND KILN_CLI)
  foreach(name driver driver_cases mapped opens processes shims)
    add_executable(exec_${name} exec/${name}.c)
    target_include_directories(exec_${name} PRIVATE ../runtime ../include)
    target_link_libraries(exec_${name} PRIVATE kiln_flags ${CMAKE_DL_LIBS})
    target_compile_options(exec_${name} PRIVATE -std=gnu11)
    set_target_properties(exec_${name} PROPERTIES SKIP_BUILD_RPATH ON)
  endforeach()
  target_link_libraries(exec_driver PRIVATE kiln_cpu_dropin)
  target_link_libraries(exec_shims PRIVATE kiln_cpu_dropin)
  target_link_libraries(exec_mapped PRIVATE kiln_cpu_dropin)
  target_link_libraries(exec_driver_cases PRIVATE kiln_cpu_dropin)
  target_link_libraries(exec_processes PRIVATE kiln_cpu_dropin
    Threads::Threads)
  add_dependencies(device_cpu_exec kiln_cli kiln_exec_libraries exec_driver
    exec_mapped exec_opens)
  add_dependencies(device_exec_reports kiln_cli kiln_exec_libraries
    exec_processes)
  target_compile_definitions(device_cpu_exec PRIVATE KILN_TEST_CLI)
endif()
# One against NVIDIA's own header, where that is.
if(TARGET exec_driver AND KILN_CUDA_INCLUDE)
  add_executable(exec_stranger exec/stranger.c)
  target_include_directories(exec_stranger SYSTEM PRIVATE ${KILN_CUDA_INCLUDE})
  target_link_libraries(exec_stranger PRIVATE kiln_flags kiln_cpu_dropin)
  target_compile_options(exec_stranger PRIVATE -std=gnu11
    -Wno-deprecated-declarations)
  set_target_properties(exec_stranger PROPERTIES SKIP_BUILD_RPATH ON)
  add_dependencies(device_cpu_exec exec_stranger)
  target_compile_definitions(device_cpu_exec PRIVATE KILN_TEST_STRANGER)
endif()
if(TARGET device_cpu_exec)
  set(sanitized 0)
  if(KILN_SANITIZE)
    set(sanitized 1)
  endif()
  foreach(test device_cpu_exec device_exec_reports)
    target_compile_definitions(${test} PRIVATE KILN_TEST_SANITIZED=${sanitized})
  endforeach()
endif()

# The shims of nvJitLink and NVML. A sanitizer's runtime must be loaded before the
# preload library, so these tests are not for sanitizers.
if(TARGET exec_shims AND NOT KILN_SANITIZE)
  add_dependencies(exec_shims kiln_cli kiln_exec_libraries)
  add_test(NAME host.exec_shims COMMAND kiln_cli exec -- $<TARGET_FILE:exec_shims>)
  set_tests_properties(host.exec_shims PROPERTIES LABELS host)
endif()

# The results of driver calls are those that an H200 gave.
if(TARGET exec_driver_cases AND NOT KILN_SANITIZE)
  add_dependencies(exec_driver_cases kiln_cli kiln_exec_libraries)
  add_test(NAME host.driver_cases COMMAND bash
    ${CMAKE_CURRENT_LIST_DIR}/driver_cases.sh $<TARGET_FILE:kiln_cli>
    $<TARGET_FILE:exec_driver_cases>)
  set_tests_properties(host.driver_cases PROPERTIES LABELS host)
endif()

# A program of the runtime API, where nvcc can compile it.
find_program(KILN_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME
  PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(TARGET device_exec_bugs AND TARGET exec_driver AND KILN_NVCC AND
    NOT KILN_SANITIZE)
  set(program ${CMAKE_CURRENT_BINARY_DIR}/exec_runtime_bugs)
  add_custom_command(OUTPUT ${program}
    # An nvcc that cannot link leaves an empty file, and the test is skipped.
    COMMAND ${KILN_NVCC} -lineinfo -cudart shared -arch=compute_75 -o ${program}
      ${CMAKE_CURRENT_LIST_DIR}/runtime_bugs.cu || ${CMAKE_COMMAND} -E touch
      ${program}
    DEPENDS ${CMAKE_CURRENT_LIST_DIR}/runtime_bugs.cu
    COMMENT "Compiling the planted bugs with nvcc" VERBATIM)
  add_custom_target(compile_runtime_bugs DEPENDS ${program})
  add_dependencies(device_exec_bugs compile_runtime_bugs kiln_cli
    kiln_exec_libraries)
  target_compile_definitions(device_exec_bugs PRIVATE KILN_TEST_NVCC)
endif()

# A program of two files with relocatable device code.
if(TARGET exec_driver AND KILN_NVCC AND NOT KILN_SANITIZE)
  add_test(NAME device.exec_relocatable COMMAND
    bash ${CMAKE_CURRENT_LIST_DIR}/relocatable/relocatable.sh
    $<TARGET_FILE:kiln_cli> ${KILN_NVCC})
  set_tests_properties(device.exec_relocatable PROPERTIES LABELS device
    SKIP_RETURN_CODE 77 TIMEOUT 1200)
endif()

# The examples of the page on CI.
if(TARGET exec_driver AND NOT KILN_SANITIZE)
  add_test(NAME device.ci_examples COMMAND
    bash ${CMAKE_CURRENT_LIST_DIR}/ci_examples.sh $<TARGET_FILE:kiln_cli>
    ${PROJECT_SOURCE_DIR}/samples/ci)
  set_tests_properties(device.ci_examples PROPERTIES LABELS device
    SKIP_RETURN_CODE 77 TIMEOUT 600)
endif()

# The drop-in exports what NVIDIA's does, where there is one to compare with.
if(TARGET kiln_cpu_dropin AND NOT KILN_SANITIZE)
  add_test(NAME host.cpu_symbols COMMAND ${CMAKE_COMMAND} -E env
    NM=${CMAKE_NM} DROPIN=$<TARGET_FILE:kiln_cpu_dropin>
    SHARED=$<TARGET_FILE:kiln_cpu>
    DEF=${PROJECT_SOURCE_DIR}/runtime/cpu/api/entry_points.def
    HEADER=${PROJECT_SOURCE_DIR}/include/kiln/cpu.h
    CC=${CMAKE_C_COMPILER}
    CUDA=$<$<BOOL:${KILN_CUDA_INCLUDE}>:${KILN_CUDA_INCLUDE}>
    bash ${CMAKE_CURRENT_LIST_DIR}/symbols.sh)
  set_tests_properties(host.cpu_symbols PROPERTIES LABELS host)
endif()
