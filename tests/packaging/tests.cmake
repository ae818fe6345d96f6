# Tests the ways to use Kiln in another project (installed, embedded, by pkg-config),
# and what the libraries export and import. Each test runs real builds in its folder.
set(work ${PROJECT_BINARY_DIR}/packaging)
find_program(KILN_CXX NAMES c++ g++ clang++)
find_path(KILN_CUDA_INCLUDE cuda.h PATHS $ENV{CUDA_PATH} $ENV{CUDA_HOME}
  /usr/local/cuda PATH_SUFFIXES include)
find_program(KILN_CROSS_CC aarch64-linux-gnu-gcc)

# Adds the test packaging.NAME, which runs SCRIPT. SOURCE, WORK and the further
# arguments are its environment variables.
function(kiln_packaging_test name script)
  add_test(NAME packaging.${name}
    COMMAND ${CMAKE_COMMAND} -E env SOURCE=${PROJECT_SOURCE_DIR}
      WORK=${work}/${name} CMAKE=${CMAKE_COMMAND} CC=${CMAKE_C_COMPILER}
      CXX=$<$<BOOL:${KILN_CXX}>:${KILN_CXX}> SANITIZE=${KILN_SANITIZE}
      "GENERATOR=${CMAKE_GENERATOR}" XXHASH=${KILN_XXHASH_INCLUDE}
      LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER} PREFIX=${work}/prefix ${ARGN}
      bash ${PROJECT_SOURCE_DIR}/tests/packaging/${script})
  set_tests_properties(packaging.${name} PROPERTIES
    LABELS "host;packaging" SKIP_RETURN_CODE 77 TIMEOUT 3600)
endfunction()

add_test(NAME packaging.install COMMAND ${CMAKE_COMMAND} --install
  ${PROJECT_BINARY_DIR} --prefix ${work}/prefix)
set_tests_properties(packaging.install PROPERTIES
  LABELS "host;packaging" FIXTURES_SETUP kiln_installed)

kiln_packaging_test(add_subdirectory embed.sh HOW=subdirectory)
foreach(how package package_static pkgconfig pkgconfig_static moved)
  kiln_packaging_test(${how} embed.sh HOW=${how})
  set_tests_properties(packaging.${how} PROPERTIES
    FIXTURES_REQUIRED kiln_installed)
endforeach()

kiln_packaging_test(installed install.sh NM=${CMAKE_NM})
set_tests_properties(packaging.installed PROPERTIES
  FIXTURES_REQUIRED kiln_installed)

kiln_packaging_test(fetch fetch.sh)

kiln_packaging_test(headers headers.sh
  CUDA=$<$<BOOL:${KILN_CUDA_INCLUDE}>:${KILN_CUDA_INCLUDE}>)
kiln_packaging_test(abi abi.sh SHARED=$<TARGET_FILE:kiln>
  FAKE_DRIVER=${PROJECT_BINARY_DIR}/tests/fakes/fake_cuda.so)
# Sanitizers and debug builds make the libraries larger.
set(measured "")
if(NOT KILN_SANITIZE AND CMAKE_BUILD_TYPE MATCHES "^Rel")
  set(measured ${PROJECT_BINARY_DIR})
endif()
kiln_packaging_test(minimal minimal.sh STRIP=${CMAKE_STRIP}
  LIBRARIES=${measured})
kiln_packaging_test(readme readme.sh)
kiln_packaging_test(rebuild rebuild.sh)
if(TARGET kiln_exec_libraries AND KILN_CLI AND KILN_SAMPLES)
  kiln_packaging_test(exec exec.sh)
endif()
kiln_packaging_test(aarch64 minimal.sh
  CROSS=$<$<BOOL:${KILN_CROSS_CC}>:${KILN_CROSS_CC}> NEEDS_CROSS=1)
if(NOT KILN_SANITIZE) # sanitizers add symbols of their own
  kiln_packaging_test(symbols symbols.sh SHARED=$<TARGET_FILE:kiln>
    STATIC=$<TARGET_FILE:kiln_static> NM=${CMAKE_NM} OBJDUMP=${CMAKE_OBJDUMP})
endif()

# The occupancy test compares its results with NVIDIA's header if it is installed.
if(TARGET host_occupancy AND KILN_CUDA_INCLUDE)
  target_include_directories(host_occupancy SYSTEM PRIVATE ${KILN_CUDA_INCLUDE})
endif()
