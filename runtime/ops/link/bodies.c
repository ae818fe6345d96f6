/* bodies.c -- compiles the bodies of linked operations without a GPU.
 *
 * Problem: a first call with a new expression is fast only if its kernel's body
 * is in the cache or in a pack. Which bodies exist depends on how each
 * operation chooses its parameters, for a capability, types and sizes.
 *
 * Idea: the operations themselves choose. The caller opens the CPU device with
 * the wanted capability and calls the operations on it. Instead of compiling
 * for the CPU device and launching, this file compiles each body for the wanted
 * target and passes it on.
 *
 * Invariant: a body has the key that a call on a GPU looks up. Some parameters
 * depend on the number of SMs, so the device gets that of a typical GPU.
 *
 * Cost: the compile of each body, 50 to 300 ms. */
#include "../ops.h"

/* The numbers of SMs of typical GPUs, by compute capability. */
static const struct {
  int cc, sms;
} typical[] = {{50, 16},  {52, 24},   {60, 56},   {61, 28},   {70, 80},
               {75, 40},  {80, 108},  {86, 84},   {87, 16},   {89, 142},
               {90, 132}, {100, 148}, {103, 148}, {120, 170}, {121, 48}};

static int typical_sms(int cc, int otherwise)
{
  for (size_t i = 0; i < sizeof typical / sizeof typical[0]; i++)
    if (typical[i].cc == cc)
      return typical[i].sms;
  return otherwise;
}

/* What kiln_ops_bodies() keeps while a device compiles bodies. */
typedef struct bodies {
  kiln_target target;
  kiln_body_fn fn;
  void *user;
} bodies;

static kiln_status compile_body(kiln_device *device, void *user,
                                const kiln_program_desc *body,
                                const kiln_program_desc *texts)
{
  const bodies *b = user;
  kiln_image *image = NULL;
  const kiln_status st =
      kiln__compile_object(&image, device->rt, body, &b->target);

  (void)texts;
  return st == KILN_OK ? b->fn(b->user, image) : st;
}

kiln_status kiln_ops_bodies(kiln_device *device, const kiln_target *target,
                            kiln_body_fn fn, void *user)
{
  bodies *b = NULL;

  if (device == NULL || target == NULL || fn == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "device, target or fn is NULL");
  if (target->ptx)
    return kiln__fail(KILN_EINVAL,
                      "use a target of machine code, such as sm_90",
                      "bodies are machine code, which no PTX target has");
  if (device->on_body != NULL)
    return kiln__fail(KILN_EINVAL, "open another device",
                      "the device compiles bodies already");
  b = kiln__calloc(&device->rt->alloc, 1, sizeof *b);
  if (b == NULL)
    return kiln__fail_memory("a request for bodies");
  *b = (bodies){.target = *target, .fn = fn, .user = user};
  device->info.sm_count = typical_sms(target->cc, device->info.sm_count);
  device->body_user = b;
  device->on_body = compile_body;
  return KILN_OK;
}
