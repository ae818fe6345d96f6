# Files that include the toolkit's headers are compiled where those are.
find_path(KILN_CUDA_INCLUDE cuda.h PATHS $ENV{CUDA_PATH} $ENV{CUDA_HOME}
  /usr/local/cuda PATH_SUFFIXES include)
if(TARGET device_corpus AND KILN_CUDA_INCLUDE)
  file(STRINGS ${KILN_CUDA_INCLUDE}/cuda.h line
    REGEX "^#define CUDA_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+" version "${line}")
  target_compile_definitions(device_corpus PRIVATE
    KILN_TEST_CUDA_INCLUDE="${KILN_CUDA_INCLUDE}"
    KILN_TEST_CUDA_VERSION=${version})
endif()
