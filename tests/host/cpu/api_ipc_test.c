/* api_ipc_test.c -- tests device memory and events that two processes share. The test forks before
 * either process calls cuInit, as CUDA requires. */
#include "api_fixture.h"
#include "support.h"

#include <sys/socket.h>
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

/* ---- Memory pools -------------------------------------------------------- */

/* Receives a descriptor with the message. Returns -1 if there is none. */
static int receive_file(int from)
{
  char byte, control[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec one = {&byte, 1};
  struct msghdr m = {.msg_iov = &one,
                     .msg_iovlen = 1,
                     .msg_control = control,
                     .msg_controllen = sizeof control};
  int fd = -1;

  if (recvmsg(from, &m, 0) == 1 && CMSG_FIRSTHDR(&m) != NULL)
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
  return fd;
}

static void send_file(int to, int fd)
{
  char byte = 'f', control[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec one = {&byte, 1};
  struct msghdr m = {.msg_iov = &one,
                     .msg_iovlen = 1,
                     .msg_control = control,
                     .msg_controllen = sizeof control};
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);

  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(c), &fd, sizeof fd);
  ck_assert_int_eq(sendmsg(to, &m, 0), 1);
}

static void *as_handle(int fd)
{
  return (void *)(intptr_t)fd;
}

/* Imports the parent's pool, checks an allocation and doubles its bytes. */
static void pool_child(int socket)
{
  const CUmemAllocationHandleType type =
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  unsigned char bytes[SMALL];
  CUmemPoolPtrExportData data;
  CUmemoryPool pool, own;
  CUdeviceptr p, other;
  CUcontext c;
  uint64_t used;
  int fd;

  EXPECT(cu(init)(0) == CUDA_SUCCESS);
  EXPECT(cu(ctxCreate)(&c, 0, 0) == CUDA_SUCCESS);
  EXPECT(cu(deviceGetDefaultMemPool)(&own, 0) == CUDA_SUCCESS);
  EXPECT((fd = receive_file(socket)) >= 0);
  EXPECT(read(socket, &data, sizeof data) == (ssize_t)sizeof data);
  EXPECT(cu(memPoolImportFromShareableHandle)(&pool, as_handle(socket), type,
                                              0) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cu(memPoolImportFromShareableHandle)(&pool, as_handle(fd), type, 0) ==
         CUDA_SUCCESS);
  EXPECT(close(fd) == 0);
  EXPECT(cu(memAllocFromPoolAsync)(&other, 8, pool, NULL) ==
         CUDA_ERROR_INVALID_VALUE);
  EXPECT(cu(deviceSetMemPool)(0, pool) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cu(memPoolImportPointer)(&p, own, &data) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cu(memPoolImportPointer)(&p, pool, &data) == CUDA_SUCCESS);
  EXPECT(cu(memPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
                                 &used) == CUDA_SUCCESS);
  EXPECT(used == SMALL);
  EXPECT(cu(memcpyDtoH)(bytes, p, SMALL) == CUDA_SUCCESS);
  for (int i = 0; i < SMALL; i++) {
    EXPECT(bytes[i] == i);
    bytes[i] = (unsigned char)(i * 2);
  }
  EXPECT(cu(memcpyHtoD)(p, bytes, SMALL) == CUDA_SUCCESS);
  EXPECT(cu(memPoolExportPointer)(&data, p) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cu(memFreeAsync)(p, NULL) == CUDA_SUCCESS);
  EXPECT(cu(streamSynchronize)(NULL) == CUDA_SUCCESS);
  data.reserved[16] ^= 1; /* another inode */
  EXPECT(cu(memPoolImportPointer)(&p, pool, &data) != CUDA_SUCCESS);
  EXPECT(cu(memPoolDestroy)(pool) == CUDA_SUCCESS);
  EXPECT(write(socket, "d", 1) == 1);
  _exit(0);
}

static void share_pool(pid_t child_pid, int socket)
{
  const CUmemAllocationHandleType type =
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .handleTypes = type,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  unsigned char bytes[SMALL];
  CUmemPoolPtrExportData data;
  CUmemoryPool pool, own;
  CUdeviceptr p;
  int fd, status;
  char done;

  for (int i = 0; i < SMALL; i++)
    bytes[i] = (unsigned char)i;
  ok(cu(deviceGetDefaultMemPool)(&own, 0));
  is(cu(memPoolExportToShareableHandle)(&fd, own, type, 0),
     CUDA_ERROR_INVALID_VALUE);
  ok(cu(memPoolCreate)(&pool, &props));
  ok(cu(memAllocFromPoolAsync)(&p, SMALL, pool, NULL));
  ok(cu(memcpyHtoD)(p, bytes, SMALL));
  is(cu(memPoolExportPointer)(&data, p), CUDA_ERROR_INVALID_VALUE);
  ok(cu(memPoolExportToShareableHandle)(&fd, pool, type, 0));
  ok(cu(memPoolExportPointer)(&data, p));
  send_file(socket, fd);
  close(fd);
  transfer(socket, &data, sizeof data, true);
  transfer(socket, &done, 1, false);
  ok(cu(memcpyDtoH)(bytes, p, SMALL));
  for (int i = 0; i < SMALL; i++)
    ck_assert_uint_eq(bytes[i], (unsigned)i * 2);
  ok(cu(memFreeAsync)(p, NULL));
  ok(cu(memPoolDestroy)(pool));
  ck_assert_int_eq(waitpid(child_pid, &status, 0), child_pid);
  ck_assert_int_eq(status, 0);
}

START_TEST(processes_share_pools)
{
  int sockets[2];
  pid_t pid;
  CUcontext c;

  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  pid = fork();
  ck_assert_int_ge(pid, 0);
  if (pid == 0)
    pool_child(sockets[1]);
  close(sockets[1]); /* so that a child that fails ends the test */
  ok(cu(init)(0));
  ok(cu(ctxCreate)(&c, 0, 0));
  share_pool(pid, sockets[0]);
  close(sockets[0]);
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

  kiln_test_case(
      s, "ipc", 60, nothing, nothing,
      TESTS(processes_share_memory_and_events, processes_share_pools));
  return kiln_test_run(s);
}
