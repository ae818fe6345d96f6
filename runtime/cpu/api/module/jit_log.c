/* jit_log.c -- implements the JIT options for log messages, which name buffers
 * of the program. */
#include "api_module.h"

#include "../../../base/os.h"

#include <string.h>

/* Returns the buffer size that a JIT option specifies. The low 32 bits of the
 * option value are the size itself, not a pointer to the size. */
static size_t size_value(void *value)
{
  return (size_t)(uint32_t)(uintptr_t)value;
}

CUresult kiln__cpu_jit_read(kiln__cpu_jit *jit, unsigned n,
                            const CUjit_option *options, void **values)
{
  *jit = (kiln__cpu_jit){.started = kiln__clock_ns()};
  CU_TRY(valid(n == 0 || (options != NULL && values != NULL)));
  for (unsigned i = 0; i < n; i++) {
    switch (options[i]) {
    case CU_JIT_INFO_LOG_BUFFER:
      jit->info = values[i];
      break;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
      jit->info_size = size_value(values[i]);
      jit->info_out = &values[i];
      break;
    case CU_JIT_ERROR_LOG_BUFFER:
      jit->error = values[i];
      break;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
      jit->error_size = size_value(values[i]);
      jit->error_out = &values[i];
      break;
    case CU_JIT_MAX_REGISTERS:
      jit->max_registers = (uint32_t)(uintptr_t)values[i];
      break;
    case CU_JIT_WALL_TIME:
      jit->time_out = &values[i];
      break;
    default:
      CU_TRY(valid(options[i] >= 0));
    }
  }
  return CUDA_SUCCESS;
}

/* Fills one log buffer and writes the number of used bytes into the option that
 * specifies the size. */
static void fill(char *buf, size_t size, void **out, const char *text)
{
  size_t used = 0;

  if (buf != NULL && size > 0) {
    kiln__copy_text(buf, size, text);
    used = strlen(buf);
  }
  if (out != NULL)
    *out = (void *)(uintptr_t)used;
}

void kiln__cpu_jit_write(const kiln__cpu_jit *jit, CUresult rc,
                         const char *text)
{
  const bool ok = rc == CUDA_SUCCESS;

  fill(jit->info, jit->info_size, jit->info_out, ok ? text : "");
  fill(jit->error, jit->error_size, jit->error_out, ok ? "" : text);
  if (jit->time_out != NULL) {
    const float ms = (float)(kiln__clock_ns() - jit->started) / 1e6F;

    memcpy(jit->time_out, &ms, sizeof ms);
  }
}
