/* fake_nvrtc.c -- a fake NVRTC for tests; fake_nvrtc.h describes it. */
#include "fake_nvrtc.h"

#include "base/base.h"

#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#define KILN__NVRTC_FN(name, symbol, need, since, result, params)              \
  EXPORT result symbol params;
#include "nvrtc/nvrtc_api.def"
#undef KILN__NVRTC_FN

enum { MAX_NAMES = 64, MAX_HEADERS = 256 };

typedef struct text {
  char *data;
  size_t size, capacity;
} text;

struct _nvrtcProgram {
  char *source, *name;
  char *header_names[MAX_HEADERS], *headers[MAX_HEADERS];
  int n_headers;
  char *expressions[MAX_NAMES], *lowered[MAX_NAMES];
  int n_expressions;
  bool compiled;
  text ptx, cubin, log;
  int (*flow)(void *, void *);
  void *flow_user;
};

static fake_nvrtc_control control;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT fake_nvrtc_control *fake_nvrtc(void)
{
  return &control;
}

static void add_bytes(text *t, const char *data, size_t n)
{
  if (t->size + n + 1 > t->capacity) {
    t->capacity = (t->size + n + 1) * 2;
    t->data = realloc(t->data, t->capacity);
    if (t->data == NULL)
      abort();
  }
  memcpy(t->data + t->size, data, n);
  t->size += n;
  t->data[t->size] = '\0';
}

__attribute__((format(printf, 2, 3))) static void add(text *t,
                                                      const char *format, ...)
{
  char *made = NULL;
  va_list args;
  int n;

  va_start(args, format);
  n = vasprintf(&made, format, args);
  va_end(args);
  if (n < 0)
    abort();
  add_bytes(t, made, (size_t)n);
  free(made);
}

/* ---- Set-up -------------------------------------------------------------- */

static void set_archs(const char *list)
{
  char *end;

  control.n_archs = 0;
  for (long a = strtol(list, &end, 10); end != list && control.n_archs < 64;
       a = strtol(list, &end, 10)) {
    control.archs[control.n_archs++] = (int)a;
    list = end;
  }
}

static void default_archs(void)
{
  if (control.version >= 13000)
    set_archs("75 80 86 87 88 89 90 100 103 110 120 121");
  else if (control.version >= 12080)
    set_archs("50 52 53 60 61 62 70 72 75 80 86 87 89 90 100 101 120");
  else if (control.version >= 11080)
    set_archs("35 37 50 52 53 60 61 62 70 72 75 80 86 87 89 90");
  else
    set_archs("35 37 50 52 53 60 61 62 70 72 75 80 86");
}

static int function_of(const char *name)
{
  static const char *const names[] = {
#define KILN__NVRTC_FN(short_name, symbol, need, since, result, params)        \
#short_name,
#include "nvrtc/nvrtc_api.def"
#undef KILN__NVRTC_FN
  };

  for (int i = 0; i < FAKE_NVRTC_FUNCTIONS; i++) {
    if (strcmp(names[i], name) == 0)
      return i;
  }
  fprintf(stderr, "fake_nvrtc: no function %s\n", name);
  abort();
}

static void read_config(const char *path)
{
  char beside[4200], line[1024], name[64];
  int number;
  FILE *f;

  snprintf(beside, sizeof beside, "%s.fake", path);
  f = fopen(beside, "r");
  if (f == NULL)
    return;
  while (fgets(line, sizeof line, f) != NULL) {
    if (sscanf(line, "version %d", &number) == 1) {
      control.version = number;
      default_archs();
    } else if (strncmp(line, "archs ", 6) == 0)
      set_archs(line + 6);
    else if (sscanf(line, "delay_ms %d", &number) == 1)
      control.delay_ms = number;
    else if (sscanf(line, "rc %63s %d", name, &number) == 2)
      control.rc[function_of(name)] = number;
  }
  fclose(f);
}

static void append_byte(const char *variable)
{
  const char *path = getenv(variable);
  int fd;

  if (path == NULL)
    return;
  fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, "c", 1) != 1)
    abort();
  close(fd);
}

