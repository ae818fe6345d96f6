# Tests of `kiln profile`: programs on the CPU device, and a fake libcupti.
if(TARGET kiln_cpu_dropin AND TARGET kiln_profile AND Python3_FOUND)
  add_executable(profile_activities profile/activities.c)
  target_include_directories(profile_activities PRIVATE . ../runtime ../include)
  target_link_libraries(profile_activities PRIVATE kiln_flags kiln_cpu_dropin)
  target_compile_options(profile_activities PRIVATE -std=gnu11)
  set_target_properties(profile_activities PROPERTIES SKIP_BUILD_RPATH ON)
  add_executable(profile_player profile/player.c)
  target_link_libraries(profile_player PRIVATE kiln_flags ${CMAKE_DL_LIBS})
  target_compile_options(profile_player PRIVATE -std=gnu11)
  add_custom_target(profile_programs ALL DEPENDS profile_activities
    profile_player fake_cupti fake_cuda kiln_cli kiln_profile kiln_exec_libraries)
  set(sanitized 0)
  if(KILN_SANITIZE)
    set(sanitized 1)
  endif()
  add_test(NAME host.profile COMMAND ${CMAKE_COMMAND} -E env
    KILN=$<TARGET_FILE:kiln_cli> ACTIVITIES=$<TARGET_FILE:profile_activities>
    PLAYER=$<TARGET_FILE:profile_player> FAKE_CUPTI=$<TARGET_FILE:fake_cupti>
    FAKE_CUDA=$<TARGET_FILE:fake_cuda> SANITIZED=${sanitized}
    ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/profile_test.py)
  add_test(NAME host.profile_page COMMAND ${CMAKE_COMMAND} -E env
    KILN=$<TARGET_FILE:kiln_cli> ACTIVITIES=$<TARGET_FILE:profile_activities>
    PLAYER=$<TARGET_FILE:profile_player> FAKE_CUPTI=$<TARGET_FILE:fake_cupti>
    FAKE_CUDA=$<TARGET_FILE:fake_cuda>
    ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/timeline_page_test.py)
  add_test(NAME host.cupti_abi COMMAND ${CMAKE_COMMAND} -E env
    CC=${CMAKE_C_COMPILER} SOURCE=${PROJECT_SOURCE_DIR}
    ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/cupti_abi_test.py)
  set_tests_properties(host.profile host.profile_page host.cupti_abi PROPERTIES
    LABELS host
    SKIP_RETURN_CODE 77 TIMEOUT 3600)
endif()
