/* api_ipc_test.c -- tests device memory that two processes share. The test forks before
 * either process calls cuInit, as CUDA requires. */
#include "api_fixture.h"
#include "support.h"

#include <sys/wait.h>
#include <unistd.h>

enum { SMALL = 100, LARGE = 300000 };

static void transfer(int fd, void *p, size_t n, bool out)
{
  ck_assert_int_eq(out ? write(fd, p, n) : read(fd, p, n), (ssize_t)n);
}

/* Exits with 0 if the check holds in the child, so that the parent sees it. */
#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition))                                                          \
      _exit(__LINE__ % 250 + 1);                                               \
  } while (0)

/* Opens the parent's memory, checks its bytes and doubles them. */
static void child(int from, int to)
{
  static unsigned char bytes[LARGE];
  CUipcMemHandle handle;
  CUdeviceptr p, again;
  CUcontext c;
  uint32_t n;

  EXPECT(cu(init)(0) == CUDA_SUCCESS);
  EXPECT(cu(ctxCreate)(&c, 0, 0) == CUDA_SUCCESS);
  while (read(from, &n, sizeof n) == (ssize_t)sizeof n && n != 0) {
    EXPECT(read(from, &handle, sizeof handle) == (ssize_t)sizeof handle);
    EXPECT(cu(ipcOpenMemHandle)(&p, handle, 1) == CUDA_SUCCESS);
    EXPECT(cu(ipcOpenMemHandle)(&again, handle, 1) == CUDA_SUCCESS);
    EXPECT(again == p);
    EXPECT(cu(memcpyDtoH)(bytes, p, n) == CUDA_SUCCESS);
    for (uint32_t i = 0; i < n; i++) {
      EXPECT(bytes[i] == (unsigned char)(i * 3));
      bytes[i] = (unsigned char)(bytes[i] * 2);
    }
    EXPECT(cu(memcpyHtoD)(p, bytes, n) == CUDA_SUCCESS);
    EXPECT(cu(memFree)(p) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(cu(ipcCloseMemHandle)(p) == CUDA_SUCCESS);
    EXPECT(cu(ipcCloseMemHandle)(p) == CUDA_SUCCESS);
    EXPECT(cu(ipcCloseMemHandle)(p) == CUDA_ERROR_INVALID_VALUE);
    handle.reserved[16] ^= 1; /* another inode */
    EXPECT(cu(ipcOpenMemHandle)(&p, handle, 1) == CUDA_ERROR_INVALID_HANDLE);
    handle.reserved[0] ^= 1;
    EXPECT(cu(ipcOpenMemHandle)(&p, handle, 1) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(write(to, &n, sizeof n) == (ssize_t)sizeof n);
  }
  _exit(0);
}

static void share(uint32_t n, int to, int from)
{
  unsigned char *bytes = malloc(n);
  CUipcMemHandle handle, same;
  CUdeviceptr p, other;
  uint32_t answer;

  ck_assert_ptr_nonnull(bytes);
  for (uint32_t i = 0; i < n; i++)
    bytes[i] = (unsigned char)(i * 3);
  ok(cu(memAlloc)(&p, n));
  ok(cu(memcpyHtoD)(p, bytes, n));
  ok(cu(ipcGetMemHandle)(&handle, p));
  ok(cu(ipcGetMemHandle)(&same, p + n / 2));
  ck_assert_mem_eq(&handle, &same, sizeof handle);
  is(cu(ipcOpenMemHandle)(&other, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
  transfer(to, &n, sizeof n, true);
  transfer(to, &handle, sizeof handle, true);
  transfer(from, &answer, sizeof answer, false);
  ok(cu(memcpyDtoH)(bytes, p, n));
  for (uint32_t i = 0; i < n; i++)
    ck_assert_uint_eq(bytes[i], (unsigned char)((unsigned char)(i * 3) * 2));
  ok(cu(memFree)(p));
  free(bytes);
}

START_TEST(two_processes_share_device_memory)
{
  int down[2], up[2], status;
  uint32_t end = 0;
  CUcontext c;
  pid_t pid;

  ck_assert_int_eq(pipe(down) | pipe(up), 0);
  pid = fork();
  ck_assert_int_ge(pid, 0);
  if (pid == 0) {
    close(down[1]);
    child(down[0], up[1]);
  }
  close(up[1]);
  ok(cu(init)(0));
  ok(cu(ctxCreate)(&c, 0, 0));
  share(SMALL, down[1], up[0]);
  share(LARGE, down[1], up[0]);
  share(SMALL, down[1], up[0]);
  transfer(down[1], &end, sizeof end, true);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: %d",
                status);
  ok(cu(ctxDestroy)(c));
}
END_TEST

static void nothing(void)
{
}

int main(void)
{
  Suite *s = suite_create("cpu_api_ipc");

  kiln_test_case(s, "ipc", 60, nothing, nothing,
                 TESTS(two_processes_share_device_memory));
  return kiln_test_run(s);
}