__attribute__((constructor)) static void set_up(void)
{
  const char *delay = getenv("FAKE_NVRTC_DELAY_MS");
  Dl_info self;

  control.version = 13000;
  if (dladdr((void *)&control, &self) != 0 && self.dli_fname != NULL) {
    if (strstr(self.dli_fname, "libnvrtc.so.12") != NULL)
      control.version = 12080;
    else if (strstr(self.dli_fname, "libnvrtc.so.11.2") != NULL)
      control.version = 11080;
  }
  default_archs();
  if (self.dli_fname != NULL)
    read_config(self.dli_fname);
  if (delay != NULL)
    control.delay_ms = atoi(delay);
  append_byte("FAKE_NVRTC_LOAD_FILE");
}

/* ---- Finding kernels in the source -------------------------------------- */

typedef struct kernel {
  char name[256];    /* kernel name in the source */
  char lowered[320]; /* kernel name in the PTX */
  int sizes[64];
  int n_params;
  bool is_template;
} kernel;

static bool word_in(const char *from, const char *to, const char *word)
{
  const size_t n = strlen(word);

  for (; from + n <= to; from++) {
    if (memcmp(from, word, n) == 0)
      return true;
  }
  return false;
}

/* Returns the size of a parameter from its declaration, such as "const float
 * *x". */
static int size_of(const char *from, const char *to)
{
  static const struct {
    const char *word;
    int size;
  } sizes[] = {
      {"*", 8},        {"&", 8},      {"float4", 16}, {"int4", 16},
      {"double2", 16}, {"float2", 8}, {"int2", 8},    {"double", 8},
      {"long", 8},     {"size_t", 8}, {"64_t", 8},    {"CUdeviceptr", 8},
      {"short", 2},    {"half", 2},   {"16_t", 2},    {"bfloat16", 2},
      {"char", 1},     {"bool", 1},   {"int8_t", 1}};

  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    if (word_in(from, to, sizes[i].word))
      return sizes[i].size;
  }
  return 4;
}

static void read_params(kernel *k, const char *open, const char *close)
{
  const char *line_end = close + strcspn(close, "\n");
  const char *mark = strstr(close, "//params ");
  const char *from = open + 1;
  int depth = 0;

  if (mark != NULL && mark < line_end) {
    char *end;

    for (mark += 9; k->n_params < 64; mark = end + 1) {
      k->sizes[k->n_params++] = (int)strtol(mark, &end, 10);
      if (*end != ',')
        return;
    }
    return;
  }
  while (from < close && isspace((unsigned char)*from))
    from++;
  if (from == close || (close - from == 4 && memcmp(from, "void", 4) == 0))
    return;
  for (const char *c = from; c <= close && k->n_params < 64; c++) {
    depth += (*c == '<') + (*c == '(') - (*c == '>') - (*c == ')' && c < close);
    if (c == close || (*c == ',' && depth == 0)) {
      k->sizes[k->n_params++] = size_of(from, c);
      from = c + 1;
    }
  }
}

static const char *matching(const char *open)
{
  int depth = 0;

  for (; *open != '\0'; open++) {
    depth += (*open == '(') - (*open == ')');
    if (depth == 0)
      return open;
  }
  return NULL;
}

/* Finds the parameter list after a __global__, and the kernel's name that
 * precedes the list. */
static const char *find_list(const char *mark, const char **name,
                             size_t *name_size)
{
  const char *open = strchr(mark, '(');

  while (open != NULL) {
    const char *end = open, *start, *close = matching(open);

    while (end > mark && isspace((unsigned char)end[-1]))
      end--;
    start = end;
    while (isalnum((unsigned char)start[-1]) || start[-1] == '_')
      start--;
    *name = start;
    *name_size = (size_t)(end - start);
    if (close == NULL)
      return NULL;
    if (strncmp(start, "__", 2) != 0)
      return open;
    /* These parentheses belong to an attribute such as
     * __launch_bounds__(...). */
    open = strchr(close, '(');
  }
  return NULL;
}

/* Finds the next __global__ function of the source at *at. Explicit template
 * instances have no plain name and are skipped. */
