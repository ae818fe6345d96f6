/* transfers.c -- copies between host and device by size, from ordinary and from
 * pinned memory (row E5 of the lectures).
 *
 * Ordinary (pageable) memory may be moved by the operating system, so the driver
 * copies it through a pinned buffer of its own. Pinned memory is read by the GPU
 * directly: faster, and it can overlap with kernels. Each copy is timed by the
 * host's clock until it is done. */
#include "sample.h"

enum { REPEATS = 9 };

/* One direction: 0 to the device, 1 to the host. */
static void copy(kiln_device *device, int direction, CUdeviceptr d, void *host,
                 size_t size)
{
  if (direction == 0)
    SAMPLE_TRY(kiln_copy_to_device(device, d, host, size));
  else
    SAMPLE_TRY(kiln_copy_to_host(device, host, d, size));
}

/* GB/s of the median copy. */
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

/* There and back; `host` is wiped in between. */
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
