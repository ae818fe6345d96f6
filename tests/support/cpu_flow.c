/* cpu_flow.c -- generates random syntax trees, writes them as PTX source, and
 * interprets them. */
#include "cpu_flow.h"

#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
  N_VARIABLES = FLOW_VARIABLES,
  /* The number of functions in a program. Function 0 is the kernel. Each
   * function calls only functions with higher numbers. */
  N_FUNCTIONS = 4,
  N_CELLS = FLOW_CELLS,
  THREADS = FLOW_THREADS,
  BLOCKS = FLOW_BLOCKS,
  MAX_NODES = 400,
  MAX_TEXT = 200000,
  /* The maximum number of steps of a thread. A program with more steps is
   * discarded, and another program is generated. */
  MOST_STEPS = 40000
};

typedef enum kind {
  ASSIGN,
  BRANCH, /* an if statement with an else branch */
  SWITCH, /* a jump table with four targets */
  LOOP,
  BREAK,
  CONTINUE,
  LEAVE, /* a return; in the kernel, an exit */
  END,   /* an exit, which may be in any function */
  CALL,
  COUNT, /* an addition to one of the counters that all threads share */
  N_KINDS
} kind;

typedef struct node {
  kind kind;
  int id;
  /* numbers of the variables that the syntax-tree node uses */
  int d, a, b;
  unsigned op, imm; /* operator and constant of an assignment */
  /* The condition of the node is (a >> shift & 3) == wanted. */
  unsigned shift, wanted;
  /* true if the condition becomes a guard of one instruction, not a branch */
  bool guarded;
  int function;
  struct node *body[4];
  struct node *next;
  struct node *loop; /* the loop to which a break or continue refers */
} node;

static struct program {
  node nodes[MAX_NODES];
  int n_nodes;
  node *functions[N_FUNCTIONS];
  uint64_t random;
} g;

static unsigned draw(unsigned n)
{
  return (unsigned)(test_random(&g.random) >> 16) % n;
}

/* ---- Making -------------------------------------------------------------- */

static node *make_list(int function, int depth, node *loop, node *outer);

static void make_body(node *n, int function, int depth, node *loop, node *outer)
{
  switch (n->kind) {
  case BRANCH:
    n->body[0] = make_list(function, depth + 1, loop, outer);
    if (draw(2) == 0)
      n->body[1] = make_list(function, depth + 1, loop, outer);
    break;
  case SWITCH:
    for (int i = 0; i < 4; i++)
      n->body[i] = i == 2 ? NULL : make_list(function, depth + 1, loop, outer);
    break;
  case LOOP:
    n->body[0] = make_list(function, depth + 1, n, loop);
    break;
  default:
    break;
  }
}

static kind draw_kind(int function, int depth, const node *loop)
{
  for (;;) {
    const kind k = (kind)draw(N_KINDS);

    if ((k == BREAK || k == CONTINUE) && loop == NULL)
      continue;
    if ((k == BRANCH || k == SWITCH || k == LOOP) && depth > 3)
      continue;
    if (k == CALL && function == N_FUNCTIONS - 1)
      continue;
    if ((k == END || k == LEAVE || k == SWITCH) && draw(3) != 0)
      continue;
    return k;
  }
}

static node *make_node(int function, int depth, node *loop, node *outer)
{
  node *n = &g.nodes[g.n_nodes];

  *n = (node){.kind = draw_kind(function, depth, loop), .id = g.n_nodes++};
  n->d = (int)draw(N_VARIABLES);
  n->a = (int)draw(N_VARIABLES);
  n->b = (int)draw(N_VARIABLES);
  n->op = draw(5);
  n->imm = draw(1000);
  n->shift = draw(20);
  n->wanted = draw(4);
  n->guarded = draw(2) == 0;
  n->loop = outer != NULL && draw(3) == 0 ? outer : loop;
  if (n->kind == CALL)
    n->function =
        function + 1 + (int)draw((unsigned)(N_FUNCTIONS - 1 - function));
  make_body(n, function, depth, loop, outer);
  return n;
}

