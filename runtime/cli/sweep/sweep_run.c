/* sweep_run.c -- compiles the programs of a sweep in parallel, and runs its
 * settings one after another.
 *
 * A setting that fails is a row with its reason, and the sweep continues. After
 * an interrupt the rows that are done are kept: compilation is cancelled, a
 * launch that runs is awaited, and no other one starts. A second interrupt ends
 * the process. */
#include "cli/sweep/sweep.h"

#include <stdlib.h>
#include <string.h>

volatile sig_atomic_t kiln__sweep_interrupted;

static void interrupt(int number)
{
  (void)number;
  kiln__sweep_interrupted = 1;
}

static void catch_interrupts(void)
{
  struct sigaction action = {.sa_handler = interrupt,
                             .sa_flags = (int)SA_RESETHAND};

  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

/* Returns the reason of the last failure as one line: the first error of the
 * compiler, or else the message. */
static const char *reason(cli *c)
{
  const kiln_error *e = kiln_last_error();
  const char *error = strstr(e->log, "error");

  if (e->status == KILN_ECOMPILE && error != NULL) {
    while (error > e->log && error[-1] != '\n')
      error--;
    return kiln__cli_text(c, "%.*s", (int)strcspn(error, "\n"), error);
  }
  return kiln__cli_text(c, "%.*s", (int)strcspn(e->message, "\n"), e->message);
}

/* ---- Compiling ---------------------------------------------------------- */

/* Returns the number of a row's combination of values on the axes that the
 * compiler sees, or on those of macros alone. */
static size_t combination_of(const sweep *s, const sweep_row *row, bool all)
{
  size_t number = 0;

  for (size_t i = 0; i < s->n_axes; i++)
    if (all ? kiln__sweep_compiled(s, i) : s->axes[i].kind == SWEEP_DEFINE)
      number = number * s->axes[i].n + row->at[i];
  return number;
}

static void describe_program(sweep *s, const sweep_row *row, sweep_program *p)
{
  const kiln_program_desc *base = &s->program.desc;
  const char **defines =
      kiln__cli_alloc(s->c, base->n_defines + s->n_axes + 2, sizeof *defines);

  p->desc = *base;
  p->desc.defines = defines;
  if (base->n_defines > 0)
    memcpy(defines, base->defines, base->n_defines * sizeof *defines);
  for (size_t i = 0; i < s->n_axes; i++)
    if (s->axes[i].kind == SWEEP_DEFINE)
      defines[p->desc.n_defines++] = kiln__cli_text(
          s->c, "%s=%s", s->axes[i].name, s->axes[i].values[row->at[i]]);
  if (s->block_macro != NULL)
    defines[p->desc.n_defines++] = kiln__cli_text(
        s->c, "%s=%llu", s->block_macro,
        (unsigned long long)row->block.x * row->block.y * row->block.z);
  if (row->max_registers > 0)
    p->desc.max_registers = row->max_registers;
}

static void list_programs(sweep *s)
{
  s->n_programs = 1;
  for (size_t i = 0; i < s->n_axes; i++)
    if (kiln__sweep_compiled(s, i))
      s->n_programs *= s->axes[i].n;
  s->programs = kiln__cli_alloc(s->c, s->n_programs, sizeof *s->programs);
  for (size_t i = 0; i < s->n_rows; i++) {
    sweep_program *p;

    s->rows[i].program = combination_of(s, &s->rows[i], true);
    p = &s->programs[s->rows[i].program];
    if (p->desc.defines == NULL)
      describe_program(s, &s->rows[i], p);
  }
}

/* Waits for a job, shows its progress, and cancels it after an interrupt. */
static void await(const sweep *s, kiln_job *job)
{
  bool done = false, canceled = false;

  while (!done) {
    kiln_job_progress now;

    done = kiln_job_wait(job, 100) != KILN_ETIMEOUT;
    if (kiln_job_state(job, &now) == KILN_OK)
      kiln__cli_progress(s->c, "compiled", now.done, s->n_programs);
    if (kiln__sweep_interrupted && !canceled) {
      canceled = true;
      (void)kiln_job_cancel(job);
    }
  }
}

static int compile(sweep *s)
{
  kiln_program_desc *descs =
      kiln__cli_alloc(s->c, s->n_programs, sizeof *descs);
  kiln_target *targets = kiln__cli_alloc(s->c, s->n_programs, sizeof *targets);
  kiln_job *job = NULL;

  for (size_t i = 0; i < s->n_programs; i++) {
    descs[i] = s->programs[i].desc;
    targets[i] = s->target;
  }
  if (kiln_job_start(&job, s->c->rt, descs, targets, s->n_programs, NULL,
                     NULL) != KILN_OK)
    return kiln__cli_failure(s->c, NULL);
  await(s, job);
  for (size_t i = 0; i < s->n_programs; i++)
    if (kiln_job_image(job, i, &s->programs[i].image) != KILN_OK)
      s->programs[i].reason =
          kiln__sweep_interrupted ? "interrupted" : reason(s->c);
  kiln_job_free(job);
  return CLI_OK;
}

/* ---- Resources ---------------------------------------------------------- */

static bool is_named(cli *c, const char *lowered, const char *wanted)
{
  return strcmp(lowered, wanted) == 0 ||
         strcmp(kiln__cli_plain_name(c, lowered), wanted) == 0;
}

/* Finds the resources of the kernel that --kernel names, or of the only one.
 * @return NULL, or why there are none */
static const char *find_resources(const sweep *s, const kiln_image *image,
                                  kiln_resources *out)
{
  const size_t n = kiln_image_kernels(image);
  const char *wanted = s->spec.kernel, *list = "";

  for (size_t i = 0; i < n; i++) {
    if (kiln_image_resources(image, i, out) != KILN_OK)
      continue;
    if (wanted == NULL ? n == 1 : is_named(s->c, out->name, wanted)) {
      out->name = kiln__cli_text(s->c, "%s", out->name);
      return NULL;
    }
    list = kiln__cli_text(s->c, "%s%s%s", list, list[0] != '\0' ? ", " : "",
                          kiln__cli_plain_name(s->c, out->name));
  }
  if (n == 0)
    return "the program has no kernel; a template needs --name";
  return kiln__cli_text(s->c, "name one of its kernels with --kernel: %s",
                        list);
}

/* Explains why no block of a row fits on an SM, as far as the model knows. */
static const char *no_block(const sweep *s, const sweep_row *row,
                            const kiln_occupancy_result *o, int threads)
{
  const kiln_resources *k = &row->resources;

  if (k->max_threads > 0 && threads > k->max_threads)
    return kiln__cli_text(s->c, "%d threads exceed the launch bound of %d",
                          threads, k->max_threads);
  if (o->blocks_per_sm > 0)
    return NULL;
  if (o->limiter == KILN_LIMIT_REGS)
    return kiln__cli_text(s->c,
                          "%d threads with %d registers each exceed the "
                          "%d registers of a block",
                          threads, k->registers, s->traits.regs_per_block);
  return kiln__cli_text(s->c,
                        "%zu bytes of shared memory exceed the %d of a "
                        "block",
                        (size_t)k->shared_static + row->dynamic,
                        s->traits.smem_per_block_optin);
}

/* Fills in registers, spills and occupancy. */
static void describe_row(const sweep *s, sweep_row *row)
{
  const uint64_t volume = (uint64_t)row->block.x * row->block.y * row->block.z;
  const sweep_program *p = &s->programs[row->program];
  kiln_occupancy_result o;

  row->reason = p->reason;
  if (p->image == NULL)
    return;
  row->reason = find_resources(s, p->image, &row->resources);
  if (row->reason != NULL)
    return;
  row->resources_known = true;
  if (volume > (uint64_t)s->traits.max_threads_per_block) {
    row->reason = kiln__cli_text(
        s->c, "%llu threads per block: this GPU takes 1 to %d",
        (unsigned long long)volume, s->traits.max_threads_per_block);
    return;
  }
  if (kiln_occupancy(&s->traits, (int)volume, row->resources.registers,
                     (size_t)row->resources.shared_static + row->dynamic,
                     &o) != KILN_OK) {
    row->reason = reason(s->c);
    return;
  }
  row->reason = no_block(s, row, &o, (int)volume);
  if (row->reason != NULL)
    return;
  row->blocks_per_sm = o.blocks_per_sm;
  row->occupancy = o.share;
}

/* ---- Running ------------------------------------------------------------ */

/* The device of a sweep, and the module that it has loaded last. */
typedef struct runner {
  sweep *s;
  kiln_device *device;
  kiln_module *module;
  size_t program; /* number of the program of `module` */
  bool prepared;  /* the arrays are in device memory */
  bool broken;    /* no further launch can succeed */
  /* Number of the macros' combination of the rows that are compared, and the
   * result of the first of them that ran. */
  bool has_result;
  size_t compared;
  uint64_t result;
} runner;

/* Loads the module of a row unless it is loaded, and finds the kernel. */
static kiln_status load(runner *r, const sweep_row *row, kiln_kernel **kernel)
{
  const sweep *s = r->s;

  if (r->module == NULL || r->program != row->program) {
    kiln_module_free(r->module);
    r->module = NULL;
    CLI_TRY(kiln_module_load(&r->module, r->device,
                             &s->programs[row->program].desc));
    r->program = row->program;
  }
  return kiln_module_kernel(kernel, r->module, row->resources.name);
}

/* Gives the arrays their first contents again. */
static kiln_status restore(runner *r)
{
  for (unsigned i = 0; i < r->s->spec.n_args; i++) {
    const run_arg *a = &r->s->spec.args[i];

    if (a->array && strcmp(a->init, "none") != 0)
      CLI_TRY(kiln_copy_to_device(r->device, a->device, a->before,
                                  kiln__cli_run_bytes(a)));
  }
  return KILN_OK;
}

/* Computes a hash of all arrays (FNV-1a, by words of 8 bytes). */
static kiln_status hash_arrays(runner *r, uint64_t *out)
{
  *out = UINT64_C(14695981039346656037);
  for (unsigned i = 0; i < r->s->spec.n_args; i++) {
    const run_arg *a = &r->s->spec.args[i];
    const size_t bytes = a->array ? kiln__cli_run_bytes(a) : 0;

    if (bytes > 0)
      CLI_TRY(kiln_copy_to_host(r->device, a->host, a->device, bytes));
    for (size_t k = 0; k < bytes; k += 8) {
      uint64_t word = 0;

      memcpy(&word, a->host + k, bytes - k < 8 ? bytes - k : 8);
      *out = (*out ^ word) * UINT64_C(1099511628211);
    }
  }
  return KILN_OK;
}

static void add_instructions(void *user, const kiln_cpu_counters *k)
{
  double *sum = user;

  *sum += (double)k->warp_insns;
}

/* Launches a row once on restored arrays, and measures it. */
static kiln_status measure(runner *r, kiln_kernel *kernel, sweep_row *row)
{
  sweep *s = r->s;

  s->spec.grid = row->grid;
  s->spec.block = row->block;
  s->spec.shared = (uint32_t)row->dynamic;
  CLI_TRY(restore(r));
  if (s->c->on_cpu)
    CLI_TRY(kiln_cpu_reset_counters());
  CLI_TRY(kiln__cli_run_timed(r->device, kernel, &s->spec, 1, &row->ms));
  CLI_TRY(hash_arrays(r, &row->result));
  row->ran = true;
  if (s->c->on_cpu) {
    row->counted = true;
    return kiln_cpu_each_counters(add_instructions, NULL, &row->instructions);
  }
  CLI_TRY(
      kiln__cli_run_timed(r->device, kernel, &s->spec, s->repeats, &row->ms));
  row->timed = true;
  return KILN_OK;
}

static int prepare(runner *r, kiln_kernel *kernel)
{
  kiln_kernel_info info;

  if (r->prepared)
    return CLI_OK;
  if (kiln_kernel_describe(kernel, &info) != KILN_OK)
    return kiln__cli_failure(r->s->c, NULL);
  r->prepared = true;
  return kiln__cli_run_prepare(r->s->c, r->device, &r->s->spec, &info);
}

/* Compares the arrays of a row with those of the first row with the same
 * macros. Other macros may well give other results. */
static void compare(runner *r, sweep_row *row)
{
  const size_t combination = combination_of(r->s, row, false);

  if (!r->has_result || r->compared != combination)
    r->result = row->result;
  r->has_result = true;
  r->compared = combination;
  row->differs = row->result != r->result;
}

/* Closes the device after a kernel broke its context, and opens it again with
 * new memory, which succeeds on the CPU device. */
static void reopen(runner *r)
{
  kiln__cli_run_release(r->device, &r->s->spec);
  kiln_module_free(r->module);
  kiln_device_free(r->device);
  r->module = NULL;
  r->device = NULL;
  r->prepared = false;
  r->broken = !r->s->c->on_cpu ||
              kiln_device_open(&r->device, r->s->c->rt, 0, NULL) != KILN_OK;
}

/* Adds what a restored row lacks: its resources, and the comparison. */
static void complete_row(runner *r, sweep_row *row)
{
  const char *kept = row->reason;

  describe_row(r->s, row);
  if (row->reason == NULL)
    row->reason = kept;
  if (row->ran && row->reason == NULL)
    compare(r, row);
}

static int run_row(runner *r, sweep_row *row)
{
  kiln_kernel *kernel = NULL;
  kiln_status st = load(r, row, &kernel);

  if (st == KILN_OK) {
    const int rc = prepare(r, kernel);

    if (rc != CLI_OK)
      return rc;
    st = measure(r, kernel, row);
  }
  if (st != KILN_OK) {
    row->reason = reason(r->s->c);
    /* The call that finds the fault reports the driver's error, and every later
     * call reports that the context is lost. */
    if (kiln_device_synchronize(r->device) != KILN_OK)
      reopen(r);
    return CLI_OK;
  }
  compare(r, row);
  return CLI_OK;
}

static int run_rows(runner *r)
{
  sweep *s = r->s;
  int rc = CLI_OK;

  for (; s->n_done < s->n_rows && rc == CLI_OK; s->n_done++) {
    sweep_row *row = &s->rows[s->n_done];

    if (kiln__sweep_interrupted)
      break;
    if (row->restored) {
      complete_row(r, row);
      continue;
    }
    if (r->broken)
      kiln__sweep_restart(s);
    describe_row(s, row);
    if (row->reason == NULL && r->device != NULL)
      rc = run_row(r, row);
    else if (row->reason == NULL && r->broken)
      row->reason = "not run: an earlier setting broke the device";
    kiln__cli_progress(s->c, "measured", s->n_done + 1, s->n_rows);
  }
  return rc;
}

/* Returns whether the kernel can be launched with the arguments that were
 * given. */
static bool has_arguments(const sweep *s)
{
  kiln_resources k;

  for (size_t i = 0; i < s->n_programs; i++) {
    const kiln_image *image = s->programs[i].image;

    if (image == NULL || find_resources(s, image, &k) != NULL)
      continue;
    if (s->spec.n_args > 0 || k.n_params == 0)
      return true;
    kiln__cli_message(s->c, "give each parameter a value with --arg",
                      "%s has %d parameters and no arguments, so only its "
                      "resources are shown",
                      kiln__cli_plain_name(s->c, k.name), k.n_params);
    return false;
  }
  return false;
}

static int open_device(sweep *s, runner *r)
{
  kiln_device_info info;

  if (s->only_compile || !has_arguments(s))
    return CLI_OK;
  if (s->c->on_cpu) {
    s->c->cpu.counters = true;
    if (kiln_cpu_configure(&s->c->cpu) != KILN_OK)
      return kiln__cli_failure(s->c, NULL);
  }
  if (kiln_device_open(&r->device, s->c->rt, 0, NULL) != KILN_OK ||
      kiln_device_describe(r->device, &info) != KILN_OK)
    return kiln__cli_failure(s->c, NULL);
  s->device_name = kiln__cli_text(s->c, "%s", info.name);
  return CLI_OK;
}

int kiln__sweep_run(sweep *s)
{
  runner r = {.s = s};
  int rc;

  catch_interrupts();
  kiln__sweep_restore(s);
  list_programs(s);
  rc = compile(s);
  if (rc == CLI_OK)
    rc = open_device(s, &r);
  if (rc == CLI_OK)
    rc = run_rows(&r);
  if (r.device != NULL)
    kiln__cli_run_release(r.device, &s->spec);
  kiln_module_free(r.module);
  kiln_device_free(r.device);
  return rc;
}

void kiln__sweep_free(sweep *s)
{
  for (size_t i = 0; i < s->n_programs; i++)
    kiln_image_free(s->programs[i].image);
}
