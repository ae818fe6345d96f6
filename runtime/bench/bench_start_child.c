/* bench_start_child.c -- the child processes of `kiln bench start`:
 *
 *   --child bare CUBIN KERNEL LIBCUDA   uses only the driver API
 *   --child kiln                        uses Kiln with all overlaps
 *   --child steps                       uses Kiln, one step after the other
 *   --child prepare CUBIN               fills the cache and writes the CUBIN
 *
 * The parent passes paths in the environment variables that the library
 * reads. */
#include "bench/bench_start.h"

#include <stdlib.h>
#include <string.h>

static struct {
  const char *label;
  double ns;
} marks[16];
static size_t n_marks;

void kiln__bench_mark(const char *label)
{
  if (n_marks < sizeof marks / sizeof marks[0]) {
    marks[n_marks].label = label;
    marks[n_marks++].ns = kiln__cli_now_ns();
  }
}

void kiln__bench_print_marks(void)
{
  for (size_t i = 0; i < n_marks; i++)
    printf("mark %.0f %s\n", marks[i].ns, marks[i].label);
}

void kiln__bench_start_fill(float *x, float *y)
{
  for (size_t i = 0; i < START_ELEMENTS; i++) {
    x[i] = (float)i;
    y[i] = 1;
  }
}

bool kiln__bench_start_verify(const float *y)
{
  for (size_t i = 0; i < START_ELEMENTS; i++)
    if (y[i] != 2 * (float)i + 1)
      return false;
  return true;
}

/* Returns whether a library whose name contains `what` is loaded in this
 * process. */
static bool mapped(const char *what)
{
  FILE *f = fopen("/proc/self/maps", "re");
  char *line = NULL;
  size_t capacity = 0;
  bool found = false;

  while (f != NULL && !found && getline(&line, &capacity, f) > 0)
    found = strstr(line, what) != NULL;
  free(line);
  if (f != NULL)
    fclose(f);
  return found;
}

static int fail(const char *what)
{
  const cli c = {.name = "bench start"};

  return kiln__cli_failure(&c, what);
}

static const kiln_program_desc saxpy_desc = {.builtin = "saxpy"};

/* Creates the device and loads the kernel. If `steps` is true, the stages
 * run one after the other; otherwise Kiln overlaps compilation and context
 * creation. */
static kiln_status load(kiln_runtime *rt, bool steps, kiln_device **device,
                        kiln_module **module, kiln_image **image)
{
  kiln_target target = {0};
  kiln_driver_info driver;
  CUcontext context;

  CLI_TRY(kiln_runtime_driver(rt, &driver));
  kiln__bench_mark("driver");
  CLI_TRY(kiln_device_open(device, rt, 0, NULL));
  if (!steps)
    return kiln_module_load(module, *device, &saxpy_desc);
  CLI_TRY(kiln_device_context(*device, &context));
  kiln__bench_mark("context");
  target.cc = kiln_device_traits(*device)->cc;
  CLI_TRY(kiln_compile(image, rt, &saxpy_desc, &target));
  kiln__bench_mark("compile or look up");
  return kiln_module_from_image(module, *device, *image);
}

/* Launches the kernel on new memory and verifies the result. */
static kiln_status compute(kiln_device *device, kiln_kernel *kernel,
                           CUdeviceptr *dx, CUdeviceptr *dy)
{
  static float x[START_ELEMENTS], y[START_ELEMENTS];
  const float factor = 2;
  const unsigned n = START_ELEMENTS;
  kiln_launch_config config = kiln_launch_1d(n, 256);

  kiln__bench_start_fill(x, y);
  CLI_TRY(kiln_memory_alloc(dx, device, sizeof x));
  CLI_TRY(kiln_memory_alloc(dy, device, sizeof y));
  CLI_TRY(kiln_copy_to_device(device, *dx, x, sizeof x));
  CLI_TRY(kiln_copy_to_device(device, *dy, y, sizeof y));
  kiln__bench_mark("memory and copies");
  CLI_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(factor), KILN_ARG(*dx),
                      KILN_ARG(*dy), KILN_ARG(n)));
  kiln__bench_mark("first launch");
  CLI_TRY(kiln_copy_to_host(device, y, *dy, sizeof y));
  if (!kiln__bench_start_verify(y))
    return KILN_ECORRUPT;
  kiln__bench_mark("verified");
  return KILN_OK;
}

/* Runs the whole program once, from loading the driver to verifying the
 * result. */
static kiln_status live(kiln_runtime *rt, bool steps, kiln_device **device,
                        kiln_module **module, kiln_image **image)
{
  kiln_kernel *kernel = NULL;
  CUdeviceptr dx = 0, dy = 0;
  kiln_status st;

  CLI_TRY(load(rt, steps, device, module, image));
  CLI_TRY(kiln_module_kernel(&kernel, *module, "saxpy"));
  kiln__bench_mark(steps ? "load" : "context and code");
  st = compute(*device, kernel, &dx, &dy);
  kiln_memory_free(*device, dx);
  kiln_memory_free(*device, dy);
  return st;
}

