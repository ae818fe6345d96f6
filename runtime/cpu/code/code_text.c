/* code_text.c -- the names of rows and classes, and the formatting of
 * instructions for messages, counters and debuggers. */
#include "code_build.h"

#include <string.h>

const char *const kiln__cpu_op_name[KILN__N_OPS] = {
#define KILN__OP(name, pattern, operands, kind, klass, ptx, sm, text) #name,
#include "ops.def"
#undef KILN__OP
};

const char *const kiln__cpu_op_pattern[KILN__N_OPS] = {
#define KILN__OP(name, pattern, operands, kind, klass, ptx, sm, text) pattern,
#include "ops.def"
#undef KILN__OP
};

const char *const kiln__cpu_op_pseudo[KILN__N_OPS] = {
#define KILN__OP(name, pattern, operands, kind, klass, ptx, sm, text) text,
#include "ops.def"
#undef KILN__OP
};

const char *const kiln__cpu_class_text[KILN__N_CLASSES] = {
#define KILN__CLASS(name, text) text,
    KILN__CLASSES(KILN__CLASS)
#undef KILN__CLASS
};

typedef struct writer {
  char *buf;
  size_t size, used;
} writer;

static void put(writer *w, const char *text)
{
  const size_t n = strlen(text);

  for (size_t i = 0; i < n && w->used + 1 < w->size; i++)
    w->buf[w->used++] = text[i];
  if (w->size > 0)
    w->buf[w->used] = '\0';
}

static void put_slot(writer *w, const char *name, int32_t slot)
{
  char text[48];

  if (slot < 0)
    return;
  (void)kiln__format(text, sizeof text, " %s=%d", name, slot);
  put(w, text);
}

static void put_vector(writer *w, const char *name, const int32_t *vec,
                       unsigned n)
{
  char text[32];

  if (n == 0 || vec == NULL)
    return;
  put(w, " ");
  put(w, name);
  for (unsigned i = 0; i < n; i++) {
    (void)kiln__format(text, sizeof text, "%s%d", i == 0 ? "={" : ",", vec[i]);
    put(w, text);
  }
  put(w, "}");
}

static void put_target(writer *w, const kiln__cpu_program *program,
                       const kiln__cpu_code *code, const kiln__cpu_insn *in)
{
  char text[48];

  if (in->kind == KILN__KIND_BRANCH) {
    (void)kiln__format(text, sizeof text, " -> %u", in->target);
    put(w, text);
  }
  if (in->kind == KILN__KIND_CALL && code->calls != NULL &&
      code->calls[in->imm].callee < program->n_functions) {
    put(w, " ");
    put(w, program->functions[code->calls[in->imm].callee].name);
  }
  if (in->join != UINT32_MAX) {
    (void)kiln__format(text, sizeof text, " join %u", in->join);
    put(w, text);
  }
}

void kiln__cpu_insn_text(const kiln__cpu_program *program,
                         const kiln__cpu_code *code, uint32_t index, char *buf,
                         size_t size)
{
  const kiln__cpu_insn *in = &code->insns[index];
  writer w = {buf, size, 0};
  char text[48];

  put_slot(&w, (in->flags & KILN__GUARD_NOT) != 0 ? "@!" : "@", in->guard);
  put(&w, in->guard < 0 ? "" : " ");
  put(&w, in->op < KILN__N_OPS ? kiln__cpu_op_name[in->op] : "?");
  put_slot(&w, "d", in->d);
  put_slot(&w, "d2", in->d2);
  put_slot(&w, "a", in->a);
  put_slot(&w, "b", in->b);
  put_slot(&w, "c", in->c);
  put_slot(&w, "e", in->e);
  put_vector(&w, "vec", in->vec, in->n_vec);
  put_vector(&w, "vec2", in->vec2, in->n_vec2);
  if (in->imm != 0 && in->kind != KILN__KIND_CALL) {
    (void)kiln__format(text, sizeof text, " imm=%lld", (long long)in->imm);
    put(&w, text);
  }
  put_target(&w, program, code, in);
}