static node *make_list(int function, int depth, node *loop, node *outer)
{
  node *first = NULL, **last = &first;

  for (unsigned n = 1 + draw(4); n > 0 && g.n_nodes + 20 < MAX_NODES; n--) {
    *last = make_node(function, depth, loop, outer);
    last = &(*last)->next;
  }
  return first;
}

/* ---- Interpreter of one thread ------------------------------------------- */

typedef enum outcome { NEXT, BROKE, CONTINUED, LEFT, ENDED } outcome;

typedef struct thread {
  uint32_t *out, *cells;
  long steps;
  const node *to; /* the loop to which a break or continue refers */
} thread;

static uint32_t compute(const node *n, const uint32_t *v)
{
  switch (n->op) {
  case 0:
    return v[n->a] + v[n->b];
  case 1:
    return v[n->a] * 5 + n->imm;
  case 2:
    return v[n->a] ^ (v[n->b] >> 3);
  case 3:
    return v[n->a] - n->imm;
  default:
    return v[n->a] * v[n->b] + 1;
  }
}

static bool holds(const node *n, const uint32_t *v)
{
  return (v[n->a] >> n->shift & 3) == n->wanted;
}

static outcome run_list(const node *n, uint32_t *v, thread *t);

static outcome run_loop(const node *n, uint32_t *v, thread *t)
{
  for (uint32_t left = v[n->a] >> n->shift & 7; left != 0; left--) {
    const outcome o = run_list(n->body[0], v, t);

    if ((o == BROKE || o == CONTINUED) && t->to == n) {
      if (o == BROKE)
        break;
      continue;
    }
    if (o != NEXT)
      return o;
  }
  return NEXT;
}

static outcome run_call(const node *n, uint32_t *v, thread *t)
{
  uint32_t mine[N_VARIABLES] = {v[n->a], v[n->b], n->imm, 1};

  if (run_list(g.functions[n->function], mine, t) == ENDED)
    return ENDED;
  v[n->d] = mine[0];
  return NEXT;
}

static outcome run_node(const node *n, uint32_t *v, thread *t)
{
  switch (n->kind) {
  case ASSIGN:
    v[n->d] = compute(n, v);
    return NEXT;
  case BRANCH:
    return run_list(n->body[holds(n, v) ? 0 : 1], v, t);
  case SWITCH:
    return run_list(n->body[v[n->a] >> n->shift & 3], v, t);
  case LOOP:
    return run_loop(n, v, t);
  case BREAK:
  case CONTINUE:
    t->to = n->loop;
    return !holds(n, v) ? NEXT : n->kind == BREAK ? BROKE : CONTINUED;
  case LEAVE:
    return holds(n, v) ? LEFT : NEXT;
  case END:
    if (!holds(n, v))
      return NEXT;
    memcpy(t->out, v, sizeof(uint32_t) * N_VARIABLES);
    return ENDED;
  case CALL:
    return run_call(n, v, t);
  default:
    t->cells[n->imm % N_CELLS] += v[n->a];
    return NEXT;
  }
}

static outcome run_list(const node *n, uint32_t *v, thread *t)
{
  for (; n != NULL; n = n->next) {
    outcome o = NEXT;

    if (++t->steps > MOST_STEPS)
      return ENDED;
    o = run_node(n, v, t);
    if (o != NEXT)
      return o;
  }
  return NEXT;
}

/* Interprets a program. Returns false if a thread needs more than MOST_STEPS
 * steps. */
static bool interpret(uint32_t *out, uint32_t *cells)
{
  for (uint32_t i = 0; i < THREADS * BLOCKS; i++) {
    uint32_t v[N_VARIABLES] = {i, i * 2654435761u, 7, i / THREADS};
    thread t = {out + N_VARIABLES * i, cells, 0, NULL};

    if (run_list(g.functions[0], v, &t) != ENDED)
      memcpy(t.out, v, sizeof v);
    if (t.steps > MOST_STEPS)
      return false;
  }
  return true;
}

/* ---- Output as PTX source ------------------------------------------------ */

