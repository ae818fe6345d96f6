# Builds the peers, the functions of other libraries with which `kiln bench` compares
# Kiln. They need nvcc. The command loads them from a separate shared library.
if(KILN_PEERS)
  find_program(KILN_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME
    PATHS /usr/local/cuda PATH_SUFFIXES bin REQUIRED)
  set(KILN_PEER_ARCH sm_90 CACHE STRING "Architecture of the peers")
  file(GLOB peers_sources CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/tests/bench/peers/*.cu)
  set(peers_library ${PROJECT_BINARY_DIR}/libkiln_peers.so)
  set(peers_objects "")
  foreach(source IN LISTS peers_sources)
    get_filename_component(name ${source} NAME_WE)
    set(object ${PROJECT_BINARY_DIR}/peers/${name}.o)
    add_custom_command(OUTPUT ${object} VERBATIM
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/peers
      COMMAND ${KILN_NVCC} -O3 -arch=${KILN_PEER_ARCH} -std=c++17
        -Xcompiler -fPIC,-fvisibility=hidden -c -o ${object} ${source}
      DEPENDS ${source})
    list(APPEND peers_objects ${object})
  endforeach()
  add_custom_command(OUTPUT ${peers_library} VERBATIM
    COMMAND ${KILN_NVCC} -arch=${KILN_PEER_ARCH} -shared -o ${peers_library}
      ${peers_objects} -lcublas
    DEPENDS ${peers_objects})
  add_custom_target(kiln_peers ALL DEPENDS ${peers_library})
endif()

# The functions that python/python_peers.py calls. Built only on request:
# cmake --build FOLDER --target kiln_python_calls
add_library(kiln_python_calls MODULE EXCLUDE_FROM_ALL
  ${PROJECT_SOURCE_DIR}/tests/bench/python/python_calls.c)
target_link_libraries(kiln_python_calls PRIVATE kiln_flags kiln)
set_target_properties(kiln_python_calls PROPERTIES C_STANDARD 11
  C_VISIBILITY_PRESET hidden
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
