/* command_exec.c -- `kiln exec`: an unmodified program on the CPU device. */
#include "tool/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void help(void)
{
  fputs(
      "usage: kiln exec [options] -- PROGRAM [ARGUMENTS]\n\n"
      "Runs a program that uses the CUDA driver API (and NVRTC) on the CPU\n"
      "device: libcuda.so.1 is Kiln's, and NVRTC hands out PTX where the\n"
      "program asks for machine code. Not for programs with machine code\n"
      "alone.\n\n"
      "  --device cpu:9.0    architecture to play, and further settings\n"
      "  --check LIST        mem, race, init, sync or all, with commas\n"
      "  --counters          instructions, divergence, sectors, conflicts\n"
      "  --seed N            another order of blocks, warps and atomics\n"
      "  --threads N         host threads that run blocks; default 1\n"
      "  --report FILE       keep the report there, a JSON object a line\n"
      "  --no-preload        leave paths alone that the program opens itself\n"
      "\n"
      "The report follows on stderr. Exit code: the program's; 1 if that is\n"
      "0 and a check found something.\n",
      stdout);
}

typedef struct exec_opts {
  const char *checks, *seed, *threads, *report;
  bool counters, no_preload;
} exec_opts;

enum { MOST_NVRTC = 16, CANNOT_RUN = 127 };

/* ---- Where things are -------------------------------------------------------- */

/* The folder of the drop-in, or NULL having said where it was looked for. */
static const char *find_folder(cli *c)
{
  static const char *const places[] = {"cpu", "../lib/kiln", "../lib64/kiln",
                                       "../lib/x86_64-linux-gnu/kiln",
                                       "../lib/aarch64-linux-gnu/kiln"};
  char exe[4096];
  const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

  exe[n < 0 ? 0 : n] = '\0';
  if (strrchr(exe, '/') != NULL)
    *strrchr(exe, '/') = '\0';
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    const char *dir = kiln__cli_text(c, "%s/%s", exe, places[i]);

    if (access(kiln__cli_text(c, "%s/libcuda.so.1", dir), R_OK) == 0) {
      char *whole = realpath(dir, NULL);
      const char *kept = whole == NULL ? dir : kiln__cli_text(c, "%s", whole);

      free(whole);
      return kept;
    }
  }
  kiln__cli_say(
      c, "build the target kiln_exec_libraries, or install Kiln whole",
      "no libcuda.so.1 of Kiln's in %s/cpu or %s/../lib/kiln", exe, exe);
  return NULL;
}

static bool knows(const kiln_nvrtc_info *nvrtc, int arch)
{
  for (size_t i = 0; i < nvrtc->n_archs; i++) {
    if (nvrtc->archs[i] == arch)
      return true;
  }
  return false;
}

/* Real NVRTC libraries for the shim: those that know the architecture, or all
 * if none does. */
static const char *nvrtc_list(cli *c, int arch)
{
  kiln_nvrtc_info *all =
      kiln__cli_alloc(c, MOST_NVRTC, sizeof(kiln_nvrtc_info));
  const char *list = "", *fallback = "";
  size_t n = 0;

  if (kiln_runtime_nvrtc(c->rt, all, MOST_NVRTC, &n) != KILN_OK)
    return "";
  for (size_t i = 0; i < n && i < MOST_NVRTC; i++) {
    const char **to = knows(&all[i], arch) ? &list : &fallback;

    *to =
        kiln__cli_text(c, "%s%s%s", *to, **to == '\0' ? "" : ":", all[i].path);
  }
  return *list == '\0' ? fallback : list;
}

/* ---- Running ---------------------------------------------------------------------- */

/* "mem,race" as kiln_cpu_parse() wants it: "mem+race". */
static const char *joined(cli *c, const char *list)
{
  char *text = kiln__cli_text(c, "%s", list);

  for (char *p = text; *p != '\0'; p++)
    *p = *p == ',' ? '+' : *p;
  return text;
}

/* The settings as text, checked. NULL having said what is wrong. */
static const char *settings(cli *c, const exec_opts *o, int *arch)
{
  const char *device = c->device;
  const char *text;
  kiln_cpu_opts opts;

  if (device == NULL)
    device = getenv("KILN_DEVICE");
  if (device == NULL || strncmp(device, "cpu", 3) != 0)
    device = "cpu";
  text = kiln__cli_text(
      c, "%s%s%s%s%s%s%s%s", device, o->checks == NULL ? "" : ",check=",
      o->checks == NULL ? "" : joined(c, o->checks),
      o->counters ? ",counters" : "",
      o->seed == NULL ? "" : ",seed=", o->seed == NULL ? "" : o->seed,
      o->threads == NULL ? "" : ",threads=",
      o->threads == NULL ? "" : o->threads);
  if (kiln_cpu_parse(&opts, text) != KILN_OK ||
      kiln_cpu_configure(&opts) != KILN_OK) {
    kiln__cli_failure(c, NULL);
    return NULL;
  }
  *arch = opts.arch == 0 ? 90 : opts.arch;
  return text;
}

