# The libFuzzer targets of the PTX parser and of the loader. They need clang and
# -DKILN_FUZZ=ON. All code that they run is compiled with instrumentation. Usage:
#   fuzz_ptx -dict=tests/fuzz/ptx.dict -max_total_time=60 FOLDER
option(KILN_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
if(KILN_FUZZ)
  set(kiln_fuzz_seconds 30)
  if(KILN_FUZZ_SECONDS)
    set(kiln_fuzz_seconds ${KILN_FUZZ_SECONDS})
  endif()
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "KILN_FUZZ needs clang")
  endif()
  file(GLOB fuzz_base CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/base/*.c)
  file(GLOB fuzz_ptx CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/runtime/cpu/ptx/*.c)
  file(GLOB fuzz_code CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/runtime/cpu/code/*.c
    ${PROJECT_SOURCE_DIR}/runtime/cpu/code/*/*.c)
  foreach(name IN ITEMS ptx loader)
    add_executable(fuzz_${name} ${CMAKE_CURRENT_LIST_DIR}/${name}_fuzz.c
      ${fuzz_base} ${fuzz_ptx})
    if(name STREQUAL "loader")
      target_sources(fuzz_${name} PRIVATE ${fuzz_code})
    endif()
    target_include_directories(fuzz_${name} PRIVATE
      ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/include
      ${KILN_XXHASH_INCLUDE})
    target_compile_definitions(fuzz_${name} PRIVATE KILN_BUILDING)
    target_compile_options(fuzz_${name} PRIVATE -g -O1
      -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)
    target_link_options(fuzz_${name} PRIVATE
      -fsanitize=fuzzer,address,undefined)
    target_link_libraries(fuzz_${name} PRIVATE kiln_flags Threads::Threads m)
    add_test(NAME fuzz.${name} COMMAND fuzz_${name}
      -dict=${CMAKE_CURRENT_LIST_DIR}/ptx.dict -max_total_time=${kiln_fuzz_seconds}
      -max_len=4096 -timeout=10 -rss_limit_mb=2048)
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 3600)
  endforeach()
endif()

# fuzz_mutate checks that mutated PTX does not crash the loader. In addition,
# compile.cpu_mutate passes mutated PTX that loads to ptxas. The test needs ptxas
# 13.0, the release that ptxas_differences.def describes. It is found through
# KILN_TEST_PTXAS, PATH, or the usual folders of CUDA toolkits.
add_executable(fuzz_mutate ${CMAKE_CURRENT_LIST_DIR}/mutate.c
  ${CMAKE_CURRENT_LIST_DIR}/ptxas.c)
target_link_libraries(fuzz_mutate PRIVATE kiln_test_support)
add_test(NAME host.cpu_mutate COMMAND fuzz_mutate -n 3000)
set_tests_properties(host.cpu_mutate PROPERTIES LABELS host TIMEOUT 3600)
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/corpus/*.cu)
add_test(NAME compile.cpu_mutate COMMAND fuzz_mutate -P -n 20000)
add_test(NAME compile.cpu_mutate_modules COMMAND fuzz_mutate -P -n 300
  ${fuzz_sources})
set_tests_properties(compile.cpu_mutate compile.cpu_mutate_modules PROPERTIES
  LABELS compile SKIP_RETURN_CODE 77 TIMEOUT 3600)
