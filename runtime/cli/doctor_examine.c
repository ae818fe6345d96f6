/* doctor_examine.c -- collects the facts for `kiln doctor` and draws
 * conclusions: problems, a fix for each problem, a verdict and a next step. */
#include "cli/doctor.h"

#include <dirent.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Source text of a small kernel without headers, whose result can be
 * verified. */
static const char probe[] =
    "extern \"C\" __global__ void probe(unsigned *out, unsigned seed)\n"
    "{\n"
    "  out[threadIdx.x] = threadIdx.x * 2654435761u ^ seed;\n"
    "}\n";

enum { PROBE_THREADS = 64 };

static void add_problem(doctor *d, const char *what, const char *fix)
{
  if (d->n_problems < DOCTOR_PROBLEMS)
    d->problems[d->n_problems++] = (doctor_problem){what, fix};
}

static const char *keep(doctor *d, const char *text)
{
  return kiln__cli_text(d->c, "%s", text);
}

/* ---- The machine -------------------------------------------------------- */

static bool read_line(const char *path, char *out, size_t size)
{
  FILE *f = fopen(path, "re");
  bool good = f != NULL && fgets(out, (int)size, f) != NULL;

  if (f != NULL)
    fclose(f);
  if (good)
    out[strcspn(out, "\n")] = '\0';
  return good;
}

/* Searches the PCI bus for a device of vendor 0x10de with display class
 * 0x03. Such a device is a GPU, even if the driver does not see it. */
static bool find_hardware(cli *c)
{
  glob_t found = {0};
  bool gpu = false;
  char text[32];

  if (glob("/sys/bus/pci/devices/*/vendor", 0, NULL, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc && !gpu; i++) {
      const char *path = found.gl_pathv[i];
      const int folder = (int)(strlen(path) - strlen("vendor"));

      gpu = read_line(path, text, sizeof text) && strcmp(text, "0x10de") == 0 &&
            read_line(kiln__cli_text(c, "%.*sclass", folder, path), text,
                      sizeof text) &&
            strncmp(text, "0x03", 4) == 0;
    }
  globfree(&found);
  return gpu;
}

static void examine_driver(doctor *d)
{
  char line[256];

  d->has_hardware = find_hardware(d->c);
  if (read_line("/proc/driver/nvidia/version", line, sizeof line))
    d->kernel_driver = keep(d, line);
  d->driver_status = kiln_runtime_driver(d->c->rt, &d->driver);
  d->driver_text = d->driver_hint = "";
  if (d->driver_status == KILN_OK)
    return;
  d->driver_text = kiln__cli_headline(d->c);
  d->driver_hint = keep(d, kiln_last_error()->hint);
}

/* ---- Compilers ---------------------------------------------------------- */

/* Finds a file such as libnvrtc-builtins.so.13.0 beside the NVRTC library that
 * would load it. The file name contains the version. If there are several
 * files, the version nearest to NVRTC's version is used. */
static void find_builtins(doctor *d, doctor_nvrtc *n)
{
  static const char prefix[] = "libnvrtc-builtins.so";
  const char *slash = strrchr(n->info.path, '/');
  const char *folder =
      slash == NULL ? "."
                    : kiln__cli_text(d->c, "%.*s", (int)(slash - n->info.path),
                                     n->info.path);
  DIR *dir = opendir(folder);
  const struct dirent *e;
  int best_gap = -1;

  n->builtins = "";
  while (dir != NULL && (e = readdir(dir)) != NULL) {
    const char *rest = e->d_name + sizeof prefix - 1;
    int a = 0, b = 0, version, gap;

    if (strncmp(e->d_name, prefix, sizeof prefix - 1) != 0 ||
        sscanf(rest, ".%d.%d", &a, &b) != 2)
      continue;
    version = a * 1000 + b * 10;
    gap = abs(version - n->info.version);
    if (best_gap >= 0 && gap >= best_gap)
      continue;
    best_gap = gap;
    n->builtins_version = version;
    n->builtins = kiln__cli_text(d->c, "%s/%s", folder, e->d_name);
  }
  if (dir != NULL)
    closedir(dir);
}

static void examine_nvrtc(doctor *d)
{
  kiln_nvrtc_info *info = kiln__cli_alloc(d->c, DOCTOR_NVRTC, sizeof *info);
  size_t n = 0;

  d->nvrtc_text = d->nvrtc_hint = "";
  d->nvrtc_status = kiln_runtime_nvrtc(d->c->rt, info, DOCTOR_NVRTC, &n);
  if (d->nvrtc_status != KILN_OK) {
    d->nvrtc_text = kiln__cli_headline(d->c);
    d->nvrtc_hint = keep(d, kiln_last_error()->hint);
    return;
  }
  d->n_nvrtc = n < DOCTOR_NVRTC ? n : DOCTOR_NVRTC;
  for (size_t i = 0; i < d->n_nvrtc; i++) {
    d->nvrtc[i].info = info[i];
    find_builtins(d, &d->nvrtc[i]);
  }
}

/* ---- GPUs --------------------------------------------------------------- */

static bool supports(const kiln_ladder_query *q)
{
  for (size_t i = 0; i < q->n_archs; i++)
    if (q->archs[i] == q->cc)
      return true;
  return false;
}

/* Asks the compatibility ladder about every NVRTC, as the library does. */
static void ask_ladder(doctor *d, doctor_device *gpu, const kiln_traits *traits)
{
  kiln_nvrtc_info *info = kiln__cli_alloc(d->c, DOCTOR_NVRTC, sizeof *info);

  for (size_t i = 0; i < d->n_nvrtc; i++)
    info[i] = d->nvrtc[i].info;
  gpu->query = (kiln_ladder_query){.cc = traits->cc,
                                   .tegra = traits->tegra,
                                   .ptx_only = d->driver.ptx_only,
                                   .driver_version = d->driver.version};
  if (!kiln__cli_ladder(&gpu->query, &gpu->ladder, info, d->n_nvrtc))
    gpu->ladder.rung = KILN_RUNG_REFUSE;
  gpu->supported = supports(&gpu->query);
}

/* Launches the small test kernel on device memory `p` and verifies the
 * result. */
static kiln_status verify_probe(kiln_device *device, kiln_module *module,
                                CUdeviceptr p)
{
  const unsigned seed = 12345;
  unsigned out[PROBE_THREADS] = {0};
  kiln_launch_config config = kiln_launch_1d(PROBE_THREADS, PROBE_THREADS);
  kiln_kernel *kernel = NULL;

  CLI_TRY(kiln_module_kernel(&kernel, module, "probe"));
  CLI_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(p), KILN_ARG(seed)));
  CLI_TRY(kiln_device_synchronize(device));
  CLI_TRY(kiln_copy_to_host(device, out, p, sizeof out));
  for (unsigned i = 0; i < PROBE_THREADS; i++)
    if (out[i] != (i * 2654435761u ^ seed))
      return KILN_ECORRUPT;
  return KILN_OK;
}