static void put_first(cli *c, const char *name, const char *value)
{
  const char *old = getenv(name);

  setenv(name,
         old == NULL || *old == '\0' ? value
                                     : kiln__cli_text(c, "%s:%s", value, old),
         1);
}

static void prepare(cli *c, const exec_opts *o, const char *dir,
                    const char *text, const char *nvrtc, const char *report)
{
  put_first(c, "LD_LIBRARY_PATH", dir);
  if (!o->no_preload)
    put_first(c, "LD_PRELOAD", kiln__cli_text(c, "%s/libkiln_exec.so", dir));
  setenv("KILN_CPU", text, 1);
  setenv("KILN_CPU_REPORT", report, 1);
  setenv("KILN_EXEC_DIR", dir, 1);
  setenv("KILN_EXEC_NVRTC", nvrtc, 1);
  unsetenv("KILN_DRIVER"); /* of programs that use Kiln themselves */
  unsetenv("KILN_NVRTC");
  unsetenv("KILN_DEVICE");
}

/* The program's exit code, 128 + signal, or 127. */
static int run(cli *c, char **argv)
{
  struct sigaction ignore = {.sa_handler = SIG_IGN}, old_int, old_quit;
  pid_t child;
  int status = 0;

  fflush(NULL);
  /* Keys that stop the program are its own; the report is still wanted. */
  sigaction(SIGINT, &ignore, &old_int);
  sigaction(SIGQUIT, &ignore, &old_quit);
  child = fork();
  if (child == 0) {
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGQUIT, &old_quit, NULL);
    execvp(argv[0], argv);
    fprintf(stderr, "kiln exec: %s: %s\n", argv[0], strerror(errno));
    _exit(CANNOT_RUN);
  }
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  sigaction(SIGINT, &old_int, NULL);
  sigaction(SIGQUIT, &old_quit, NULL);
  if (child < 0) {
    kiln__cli_say(c, NULL, "cannot start %s: %s", argv[0], strerror(errno));
    return CANNOT_RUN;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- The report ---------------------------------------------------------------------- */

typedef struct report {
  cli_table kernels;
  unsigned findings, n_kernels;
  double checked; /* launches under a check, of all processes */
} report;

static const char *text_of(const cJSON *line, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, key);

  return cJSON_IsString(item) ? item->valuestring : "";
}

static double number_of(const cJSON *line, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, key);

  return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void ratio_cell(cli_table *t, double a, double b)
{
  if (b > 0)
    kiln__cli_cell(t, "%.2f", a / b);
  else
    kiln__cli_cell(t, "-");
}

static void kernel_row(cli *c, cli_table *t, const cJSON *k)
{
  kiln__cli_cell(t, "%s", kiln__cli_plain_name(c, text_of(k, "kernel")));
  kiln__cli_cell(t, "%.0f", number_of(k, "launches"));
  kiln__cli_cell(t, "%.0f", number_of(k, "warp_insns"));
  ratio_cell(t, number_of(k, "thread_insns"), number_of(k, "warp_insns"));
  kiln__cli_cell(t, "%.0f of %.0f", number_of(k, "divergent_branches"),
                 number_of(k, "branches"));
  ratio_cell(t, number_of(k, "global_load_sectors"),
             number_of(k, "global_load_requests"));
  ratio_cell(t, number_of(k, "global_store_sectors"),
             number_of(k, "global_store_requests"));
  ratio_cell(t,
             number_of(k, "shared_load_passes") +
                 number_of(k, "shared_store_passes"),
             number_of(k, "shared_load_requests") +
                 number_of(k, "shared_store_requests"));
  kiln__cli_cell(t, "%.0f", number_of(k, "atomics"));
  kiln__cli_cell(t, "%.0f", number_of(k, "barriers"));
}

static void show_line(cli *c, report *r, const cJSON *line)
{
  const char *type = text_of(line, "type");

  if (strcmp(type, "finding") == 0) {
    fprintf(stderr, "\n%s\n", text_of(line, "text"));
    if (number_of(line, "count") > 1)
      fprintf(stderr, "  so %.0f times\n", number_of(line, "count"));
    r->findings++;
  } else if (strcmp(type, "fault") == 0) {
    if (r->findings == 0) /* else it is among them, and longer */
      fprintf(stderr, "\n%s\n", text_of(line, "text"));
  } else if (strcmp(type, "checked") == 0) {
    r->checked += number_of(line, "launches");
  } else if (strcmp(type, "error") == 0) {
    kiln__cli_say(c, NULL, "%s", text_of(line, "text"));
  } else if (strcmp(type, "kernel") == 0) {
    kernel_row(c, &r->kernels, line);
    r->n_kernels++;
  }
}