static bool next_kernel(const char *source, const char **at, kernel *k)
{
  const char *mark, *open, *before, *name;
  size_t size;

  for (mark = strstr(*at, "__global__"); mark != NULL;
       mark = strstr(*at, "__global__")) {
    *at = mark + 10;
    open = find_list(mark, &name, &size);
    if (open == NULL || size == 0 || size >= sizeof k->name)
      continue;
    memset(k, 0, sizeof *k);
    memcpy(k->name, name, size);
    before = mark;
    while (before > source && strchr(";}\n", before[-1]) == NULL)
      before--;
    k->is_template = word_in(before, mark, "template");
    if (word_in(before, mark, "extern \"C\""))
      snprintf(k->lowered, sizeof k->lowered, "%s", k->name);
    else
      snprintf(k->lowered, sizeof k->lowered, "_Z%zu%sv", size, k->name);
    read_params(k, open, matching(open));
    return true;
  }
  return false;
}

/* Finds the kernel that a name expression refers to: "&ns::k<int, 3>" refers to
 * k. */
static bool find_kernel(const char *source, const char *expression, kernel *k)
{
  char name[256];
  const char *at = source, *start = expression, *end;

  end = start + strcspn(start, "<");
  while (end > start && isspace((unsigned char)end[-1]))
    end--;
  for (const char *c = start; c < end; c++) {
    if (!isalnum((unsigned char)*c) && *c != '_')
      start = c + 1;
  }
  snprintf(name, sizeof name, "%.*s", (int)(end - start), start);
  while (next_kernel(source, &at, k)) {
    if (strcmp(k->name, name) == 0)
      return true;
  }
  return false;
}

static uint64_t hash_bytes(uint64_t h, const char *data)
{
  for (; *data != '\0'; data++)
    h = (h ^ (unsigned char)*data) * 0x100000001b3u;
  return (h ^ 0xff) * 0x100000001b3u;
}

static int remark(const char *source, const char *name, int otherwise)
{
  const char *at = strstr(source, name);

  return at == NULL ? otherwise : atoi(at + strlen(name));
}

/* ---- Compiling ----------------------------------------------------------- */

typedef struct target {
  char name[32]; /* target name, such as "sm_90" or "compute_90" */
  bool real, verbose, finds_headers;
  bool bad;
} target;

static target read_options(int n, const char *const *options)
{
  target t = {.name = "compute_75", .real = false};

  if (control.version < 13000)
    snprintf(t.name, sizeof t.name, "compute_52");
  for (int i = 0; i < n; i++) {
    const char *o = options[i];
    const char *value = strchr(o, '=');

    if (strncmp(o, "--gpu-architecture=", 19) == 0 ||
        strncmp(o, "-arch=", 6) == 0) {
      const char *digits = strchr(o, '_');
      const int arch = digits == NULL ? 0 : atoi(digits + 1);

      t.bad = true;
      if (digits == NULL)
        return t;
      snprintf(t.name, sizeof t.name, "%s", value + 1);
      t.real = strncmp(value + 1, "sm_", 3) == 0;
      for (int j = 0; j < control.n_archs; j++)
        t.bad = t.bad && control.archs[j] != arch;
    } else if ((strstr(o, "ptxas") != NULL && strstr(o, "-v") != NULL) ||
               strcmp(o, "-v") == 0 || strcmp(o, "--verbose") == 0)
      t.verbose = true;
    else if (strncmp(o, "-I", 2) == 0 || strncmp(o, "--include-path", 14) == 0)
      t.finds_headers = true;
  }
  return t;
}

/* Writes log lines for #error and #warning directives and for missing headers.
 * Returns false after an error. */