static char text[MAX_TEXT];
static size_t used;

static void emit(const char *format, ...) KILN_PRINTF(1, 2);

static void emit(const char *format, ...)
{
  va_list args;

  va_start(args, format);
  used += (size_t)vsnprintf(text + used, MAX_TEXT - used, format, args);
  va_end(args);
  ck_assert_uint_lt(used, MAX_TEXT - 1);
}

static void emit_condition(const node *n)
{
  emit("shr.u32 %%t, %%v%d, %u; and.b32 %%t, %%t, 3;\n"
       "setp.eq.u32 %%p, %%t, %u;\n",
       n->a, n->shift, n->wanted);
}

static void emit_list(const node *n, int function);

static void emit_assign(const node *n)
{
  switch (n->op) {
  case 0:
    emit("add.u32 %%v%d, %%v%d, %%v%d;\n", n->d, n->a, n->b);
    break;
  case 1:
    emit("mad.lo.u32 %%v%d, %%v%d, 5, %u;\n", n->d, n->a, n->imm);
    break;
  case 2:
    emit("shr.u32 %%t, %%v%d, 3; xor.b32 %%v%d, %%v%d, %%t;\n", n->b, n->d,
         n->a);
    break;
  case 3:
    emit("sub.u32 %%v%d, %%v%d, %u;\n", n->d, n->a, n->imm);
    break;
  default:
    emit("mad.lo.u32 %%v%d, %%v%d, %%v%d, 1;\n", n->d, n->a, n->b);
    break;
  }
}

static void emit_switch(const node *n, int function)
{
  emit("shr.u32 %%t, %%v%d, %u; and.b32 %%t, %%t, 3;\n"
       "J%d: .branchtargets S%d_0, S%d_1, E%d, S%d_3;\n"
       "brx.idx %%t, J%d;\n",
       n->a, n->shift, n->id, n->id, n->id, n->id, n->id, n->id);
  for (int i = 0; i < 4; i++) {
    if (i == 2)
      continue;
    emit("S%d_%d:\n", n->id, i);
    emit_list(n->body[i], function);
    emit("bra E%d;\n", n->id);
  }
  emit("E%d:\n", n->id);
}

static void emit_branch(const node *n, int function)
{
  emit_condition(n);
  emit("@!%%p bra O%d;\n", n->id);
  emit_list(n->body[0], function);
  if (n->body[1] != NULL)
    emit("bra E%d;\n", n->id);
  emit("O%d:\n", n->id);
  emit_list(n->body[1], function);
  emit("E%d:\n", n->id);
}

static void emit_loop(const node *n, int function)
{
  emit("{ .reg .b32 %%c%d;\n"
       "shr.u32 %%c%d, %%v%d, %u; and.b32 %%c%d, %%c%d, 7;\n"
       "L%d: setp.eq.u32 %%p, %%c%d, 0; @%%p bra B%d;\n",
       n->id, n->id, n->a, n->shift, n->id, n->id, n->id, n->id, n->id);
  emit_list(n->body[0], function);
  emit("C%d: sub.u32 %%c%d, %%c%d, 1; bra L%d; }\nB%d:\n", n->id, n->id, n->id,
       n->id, n->id);
}

static void emit_stores(void)
{
  for (int i = 0; i < N_VARIABLES; i++)
    emit("st.global.u32 [%%out+%d], %%v%d;\n", 4 * i, i);
}

static void emit_leave(const node *n, int function)
{
  emit_condition(n);
  if (n->guarded && n->kind == LEAVE && function != 0) {
    emit("st.param.b32 [ret], %%v0; @%%p ret;\n");
    return;
  }
  emit("@!%%p bra E%d;\n", n->id);
  if (n->kind == LEAVE && function != 0) {
    emit("st.param.b32 [ret], %%v0; ret;\n");
  } else {
    emit_stores();
    emit("%s;\n", function == 0 && n->guarded ? "ret" : "exit");
  }
  emit("E%d:\n", n->id);
}

