# Groups of ranks: each program NAME_ranks.c runs as four threads of one process, as four
# processes that share memory, and as four processes under every MPI that is installed. A thorough run repeats it with
# seven ranks. No program is linked with MPI.
file(GLOB comm_programs CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_ranks.c)
set(comm_folder ${CMAKE_CURRENT_LIST_DIR})
foreach(source IN LISTS comm_programs)
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "_ranks$" "" name ${name})
  add_executable(comm_${name} ${source})
  target_link_libraries(comm_${name} PRIVATE kiln_flags kiln_cpu_static
    kiln_comm_static kiln_static Threads::Threads m)
  target_compile_options(comm_${name} PRIVATE -std=gnu11 -Wno-pedantic
    $<$<CONFIG:RelWithDebInfo>:-O1>)
  add_dependencies(comm_${name} kiln_mpi fake_nccl)
  set(hows local openmpi mpich)
  if(NOT name MATCHES "distributed|operations") # the collectives below are the same
    list(APPEND hows shared nccl alone)
  endif()
  foreach(how IN LISTS hows)
    add_test(NAME comm.${name}_${how} COMMAND ${CMAKE_COMMAND} -E env
      BUILD=${PROJECT_BINARY_DIR} bash ${comm_folder}/launch.sh ${how}
      $<TARGET_FILE:comm_${name}>)
    set_tests_properties(comm.${name}_${how} PROPERTIES LABELS "device"
      SKIP_RETURN_CODE 77 TIMEOUT 3600)
  endforeach()
endforeach()

# Two machines, as network namespaces: in a thorough run, where they can be made.
foreach(mpi IN ITEMS openmpi mpich)
  add_test(NAME comm.network_${mpi} COMMAND ${CMAKE_COMMAND} -E env
    BUILD=${PROJECT_BINARY_DIR} bash ${comm_folder}/network.sh ${mpi}
    ${CMAKE_CURRENT_BINARY_DIR})
  set_tests_properties(comm.network_${mpi} PROPERTIES LABELS "device"
    SKIP_RETURN_CODE 77 TIMEOUT 3600 RESOURCE_LOCK network_namespaces)
endforeach()

# The declarations of NCCL are compared with NVIDIA's header where it is installed, for
# example by -DKILN_NCCL_INCLUDE= and the folder of a Python wheel.
find_path(KILN_NCCL_INCLUDE nccl.h)
if(KILN_NCCL_INCLUDE AND KILN_CUDA_INCLUDE)
  add_library(comm_nccl_abi OBJECT ${comm_folder}/nccl_abi.c)
  target_include_directories(comm_nccl_abi SYSTEM PRIVATE ${KILN_NCCL_INCLUDE}
    ${KILN_CUDA_INCLUDE})
endif()
