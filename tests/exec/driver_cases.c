/* driver_cases.c -- prints what the driver returns for calls of virtual memory management,
 * batched copies, cooperative launches and graphs. It prints nothing that depends on the
 * machine. The file driver_cases.txt has the output of an H200 with
 * driver 13.0.
 *
 * usage: driver_cases [PART] */
#include "cuda_driver.h"

#include <sys/wait.h>
#include <unistd.h>

/* Prints a call with its result, or a value. */
#define T(call) print_result(#call, call)
#define V(value) printf("%s = %lld\n", #value, (long long)(value))

#define MB ((size_t)1 << 20)

static void print_result(const char *call, CUresult rc)
{
  const char *name = "?";

  (void)cuGetErrorName(rc, &name);
  printf("%s: %s\n", call, name);
}

static const char text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 g0;\n"
    ".visible .global .align 1 .b8 g1[1];\n"
    ".visible .global .align 16 .b8 g2[1000];\n"
    ".visible .entry fill(.param .u64 p, .param .u32 n, .param .u32 v)\n"
    "{ .reg .b32 %r<6>; .reg .b64 %d<4>; .reg .pred %q;\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "mad.lo.u32 %r1, %r1, %r2, %r3; ld.param.u32 %r2, [n];\n"
    "ld.param.u32 %r4, [v];\n"
    "setp.ge.u32 %q, %r1, %r2; @%q ret;\n"
    "ld.param.u64 %d1, [p]; mul.wide.u32 %d2, %r1, 4;\n"
    "add.u64 %d1, %d1, %d2; add.u32 %r4, %r4, %r1;\n"
    "st.global.u32 [%d1], %r4; ret; }\n"
    ".visible .entry take(.param .u64 p, .param .u64 q)\n"
    "{ .reg .b32 %r<2>; .reg .b64 %d<3>; ld.param.u64 %d1, [p];\n"
    "ld.param.u64 %d2, [q]; ld.global.u32 %r1, [%d1];\n"
    "st.global.u32 [%d2], %r1; ret; }\n";

static CUmodule module;
static CUfunction fill, take;
static CUdevice device;
static CUcontext context;

static void start(void)
{
  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));
  OK(cuModuleLoadData(&module, text));
  OK(cuModuleGetFunction(&fill, module, "fill"));
  OK(cuModuleGetFunction(&take, module, "take"));
}

static CUresult run(CUdeviceptr p, unsigned n, unsigned v)
{
  void *args[] = {&p, &n, &v};
  const CUresult rc = cuLaunchKernel(fill, (n + 255) / 256, 1, 1, 256, 1, 1, 0,
                                     NULL, args, NULL);

  return rc != CUDA_SUCCESS ? rc : cuCtxSynchronize();
}

/* Reads one word by a kernel. */
static CUresult run_take(CUdeviceptr from, CUdeviceptr to)
{
  void *args[] = {&from, &to};
  const CUresult rc =
      cuLaunchKernel(take, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL);

  return rc != CUDA_SUCCESS ? rc : cuCtxSynchronize();
}

static CUmemAllocationProp prop_of(int types)
{
  return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .requestedHandleTypes = types,
                               .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
}