/* Compiles, loads, launches and verifies the small test kernel. */
static kiln_status run_probe(kiln_device *device)
{
  const kiln_program_desc desc = {
      .source = probe, .name = "probe.cu", .no_cache = true};
  kiln_module *module = NULL;
  CUdeviceptr p = 0;
  kiln_status st = kiln_module_load(&module, device, &desc);

  if (st == KILN_OK)
    st = kiln_memory_alloc(&p, device, PROBE_THREADS * sizeof(unsigned));
  if (st == KILN_OK)
    st = verify_probe(device, module, p);
  kiln_memory_free(device, p);
  kiln_module_free(module);
  return st;
}

static void examine_device(doctor *d, int ordinal)
{
  doctor_device *gpu = &d->devices[d->n_devices++];
  kiln_device *device = NULL;

  gpu->info.ordinal = ordinal;
  gpu->run_text = "";
  gpu->run = kiln_device_open(&device, d->c->rt, ordinal, NULL);
  if (gpu->run == KILN_OK) {
    const kiln_traits *traits = kiln_device_traits(device);

    gpu->cc = traits->cc;
    gpu->run = kiln_device_describe(device, &gpu->info);
    ask_ladder(d, gpu, traits);
    if (gpu->run == KILN_OK)
      gpu->run = run_probe(device);
  }
  if (gpu->run == KILN_ECORRUPT)
    gpu->run_text = "the result was wrong";
  else if (gpu->run != KILN_OK)
    gpu->run_text = keep(d, kiln_last_error()->message);
  kiln_device_free(device);
}

/* Compiles the small test kernel for the first GPU or the newest target. This
 * detects an NVRTC whose builtins library is missing. */