static bool check_lines(nvrtcProgram p, const target *t)
{
  const char *line = p->source;

  for (int number = 1; line != NULL; number++) {
    const char *end = line + strcspn(line, "\r\n");
    const int n = (int)(end - line);
    char wanted[256];

    if (strncmp(line, "#error", 6) == 0) {
      add(&p->log,
          "%s(%d): catastrophic error: #error directive:%.*s\n  %.*s\n   ^\n\n"
          "1 catastrophic error detected in the compilation of \"%s\".\n"
          "Compilation terminated.\n",
          p->name, number, n - 6, line + 6, n, line, p->name);
      return false;
    }
    if (strncmp(line, "#warning", 8) == 0)
      add(&p->log, "%s(%d): warning #1105-D: #warning directive:%.*s\n",
          p->name, number, n - 8, line + 8);
    if (sscanf(line, "#include %*1[\"<]%255[^\">\n]", wanted) == 1) {
      bool found = t->finds_headers;

      for (int i = 0; i < p->n_headers; i++)
        found = found || strcmp(p->header_names[i], wanted) == 0;
      if (!found) {
        add(&p->log,
            "%s(%d): catastrophic error: cannot open source file \"%s\"\n"
            "  %.*s\n   ^\n\n1 catastrophic error detected in the compilation "
            "of \"%s\".\nCompilation terminated.\n",
            p->name, number, wanted, n, line, p->name);
        return false;
      }
    }
    line = strchr(line, '\n');
    if (line != NULL)
      line++;
  }
  return true;
}

static void add_entry(nvrtcProgram p, const target *t, const kernel *k)
{
  add(&p->ptx, "\t// .globl\t%s\n.visible .entry %s(", k->lowered, k->lowered);
  for (int i = 0; i < k->n_params; i++) {
    const int size = k->sizes[i];

    add(&p->ptx, i == 0 ? "\n" : ",\n");
    if (size == 1 || size == 2 || size == 4 || size == 8)
      add(&p->ptx, "\t.param .u%d %s_param_%d", size * 8, k->lowered, i);
    else
      add(&p->ptx, "\t.param .align 8 .b8 %s_param_%d[%d]", k->lowered, i,
          size);
  }
  add(&p->ptx, "\n)\n{\n\tret;\n\n}\n");
  if (t->real && t->verbose) {
    const int smem = remark(p->source, "//smem ", 0);
    const int spill = remark(p->source, "//spill ", 0);

    add(&p->log,
        "ptxas info    : Compiling entry function '%s' for '%s'\n"
        "ptxas info    : Function properties for %s\n"
        "ptxas         .     %d bytes stack frame, %d bytes spill stores, %d "
        "bytes spill loads\n"
        "ptxas info    : Used %d registers, used 0 barriers",
        k->lowered, t->name, k->lowered, spill, spill, spill,
        remark(p->source, "//regs ", 16));
    if (smem > 0)
      add(&p->log, ", %d bytes smem", smem);
    add(&p->log, "\n");
  }
}

static bool emit(nvrtcProgram p, const target *t, uint64_t hash)
{
  const char *at = p->source;
  kernel k;

  add(&p->ptx,
      "//\n// Generated by the fake NVRTC %d.%d\n// fake %016llx\n//\n\n"
      ".version %d.%d\n.target sm%s\n.address_size 64\n\n",
      control.version / 1000, control.version % 1000 / 10,
      (unsigned long long)hash, control.version / 1000 - 4,
      control.version % 1000 / 10, strchr(t->name, '_'));
  if (t->real && t->verbose)
    add(&p->log, "ptxas info    : 0 bytes gmem\n");
  while (next_kernel(p->source, &at, &k)) {
    if (!k.is_template)
      add_entry(p, t, &k);
  }
  for (int i = 0; i < p->n_expressions; i++) {
    const char *e = p->expressions[i];

    if (!find_kernel(p->source, e, &k)) {
      add(&p->log, "nvrtc: error: name expression \"%s\" is not a valid name\n",
          e);
      return false;
    }
    if (k.is_template || strchr(e, '<') != NULL) {
      snprintf(k.lowered, sizeof k.lowered, "_Z%zu%s%08x", strlen(k.name),
               k.name, (unsigned)hash_bytes(0xcbf29ce484222325u, e));
      add_entry(p, t, &k);
    }
    p->lowered[i] = strdup(k.lowered);
  }
  if (t->real) {
    add(&p->cubin, "\177ELF fake cubin %s\n", t->name);
    add_bytes(&p->cubin, p->ptx.data, p->ptx.size);
  }
  return true;
}

/* Simulates the compile time. Returns false if the compile was cancelled. */
static bool pass_time(nvrtcProgram p)
{
  if (control.on_compile != NULL)
    control.on_compile(control.user);
  for (int ms = 0; ms < control.delay_ms; ms++) {
    struct timespec t = {.tv_nsec = 1000000};

    if (p->flow != NULL && p->flow(p->flow_user, NULL) != 0)
      return false;
    nanosleep(&t, NULL);
  }
  return p->flow == NULL || p->flow(p->flow_user, NULL) == 0;
}

