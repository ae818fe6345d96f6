/* operation_checks.h -- checks that the tests of all operations share. They
 * work for every operation in the table of operation_table.h.
 *
 * A test makes an operation_call, which consists of an operation, its desc, and
 * the expected contents of each result. Such a call is then checked in these
 * ways:
 *   ck_call()           once, with the library's temporary storage
 *   ck_workspace()      with workspaces that are valid, too small or misplaced
 *   ck_capture()        captured into a graph that runs several times
 *   ck_bad_arguments()  with members of its desc that are not valid
 *   ck_random_calls()   many calls that a function of the test draws
 * A call works in place if a result is also an input. Every run then starts
 * from the contents that the array had when the call was made. */
#ifndef KILN_OPERATION_CHECKS_H
#define KILN_OPERATION_CHECKS_H

#include "operation_table.h"
#include "ops_fixture.h"

enum { MOST_RESULTS = 6 };

/* An array that the operation writes. */
typedef struct call_result {
  test_array array;
  /* contents of the array before and after the call */
  const void *before, *want;
} call_result;

typedef struct operation_call {
  const operation *op;
  /* name for messages; the operation's unless the test sets it */
  const char *what;
  void *desc;
  size_t n_results;
  call_result result[MOST_RESULTS];
} operation_call;

/* Makes a call of the operation `name` with a copy of the desc that the second
 * argument points to. The call has no results yet. */