static void emit_call(const node *n)
{
  emit("{ .param .b64 to; .param .b64 count; .param .b32 p0; .param .b32 p1;\n"
       ".param .b32 p2; .param .b32 r; st.param.b64 [to], %%out;\n"
       "st.param.b64 [count], %%cells; st.param.b32 [p0], %%v%d;\n"
       "st.param.b32 [p1], %%v%d; st.param.b32 [p2], %u;\n"
       "call (r), f%d, (to, count, p0, p1, p2); ld.param.b32 %%v%d, [r]; }\n",
       n->a, n->b, n->imm, n->function, n->d);
}

static void emit_jump(const node *n)
{
  const char to = n->kind == BREAK ? 'B' : 'C';

  emit_condition(n);
  if (n->guarded)
    emit("@%%p bra %c%d;\n", to, n->loop->id);
  else
    emit("@!%%p bra E%d; bra %c%d;\nE%d:\n", n->id, to, n->loop->id, n->id);
}

static void emit_list(const node *n, int function)
{
  for (; n != NULL; n = n->next) {
    switch (n->kind) {
    case ASSIGN:
      emit_assign(n);
      break;
    case BRANCH:
      emit_branch(n, function);
      break;
    case SWITCH:
      emit_switch(n, function);
      break;
    case LOOP:
      emit_loop(n, function);
      break;
    case BREAK:
    case CONTINUE:
      emit_jump(n);
      break;
    case LEAVE:
    case END:
      emit_leave(n, function);
      break;
    case CALL:
      emit_call(n);
      break;
    default:
      emit("red.global.add.u32 [%%cells+%u], %%v%d;\n", n->imm % N_CELLS * 4,
           n->a);
      break;
    }
  }
}

static void emit_registers(void)
{
  emit(".reg .b32 %%v<%d>; .reg .b32 %%t; .reg .pred %%p;\n"
       ".reg .b64 %%out; .reg .b64 %%cells; .reg .b64 %%x;\n",
       N_VARIABLES);
}

static void emit_function(int k)
{
  emit(".func (.param .b32 ret) f%d(.param .b64 o, .param .b64 c,\n"
       " .param .b32 a, .param .b32 b, .param .b32 i) {\n",
       k);
  emit_registers();
  emit("ld.param.u64 %%out, [o]; ld.param.u64 %%cells, [c];\n"
       "ld.param.u32 %%v0, [a]; ld.param.u32 %%v1, [b];\n"
       "ld.param.u32 %%v2, [i]; mov.u32 %%v3, 1;\n");
  emit_list(g.functions[k], k);
  emit("st.param.b32 [ret], %%v0; ret; }\n");
}

static void emit_kernel(void)
{
  emit(".visible .entry k(.param .u64 out, .param .u64 cells) {\n");
  emit_registers();
  emit("mov.u32 %%v0, %%tid.x; mov.u32 %%v1, %%ctaid.x;\n"
       "mov.u32 %%v3, %%v1; mad.lo.u32 %%v0, %%v1, %d, %%v0;\n"
       "mul.lo.u32 %%v1, %%v0, -1640531535; mov.u32 %%v2, 7;\n"
       "ld.param.u64 %%out, [out]; mul.wide.u32 %%x, %%v0, %d;\n"
       "add.u64 %%out, %%out, %%x; ld.param.u64 %%cells, [cells];\n",
       THREADS, 4 * N_VARIABLES);
  emit_list(g.functions[0], 0);
  emit_stores();
  emit("ret; }\n");
}

/* ---- All ----------------------------------------------------------------- */

const char *flow_make(uint64_t number, flow_results *want)
{
  g.random = number * 2 + 1;
  do {
    g.n_nodes = 0;
    for (int k = 0; k < N_FUNCTIONS; k++)
      g.functions[k] = make_list(k, 0, NULL, NULL);
    memset(want, 0, sizeof *want);
  } while (!interpret(want->out, want->cells));
  used = 0;
  for (int k = N_FUNCTIONS - 1; k > 0; k--)
    emit_function(k);
  emit_kernel();
  return text;
}
