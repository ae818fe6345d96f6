/* api_ipc_test.c -- tests device memory and events that two processes share. The test forks before
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

/* ---- Events -------------------------------------------------------------- */

/* Waits in a stream for the parent's event, then records an event of its own. */
static void event_child(int from, int to)
{
  CUipcEventHandle handle;
  CUcontext c;
  CUstream s;
  CUevent e;

  EXPECT(cu(init)(0) == CUDA_SUCCESS);
  EXPECT(cu(ctxCreate)(&c, 0, 0) == CUDA_SUCCESS);
  EXPECT(cu(streamCreate)(&s, 0) == CUDA_SUCCESS);
  EXPECT(read(from, &handle, sizeof handle) == (ssize_t)sizeof handle);
  EXPECT(cu(ipcOpenEventHandle)(&e, handle) == CUDA_SUCCESS);
  EXPECT(cu(eventQuery)(e) == CUDA_ERROR_NOT_READY);
  EXPECT(cu(streamWaitEvent)(s, e, 0) == CUDA_SUCCESS);
  EXPECT(cu(streamQuery)(s) == CUDA_ERROR_NOT_READY);
  EXPECT(write(to, "w", 1) == 1);
  EXPECT(cu(streamSynchronize)(s) == CUDA_SUCCESS);
  EXPECT(cu(eventQuery)(e) == CUDA_SUCCESS);
  EXPECT(cu(eventRecord)(e, s) == CUDA_SUCCESS);
  EXPECT(cu(eventSynchronize)(e) == CUDA_SUCCESS);
  EXPECT(cu(eventDestroy)(e) == CUDA_SUCCESS);
  handle.reserved[16] ^= 1;
  EXPECT(cu(ipcOpenEventHandle)(&e, handle) == CUDA_ERROR_INVALID_HANDLE);
  _exit(0);
}

START_TEST(a_stream_waits_for_an_event_of_another_process)
{
  int down[2], up[2], status;
  CUipcEventHandle handle;
  gate g = {false, false};
  CUcontext c;
  CUstream s;
  CUevent e, local;
  char byte;
  pid_t pid;

  ck_assert_int_eq(pipe(down) | pipe(up), 0);
  pid = fork();
  ck_assert_int_ge(pid, 0);
  if (pid == 0) {
    close(down[1]);
    event_child(down[0], up[1]);
  }
  close(up[1]);
  ok(cu(init)(0));
  ok(cu(ctxCreate)(&c, 0, 0));
  ok(cu(streamCreate)(&s, 0));
  is(cu(eventCreate)(&e, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
  ok(cu(eventCreate)(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  ok(cu(eventCreate)(&local, 0));
  is(cu(ipcGetEventHandle)(&handle, local), CUDA_ERROR_INVALID_HANDLE);
  ok(cu(eventQuery)(e));
  ok(cu(launchHostFunc)(s, gate_fn, &g));
  ok(cu(eventRecord)(e, s));
  is(cu(eventQuery)(e), CUDA_ERROR_NOT_READY);
  ok(cu(ipcGetEventHandle)(&handle, e));
  transfer(down[1], &handle, sizeof handle, true);
  transfer(up[0], &byte, 1, false);
  atomic_store(&g.open, true);
  ok(cu(eventSynchronize)(e));
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: %d",
                status);
  ok(cu(eventQuery)(e));
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
                 TESTS(two_processes_share_device_memory,
                       a_stream_waits_for_an_event_of_another_process));
  return kiln_test_run(s);
}
