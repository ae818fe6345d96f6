# The tests of the cache share a fixture. Some tests start many processes of
# cache_worker.
foreach(name IN ITEMS key entry disk flight pack torture)
  target_sources(host_cache_${name} PRIVATE
    ${CMAKE_CURRENT_LIST_DIR}/cache_fixture.c)
endforeach()
add_executable(cache_worker ${CMAKE_CURRENT_LIST_DIR}/cache_worker.c
  ${CMAKE_CURRENT_LIST_DIR}/cache_fixture.c)
target_link_libraries(cache_worker PRIVATE kiln_test_support)
target_compile_definitions(host_cache_torture PRIVATE
  KILN_CACHE_WORKER="$<TARGET_FILE:cache_worker>")
add_dependencies(host_cache_torture cache_worker)
# These tests take long, so --quick omits them.
foreach(name IN ITEMS alloc_torture cache_torture cycles)
  set_tests_properties(host.${name} PROPERTIES LABELS "host;torture")
endforeach()