static void try_compile(doctor *d)
{
  const kiln_program_desc desc = {
      .source = probe, .name = "probe.cu", .no_cache = true};
  kiln_image *image = NULL;

  d->compile_text = d->compile_hint = "";
  d->compile_status = KILN_ENONVRTC;
  if (d->n_nvrtc == 0 || d->nvrtc[0].info.n_archs == 0)
    return;
  d->compile_target.cc = d->nvrtc[0].info.archs[d->nvrtc[0].info.n_archs - 1];
  if (d->n_devices > 0 && d->devices[0].ladder.rung < KILN_RUNG_PACK)
    d->compile_target = d->devices[0].ladder.target;
  d->compile_status = kiln_compile(&image, d->c->rt, &desc, &d->compile_target);
  if (d->compile_status == KILN_OK) {
    d->compile_ms = kiln_image_compile_ms(image);
  } else {
    d->compile_text = keep(d, kiln_last_error()->message);
    d->compile_hint = keep(d, kiln_last_error()->hint);
  }
  kiln_image_free(image);
}

/* ---- Files -------------------------------------------------------------- */

/* Checks whether each file of KILN_PACKS can be read. The library checks the
 * contents. */
static void examine_packs(doctor *d)
{
  const char *list = getenv("KILN_PACKS");
  char *rest, *path;

  if (list == NULL || list[0] == '\0')
    return;
  rest = kiln__cli_text(d->c, "%s", list);
  d->packs = kiln__cli_alloc(d->c, strlen(list), sizeof *d->packs);
  while ((path = kiln__cli_word(&rest, ":")) != NULL) {
    doctor_pack *p = &d->packs[d->n_packs++];
    struct stat info;

    p->path = path;
    if (stat(path, &info) != 0 || access(path, R_OK) != 0)
      p->reason = "cannot be read";
    else if (!S_ISREG(info.st_mode) || info.st_size == 0)
      p->reason = "is not a pack";
    else
      p->size = (uint64_t)info.st_size;
  }
}

/* ---- Diagnosis ---------------------------------------------------------- */

/* Diagnoses an NVRTC that is missing, does not work, or has the builtins of
 * another version. */
static void diagnose_compiler(doctor *d)
{
  cli *c = d->c;

  if (d->nvrtc_status != KILN_OK)
    add_problem(d, d->nvrtc_text, d->nvrtc_hint);
  else if (d->compile_status != KILN_OK)
    add_problem(d,
                kiln__cli_text(c, "NVRTC is there but does not work: %s",
                               d->compile_text),
                d->compile_hint);
  for (size_t i = 0; i < d->n_nvrtc; i++) {
    const doctor_nvrtc *n = &d->nvrtc[i];

    if (n->builtins_version != 0 && n->builtins_version != n->info.version)
      add_problem(
          d,
          kiln__cli_text(c, "%s is NVRTC %s, its builtins are %s", n->info.path,
                         kiln__cli_version(c, n->info.version),
                         kiln__cli_version(c, n->builtins_version)),
          "install both from the same package, or set KILN_NVRTC to another "
          "one");
  }
}

/* The next step that is printed on a machine without a GPU. */
#define CPU_DEVICE_RUNS                                                        \
  "run kernels on the CPU device: kiln run FILE.cu --device cpu, or "          \
  "kiln exec -- PROGRAM"

/* Diagnoses why there is no GPU: there is no hardware, no driver, or no
 * visible GPU. */
static void diagnose_driver(doctor *d)
{
  const bool chosen = d->c->driver != NULL || getenv("KILN_DRIVER") != NULL;

  if (d->driver_status == KILN_OK && d->n_devices > 0)
    return;
  if (chosen && d->driver_status == KILN_ENODRIVER) {
    add_problem(d, d->driver_text, d->driver_hint);
    return;
  }
  if (d->driver_status == KILN_OK || d->driver_status == KILN_ENODEVICE) {
    add_problem(
        d, "the driver works but sees no GPU",
        "check nvidia-smi, CUDA_VISIBLE_DEVICES, and in a container "
        "how it was given GPUs (docker run --gpus all); " CPU_DEVICE_RUNS);
  } else if (d->driver_status == KILN_ENODRIVER && d->kernel_driver != NULL) {
    add_problem(d,
                "the kernel has the NVIDIA driver, but libcuda.so.1 does "
                "not load",
                "in a container, start it with GPU access (docker run --gpus "
                "all); elsewhere, install the package with libcuda.so.1");
  } else if (d->driver_status == KILN_ENODRIVER && !d->has_hardware) {
    add_problem(d, "this machine has no NVIDIA GPU and no driver",
                CPU_DEVICE_RUNS "; for a GPU's times, use a machine with an "
                                "NVIDIA GPU and its driver");
  } else {
    add_problem(d, d->driver_text, d->driver_hint);
  }
}

