/* transfers.c -- measures copies between host and device by size, from pageable
 * and from pinned host memory (row E5 of the lectures).
 *
 * The operating system may move pageable (ordinary) memory, so the driver
 * copies such memory through its own pinned buffer. The GPU accesses pinned
 * memory directly, which is faster, and the copy can overlap with kernels. The
 * host's clock times each copy until it has finished. */
#include "sample.h"

enum { REPEATS = 9 };

/* Copies in one direction: 0 means to the device, 1 to the host. */
static void copy(kiln_device *device, int direction, CUdeviceptr d, void *host,
                 size_t size)
{
  if (direction == 0)
    SAMPLE_TRY(kiln_copy_to_device(device, d, host, size));
  else
    SAMPLE_TRY(kiln_copy_to_host(device, host, d, size));
}

/* Returns the rate of the median copy in GB/s. */
static double rate(kiln_device *device, int direction, CUdeviceptr d,
                   void *host, size_t size)
{
  double times[REPEATS];

  copy(device, direction, d, host, size); /* warm up */
  for (int i = 0; i < REPEATS; i++) {
    const double begin = sample_now_ms();

    copy(device, direction, d, host, size);
    SAMPLE_TRY(kiln_device_synchronize(device));
    times[i] = sample_now_ms() - begin;
  }
  return (double)size / sample_median(times, REPEATS) / 1e6;
}

/* Copies data to the device and back, and clears the host memory in between.
 * Returns true if the data is unchanged. */
static bool check(kiln_device *device, CUdeviceptr d, unsigned char *host,
                  size_t size)
{
  bool good = true;

  for (size_t i = 0; i < size; i++)
    host[i] = (unsigned char)(i % 251);
  copy(device, 0, d, host, size);
  memset(host, 0, size);
  copy(device, 1, d, host, size);
  for (size_t i = 0; i < size; i++)
    good = good && host[i] == i % 251;
  return good;
}

int main(int argc, char **argv)
{
  const size_t largest = (size_t)256 << 20;
  unsigned char *pageable;
  CUdeviceptr d;
  void *pinned;
  bool good = true;
  sample s;

  sample_open(&s, argc, argv);
  pageable = sample_alloc(largest);
  SAMPLE_TRY(kiln_host_alloc(&pinned, s.device, largest));
  SAMPLE_TRY(kiln_memory_alloc(&d, s.device, largest));

  printf("                to the device, GB/s     to the host, GB/s\n"
         "       size    pageable      pinned    pageable      pinned\n");
  for (size_t size = 4096; size <= largest; size *= 4) {
    good = check(s.device, d, pageable, size) && good;
    good = check(s.device, d, pinned, size) && good;
    printf("  %5zu %s  %10.2f  %10.2f  %10.2f  %10.2f\n",
           size < 1 << 20 ? size >> 10 : size >> 20,
           size < 1 << 20 ? "KiB" : "MiB", rate(s.device, 0, d, pageable, size),
           rate(s.device, 0, d, pinned, size),
           rate(s.device, 1, d, pageable, size),
           rate(s.device, 1, d, pinned, size));
  }

  SAMPLE_TRY(kiln_memory_free(s.device, d));
  SAMPLE_TRY(kiln_host_free(s.device, pinned));
  free(pageable);
  return sample_end(&s, good);
}
