# Each sample checks its own result, so each is a test, on the GPU or else on the
# CPU device. Those that measure run alone.
if(KILN_SAMPLES)
  file(GLOB samples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/samples/*.c)
  foreach(source IN LISTS samples)
    get_filename_component(name ${source} NAME_WE)
    add_test(NAME sample.${name} COMMAND sample_${name})
    set_tests_properties(sample.${name} PROPERTIES LABELS "device;checks"
      SKIP_RETURN_CODE 77 TIMEOUT 3600)
  endforeach()
  foreach(name profile streams synchronise timing transfers)
    set_property(TEST sample.${name} PROPERTY RUN_SERIAL TRUE)
  endforeach()
  # Under the checks their largest arrays take minutes, and 12 GB of shadow.
  foreach(name saxpy matrix_add)
    set_property(TEST sample.${name} PROPERTY LABELS device)
  endforeach()
endif()

# What a thorough run repeats with other seeds and architectures of the CPU device:
# all that depends on how lanes, warps and blocks take turns.
foreach(name capture cli cycles errors kernels launch reduce runtime timeline)
  set_property(TEST device.${name} PROPERTY LABELS device schedules checks)
endforeach()

# The operations: the same with fewer seeds, since there are many of them.
set(operations all_pairs counting_sort difference find gather gemm gemm_calls
  gemm_small group_statistics histogram histogram_2d map merge weighted_histogram
  operations partition reduce_by_key reduce_matrix reduce_op run_length
  scan_by_key scan_ladder scan search segmented_sort segmented select sort_ladder
  move views permute random sort split stencil)
foreach(name IN LISTS operations)
  set_property(TEST device.${name} PROPERTY LABELS device operations checks)
endforeach()

# Again with the tiles in shared memory or the leader block that large inputs get, with fewer cases
# unless the run is thorough. The rows with an asterisk are for thorough runs only.
foreach(tuned "scan 0 64 96 64 0 16" "scan 0 64 160 256 0 16*"
    "select 0 64 128 64 0 16*" "select 0 64 64 4 0 16"
    "reduce_by_key 0 64 96 16 0 20")
  string(REGEX REPLACE " .*" "" name ${tuned})
  string(REGEX REPLACE " 0 64 ([0-9]+) .*" "_staged_\\1" test ${tuned})
  set(run $<TARGET_FILE:device_${name}>)
  if(tuned MATCHES "[*]")
    string(REPLACE "*" "" tuned ${tuned})
    set(run "[ -n \"$KILN_TEST_THOROUGH\" ] || exit 77$<SEMICOLON> exec ${run}")
    set(run bash -c ${run})
  endif()
  add_test(NAME device.${test} COMMAND ${run})
  set_tests_properties(device.${test} PROPERTIES
    LABELS "device;operations;checks" SKIP_RETURN_CODE 77 TIMEOUT 3600
    ENVIRONMENT "KILN_TEST_TUNING=${tuned};KILN_TEST_SHORT=1")
endforeach()

# The kernels for tensor cores under all checks: warpgroups and the copy engine of 9.0;
# and sums that blocks share.
add_test(NAME device.gemm_checked COMMAND device_gemm)
set_tests_properties(device.gemm_checked PROPERTIES LABELS device
  SKIP_RETURN_CODE 77 TIMEOUT 3600
  ENVIRONMENT "CK_INCLUDE_TAGS=tensor brief;KILN_DEVICE=cpu:9.0,check=all")

# The instructions of one warp, for f16, bf16, i8 and f32: 9.0 uses them for f64 only.
add_test(NAME device.gemm_mma COMMAND device_gemm)
set_tests_properties(device.gemm_mma PROPERTIES LABELS device
  SKIP_RETURN_CODE 77 TIMEOUT 3600
  ENVIRONMENT "CK_RUN_CASE=tensor;KILN_DEVICE=cpu:8.0")

# Its sizes are for a GPU (tests/gpu.sh large); here the same code on few elements.
set_tests_properties(device.large PROPERTIES ENVIRONMENT KILN_TEST_LARGE=small)

# What runs again with every check of the CPU device on: all but what works in
# registers alone. A finding fails the test.
foreach(name approx corpus flow memory)
  set_property(TEST device.${name} PROPERTY LABELS device checks)
endforeach()

# What every run repeats with a seed, in lock-step and under all checks: the cases
# that these programs tag "brief".
foreach(name capture cycles errors kernels launch operations runtime timeline
    all_pairs counting_sort difference find gather group_statistics histogram map merge partition
    reduce_by_key reduce_matrix reduce_op run_length scan_by_key scan search
    segmented_sort segmented select sort split stencil)
  set_property(TEST device.${name} APPEND PROPERTY LABELS briefly)
endforeach()
