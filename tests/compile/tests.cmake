# The ABI test compares with NVIDIA's headers where a toolkit is.
find_path(KILN_CUDA_H cuda.h PATHS $ENV{CUDA_PATH} $ENV{CUDA_HOME}
  /usr/local/cuda /opt/cuda PATH_SUFFIXES include)
if(KILN_CUDA_H AND EXISTS ${KILN_CUDA_H}/nvrtc.h)
  file(STRINGS ${KILN_CUDA_H}/cuda.h kiln_cuda_version
    REGEX "^#define CUDA_VERSION +[0-9]+")
  string(REGEX REPLACE "[^0-9]" "" kiln_cuda_version "${kiln_cuda_version}")
endif()
if(kiln_cuda_version GREATER_EQUAL 12080)
  target_sources(compile_abi PRIVATE compile/abi_nvidia.c)
  target_include_directories(compile_abi SYSTEM PRIVATE ${KILN_CUDA_H})
  target_compile_definitions(compile_abi PRIVATE KILN_TEST_CUDA_H
    KILN_TEST_CUDA_STUB="${KILN_CUDA_H}/../lib64/stubs/libcuda.so")
endif()
# What the drop-in exports is of CUDA 13.0.
if(kiln_cuda_version GREATER_EQUAL 13000)
  target_sources(compile_cpu_abi PRIVATE compile/cpu_abi_nvidia.c)
  target_include_directories(compile_cpu_abi SYSTEM PRIVATE ${KILN_CUDA_H})
  target_compile_definitions(compile_cpu_abi PRIVATE KILN_TEST_CUDA_H
    KILN_TEST_CUDA_STUB="${KILN_CUDA_H}/../lib64/stubs/libcuda.so")
endif()
# The runtime library has the layouts of CUDA 11 to 13.
if(TARGET compile_cudart_abi)
  set(kiln_cudart_version 13000)
  if(kiln_cuda_version GREATER_EQUAL 11080 AND kiln_cuda_version LESS 14000
      AND EXISTS ${KILN_CUDA_H}/cuda_runtime_api.h)
    set(kiln_cudart_version ${kiln_cuda_version})
    target_sources(compile_cudart_abi PRIVATE compile/cudart_abi_nvidia.c)
    target_include_directories(compile_cudart_abi SYSTEM PRIVATE ${KILN_CUDA_H})
    target_compile_definitions(compile_cudart_abi PRIVATE
      KILN_TEST_CUDA_H="${KILN_CUDA_H}")
  endif()
  math(EXPR kiln_cudart_major "${kiln_cudart_version} / 1000")
  target_compile_definitions(compile_cudart_abi PRIVATE
    KILN__RT_VERSION=${kiln_cudart_version} KILN__RT_MAJOR=${kiln_cudart_major})
endif()

# With KILN_TEST_THOROUGH=1 it compiles thousands of programs.
set_tests_properties(compile.kernels PROPERTIES TIMEOUT 3600)

# The linker leads what the operations compile to the test.
target_link_options(compile_assemble PRIVATE
  -Wl,--wrap=kiln__module_start_linked,--wrap=kiln__module_finish)
add_test(NAME compile.assemble_all COMMAND compile_assemble)
set_tests_properties(compile.assemble_all PROPERTIES LABELS "compile;thorough"
  ENVIRONMENT KILN_TEST_ALL_VARIANTS=1 SKIP_RETURN_CODE 77 TIMEOUT 7200)

# The model of machine code, compared with what a Python script reads from
# nvdisasm's output.
if(KILN_CLI AND Python3_Interpreter_FOUND)
  add_executable(sass_dump ${CMAKE_CURRENT_LIST_DIR}/sass_dump.c
    ${PROJECT_SOURCE_DIR}/runtime/cli/explore/sass_parse.c
    ${PROJECT_SOURCE_DIR}/runtime/cli/explore/sass_control.c
    ${PROJECT_SOURCE_DIR}/runtime/cli/explore/sass_flow.c
    ${PROJECT_SOURCE_DIR}/runtime/cli/explore/sass_slots.c
    ${PROJECT_SOURCE_DIR}/runtime/tool/cli_text.c)
  target_include_directories(sass_dump PRIVATE ${PROJECT_SOURCE_DIR}/runtime
    ${KILN_CJSON_INCLUDE})
  target_link_libraries(sass_dump PRIVATE kiln_flags kiln_static)
  add_test(NAME compile.sass COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/sass_test.py $<TARGET_FILE:kiln_cli>
    $<TARGET_FILE:sass_dump>)
  set_tests_properties(compile.sass PROPERTIES LABELS compile
    SKIP_RETURN_CODE 77 TIMEOUT 3600)
endif()

# Kiln's line tables against the text of nvdisasm.
if(Python3_FOUND AND TARGET kiln_cli)
  add_test(NAME compile.line_tables COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/line_tables.py $<TARGET_FILE:kiln_cli>)
  set_tests_properties(compile.line_tables PROPERTIES LABELS compile
    SKIP_RETURN_CODE 77 TIMEOUT 3600)
endif()
