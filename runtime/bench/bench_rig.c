/* bench_rig.c -- the functions that every benchmark needs: a device with a
 * stream and events, and look-up of functions in the shared objects of the
 * comparison libraries. */
#include "bench/bench.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

enum { SLOW_ITERATIONS = 40000 /* number of iterations of the busy kernel */ };

uint64_t kiln__bench_most(const cli_sizes *sizes)
{
  unsigned most = 0;

  for (size_t i = 0; i < sizes->n; i++)
    most = sizes->bits[i] > most ? sizes->bits[i] : most;
  return UINT64_C(1) << most;
}

bool kiln__bench_chosen(const bench_options *o, const char *label)
{
  return o->only == NULL || strstr(label, o->only) != NULL;
}

/* ---- The device --------------------------------------------------------- */

kiln_status kiln__bench_rig_open(bench_rig *rig, cli *c, int ordinal)
{
  const kiln_program_desc slow = {.builtin = "slow"};

  rig->c = c;
  CLI_TRY(kiln_device_open(&rig->device, c->rt, ordinal, NULL));
  CLI_TRY(kiln_device_describe(rig->device, &rig->info));
  CLI_TRY(kiln_stream_create(&rig->stream, rig->device, NULL));
  CLI_TRY(kiln_event_create(&rig->from, rig->device, true));
  CLI_TRY(kiln_event_create(&rig->to, rig->device, true));
  CLI_TRY(kiln_module_load(&rig->slow_module, rig->device, &slow));
  CLI_TRY(kiln_module_kernel(&rig->slow, rig->slow_module, "slow"));
  return kiln_memory_alloc(&rig->slow_out, rig->device, 256);
}

void kiln__bench_rig_close(bench_rig *rig)
{
  if (rig->device == NULL)
    return;
  kiln_memory_free(rig->device, rig->slow_out);
  kiln_module_free(rig->slow_module);
  kiln_event_free(rig->from);
  kiln_event_free(rig->to);
  kiln_stream_free(rig->stream);
  kiln_device_free(rig->device);
  rig->device = NULL;
}

void kiln__bench_rig_json(const bench_rig *rig, cJSON *json)
{
  const kiln_device_info *d = &rig->info;
  /* Memory transfers on both edges of its clock. */
  const double peak =
      2e3 * d->memory_clock_khz * (d->memory_bus_bits / 8.0) / 1e9;

  JSON_TEXT(json, "device", d->name);
  if (peak > 0)
    JSON_NUMBER(json, "peak_gb_per_s", peak);
}

kiln_status kiln__bench_rig_delay(bench_rig *rig)
{
  const kiln_launch_config one = {
      .grid = {.x = 1}, .block = {.x = 32}, .stream = rig->stream};
  const unsigned iterations = SLOW_ITERATIONS;

  return KILN_LAUNCH(rig->slow, &one, KILN_ARG(rig->slow_out),
                     KILN_ARG(iterations));
}

kiln_status kiln__bench_rig_time(bench_rig *rig, bench_fire_fn fire, void *user,
                                 double *ms)
{
  float took;

  CLI_TRY(kiln_event_record(rig->from, rig->stream));
  CLI_TRY(fire(user));
  CLI_TRY(kiln_event_record(rig->to, rig->stream));
  CLI_TRY(kiln_event_synchronize(rig->to));
  CLI_TRY(kiln_event_elapsed(&took, rig->from, rig->to));
  *ms = (double)took;
  return KILN_OK;
}

/* ---- Kernels and inputs that several benchmarks use --------------------- */

const char kiln__bench_saxpy[] =
    "extern \"C\" __global__ void saxpy(float a, const float *x, float *y,\n"
    "                                 unsigned n)\n"
    "{\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n)\n"
    "    y[i] = a * x[i] + y[i];\n"
    "}\n";

kiln_status kiln__bench_resources(bench_resources *out, const cli *c,
                                  const kiln_program_desc *desc,
                                  const kiln_target *target, unsigned block)
{
  kiln_image *image = NULL;
  kiln_traits traits;
  kiln_status st = kiln_compile(&image, c->rt, desc, target);

  *out = (bench_resources){.cubin_bytes = 0};
  if (st == KILN_OK)
    st = kiln_image_resources(image, 0, &out->kernel);
  if (st == KILN_OK)
    st = kiln_arch_traits(target->cc, &traits);
  if (st == KILN_OK)
    st = kiln_occupancy(&traits, (int)block, out->kernel.registers,
                        (size_t)out->kernel.shared_static, &out->occupancy);
  if (st == KILN_OK) {
    kiln_image_cubin(image, &out->cubin_bytes);
    out->from_compiler = kiln_image_origin(image) == KILN_FROM_COMPILER;
  }
  kiln_image_free(image);
  return st;
}

/* ---- Shared objects ----------------------------------------------------- */

bool kiln__bench_symbol(void *object, const char *name, void *slot)
{
  void *address = dlsym(object, name);

  /* POSIX guarantees that an object pointer can hold the address of a
   * function. */
  memcpy(slot, &address, sizeof address);
  return address != NULL;
}

void *kiln__bench_symbols(const char *path, const bench_symbol *list,
                          const char **why)
{
  void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);

  if (object == NULL) {
    *why = dlerror();
    return NULL;
  }
  for (; list->name != NULL; list++)
    if (!kiln__bench_symbol(object, list->name, list->slot)) {
      *why = list->name;
      return NULL;
    }
  return object;
}

void *kiln__bench_driver_symbols(cli *c, const bench_symbol *list,
                                 const char **why)
{
  kiln_driver_info driver;

  *why = "the CPU device inside this command is no driver library";
  if (c->on_cpu)
    return NULL;
  *why = "there is no driver";
  if (kiln_runtime_driver(c->rt, &driver) != KILN_OK)
    return NULL;
  return kiln__bench_symbols(driver.path, list, why);
}

/* Returns the path of libkiln_peers.so (the comparison libraries) in the folder
 * of this executable. */
static const char *beside_executable(cli *c)
{
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  char *slash;

  path[n > 0 ? n : 0] = '\0';
  slash = strrchr(path, '/');
  return kiln__cli_text(c, "%.*slibkiln_peers.so",
                        slash == NULL ? 0 : (int)(slash - path + 1), path);
}

void *kiln__bench_peers(cli *c, const char *path, int ordinal, const char **why)
{
  int (*use_device)(int) = NULL;
  const bench_symbol list[] = {{"kiln_peer_device", &use_device}, {NULL, NULL}};
  void *object;

  *why = "the CPU device runs none";
  if (c->on_cpu)
    return NULL;
  if (path == NULL)
    path = beside_executable(c);
  *why = "there is no libkiln_peers.so (build with -DKILN_PEERS=ON)";
  if (access(path, R_OK) != 0)
    return NULL;
  object = kiln__bench_symbols(path, list, why);
  if (object == NULL || use_device(ordinal) == 0)
    return object;
  *why = "the peers' library does not run on this GPU";
  return NULL;
}
