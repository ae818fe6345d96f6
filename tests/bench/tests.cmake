# CUB's twin of the library's reduction, for machines with nvcc. It is a shared
# object of its own, loaded by the command: neither depends on the other.
if(KILN_PEERS)
  find_program(KILN_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME
    PATHS /usr/local/cuda PATH_SUFFIXES bin REQUIRED)
  set(KILN_PEER_ARCH sm_90 CACHE STRING "Architecture of the CUB twins")
  set(peers_source ${PROJECT_SOURCE_DIR}/tests/bench/peers/reduce.cu)
  set(peers_library ${PROJECT_BINARY_DIR}/libkiln_peers.so)
  add_custom_command(OUTPUT ${peers_library} VERBATIM
    COMMAND ${KILN_NVCC} -O3 -arch=${KILN_PEER_ARCH} -std=c++17 -shared
      -Xcompiler -fPIC,-fvisibility=hidden -o ${peers_library} ${peers_source}
    DEPENDS ${peers_source})
  add_custom_target(kiln_peers ALL DEPENDS ${peers_library})
endif()
