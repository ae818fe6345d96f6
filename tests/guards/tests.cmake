# Tests the rules that the source tree must follow; see guards.sh.
get_property(kiln_cpu_rooms GLOBAL PROPERTY kiln_cpu_rooms)
list(JOIN kiln_layers " " guard_layers)
list(JOIN kiln_cpu_rooms " " guard_rooms)
set(guards includes cycles basenames folders documented maps words sizes)
if(NOT KILN_SANITIZE) # a sanitizer adds symbols of its own
  list(APPEND guards symbols)
endif()
foreach(guard IN LISTS guards)
  add_test(NAME guard.${guard} COMMAND ${CMAKE_COMMAND} -E env
    "LAYERS=${guard_layers}" "ROOMS=${guard_rooms}" CC=${CMAKE_C_COMPILER}
    BUILD=${PROJECT_BINARY_DIR}
    bash ${CMAKE_CURRENT_LIST_DIR}/guards.sh ${guard})
  set_tests_properties(guard.${guard} PROPERTIES LABELS host TIMEOUT 3600)
endforeach()
