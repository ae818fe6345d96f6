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

/* A child process and the pipes to and from it. */
typedef struct helper {
  pid_t pid;
  int to, from;
} helper;

static helper start(void (*run)(int from, int to))
{
  int down[2], up[2];
  helper h;

  ck_assert_int_eq(pipe(down) | pipe(up), 0);
  h.pid = fork();
  ck_assert_int_ge(h.pid, 0);
  if (h.pid == 0) {
    close(down[1]);
    run(down[0], up[1]);
  }
  close(down[0]);
  close(up[1]);
  h.to = down[1];
  h.from = up[0];
  return h;
}

static void finish(const helper *h)
{
  int status;

  ck_assert_int_eq(waitpid(h->pid, &status, 0), h->pid);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                "child: status %d", status);
  close(h->to);
  close(h->from);
}

/* The child waits for an event that this process records behind a gate. */
static void wait_for_each_other(const helper *h)
{
  CUipcEventHandle handle;
  gate g = {false, false};
  CUstream s;
  CUevent e, local;
  char byte;

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
  transfer(h->to, &handle, sizeof handle, true);
  transfer(h->from, &byte, 1, false);
  atomic_store(&g.open, true);
  ok(cu(eventSynchronize)(e));
  finish(h);
  ok(cu(eventQuery)(e));
}

/* One test, since no process may be forked after cuInit. */
START_TEST(processes_share_memory_and_events)
{
  const helper memory = start(child), events = start(event_child);
  uint32_t end = 0;
  CUcontext c;

  ok(cu(init)(0));
  ok(cu(ctxCreate)(&c, 0, 0));
  share(SMALL, memory.to, memory.from);
  share(LARGE, memory.to, memory.from);
  share(SMALL, memory.to, memory.from);
  transfer(memory.to, &end, sizeof end, true);
  finish(&memory);
  wait_for_each_other(&events);
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
                 TESTS(processes_share_memory_and_events));
  return kiln_test_run(s);
}