static void remember(nvrtcProgram p, int n, const char *const *options)
{
  size_t used = 0;

  pthread_mutex_lock(&lock);
  control.options[0] = '\0';
  for (int i = 0; i < n && used < sizeof control.options; i++)
    used += (size_t)snprintf(control.options + used,
                             sizeof control.options - used, "%s\n", options[i]);
  snprintf(control.source_name, sizeof control.source_name, "%s", p->name);
  control.n_headers = p->n_headers;
  pthread_mutex_unlock(&lock);
}

static nvrtcResult compile(nvrtcProgram p, int n, const char *const *options)
{
  const target t = read_options(n, options);
  uint64_t hash = hash_bytes(0xcbf29ce484222325u, p->source);

  hash += (uint64_t)control.version;
  for (int i = 0; i < p->n_headers; i++)
    hash = hash_bytes(hash_bytes(hash, p->header_names[i]), p->headers[i]);
  for (int i = 0; i < n; i++)
    hash = hash_bytes(hash, options[i]);
  if (t.bad) {
    add(&p->log,
        "nvrtc: error: invalid value for --gpu-architecture (-arch)\n");
    return NVRTC_ERROR_INVALID_OPTION;
  }
  if (!pass_time(p))
    return NVRTC_ERROR_CANCELLED;
  if (control.log != NULL)
    add(&p->log, "%s", control.log);
  atomic_fetch_add(&control.compiles, 1);
  append_byte("FAKE_NVRTC_COUNT_FILE");
  if (control.rc[FAKE_NVRTC_compileProgram] != 0)
    return control.rc[FAKE_NVRTC_compileProgram];
  if (!check_lines(p, &t) || !emit(p, &t, hash))
    return NVRTC_ERROR_COMPILATION;
  return NVRTC_SUCCESS;
}

/* ---- The functions of NVRTC --------------------------------------------- */