#define CALL_OF(name, ...)                                                     \
  call_of(&operations[OPERATION_##name], (__VA_ARGS__), sizeof *(__VA_ARGS__))

static inline operation_call call_of(const operation *op, const void *desc,
                                     size_t desc_size)
{
  operation_call c = {
      .op = op, .what = op->name, .desc = kept(malloc(desc_size))};

  ck_assert_uint_eq(desc_size, op->desc_size);
  memcpy(c.desc, desc, desc_size);
  return c;
}

/* Adds a result, whose array must hold `want` after the call. The test must
 * keep `want` in memory. */
static inline void call_writes(operation_call *c, const test_array *a,
                               const void *want)
{
  ck_assert_uint_lt(c->n_results, MOST_RESULTS);
  c->result[c->n_results++] = (call_result){*a, kept(array_read(a)), want};
}

/* Restores the arrays of all results to their contents before the call. */
static inline void call_restart(const operation_call *c)
{
  for (size_t k = 0; k < c->n_results; k++) {
    const test_array *a = &c->result[k].array;

    ck_kiln_ok(kiln_copy_to_device(device, a->array.data, c->result[k].before,
                                   a->n * a->width));
  }
}

/* Fails unless the array holds the expected elements, to the bit. */
static inline void ck_array(const test_array *a, const void *want,
                            const char *what)
{
  unsigned char *got = array_read(a);

  for (size_t i = 0; i < a->n; i++)
    ck_assert_msg(
        memcmp(got + i * a->width, (const unsigned char *)want + i * a->width,
               a->width) == 0,
        "%s: [%zu] of %zu %s is %g, not %g", what, i, a->n,
        kiln_dtype_name(a->array.type), value_at(a->array.type, got, i),
        value_at(a->array.type, want, i));
  free(got);
}

/* Fails unless every result holds what the call must write. */
static inline void ck_results(const operation_call *c)
{
  for (size_t k = 0; k < c->n_results; k++)
    ck_array(&c->result[k].array, c->result[k].want, c->what);
}

static inline void ck_call_with(const operation_call *c,
                                const kiln_workspace *workspace)
{
  call_restart(c);
  ck_kiln_ok(c->op->run(stream, c->desc, workspace));
  ck_results(c);
}

static inline void ck_call(operation_call c)
{
  ck_call_with(&c, NULL);
}

/* Returns the expected contents of an array in which elements [begin, end)
 * become x[from[i]] and the others keep their values. */
static inline void *gathered(const test_array *a, const void *x,
                             const size_t *from, size_t begin, size_t end)
{
  unsigned char *want = kept(array_read(a));

  for (size_t i = begin; i < end; i++)
    memcpy(want + i * a->width, (const unsigned char *)x + from[i] * a->width,
           a->width);
  return want;
}

/* Runs a call with a single result. */
static inline void ck_writes(operation_call c, const test_array *a,
                             const void *want)
{
  call_writes(&c, a, want);
  ck_call(c);
}

/* ---- Workspaces, captures ------------------------------------------------ */

/* Fails unless the operation returns this status for the desc, with a message
 * that contains `says`. */
static inline void ck_refused(const operation *op, const void *desc,
                              const kiln_workspace *workspace,
                              kiln_status status, const char *says)
{
  const kiln_status st = op->run(stream, desc, workspace);

  ck_assert_msg(st == status, "%s, \"%s\": %s: %s", op->name, says,
                kiln_status_name(st), kiln_last_error()->message);
  ck_assert_msg(strstr(kiln_last_error()->message, says) != NULL,
                "%s: the message \"%s\" does not contain \"%s\"", op->name,
                kiln_last_error()->message, says);
}

/* Fails unless every result still holds its contents from before the call. */
static inline void ck_untouched(const operation_call *c)
{
  for (size_t k = 0; k < c->n_results; k++)
    ck_array(&c->result[k].array, c->result[k].before, "after a refusal");
}

/* Returns the size of the workspace in bytes, which may be 0. */
static inline size_t ck_workspace(operation_call c)
{
  test_array storage;
  kiln_workspace w;
  size_t bytes;

  ck_kiln_ok(c.op->need(stream, c.desc, &bytes));
  storage = array_make(KILN_U8, bytes, 0, NULL, 0xff);
  w = (kiln_workspace){storage.array.data, bytes};
  for (int turn = 0; turn < 2; turn++)
    ck_call_with(&c, &w);
  free(array_read(&storage)); /* fails if a guard zone was written */
  if (bytes == 0)
    return 0;
  call_restart(&c);
  w.size = bytes - 1;
  ck_refused(c.op, c.desc, &w, KILN_EINVAL, "workspace");
  w = (kiln_workspace){storage.array.data + 8, bytes};
  ck_refused(c.op, c.desc, &w, KILN_EINVAL, "workspace");
  w = (kiln_workspace){c.result[0].array.array.data, bytes};
  ck_refused(c.op, c.desc, &w, KILN_EINVAL, "workspace");
  ck_untouched(&c);
  return bytes;
}

/* Captures the call into a graph. It may be the first call with these types,
 * which compiles a kernel. */
static inline CUgraphExec capture_call(const operation_call *c)
{
  capture_begin();
  ck_kiln_ok(c->op->run(stream, c->desc, NULL));
  return capture_end();
}

/* Captures the call and runs the graph three times. */
static inline void ck_capture(operation_call c)
{
  CUgraphExec graph = capture_call(&c);

  for (int turn = 0; turn < 3; turn++) {
    call_restart(&c);
    capture_replay(graph);
    ck_results(&c);
  }
  capture_free(graph);
}

/* ---- Bad arguments ------------------------------------------------------- */

/* A member of a desc, and the value that a test gives it. */
typedef struct member_value {
  size_t offset, size;
  const void *value;
} member_value;

#define MEMBER(desc_type, member, ...)                                         \
  {                                                                            \
    offsetof(desc_type, member), sizeof(((desc_type *)NULL)->member),          \
        (__typeof__(((desc_type *)NULL)->member)[])                            \
    {                                                                          \
      __VA_ARGS__                                                              \
    }                                                                          \
  }

/* Members that make a valid desc invalid, and the error that the operation must
 * return. */
typedef struct bad_argument {
  kiln_status status;
  const char *says; /* text that the message must contain */
  member_value set[4];
} bad_argument;

/* The good call must work. With each of the changes the operation must return
 * the error and write nothing. The query for the workspace must return the same
 * error, unless only compiling reveals it. */
#define ck_bad_arguments(good, bad)                                            \
  ck_bad_members(&(good), (bad), sizeof(bad) / sizeof(bad)[0])

static inline void ck_bad_members(const operation_call *good,
                                  const bad_argument *bad, size_t n_bad)
{
  void *desc = kept(malloc(good->op->desc_size));

  ck_call(*good);
  call_restart(good);
  for (size_t k = 0; k < n_bad; k++) {
    size_t bytes = 1;

    memcpy(desc, good->desc, good->op->desc_size);
    for (const member_value *m = bad[k].set; m->value != NULL; m++)
      memcpy((char *)desc + m->offset, m->value, m->size);
    ck_refused(good->op, desc, NULL, bad[k].status, bad[k].says);
    if (bad[k].status != KILN_EINVAL)
      continue;
    ck_assert_msg(good->op->need(stream, desc, &bytes) == KILN_EINVAL,
                  "%s_workspace, \"%s\"", good->op->name, bad[k].says);
    ck_assert_uint_eq(bytes, 0);
  }
  ck_untouched(good);
}

/* ---- Random calls -------------------------------------------------------- */

/* Makes random call number k with numbers from *state. */
typedef operation_call draw_call(unsigned long k, uint64_t *state);

/* Checks random_calls(few) calls that `draw` makes, starting from this seed. */
static inline void ck_random_calls(draw_call *draw, unsigned long few,
                                   uint64_t seed)
{
  const unsigned long calls = random_calls(few);
  uint64_t state = seed;

  for (unsigned long k = 0; k < calls; k++) {
    const size_t mark = n_kept;

    ck_call(draw(k, &state));
    release(mark);
  }
}

#endif
