/* player.c -- stands for a CUDA program on a GPU: loads the injection library as
 * the driver would, and lets the fake CUPTI play launches.
 *
 *   player N exit|crash|abort|kill|leave */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  const char *injection = getenv("CUDA_INJECTION64_PATH");
  const char *cupti = getenv("KILN_PROFILE_CUPTI");
  void *library = injection == NULL ? NULL : dlopen(injection, RTLD_NOW);
  const char *how = argc == 3 ? argv[2] : "";
  int (*start)(void);
  void (*launch)(uint32_t);

  if (library == NULL || argc != 3)
    return 3;
  *(void **)&start = dlsym(library, "InitializeInjection");
  if (start() != 1)
    return 4;
  library = dlopen(cupti, RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL)
    return 5;
  *(void **)&launch = dlsym(library, "fake_cupti_launch");
  for (uint32_t i = 1; i <= (uint32_t)atoi(argv[1]); i++)
    launch(i);
  if (strcmp(how, "crash") == 0)
    (void)raise(SIGSEGV);
  else if (strcmp(how, "abort") == 0)
    abort();
  else if (strcmp(how, "leave") == 0 || strcmp(how, "kill") == 0) {
    /* What was recorded a moment before is in the file. */
    const struct timespec pause = {.tv_nsec = 600000000};

    nanosleep(&pause, NULL);
    if (strcmp(how, "leave") == 0)
      _exit(6);
    (void)raise(SIGKILL);
  }
  return 0;
}
