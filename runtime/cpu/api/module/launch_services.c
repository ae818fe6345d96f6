/* launch_services.c -- implements what a running launch asks of the driver API:
 * the functions of other modules.
 *
 * A kernel may call a function of another module of its context through a
 * pointer. The launch then holds a reference to that module until it ends, so
 * the program may unload the module while the launch runs. */
#include "api_module.h"

static bool contains(const struct CUmod_st *module, uint64_t address)
{
  const uint64_t first = KILN__WINDOW_CODE + module->program->code_offset;

  return address >= first &&
         (address - first) / 16 < module->program->n_functions;
}

static CUmodule find(const struct CUctx_st *context, uint64_t address)
{
  CUmodule module = context->modules;

  while (module != NULL && !contains(module, address))
    module = module->next;
  return module;
}

/* Looks for the module in its context and adds a reference. The caller holds
 * the lock of `s`. */
static CUmodule hold(kiln__cpu_launch_services *s, uint64_t address)
{
  CUmodule module;

  if (!kiln__grow(&machine()->alloc, &s->held, s->n_held, &s->capacity,
                  sizeof(CUmodule)))
    return NULL;
  pthread_mutex_lock(&s->context->lock);
  module = find(s->context, address);
  if (module != NULL)
    kiln__cpu_module_hold(module);
  pthread_mutex_unlock(&s->context->lock);
  if (module != NULL)
    s->held[s->n_held++] = module;
  return module;
}

static const kiln__cpu_program *program_at(void *user, uint64_t address)
{
  kiln__cpu_launch_services *const s = user;
  CUmodule module = NULL;

  pthread_mutex_lock(&s->lock);
  for (size_t i = 0; i < s->n_held && module == NULL; i++) {
    if (contains(s->held[i], address))
      module = s->held[i];
  }
  if (module == NULL)
    module = hold(s, address);
  pthread_mutex_unlock(&s->lock);
  return module == NULL ? NULL : module->program;
}

void kiln__cpu_services_begin(kiln__cpu_launch_services *s, CUcontext context)
{
  *s = (kiln__cpu_launch_services){
      .base = {.user = s, .program_at = program_at}, .context = context};
  pthread_mutex_init(&s->lock, NULL);
}

void kiln__cpu_services_end(kiln__cpu_launch_services *s)
{
  for (size_t i = 0; i < s->n_held; i++)
    kiln__cpu_module_drop(s->held[i]);
  kiln__free(&machine()->alloc, s->held);
  pthread_mutex_destroy(&s->lock);
}