static const CUmemAccessDesc both = {
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

/* ---- Memory and addresses ------------------------------------------------- */

static void memory(void)
{
  const CUmemAllocationProp p = prop_of(0);
  CUmemAllocationProp q;
  CUmemGenericAllocationHandle h = 0;
  size_t before, after, total, g = 0;

  T(cuMemGetAllocationGranularity(&g, &p, 0));
  V(g);
  T(cuMemGetAllocationGranularity(&g, &p, 1));
  V(g);
  T(cuMemGetAllocationGranularity(NULL, &p, 0));
  T(cuMemGetAllocationGranularity(&g, NULL, 0));
  T(cuMemGetAllocationGranularity(&g, &p, 2));
  OK(cuMemGetInfo_v2(&before, &total));
  T(cuMemCreate(&h, 2 * MB, &p, 0));
  OK(cuMemGetInfo_v2(&after, &total));
  V(before - after);
  memset(&q, 7, sizeof q);
  T(cuMemGetAllocationPropertiesFromHandle(&q, h));
  V(q.type);
  V(q.requestedHandleTypes);
  V(q.location.type);
  V(q.allocFlags.compressionType);
  T(cuMemGetAllocationPropertiesFromHandle(NULL, h));
  T(cuMemRelease(h));
  T(cuMemRelease(h));
  T(cuMemRelease(0));
  T(cuMemCreate(NULL, 2 * MB, &p, 0));
  T(cuMemCreate(&h, 2 * MB, NULL, 0));
  T(cuMemCreate(&h, 0, &p, 0));
  T(cuMemCreate(&h, MB, &p, 0));
  T(cuMemCreate(&h, 3 * MB, &p, 0));
  T(cuMemCreate(&h, 2 * MB, &p, 1));
  T(cuMemCreate(&h, (size_t)1 << 46, &p, 0));
  q = p;
  q.type = 0;
  T(cuMemCreate(&h, 2 * MB, &q, 0));
  q = p;
  q.location.id = 99;
  T(cuMemCreate(&h, 2 * MB, &q, 0));
  q = p;
  q.location.type = 0;
  T(cuMemCreate(&h, 2 * MB, &q, 0));
  q = p;
  q.win32HandleMetaData = &q;
  T(cuMemCreate(&h, 2 * MB, &q, 0));
  q = p;
  q.allocFlags.reserved[0] = 1;
  T(cuMemCreate(&h, 2 * MB, &q, 0));
}

static void addresses(void)
{
  CUdeviceptr a = 0, b = 0, c = 0;

  T(cuMemAddressReserve(&a, 4 * MB, 0, 0, 0));
  V(a % (2 * MB));
  T(cuMemAddressReserve(&b, 4 * MB, 0, a + 4 * MB, 0));
  V(b == a + 4 * MB);
  T(cuMemAddressFree(b, 4 * MB));
  T(cuMemAddressReserve(&b, 4 * MB, 0, a, 0));
  V(b == a);
  T(cuMemAddressFree(a, 2 * MB));
  T(cuMemAddressFree(a + 2 * MB, 2 * MB));
  T(cuMemAddressFree(a, 8 * MB));
  T(cuMemAddressFree(a, 4 * MB));
  T(cuMemAddressFree(a, 4 * MB));
  T(cuMemAddressFree(b, 4 * MB));
  T(cuMemAddressReserve(NULL, 4 * MB, 0, 0, 0));
  T(cuMemAddressReserve(&c, 0, 0, 0, 0));
  T(cuMemAddressReserve(&c, MB, 0, 0, 0));
  T(cuMemAddressReserve(&c, 4 * MB, 3, 0, 0));
  T(cuMemAddressReserve(&c, 4 * MB, 4096, 0, 0));
  V(c % (2 * MB));
  T(cuMemAddressFree(c, 4 * MB));
  T(cuMemAddressReserve(&c, 4 * MB, 64 * MB, 0, 0));
  V(c % (64 * MB));
  T(cuMemAddressFree(c, 4 * MB));
  T(cuMemAddressReserve(&c, 4 * MB, 0, 0, 1));
  T(cuMemAddressReserve(&c, 4 * MB, 0, 12345, 0));
  T(cuMemAddressReserve(&c, (size_t)1 << 40, 0, 0, 0));
  T(cuMemAddressFree(c, (size_t)1 << 40));
  T(cuMemAddressReserve(&c, (size_t)1 << 52, 0, 0, 0));
  T(cuMemAddressFree(0, 4 * MB));
}

/* ---- Mappings ------------------------------------------------------------- */

static void pointer(CUdeviceptr p, CUdeviceptr base)
{
  CUdeviceptr first = base, start = base, mapping = base;
  size_t size = 0;
  int i = -7;
  unsigned char b = 9;
  unsigned long long types = 99;
  CUcontext owner = context;

#define P(out, attribute)                                                      \
  T(cuPointerGetAttribute(out, CU_POINTER_ATTRIBUTE_##attribute, p))
  T(cuMemGetAddressRange_v2(&first, &size, p));
  V(first == 0 ? -1 : (long long)(first - base));
  V(size);
  P(&owner, CONTEXT);
  V(owner == NULL);
  P(&i, MEMORY_TYPE);
  V(i);
  P(&start, DEVICE_POINTER);
  V(start == 0 ? -1 : (long long)(start - base));
  P(&i, IS_MANAGED);
  V(i);
  P(&i, DEVICE_ORDINAL);
  V(i);
  P(&b, IS_LEGACY_CUDA_IPC_CAPABLE);
  V(b);
  P(&start, RANGE_START_ADDR);
  V(start - base);
  P(&size, RANGE_SIZE);
  V(size);
  P(&types, ALLOWED_HANDLE_TYPES);
  V(types);
  P(&i, ACCESS_FLAGS);
  V(i);
  P(&size, MAPPING_SIZE);
  V(size);
  P(&mapping, MAPPING_BASE_ADDR);
  V(mapping - base);
}

/* Mapping of 4 MB at the begin, and of the same 2 MB at two places behind it. */
static void map_all(CUdeviceptr a, CUmemGenericAllocationHandle h,
                    CUmemGenericAllocationHandle k)
{
  T(cuMemMap(a, 4 * MB, 0, h, 1));
  T(cuMemMap(a, 4 * MB, 2 * MB, h, 0));
  T(cuMemMap(a, 2 * MB, 2 * MB, h, 0));
  T(cuMemMap(a, 2 * MB, 0, h, 0));
  T(cuMemMap(a, 8 * MB, 0, h, 0));
  T(cuMemMap(a, 0, 0, h, 0));
  T(cuMemMap(a + MB, 4 * MB, 0, h, 0));
  T(cuMemMap(0, 4 * MB, 0, h, 0));
  T(cuMemMap(a, 4 * MB, 0, 0, 0));
  T(cuMemMap(a, 4 * MB, 0, h, 0));
  T(cuMemUnmap(a, 2 * MB));
  T(cuMemMap(a, 4 * MB, 0, h, 0));
  T(cuMemMap(a + 2 * MB, 2 * MB, 0, k, 0));
  T(cuMemMap(a + 4 * MB, 2 * MB, 0, k, 0));
  T(cuMemMap(a + 6 * MB, 2 * MB, 0, k, 0));
}

static void access_of(CUdeviceptr a)
{
  CUmemLocation here = both.location, there = both.location;
  CUmemAccessDesc x = both;
  unsigned long long flags = 99;

  there.id = 99;
  T(cuMemGetAccess(&flags, &here, a));
  V(flags);
  T(cuMemSetAccess(a, 8 * MB, &both, 0));
  T(cuMemSetAccess(a, 8 * MB, NULL, 1));
  T(cuMemSetAccess(a, 0, &both, 1));
  T(cuMemSetAccess(a + MB, 2 * MB, &both, 1));
  T(cuMemSetAccess(a, 2 * MB, &both, 1));
  x.location.id = 99;
  T(cuMemSetAccess(a, 4 * MB, &x, 1));
  x = both;
  x.flags = 2;
  T(cuMemSetAccess(a, 4 * MB, &x, 1));
  x = both;
  x.location.type = 0;
  T(cuMemSetAccess(a, 4 * MB, &x, 1));
  T(cuMemSetAccess(a, 32 * MB, &both, 1));
  T(cuMemSetAccess(a, 4 * MB, &both, 1));
  T(cuMemGetAccess(&flags, &here, a));
  V(flags);
  T(cuMemGetAccess(&flags, &here, a + 6 * MB));
  V(flags);
  T(cuMemSetAccess(a, 8 * MB, &both, 1));
  T(cuMemGetAccess(&flags, &here, a + 6 * MB));
  V(flags);
  T(cuMemGetAccess(NULL, &here, a));
  T(cuMemGetAccess(&flags, NULL, a));
  T(cuMemGetAccess(&flags, &there, a));
}

/* Uses the memory that map_all() mapped. */
static void use(CUdeviceptr a)
{
  CUmemLocation here = both.location;
  CUmemAccessDesc x = both;
  unsigned long long flags = 99;
  unsigned *back = malloc(8 * MB);
  CUdeviceptr other;

  if (back == NULL)
    exit(4);
  T(run(a, 6 * MB / 4, 5));
  T(cuMemcpyDtoH_v2(back, a, 6 * MB));
  V(back[0]);
  V(back[6 * MB / 4 - 1]);
  T(cuMemcpyDtoH_v2(back, a + 6 * MB, 2 * MB));
  V(back[0]);
  T(cuMemsetD32_v2(a + 2 * MB, 11, 4 * MB / 4));
  T(cuMemcpyDtoD_v2(a, a + 4 * MB, 2 * MB));
  T(cuMemcpyDtoH_v2(back, a, 4));
  V(back[0]);
  OK(cuMemAlloc_v2(&other, 64));
  x.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  T(cuMemSetAccess(a, 4 * MB, &x, 1));
  T(cuMemGetAccess(&flags, &here, a));
  V(flags);
  T(run_take(a, other));
  T(cuMemcpyDtoH_v2(back, other, 4));
  V(back[0]);
  T(cuMemcpyDtoH_v2(back, a, 4));
  T(cuMemcpyHtoD_v2(a, back, 4));
  T(cuMemsetD32_v2(a, 3, 4));
  x.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  T(cuMemSetAccess(a, 4 * MB, &x, 1));
  T(cuMemGetAccess(&flags, &here, a));
  V(flags);
  T(cuMemcpyDtoH_v2(back, a, 4));
  T(cuMemcpyDtoH_v2(back, a + 2 * MB, 4 * MB));
  T(cuMemSetAccess(a, 4 * MB, &both, 1));
  T(cuMemcpyDtoH_v2(back, a, 4));
  free(back);
}

static void mappings(void)
{
  const CUmemAllocationProp p = prop_of(0);
  CUmemGenericAllocationHandle h = 0, k = 0, r = 0;
  CUmemLocation here = both.location;
  CUdeviceptr a = 0, d = 0;
  unsigned long long flags = 99;
  unsigned back = 0;

  T(cuMemAddressReserve(&a, 8 * MB, 0, 0, 0));
  T(cuMemCreate(&h, 4 * MB, &p, 0));
  T(cuMemCreate(&k, 2 * MB, &p, 0));
  pointer(a, a);
  T(cuMemGetAccess(&flags, &here, a));
  T(cuMemSetAccess(a, 2 * MB, &both, 1));
  T(cuMemUnmap(a, 2 * MB));
  map_all(a, h, k);
  pointer(a + 100, a);
  T(cuMemsetD8_v2(a, 1, 4));
  T(cuMemcpyDtoH_v2(&back, a, 4));
  access_of(a);
  pointer(a + 5 * MB, a);
  use(a);
  T(cuMemRetainAllocationHandle(&r, (void *)(uintptr_t)(a + 100)));
  V(r == h);
  T(cuMemRelease(r));
  T(cuMemRetainAllocationHandle(&r, (void *)(uintptr_t)0x1234));
  T(cuMemRetainAllocationHandle(NULL, (void *)(uintptr_t)a));
  T(cuMemRelease(h));
  T(cuMemcpyDtoH_v2(&back, a + 4 * MB, 4));
  T(cuMemFree_v2(a));
  T(cuMemUnmap(a, 0));
  T(cuMemUnmap(a + MB, 2 * MB));
  T(cuMemUnmap(a + 2 * MB, 2 * MB));
  T(cuMemUnmap(a + 4 * MB, 2 * MB));
  T(cuMemUnmap(a, 8 * MB));
  T(cuMemUnmap(a, 8 * MB));
  T(cuMemRelease(k));
  T(cuMemcpyDtoH_v2(&back, a, 4));
  T(cuMemAddressFree(a, 8 * MB));
  T(cuMemcpyDtoH_v2(&back, a, 4));
  T(cuMemAlloc_v2(&d, 4 * MB));
  T(cuMemUnmap(d, 4 * MB));
  T(cuMemGetAccess(&flags, &here, d));
  V(flags);
  T(cuMemSetAccess(d, 4 * MB, &both, 1));
  T(cuMemAddressFree(d, 4 * MB));
  T(cuMemFree_v2(d));
}

/* Addresses that are freed while memory is mapped to them. */
static void leftovers(void)
{
  const CUmemAllocationProp p = prop_of(0);
  CUmemGenericAllocationHandle h = 0;
  CUdeviceptr a = 0;

  T(cuMemAddressReserve(&a, 8 * MB, 0, 0, 0));
  T(cuMemCreate(&h, 2 * MB, &p, 0));
  T(cuMemMap(a + 2 * MB, 2 * MB, 0, h, 0));
  T(cuMemRelease(h));
  T(cuMemAddressFree(a, 8 * MB));
  T(cuMemUnmap(a, 8 * MB));
  T(cuMemAddressFree(a, 8 * MB));
}

static void share(void)
{
  const CUmemAllocationProp p = prop_of(1), q = prop_of(0);
  CUmemAllocationProp found;
  CUmemGenericAllocationHandle h = 0, k = 0, n = 0, x = 0;
  CUdeviceptr a = 0;
  int fd = -1, bad = -1;
  unsigned v = 0;

  T(cuMemCreate(&h, 2 * MB, &p, 0));
  T(cuMemCreate(&n, 2 * MB, &q, 0));
  T(cuMemExportToShareableHandle(&fd, h, 1, 0));
  V(fd >= 0);
  T(cuMemExportToShareableHandle(&bad, h, 1, 1));
  T(cuMemExportToShareableHandle(&bad, h, 2, 0));
  T(cuMemExportToShareableHandle(&bad, h, 0, 0));
  T(cuMemExportToShareableHandle(NULL, h, 1, 0));
  T(cuMemExportToShareableHandle(&bad, n, 1, 0));
#define IMPORT(out, fd, type)                                                  \
  T(cuMemImportFromShareableHandle(out, (void *)(intptr_t)(fd), type))
  IMPORT(&k, fd, 1);
  V(k == h);
  IMPORT(NULL, fd, 1);
  IMPORT(&x, fd, 2);
  IMPORT(&x, -1, 1);
  T(cuMemGetAllocationPropertiesFromHandle(&found, k));
  V(found.type);
  V(found.requestedHandleTypes);
  V(found.location.type);
  T(cuMemAddressReserve(&a, 4 * MB, 0, 0, 0));
  T(cuMemMap(a, 2 * MB, 0, h, 0));
  T(cuMemMap(a + 2 * MB, 2 * MB, 0, k, 0));
  T(cuMemSetAccess(a, 4 * MB, &both, 1));
  T(cuMemsetD32_v2(a, 77, 16));
  T(cuMemcpyDtoH_v2(&v, a + 2 * MB, 4));
  V(v);
  close(fd);
  T(cuMemRelease(h));
  T(cuMemUnmap(a, 2 * MB));
  T(cuMemcpyDtoH_v2(&v, a + 2 * MB, 4));
  V(v);
  T(cuMemUnmap(a + 2 * MB, 2 * MB));
  T(cuMemRelease(k));
  T(cuMemAddressFree(a, 4 * MB));
}

/* Kernels that access what they may not. Each breaks its context. */
static void bad_kernel(int which)
{
  const CUmemAllocationProp p = prop_of(0);
  CUmemAccessDesc read = both;
  CUmemGenericAllocationHandle h = 0;
  CUdeviceptr a = 0;

  OK(cuMemAddressReserve(&a, 8 * MB, 0, 0, 0));
  OK(cuMemCreate(&h, 4 * MB, &p, 0));
  OK(cuMemMap(a, 4 * MB, 0, h, 0));
  read.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  if (which != 0)
    OK(cuMemSetAccess(a, 4 * MB, which == 3 ? &read : &both, 1));
  if (which == 2)
    OK(cuMemUnmap(a, 4 * MB));
  T(run(a, which == 1 ? 4 * MB / 4 + 1 : 16, 3));
  T(cuMemUnmap(a, 4 * MB));
  T(cuMemCreate(&h, 4 * MB, &p, 0));
}

static void denied(void)
{
  bad_kernel(0);
}

static void past(void)
{
  bad_kernel(1);
}

static void unmapped(void)
{
  bad_kernel(2);
}

static void only_read(void)
{
  bad_kernel(3);
}

/* ---- Batches of copies ---------------------------------------------------- */

static CUDA_MEMCPY3D_BATCH_OP box(CUdeviceptr from, CUdeviceptr to)
{
  CUDA_MEMCPY3D_BATCH_OP op;

  memset(&op, 0, sizeof op);
  op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  op.src.op.ptr.ptr = from;
  op.dst.op.ptr.ptr = to;
  op.src.op.ptr.locHint = op.dst.op.ptr.locHint = both.location;
  op.extent = (CUextent3D){16, 2, 2};
  op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return op;
}

/* Changes one member of a copy, and tries it. */
#define TRY(member, value)                                                     \
  do {                                                                         \
    op = box(d[0], d[1]);                                                      \
    op.member = (value);                                                       \
    printf(#member " = " #value "\n");                                         \
    T(cuMemcpy3DBatchAsync_v2(1, &op, 0, s));                                  \
  } while (0)

static void mistaken_boxes(const CUdeviceptr *d, CUstream s)
{
  CUDA_MEMCPY3D_BATCH_OP op = box(d[0], d[1]);

  T(cuMemcpy3DBatchAsync_v2(0, &op, 0, s));
  T(cuMemcpy3DBatchAsync_v2(1, NULL, 0, s));
  T(cuMemcpy3DBatchAsync_v2(1, &op, 1, s));
  T(cuMemcpy3DBatchAsync_v2(1, &op, 0, NULL));
  TRY(extent.width, 0);
  TRY(extent.height, 0);
  TRY(extent.depth, 0);
  TRY(srcAccessOrder, 0);
  TRY(srcAccessOrder, 2);
  TRY(srcAccessOrder, 3);
  TRY(srcAccessOrder, 9);
  TRY(flags, 1);
  TRY(flags, 4);
  TRY(src.type, 0);
  TRY(dst.type, 3);
  TRY(src.op.ptr.rowLength, 8);
  TRY(src.op.ptr.rowLength, 32);
  TRY(dst.op.ptr.layerHeight, 1);
  TRY(dst.op.ptr.layerHeight, 4);
  TRY(src.op.ptr.ptr, 0);
}

/* Copies between pointers and an array of 8 x 4 x 2 elements of 4 bytes. */
static void array_boxes(const CUdeviceptr *d, CUstream s)
{
  const CUDA_ARRAY3D_DESCRIPTOR form = {.Width = 8,
                                        .Height = 4,
                                        .Depth = 2,
                                        .Format = CU_AD_FORMAT_UNSIGNED_INT32,
                                        .NumChannels = 1};
  CUDA_MEMCPY3D_BATCH_OP op = box(d[0], d[1]);
  unsigned back[8] = {0};
  CUarray array;

  T(cuArray3DCreate_v2(&array, &form));
  op.dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  op.dst.op.array.array = array;
  op.dst.op.array.offset = (CUoffset3D){2, 1, 0};
  op.extent = (CUextent3D){6, 2, 2};
  T(cuMemcpy3DBatchAsync_v2(1, &op, 0, s));
  op.dst.op.array.offset.x = 3;
  T(cuMemcpy3DBatchAsync_v2(1, &op, 0, s));
  op.dst.op.array.offset.x = 2;
  op.dst.op.array.offset.y = 3;
  T(cuMemcpy3DBatchAsync_v2(1, &op, 0, s));
  op = box(d[2], d[3]);
  op.src = (CUmemcpy3DOperand){.type = CU_MEMCPY_OPERAND_TYPE_ARRAY};
  op.src.op.array.array = array;
  op.src.op.array.offset = (CUoffset3D){4, 2, 1};
  op.extent = (CUextent3D){2, 1, 1};
  T(cuMemcpy3DBatchAsync_v2(1, &op, 0, s));
  T(cuStreamSynchronize(s));
  T(cuMemcpyDtoH_v2(back, d[3], 8));
  V(back[0]);
  V(back[1]);
  T(cuArrayDestroy(array));
}

static void batches(void)
{
  CUmemcpyAttributes at[2];
  size_t first[2] = {0, 1}, sizes[2] = {64, 128};
  unsigned host[64], back[64];
  CUDA_MEMCPY3D_BATCH_OP op[2];
  CUdeviceptr d[4], from[2], to[2];
  CUgraph graph;
  CUstream s;

  memset(at, 0, sizeof at);
  at[0].srcAccessOrder = at[1].srcAccessOrder =
      CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  for (unsigned i = 0; i < 64; i++)
    host[i] = 100 + i;
  for (int i = 0; i < 4; i++) {
    OK(cuMemAlloc_v2(&d[i], 4096));
    OK(cuMemcpyHtoD_v2(d[i], host, sizeof host));
  }
  OK(cuStreamCreate(&s, 0));
  for (int i = 0; i < 2; i++) {
    from[i] = (CUdeviceptr)(uintptr_t)(host + 16 * i);
    to[i] = d[i];
    op[i] = box(d[i], d[2 + i]);
  }
  T(cuMemcpyBatchAsync_v2(to, from, sizes, 2, at, first, 1, s));
  T(cuMemcpyBatchAsync_v2(to, from, sizes, 2, at, first, 2, s));
  T(cuMemcpyBatchAsync_v2(to, from, sizes, 2, at, first, 1, NULL));
  T(cuMemcpyBatchAsync_v2(to, from, sizes, 0, at, first, 1, s));
  T(cuMemcpyBatchAsync_v2(to, from, sizes, 2, at, first, 0, s));
  T(cuMemcpyBatchAsync_v2(to, from, sizes, 2, NULL, first, 1, s));
  T(cuMemcpy3DBatchAsync_v2(2, op, 0, s));
  T(cuStreamSynchronize(s));
  T(cuMemcpyDtoH_v2(back, d[3], 64));
  V(back[0]);
  V(back[15]);
  mistaken_boxes(d, s);
  array_boxes(d, s);
  T(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  T(cuMemcpyBatchAsync_v2(to, from, sizes, 2, at, first, 1, s));
  T(cuStreamEndCapture(s, &graph));
  T(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  T(cuMemcpy3DBatchAsync_v2(1, op, 0, s));
  T(cuStreamEndCapture(s, &graph));
}

static void peer_boxes(void)
{
  unsigned host[16] = {3, 1, 4, 1, 5, 9, 2, 6}, back[16] = {0};
  CUDA_MEMCPY3D_PEER c;
  CUdeviceptr d;

  OK(cuMemAlloc_v2(&d, 4096));
  memset(&c, 0, sizeof c);
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = host;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = d;
  c.srcContext = c.dstContext = context;
  c.WidthInBytes = c.srcPitch = c.dstPitch = 16;
  c.Height = c.srcHeight = c.dstHeight = c.Depth = 2;
  T(cuMemcpy3DPeer(&c));
  c.srcContext = NULL;
  T(cuMemcpy3DPeer(&c));
  c.dstContext = NULL;
  T(cuMemcpy3DPeer(&c));
  c.dstPitch = 8;
  T(cuMemcpy3DPeer(&c));
  T(cuMemcpyDtoH_v2(back, d, 64));
  V(back[2]);
  V(back[7]);
}

/* ---- Launches -------------------------------------------------------------- */

static void cooperative(void)
{
  CUDA_LAUNCH_PARAMS list[2];
  unsigned n = 32, v = 2, back = 0;
  CUdeviceptr d;
  void *args[] = {&d, &n, &v};
  CUstream s;

  OK(cuMemAlloc_v2(&d, 4096));
  OK(cuStreamCreate(&s, 0));
  memset(list, 0, sizeof list);
  list[0].function = fill;
  list[0].gridDimX = list[0].gridDimY = list[0].gridDimZ = 1;
  list[0].blockDimX = 32;
  list[0].blockDimY = list[0].blockDimZ = 1;
  list[0].hStream = s;
  list[0].kernelParams = args;
  list[1] = list[0];
  T(cuLaunchCooperativeKernelMultiDevice(list, 1, 0));
  T(cuCtxSynchronize());
  T(cuMemcpyDtoH_v2(&back, d + 4 * 31, 4));
  V(back);
  T(cuLaunchCooperativeKernelMultiDevice(list, 1, 3));
  T(cuLaunchCooperativeKernelMultiDevice(list, 1, 4));
  T(cuLaunchCooperativeKernelMultiDevice(NULL, 1, 0));
  T(cuLaunchCooperativeKernelMultiDevice(list, 0, 0));
  T(cuLaunchCooperativeKernelMultiDevice(list, 2, 0));
  list[0].hStream = NULL;
  T(cuLaunchCooperativeKernelMultiDevice(list, 1, 0));
  T(cuCtxSynchronize());
}

static void nothing(void *user)
{
  (void)user;
}

/* Graphs that kernels may launch. Here the host launches them. */
static void device_graphs(void)
{
  CUDA_KERNEL_NODE_PARAMS kernel;
  CUDA_HOST_NODE_PARAMS host = {nothing, NULL};
  CUDA_GRAPH_INSTANTIATE_PARAMS params;
  CUgraph graph, empty;
  CUgraphExec exec = NULL;
  CUgraphNode node, last;
  uint64_t flags = 99;
  unsigned n = 1, v = 2;
  CUdeviceptr d;
  void *args[] = {&d, &n, &v};
  CUstream s;

  OK(cuMemAlloc_v2(&d, 4096));
  OK(cuStreamCreate(&s, 0));
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphCreate(&empty, 0));
  memset(&kernel, 0, sizeof kernel);
  kernel.func = fill;
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = 32;
  kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = args;
  OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &kernel));
  T(cuGraphInstantiateWithFlags(&exec, graph, 4));
  T(cuGraphExecGetFlags(exec, &flags));
  V(flags);
  T(cuGraphLaunch(exec, s));
  T(cuGraphUpload(exec, s));
  T(cuGraphLaunch(exec, s));
  T(cuStreamSynchronize(s));
  T(cuGraphExecDestroy(exec));
  T(cuGraphInstantiateWithFlags(&exec, graph, 2));
  T(cuGraphInstantiateWithFlags(&exec, graph, 4 | 1));
  T(cuGraphInstantiateWithFlags(&exec, graph, 4 | 2));
  memset(&params, 0, sizeof params);
  params.flags = 4 | 2;
  params.hUploadStream = s;
  T(cuGraphInstantiateWithParams(&exec, graph, &params));
  V(params.result_out);
  T(cuGraphInstantiateWithParams(&exec, empty, &params));
  V(params.result_out);
  OK(cuGraphAddHostNode(&last, graph, NULL, 0, &host));
  T(cuGraphInstantiateWithParams(&exec, graph, &params));
  V(params.result_out);
  V(params.hErrNode_out == last);
  T(cuGraphInstantiateWithFlags(&exec, graph, 4));
}

static void variables(void)
{
  static const char *const names[] = {"g0", "g1", "g2"};

  for (int i = 0; i < 3; i++) {
    CUdeviceptr p = 0, first = 0;
    size_t n = 0, size = 0;

    T(cuModuleGetGlobal_v2(&p, &n, module, names[i]));
    V(n);
    V(p % 256);
    T(cuMemGetAddressRange_v2(&first, &size, p));
    V(size);
    V(p - first);
  }
}

static const struct {
  const char *name;
  void (*run)(void);
} parts[] = {{"memory", memory},
             {"addresses", addresses},
             {"mappings", mappings},
             {"leftovers", leftovers},
             {"share", share},
             {"denied", denied},
             {"past", past},
             {"unmapped", unmapped},
             {"only_read", only_read},
             {"batches", batches},
             {"peer_boxes", peer_boxes},
             {"cooperative", cooperative},
             {"device_graphs", device_graphs},
             {"variables", variables}};

/* Each part runs in a process of its own. */
int main(int argc, char **argv)
{
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    int status = 0;
    pid_t pid;

    if (argc > 1 && strcmp(argv[1], parts[i].name) != 0)
      continue;
    printf("== %s\n", parts[i].name);
    pid = fork();
    if (pid == 0) {
      start();
      parts[i].run();
      _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
      printf("died: %d\n", status);
  }
  return 0;
}
