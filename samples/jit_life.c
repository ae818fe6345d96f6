/* jit_life.c -- the steps from the source of a kernel to its second launch,
 * with an empty cache and with a filled cache (row C9 of the lectures).
 *
 *   1  cache look-up    is the kernel compiled already?
 *   2  front end        CUDA C++ to PTX
 *   3  back end         PTX to machine code
 *   4  launch           load, first launch, next launch
 *
 * The same kernel goes through the steps three times: when no cache has it;
 * when it is on disk, as at the next start of a program; and when it is in the
 * memory of this process. The cache is a new empty folder. */
#include "sample.h"

#include <ftw.h>
#include <unistd.h>

static const char source[] =
    "extern \"C\" __global__ void vadd(float *c, const float *a,\n"
    "                                const float *b, unsigned n)\n"
    "{\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n)\n"
    "    c[i] = a[i] + b[i];\n"
    "}\n";

static const kiln_program_desc program = {.source = source, .name = "vadd.cu"};

enum { N = 10000, REPEATS = 5 };

typedef struct life {
  kiln_image *image;
  bool known; /* result of step 1: the cache has the kernel */
  /* Milliseconds of step 1, and of steps 2 and 3 or of reading the cache. */
  double ask, image_ms;
  double load, first, next; /* step 4 */
  bool good;
} life;

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *ftw)
{
  (void)st;
  (void)type;
  (void)ftw;
  return remove(path);
}

/* Returns the compiler's median time in milliseconds, without any cache. */
static double compiler_ms(kiln_runtime *rt, const kiln_target *target)
{
  kiln_program_desc desc = program;
  double times[REPEATS];

  desc.no_cache = true;
  for (int i = 0; i < REPEATS; i++) {
    kiln_image *image;

    SAMPLE_TRY(kiln_compile(&image, rt, &desc, target));
    times[i] = kiln_image_compile_ms(image);
    kiln_image_free(image);
  }
  return sample_median(times, REPEATS);
}

static double launch_ms(kiln_device *device, kiln_kernel *vadd,
                        const CUdeviceptr d[3])
{
  const uint32_t n = N;
  const kiln_launch_config config = kiln_launch_1d(n, 256);
  const double begin = sample_now_ms();

  SAMPLE_TRY(KILN_LAUNCH(vadd, &config, KILN_ARG(d[0]), KILN_ARG(d[1]),
                         KILN_ARG(d[2]), KILN_ARG(n)));
  SAMPLE_TRY(kiln_device_synchronize(device));
  return sample_now_ms() - begin;
}

/* Creates a runtime for the same device with the given cache folder. */
static kiln_runtime *make_runtime(const sample *s, const char *folder)
{
  const kiln_runtime_opts opts = {
      .cache_dir = folder, .driver = s->on_cpu ? kiln_cpu_driver() : NULL};
  kiln_runtime *rt;

  SAMPLE_TRY(kiln_runtime_create(&rt, &opts));
  return rt;
}

/* Performs step 4: loads and launches the kernel, and verifies the sums. */
static void launch(life *l, kiln_runtime *rt)
{
  static float a[N], b[N], c[N];
  kiln_device *device;
  kiln_module *module;
  kiln_kernel *vadd;
  CUdeviceptr d[3];
  double begin;

  for (int i = 0; i < N; i++) {
    a[i] = (float)i;
    b[i] = (float)(2 * i);
    c[i] = -1;
  }
  SAMPLE_TRY(kiln_device_open(&device, rt, 0, NULL));
  for (int i = 0; i < 3; i++)
    SAMPLE_TRY(kiln_memory_alloc(&d[i], device, sizeof a));
  SAMPLE_TRY(kiln_copy_to_device(device, d[0], c, sizeof c));
  SAMPLE_TRY(kiln_copy_to_device(device, d[1], a, sizeof a));
  SAMPLE_TRY(kiln_copy_to_device(device, d[2], b, sizeof b));

  begin = sample_now_ms();
  SAMPLE_TRY(kiln_module_from_image(&module, device, l->image));
  SAMPLE_TRY(kiln_module_kernel(&vadd, module, "vadd"));
  l->load = sample_now_ms() - begin;
  l->first = launch_ms(device, vadd, d);
  l->next = launch_ms(device, vadd, d);

  SAMPLE_TRY(kiln_copy_to_host(device, c, d[0], sizeof c));
  for (int i = 0; i < N; i++)
    l->good = l->good && c[i] == (float)(3 * i);
  for (int i = 0; i < 3; i++)
    SAMPLE_TRY(kiln_memory_free(device, d[i]));
  kiln_module_free(module);
  kiln_device_free(device);
}

static void ignore(void *user, const char *field, const char *wanted,
                   const char *found)
{
  (void)user;
  (void)field;
  (void)wanted;
  (void)found;
}

/* Goes through all steps and measures them. The cache look-up uses the separate
 * runtime `asked`, since a look-up loads an entry from disk into memory. */