/* Diagnoses GPUs that no NVRTC compiles for, or that do not run a kernel. */
static void diagnose_devices(doctor *d)
{
  cli *c = d->c;

  for (size_t i = 0; i < d->n_devices; i++) {
    const doctor_device *gpu = &d->devices[i];

    if (gpu->ladder.rung == KILN_RUNG_REFUSE && d->n_nvrtc > 0)
      add_problem(d,
                  kiln__cli_text(c, "nothing can be compiled for GPU %d (%s)",
                                 gpu->info.ordinal, gpu->info.name),
                  gpu->ladder.hint);
    else if (gpu->run != KILN_OK && d->compile_status == KILN_OK)
      add_problem(d,
                  kiln__cli_text(c, "GPU %d does not run a small kernel: %s",
                                 gpu->info.ordinal, gpu->run_text),
                  "try nvidia-smi; reset the GPU or load the driver again if "
                  "that fails too");
  }
}

/* Diagnoses a cache or packs that cannot be used, and adds the warnings that
 * the library has logged so far. */
static void diagnose_files(doctor *d)
{
  cli *c = d->c;
  char *line, *lines = kiln__cli_text(c, "%s", c->warnings ? c->warnings : "");

  if (!d->cache.usable && d->cache.path[0] != '\0')
    add_problem(d,
                kiln__cli_text(c, "the cache folder %s is not used: %s",
                               d->cache.path, d->cache.reason),
                "make it yours and writable, or set KILN_CACHE_DIR to a "
                "folder that is; until then each start compiles again");
  for (size_t i = 0; i < d->n_packs; i++)
    if (d->packs[i].reason != NULL)
      add_problem(d,
                  kiln__cli_text(c, "the pack %s %s", d->packs[i].path,
                                 d->packs[i].reason),
                  "correct KILN_PACKS, or make the pack again with kiln pack");
  if (d->cache.usable) /* without a usable cache, the warnings would repeat
                        * the preceding problem */
    while ((line = kiln__cli_word(&lines, "\n")) != NULL)
      add_problem(d, line, "");
}

/* Decides the verdict. The printed next step is that of the first problem that
 * has one. */
static void conclude(doctor *d)
{
  cli *c = d->c;
  const bool compiles = d->compile_status == KILN_OK;
  size_t running = 0, packs = 0;

  for (size_t i = 0; i < d->n_packs; i++)
    packs += d->packs[i].reason == NULL ? 1 : 0;
  for (size_t i = 0; i < d->n_devices; i++)
    running += d->devices[i].run == KILN_OK ? 1 : 0;
  d->rc = compiles || running > 0 || (packs > 0 && d->n_devices > 0)
              ? CLI_OK
              : CLI_FAILED;
  if (running > 0 && running == d->n_devices)
    d->verdict = kiln__cli_text(c, "kernels compile and run here, on %zu GPU%s",
                                running, running == 1 ? "" : "s");
  else if (running > 0)
    d->verdict = kiln__cli_text(c, "kernels run on %zu of %zu GPUs", running,
                                d->n_devices);
  else if (compiles && d->n_devices > 0)
    d->verdict = "kernels compile here, but the GPU does not run them";
  else if (compiles)
    d->verdict = "kernels compile here; there is no GPU to run them";
  else if (packs > 0)
    d->verdict = "nothing can be compiled here; packs serve what they hold";
  else
    d->verdict = "nothing can be compiled here";
  d->next = running > 0 ? "nothing to fix; kiln bench reduce shows it at work"
                        : "nothing to fix";
  for (size_t i = 0; i < d->n_problems; i++)
    if (d->problems[i].fix[0] != '\0') {
      d->next = d->problems[i].fix;
      break;
    }
}

void kiln__cli_examine(doctor *d)
{
  d->c->keep_warnings = true;
  examine_driver(d);
  examine_nvrtc(d);
  for (int i = 0; i < d->driver.n_devices && i < DOCTOR_DEVICES; i++)
    examine_device(d, i);
  try_compile(d);
  examine_packs(d);
  if (kiln_cache_describe(d->c->rt, &d->cache) != KILN_OK)
    d->cache = (kiln_cache_info){.reason = "its state could not be read"};
  d->disassembler = kiln__cli_disassembler(d->c);
  d->cupti = kiln__cli_find_cupti(d->c, d->driver.version);
  (void)kiln_comm_nccl(&d->nccl, NULL);
  diagnose_compiler(d);
  diagnose_driver(d);
  diagnose_devices(d);
  diagnose_files(d);
  conclude(d);
}
