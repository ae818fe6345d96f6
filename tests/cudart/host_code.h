/* host_code.h -- what the host code of nvcc contains: the declarations of the runtime's
 * symbols, and fat binaries with their wrappers. Tests use it to register PTX texts
 * without nvcc. */
#ifndef KILN_TEST_HOST_CODE_H
#define KILN_TEST_HOST_CODE_H

#include "cpu/cudart/cudart.h"
#include "cpu/cudart/rt_majors.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define KILN__RT(name, symbol, majors, since, params, args)                    \
  KILN__RT_IN_##majors(cudaError_t symbol params;)
#define KILN__RT_STREAM(name, symbol, majors, since, form, params, args)       \
  KILN__RT_IN_##majors(cudaError_t symbol params;                              \
                       cudaError_t symbol##form params;)
#define KILN__RT_PLAIN(result, name, symbol, majors, since, params, args)      \
  KILN__RT_IN_##majors(result symbol params;)
#define KILN__RT_VOID(name, symbol, majors, since, params, args)               \
  KILN__RT_IN_##majors(void symbol params;)
#include "cpu/cudart/runtime_functions.def"

/* A fat binary with one PTX text, not compressed, for compute capability 5.2. */
typedef struct fat_binary {
  uint32_t magic; /* of the wrapper */
  uint32_t version;
  void *data; /* container */
  void *unused;
} fat_binary;

static inline void fat_binary_make(fat_binary *out, const char *ptx)
{
  const size_t n = strlen(ptx) + 1, padded = (n + 7) / 8 * 8;
  unsigned char *data = calloc(1, 16 + 64 + padded);
  const uint64_t all = 64 + padded, size = padded, flags = 0x11;
  const uint32_t magic = 0xba55ed50, head = 64, arch = 52;
  const uint16_t version = 1, head_size = 16, kind = 1, kind_version = 0x0101,
                 major = 6;

  ck_assert_ptr_nonnull(data);
  memcpy(data, &magic, 4);
  memcpy(data + 4, &version, 2);
  memcpy(data + 6, &head_size, 2);
  memcpy(data + 8, &all, 8);
  memcpy(data + 16, &kind, 2);
  memcpy(data + 18, &kind_version, 2);
  memcpy(data + 20, &head, 4);
  memcpy(data + 24, &size, 8);
  memcpy(data + 16 + 26, &major, 2);
  memcpy(data + 16 + 28, &arch, 4);
  memcpy(data + 16 + 40, &flags, 8);
  memcpy(data + 80, ptx, n);
  *out = (fat_binary){.magic = 0x466243b1, .version = 1, .data = data};
}

/* Registers a kernel by the address of any host object. */
static inline void register_kernel(void **image, const void *host,
                                   const char *name)
{
  __cudaRegisterFunction(image, host, NULL, name, -1, NULL, NULL, NULL, NULL,
                         NULL);
}

#define must(call) ck_assert_str_eq(cudaGetErrorName(call), "cudaSuccess")
#define fails(call, error)                                                     \
  do {                                                                         \
    ck_assert_str_eq(cudaGetErrorName(call), #error);                          \
    ck_assert_str_eq(cudaGetErrorName(cudaGetLastError()), #error);            \
  } while (0)

#endif
