/* mapped.c -- a program of virtual memory management, for `kiln exec`: a vector that grows
 * in place, memory that two processes share, and mistakes that the checks find.
 *
 * usage: mapped grow|share|denied|read|unmapped|past|unwritten */
#include "cuda_driver.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* add.cu, lines 1 to 6:
 *   extern "C" __global__ void add(int *p, unsigned n, int v)
 *   {
 *     unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
 *     if (i < n)
 *       p[i] += v;
 *   } */
static const char text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".file 1 \"add.cu\"\n"
    ".visible .entry add(.param .u64 p, .param .u32 n, .param .u32 v)\n"
    "{ .reg .b32 %r<6>; .reg .b64 %d<4>; .reg .pred %q;\n"
    ".loc 1 3 0\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "mad.lo.u32 %r1, %r1, %r2, %r3; ld.param.u32 %r2, [n];\n"
    ".loc 1 4 0\n"
    "setp.ge.u32 %q, %r1, %r2; @%q ret;\n"
    ".loc 1 5 0\n"
    "ld.param.u32 %r4, [v]; ld.param.u64 %d1, [p];\n"
    "mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;\n"
    "ld.global.u32 %r5, [%d1]; add.u32 %r5, %r5, %r4;\n"
    "st.global.u32 [%d1], %r5;\n"
    ".loc 1 6 0\n"
    "ret; }\n";

static const CUmemAllocationProp on_device = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc read_write = {
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static const CUmemAccessDesc only_read = {
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
    .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};

static CUfunction add;
static size_t grain;

static void start(void)
{
  CUdevice device;
  CUcontext context;
  CUmodule module;

  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));
  OK(cuModuleLoadData(&module, text));
  OK(cuModuleGetFunction(&add, module, "add"));
  OK(cuMemGetAllocationGranularity(&grain, &on_device,
                                   CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

static CUresult run(CUdeviceptr p, unsigned n, int v)
{
  void *args[] = {&p, &n, &v};
  const CUresult rc = cuLaunchKernel(add, (n + 255) / 256, 1, 1, 256, 1, 1, 0,
                                     NULL, args, NULL);

  return rc != CUDA_SUCCESS ? rc : cuCtxSynchronize();
}

/* Maps new memory of one granule to reserved addresses. */
static CUmemGenericAllocationHandle extend(CUdeviceptr at)
{
  CUmemGenericAllocationHandle memory;

  OK(cuMemCreate(&memory, grain, &on_device, 0));
  OK(cuMemMap(at, grain, 0, memory, 0));
  return memory;
}

/* A vector grows from one to four granules. Its address and elements stay. */
static int grow(void)
{
  const unsigned each = (unsigned)(grain / 4), edge = 2 * each - 2;
  unsigned back[4];
  CUdeviceptr p;

  OK(cuMemAddressReserve(&p, 4 * grain, 0, 0, 0));
  for (unsigned k = 0; k < 4; k++) {
    const CUmemGenericAllocationHandle memory = extend(p + k * grain);

    OK(cuMemRelease(memory)); /* the mapping keeps the memory */
    OK(cuMemSetAccess(p, (k + 1) * grain, &read_write, 1));
    OK(cuMemsetD32_v2(p + k * grain, k, each));
    OK(run(p, (k + 1) * each, 10));
  }
  OK(cuMemcpyDtoH_v2(back, p + edge * 4, sizeof back));
  OK(cuMemUnmap(p, 4 * grain));
  OK(cuMemAddressFree(p, 4 * grain));
  return back[0] == 1 + 30 && back[1] == 31 && back[2] == 2 + 20 &&
         back[3] == 22;
}

/* ---- Two processes ------------------------------------------------------- */

static void pass(int socket, int *fd, int out)
{
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {.bytes = {0}};
  char byte = 0;
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof control};
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);

  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(head), fd, sizeof *fd);
  if ((out ? sendmsg(socket, &message, 0) : recvmsg(socket, &message, 0)) != 1)
    exit(4);
  head = CMSG_FIRSTHDR(&message);
  if (!out && head != NULL)
    memcpy(fd, CMSG_DATA(head), sizeof *fd);
}

static CUdeviceptr map_at_once(CUmemGenericAllocationHandle memory)
{
  CUdeviceptr p;

  OK(cuMemAddressReserve(&p, grain, 0, 0, 0));
  OK(cuMemMap(p, grain, 0, memory, 0));
  OK(cuMemSetAccess(p, grain, &read_write, 1));
  return p;
}

static int child(int socket)
{
  CUmemGenericAllocationHandle memory;
  int fd = -1;

  start();
  pass(socket, &fd, 0);
  OK(cuMemImportFromShareableHandle(&memory, (void *)(intptr_t)fd,
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(fd);
  OK(run(map_at_once(memory), 1000, 5));
  return 0;
}

static int share(void)
{
  CUmemGenericAllocationHandle memory;
  unsigned back = 0;
  int ends[2], fd, status = 1;
  CUdeviceptr p;
  pid_t pid;

  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
    exit(4);
  pid = fork(); /* before cuInit, as CUDA requires */
  if (pid == 0)
    exit(child(ends[1]));
  start();
  OK(cuMemCreate(&memory, grain, &on_device, 0));
  p = map_at_once(memory);
  OK(cuMemsetD32_v2(p, 7, 1000));
  OK(cuMemExportToShareableHandle(&fd, memory,
                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  pass(ends[0], &fd, 1);
  waitpid(pid, &status, 0);
  OK(cuMemcpyDtoH_v2(&back, p + 4000 - 4, 4));
  return status == 0 && back == 12;
}

/* ---- Mistakes ------------------------------------------------------------ */

static int mistake(const char *which)
{
  const unsigned each = (unsigned)(grain / 4);
  const char *name = "?";
  unsigned n = 64;
  CUdeviceptr p;

  OK(cuMemAddressReserve(&p, 4 * grain, 0, 0, 0));
  extend(p);
  if (strcmp(which, "denied") != 0) {
    OK(cuMemSetAccess(p, grain, &read_write, 1));
    if (strcmp(which, "unwritten") != 0)
      OK(cuMemsetD32_v2(p, 0, each));
    if (strcmp(which, "read") == 0)
      OK(cuMemSetAccess(p, grain, &only_read, 1));
  }
  if (strcmp(which, "unmapped") == 0)
    OK(cuMemUnmap(p, grain));
  if (strcmp(which, "past") == 0)
    n = each + 1;
  (void)cuGetErrorName(run(p, n, 1), &name);
  printf("%s\n", name);
  return 0;
}

int main(int argc, char **argv)
{
  const char *job = argc > 1 ? argv[1] : "grow";
  int right;

  if (strcmp(job, "share") == 0) {
    right = share();
  } else {
    start();
    if (strcmp(job, "grow") != 0)
      return mistake(job);
    right = grow();
  }
  printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