/* @return how many findings there were. */
static unsigned show(cli *c, const char *path)
{
  static const char *const heads[] = {"kernel",
                                      ">launches",
                                      ">warp insns",
                                      ">lanes",
                                      ">diverged",
                                      ">load sectors",
                                      ">store sectors",
                                      ">shared passes",
                                      ">atomics",
                                      ">barriers",
                                      NULL};
  report r = {0};
  FILE *f = fopen(path, "re");
  char *text = NULL;
  size_t room = 0;

  kiln__cli_table(&r.kernels, c, heads);
  while (f != NULL && getline(&text, &room, f) > 0) {
    cJSON *line = cJSON_Parse(text);

    if (line != NULL)
      show_line(c, &r, line);
    cJSON_Delete(line);
  }
  free(text);
  if (f != NULL)
    fclose(f);
  if (r.findings > 0 || r.checked > 0)
    fprintf(stderr, "\n%u finding%s in %.0f launch%s\n", r.findings,
            r.findings == 1 ? "" : "s", r.checked, r.checked == 1 ? "" : "es");
  if (r.n_kernels > 0) {
    putc('\n', stderr);
    fflush(stdout);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* nothing follows on stdout */
    kiln__cli_table_print(&r.kernels, 0);
  }
  return r.findings;
}

/* ---- The command ------------------------------------------------------------------------ */

static int options(cli *c, int argc, char **argv, exec_opts *o)
{
  enum { CHECK = CLI_OPT_OWN, COUNTERS, SEED, THREADS, REPORT, NO_PRELOAD };
  static const struct option longs[] = {
      {"help", no_argument, NULL, 'h'},
      {"check", required_argument, NULL, CHECK},
      {"counters", no_argument, NULL, COUNTERS},
      {"seed", required_argument, NULL, SEED},
      {"threads", required_argument, NULL, THREADS},
      {"report", required_argument, NULL, REPORT},
      {"no-preload", no_argument, NULL, NO_PRELOAD},
      {NULL, 0, NULL, 0}};
  int opt;

  optind = 1;
  /* "+": options end where the program's name stands. */
  while ((opt = getopt_long(argc, argv, "+h", longs, NULL)) != -1) {
    switch (opt) {
    case 'h':
      help();
      return -1;
    case CHECK:
      o->checks = optarg;
      break;
    case COUNTERS:
      o->counters = true;
      break;
    case SEED:
      o->seed = optarg;
      break;
    case THREADS:
      o->threads = optarg;
      break;
    case REPORT:
      o->report = optarg;
      break;
    case NO_PRELOAD:
      o->no_preload = true;
      break;
    default:
      return kiln__cli_usage(c, NULL);
    }
  }
  if (optind >= argc)
    return kiln__cli_usage(c, "name a program, after --");
  return CLI_OK;
}

/* A file for the report; with --report that one, emptied. NULL having said why. */
static const char *report_file(cli *c, const exec_opts *o)
{
  const char *dir = getenv("TMPDIR");
  const char *name;
  char *path;
  int fd;

  if (o->report != NULL) {
    FILE *f = fopen(o->report, "we");

    if (f != NULL)
      fclose(f);
    path = f == NULL ? NULL : realpath(o->report, NULL);
    name = path == NULL ? NULL : kiln__cli_text(c, "%s", path);
    free(path);
    if (name == NULL)
      kiln__cli_say(c, NULL, "cannot write %s: %s", o->report, strerror(errno));
    return name;
  }
  path = kiln__cli_text(c, "%s/kiln-exec-XXXXXX",
                        dir == NULL || *dir == '\0' ? "/tmp" : dir);
  fd = mkstemp(path);
  if (fd < 0) {
    kiln__cli_say(c, "set TMPDIR", "cannot make %s: %s", path, strerror(errno));
    return NULL;
  }
  close(fd);
  return path;
}

int kiln__cli_exec(cli *c, int argc, char **argv)
{
  exec_opts o = {0};
  const char *dir, *text, *path;
  int arch = 0, rc = options(c, argc, argv, &o);

  if (rc != CLI_OK)
    return rc < 0 ? CLI_OK : rc;
  if (c->device != NULL && strncmp(c->device, "cpu", 3) != 0)
    return kiln__cli_usage(c, "programs run on the GPU without `kiln exec`");
  text = settings(c, &o, &arch);
  if (text == NULL)
    return CLI_USAGE;
  dir = find_folder(c);
  path = dir == NULL ? NULL : report_file(c, &o);
  if (path == NULL)
    return CLI_FAILED;
  prepare(c, &o, dir, text, nvrtc_list(c, arch), path);
  rc = run(c, argv + optind);
  if (show(c, path) > 0 && rc == 0)
    rc = CLI_FAILED;
  if (o.report == NULL)
    unlink(path);
  return rc;
}