#define ENTER(name)                                                            \
  do {                                                                         \
    atomic_fetch_add(&control.calls[FAKE_NVRTC_##name], 1);                    \
    if (control.rc[FAKE_NVRTC_##name] != 0)                                    \
      return control.rc[FAKE_NVRTC_##name];                                    \
  } while (0)

EXPORT const char *nvrtcGetErrorString(nvrtcResult rc)
{
  switch (rc) {
#define KILN__NVRTC_RESULT(name, value)                                        \
  case value:                                                                  \
    return #name;
#include "nvrtc/nvrtc_constants.def"
#undef KILN__NVRTC_RESULT
  }
  return "NVRTC_ERROR unknown";
}

EXPORT nvrtcResult nvrtcVersion(int *major, int *minor)
{
  ENTER(getVersion);
  *major = control.version / 1000;
  *minor = control.version % 1000 / 10;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int *n)
{
  ENTER(getNumSupportedArchs);
  *n = control.n_archs;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetSupportedArchs(int *archs)
{
  ENTER(getSupportedArchs);
  memcpy(archs, control.archs, (size_t)control.n_archs * sizeof archs[0]);
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *source,
                                      const char *name, int n,
                                      const char *const *headers,
                                      const char *const *names)
{
  nvrtcProgram p;

  ENTER(createProgram);
  if (source == NULL || n < 0 || n > MAX_HEADERS)
    return NVRTC_ERROR_INVALID_INPUT;
  p = calloc(1, sizeof *p);
  p->source = strdup(source);
  p->name = strdup(name == NULL || name[0] == '\0' ? "default_program" : name);
  for (p->n_headers = 0; p->n_headers < n; p->n_headers++) {
    p->headers[p->n_headers] = strdup(headers[p->n_headers]);
    p->header_names[p->n_headers] = strdup(names[p->n_headers]);
  }
  atomic_fetch_add(&control.programs, 1);
  *out = p;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
  nvrtcProgram p;

  ENTER(destroyProgram);
  if (program == NULL || *program == NULL)
    return NVRTC_ERROR_INVALID_PROGRAM;
  p = *program;
  for (int i = 0; i < p->n_headers; i++) {
    free(p->headers[i]);
    free(p->header_names[i]);
  }
  for (int i = 0; i < p->n_expressions; i++) {
    free(p->expressions[i]);
    free(p->lowered[i]);
  }
  free(p->source);
  free(p->name);
  free(p->ptx.data);
  free(p->cubin.data);
  free(p->log.data);
  free(p);
  *program = NULL;
  atomic_fetch_sub(&control.programs, 1);
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n,
                                       const char *const *options)
{
  nvrtcResult rc;
  int now, most;

  atomic_fetch_add(&control.calls[FAKE_NVRTC_compileProgram], 1);
  if (p == NULL)
    return NVRTC_ERROR_INVALID_PROGRAM;
  now = atomic_fetch_add(&control.running, 1) + 1;
  most = atomic_load(&control.most_running);
  while (now > most &&
         !atomic_compare_exchange_weak(&control.most_running, &most, now))
    continue;
  remember(p, n, options);
  rc = compile(p, n, options);
  p->compiled = rc == NVRTC_SUCCESS;
  atomic_fetch_sub(&control.running, 1);
  return rc;
}

/* Returns the size of a text. The sizes of strings include the NUL byte, as in
 * NVRTC. */
static nvrtcResult give_size(nvrtcProgram p, const text *t, size_t nul,
                             size_t *size)
{
  if (p == NULL || size == NULL)
    return NVRTC_ERROR_INVALID_INPUT;
  *size = t->size + nul;
  return NVRTC_SUCCESS;
}

static nvrtcResult give(nvrtcProgram p, const text *t, size_t nul, char *out)
{
  if (p == NULL || out == NULL)
    return NVRTC_ERROR_INVALID_INPUT;
  if (t->size > 0)
    memcpy(out, t->data, t->size);
  if (nul != 0)
    out[t->size] = '\0';
  return NVRTC_SUCCESS;
}

/* Defines the two functions that return the size and the content of one result
 * of a compile. Some results have a size only if the program compiled. `nul` is
 * 1 for strings. */
#define RESULT(symbol, member, nul, if_compiled)                               \
  EXPORT nvrtcResult nvrtcGet##symbol##Size(nvrtcProgram p, size_t *size)      \
  {                                                                            \
    ENTER(get##symbol##Size);                                                  \
    if (if_compiled && (p == NULL || !p->compiled))                            \
      return NVRTC_ERROR_INVALID_PROGRAM;                                      \
    return give_size(p, &p->member, nul, size);                                \
  }                                                                            \
  EXPORT nvrtcResult nvrtcGet##symbol(nvrtcProgram p, char *out)               \
  {                                                                            \
    ENTER(get##symbol);                                                        \
    return give(p, &p->member, nul, out);                                      \
  }
RESULT(PTX, ptx, 1, true)
RESULT(CUBIN, cubin, 0, true)
RESULT(ProgramLog, log, 1, false)

EXPORT nvrtcResult nvrtcAddNameExpression(nvrtcProgram p,
                                          const char *expression)
{
  ENTER(addNameExpression);
  if (p == NULL || p->n_expressions == MAX_NAMES)
    return NVRTC_ERROR_INVALID_INPUT;
  if (p->compiled)
    return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
  p->expressions[p->n_expressions++] = strdup(expression);
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetLoweredName(nvrtcProgram p, const char *expression,
                                       const char **lowered)
{
  ENTER(getLoweredName);
  if (p == NULL || !p->compiled)
    return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  for (int i = 0; i < p->n_expressions; i++) {
    if (strcmp(p->expressions[i], expression) == 0) {
      *lowered = p->lowered[i];
      return NVRTC_SUCCESS;
    }
  }
  return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}

#ifndef FAKE_NVRTC_OLD
RESULT(LTOIR, ptx, 0, false)

EXPORT nvrtcResult nvrtcSetFlowCallback(nvrtcProgram p,
                                        int (*callback)(void *, void *),
                                        void *payload)
{
  ENTER(setFlowCallback);
  if (p == NULL)
    return NVRTC_ERROR_INVALID_PROGRAM;
  p->flow = callback;
  p->flow_user = payload;
  return NVRTC_SUCCESS;
}
#endif