static int kiln_child(bool steps)
{
  kiln_runtime *rt = NULL;
  kiln_device *device = NULL;
  kiln_module *module = NULL;
  kiln_image *image = NULL;
  const kiln_image *used;
  kiln_status st;
  int rc = CLI_OK;

  kiln__bench_mark("process");
  st = kiln_runtime_create(&rt, NULL);
  if (st == KILN_OK)
    st = live(rt, steps, &device, &module, &image);
  if (st == KILN_ECORRUPT) {
    fputs("kiln bench start: saxpy gave a wrong result\n", stderr);
    rc = CLI_FAILED;
  } else if (st != KILN_OK) {
    rc = fail("saxpy through Kiln");
  } else {
    used = steps ? image : kiln_module_image(module);
    kiln__bench_print_marks();
    printf("origin %s\n", kiln_origin_name(kiln_image_origin(used)));
    printf("compile_ms %.3f\n", kiln_image_compile_ms(used));
    printf("nvrtc_mapped %d\n", mapped("libnvrtc") ? 1 : 0);
  }
  kiln_image_free(image);
  kiln_module_free(module);
  kiln_device_free(device);
  kiln_runtime_free(rt);
  return rc;
}

/* ---- Preparation -------------------------------------------------------- */

/* Prints the compiler's times: to PTX (front end only), and to machine code
 * (front end and back end). The first compilation of a process includes loading
 * NVRTC, so its time is printed separately. */
static kiln_status time_compiler(kiln_runtime *rt, int cc)
{
  kiln_program_desc desc = saxpy_desc;
  const kiln_target targets[] = {
      {.cc = cc}, {.cc = cc, .ptx = true}, {.cc = cc}};
  static const char *const labels[] = {"first", "front_ms", "both_ms"};

  desc.no_cache = true;
  for (size_t i = 0; i < 3; i++) {
    kiln_image *image = NULL;
    const kiln_status st = kiln_compile(&image, rt, &desc, &targets[i]);

    if (st != KILN_OK)
      return st;
    printf("%s %.3f\n", labels[i], kiln_image_compile_ms(image));
    kiln_image_free(image);
  }
  return KILN_OK;
}

/* Writes the image that the bare program loads through the driver API: the
 * CUBIN, or the PTX if there is no CUBIN. */
static int write_image(const kiln_image *image, const char *path)
{
  size_t size = 0;
  const void *cubin = kiln_image_cubin(image, &size);
  const void *code = cubin != NULL ? cubin : kiln_image_ptx(image, &size);
  const char *lowered = kiln_image_lowered(image, "saxpy");
  FILE *f = code == NULL ? NULL : fopen(path, "wbe");
  bool good = f != NULL && fwrite(code, 1, size, f) == size;

  if (f != NULL && fclose(f) != 0)
    good = false;
  if (!good) {
    fprintf(stderr, "kiln bench start: cannot write the image to %s\n", path);
    return CLI_FAILED;
  }
  printf("kernel %s\n", lowered == NULL ? "saxpy" : lowered);
  return CLI_OK;
}

static kiln_status prepare(kiln_runtime *rt, kiln_device **device,
                           kiln_module **module)
{
  kiln_device_info info;
  kiln_driver_info driver;

  CLI_TRY(kiln_runtime_driver(rt, &driver));
  CLI_TRY(kiln_device_open(device, rt, 0, NULL));
  CLI_TRY(kiln_device_describe(*device, &info));
  CLI_TRY(kiln_module_load(module, *device, &saxpy_desc));
  CLI_TRY(time_compiler(rt, kiln_device_traits(*device)->cc));
  printf("device %s\ndriver %s\n", info.name, driver.path);
  return KILN_OK;
}

static int prepare_child(const char *path)
{
  kiln_runtime *rt = NULL;
  kiln_device *device = NULL;
  kiln_module *module = NULL;
  kiln_status st = kiln_runtime_create(&rt, NULL);
  int rc;

  if (st == KILN_OK)
    st = prepare(rt, &device, &module);
  rc = st == KILN_OK ? write_image(kiln_module_image(module), path)
                     : fail("preparing");
  kiln_module_free(module);
  kiln_device_free(device);
  kiln_runtime_free(rt);
  return rc;
}

int kiln__cli_start_child(int argc, char **argv)
{
  if (argc == 4 && strcmp(argv[0], "bare") == 0)
    return kiln__bench_start_bare(argv[1], argv[2], argv[3]);
  if (argc == 1 && strcmp(argv[0], "kiln") == 0)
    return kiln_child(false);
  if (argc == 1 && strcmp(argv[0], "steps") == 0)
    return kiln_child(true);
  if (argc == 2 && strcmp(argv[0], "prepare") == 0)
    return prepare_child(argv[1]);
  return CLI_USAGE;
}