static life live(kiln_runtime *asked, kiln_runtime *rt,
                 const kiln_target *target)
{
  life l = {.good = true};
  double begin = sample_now_ms();
  kiln_status st =
      kiln_cache_why(asked, &program, target, &l.known, ignore, NULL);

  l.ask = sample_now_ms() - begin;
  if (st != KILN_ENOTFOUND) /* KILN_ENOTFOUND means that the cache is empty */
    SAMPLE_TRY(st);
  begin = sample_now_ms();
  SAMPLE_TRY(kiln_compile(&l.image, rt, &program, target));
  l.image_ms = sample_now_ms() - begin;
  launch(&l, rt);
  return l;
}

static void print_lives(const life *cold, const life *disk, const life *memory,
                        double front, double back)
{
  const double compiler = kiln_image_compile_ms(cold->image);

  printf("  step                              cold    from disk  from memory"
         "   ms\n");
  printf("  1 is it compiled already?   %6.3f %s   %6.3f %s   %6.3f %s\n",
         cold->ask, cold->known ? "yes" : "no ", disk->ask,
         disk->known ? "yes" : "no ", memory->ask,
         memory->known ? "yes" : "no ");
  printf("  2 front end, C++ to PTX     %6.3f           -            -\n",
         front);
  if (kiln_image_cubin(cold->image, NULL) != NULL)
    printf("  3 back end, PTX to code     %6.3f           -            -\n",
           back);
  else /* the CPU device runs PTX, so no machine code is made */
    printf("  3 back end, PTX to code          -           -            -\n");
  printf("    keep it, or fetch it      %6.3f       %6.3f       %6.3f\n",
         cold->image_ms - compiler, disk->image_ms, memory->image_ms);
  printf("  4 load into the device      %6.3f       %6.3f       %6.3f\n",
         cold->load, disk->load, memory->load);
  printf("    first launch              %6.3f       %6.3f       %6.3f\n",
         cold->first, disk->first, memory->first);
  printf("    next launch               %6.3f       %6.3f       %6.3f\n",
         cold->next, disk->next, memory->next);
}

/* Checks that each image came from the expected tier of the cache, and that all
 * images have the same code. */
static bool check(const life *cold, const life *disk, const life *memory)
{
  const char *ptx = kiln_image_ptx(cold->image, NULL);

  return cold->good && disk->good && memory->good && !cold->known &&
         disk->known && memory->known &&
         kiln_image_origin(cold->image) == KILN_FROM_COMPILER &&
         kiln_image_origin(disk->image) == KILN_FROM_DISK &&
         kiln_image_origin(memory->image) == KILN_FROM_MEMORY &&
         strcmp(ptx, kiln_image_ptx(disk->image, NULL)) == 0 &&
         strcmp(ptx, kiln_image_ptx(memory->image, NULL)) == 0;
}

static bool three_lives(const sample *s, const char *folder,
                        const kiln_target *target)
{
  kiln_target ptx = *target;
  kiln_runtime *one, *two, *three;
  life cold, disk, memory;
  double begin, front, back;
  bool good;

  ptx.ptx = true;
  one = make_runtime(s, folder);
  begin = sample_now_ms();
  compiler_ms(one, &ptx);
  printf("  find and start the compiler, compile %d times: %.1f ms\n", REPEATS,
         sample_now_ms() - begin);
  front = compiler_ms(one, &ptx);
  back = compiler_ms(one, target) - front;

  cold = live(one, one, target);
  memory = live(one, one, target);
  two = make_runtime(s, folder); /* has an empty memory cache */
  three = make_runtime(s, folder);
  disk = live(two, three, target);
  print_lives(&cold, &disk, &memory, front, back);
  good = check(&cold, &disk, &memory);

  kiln_image_free(cold.image);
  kiln_image_free(memory.image);
  kiln_image_free(disk.image);
  kiln_runtime_free(three);
  kiln_runtime_free(two);
  kiln_runtime_free(one);
  return good;
}

/* Chooses the compile target: machine code for the GPU, or PTX for the CPU
 * device. Also creates the context, so that the measured steps do not include
 * that time. */
static kiln_target choose_target(sample *s)
{
  const kiln_target target = {.cc = kiln_device_traits(s->device)->cc,
                              .ptx = s->on_cpu};
  const double begin = sample_now_ms();
  CUcontext context;

  SAMPLE_TRY(kiln_device_context(s->device, &context));
  printf("  make a context: %.1f ms\n", sample_now_ms() - begin);
  return target;
}

int main(int argc, char **argv)
{
  const char *tmp = getenv("TMPDIR");
  char folder[1024];
  kiln_module *module;
  kiln_target target;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  kiln_module_free(module);
  target = choose_target(&s);
  snprintf(folder, sizeof folder, "%s/kiln.XXXXXX", tmp != NULL ? tmp : "/tmp");
  if (mkdtemp(folder) == NULL) {
    perror(folder);
    return 1;
  }
  good = three_lives(&s, folder, &target);
  nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
  return sample_end(&s, good);
}
