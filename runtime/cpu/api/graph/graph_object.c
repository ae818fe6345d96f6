/* graph_object.c -- implements user objects, which graphs keep alive, and the
 * memory of alloc nodes.
 *
 * A user object is a reference count with a destructor that the program
 * provides. Graphs and the program hold references. The destructor is called
 * when the last reference is released. */
#include "../memory/api_memory.h"
#include "graph_parts.h"

struct CUuserObject_st {
  void *data;
  CUhostFn destroy;
  unsigned refs; /* number of references; guarded by machine.graph_lock */
};

typedef struct kiln__cpu_held {
  CUuserObject object;
  unsigned n;
  struct kiln__cpu_held *next;
} kiln__cpu_held;

/* Releases n references to a user object. Returns true if no reference is left;
 * the caller then has to destroy the object. */
static bool object_drop(CUuserObject object, unsigned n)
{
  object->refs -= n < object->refs ? n : object->refs;
  if (object->refs > 0)
    return false;
  kiln__cpu_live_remove(object);
  return true;
}

static void object_destroy(CUuserObject object)
{
  object->destroy(object->data);
  kiln__free(&machine()->alloc, object);
}

/* Calls destructors of user objects while graph_lock is held. This cannot
 * deadlock, since CUDA forbids destructors to call the driver. */
void kiln__cpu_held_drop_all(CUgraph graph)
{
  while (graph->held != NULL) {
    kiln__cpu_held *h = graph->held;

    graph->held = h->next;
    if (object_drop(h->object, h->n))
      object_destroy(h->object);
    kiln__free(&machine()->alloc, h);
  }
}

bool kiln__cpu_held_copy(CUgraph to, CUgraph from)
{
  for (const kiln__cpu_held *h = from->held; h != NULL; h = h->next) {
    kiln__cpu_held *copy = kiln__calloc(&machine()->alloc, 1, sizeof *copy);

    if (copy == NULL)
      return false;
    copy->object = h->object;
    copy->n = h->n;
    copy->object->refs += h->n;
    copy->next = to->held;
    to->held = copy;
  }
  return true;
}

CUresult kiln__cpu_userObjectCreate(CUuserObject *object, void *p,
                                    CUhostFn destroy, unsigned int n,
                                    unsigned int flags)
{
  CUuserObject o;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(object != NULL && destroy != NULL && n != 0 && n <= INT32_MAX &&
               flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  o = kiln__calloc(&machine()->alloc, 1, sizeof *o);
  if (o == NULL || !kiln__cpu_live_add(o, KILN__HANDLE_USER_OBJECT)) {
    kiln__free(&machine()->alloc, o);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  o->data = p;
  o->destroy = destroy;
  o->refs = n;
  *object = o;
  return CUDA_SUCCESS;
}

static CUresult check(CUuserObject object, unsigned n)
{
  CU_TRY(kiln__cpu_ready());
  return valid(n > 0 && n <= INT32_MAX &&
               kiln__cpu_live(object, KILN__HANDLE_USER_OBJECT));
}

CUresult kiln__cpu_userObjectRetain(CUuserObject object, unsigned int n)
{
  CU_TRY(check(object, n));
  lock_graphs();
  object->refs += n;
  unlock_graphs();
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_userObjectRelease(CUuserObject object, unsigned int n)
{
  bool last;

  CU_TRY(check(object, n));
  lock_graphs();
  last = object_drop(object, n);
  unlock_graphs();
  if (last)
    object_destroy(object);
  return CUDA_SUCCESS;
}

static kiln__cpu_held **held_of(CUgraph graph, CUuserObject object)
{
  kiln__cpu_held **at = &graph->held;

  while (*at != NULL && (*at)->object != object)
    at = &(*at)->next;
  return at;
}

CUresult kiln__cpu_graphRetainUserObject(CUgraph graph, CUuserObject object,
                                         unsigned int n, unsigned int flags)
{
  CUresult rc = CUDA_SUCCESS;
  kiln__cpu_held **at;

  CU_TRY(check(object, n));
  CU_TRY(valid(kiln__cpu_live(graph, KILN__HANDLE_GRAPH) &&
               (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE) == 0));
  lock_graphs();
  at = held_of(graph, object);
  if (*at == NULL)
    *at = kiln__calloc(&machine()->alloc, 1, sizeof **at);
  if (*at != NULL) {
    (*at)->object = object;
    (*at)->n += n;
    if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0)
      object->refs += n;
  } else {
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  }
  unlock_graphs();
  return rc;
}

CUresult kiln__cpu_graphReleaseUserObject(CUgraph graph, CUuserObject object,
                                          unsigned int n)
{
  CUresult rc = CUDA_SUCCESS;
  kiln__cpu_held **at, *h;
  bool last = false;

  CU_TRY(check(object, n));
  CU_TRY(kiln__cpu_known(graph, KILN__HANDLE_GRAPH));
  lock_graphs();
  at = held_of(graph, object);
  h = *at;
  if (h == NULL || h->n < n) {
    rc = CUDA_ERROR_INVALID_VALUE;
  } else {
    h->n -= n;
    if (h->n == 0) {
      *at = h->next;
      kiln__free(&machine()->alloc, h);
    }
    last = object_drop(object, n);
  }
  unlock_graphs();
  if (last)
    object_destroy(object);
  return rc;
}

/* ---- Memory of alloc nodes ----------------------------------------------- */

CUresult kiln__cpu_graph_memory_new(kiln__cpu_graph_memory **out,
                                    const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
  kiln__cpu_graph_memory *g = kiln__calloc(&machine()->alloc, 1, sizeof *g);
  CUresult rc;

  *out = NULL;
  CU_TRY(allocated(g));
  rc = kiln__cpu_block_add(
      &g->address,
      &(kiln__cpu_block_info){.kind = KILN__RANGE_POOL,
                              .size = params->bytesize,
                              .device = params->poolProps.location.id,
                              .graph = g});
  if (rc != CUDA_SUCCESS) {
    kiln__free(&machine()->alloc, g);
    return rc;
  }
  atomic_init(&g->refs, 1);
  atomic_init(&g->allocated, false);
  g->params = *params;
  g->params.accessDescs = NULL;
  g->params.accessDescCount = 0;
  g->params.dptr = g->address;
  *out = g;
  return CUDA_SUCCESS;
}

kiln__cpu_graph_memory *
kiln__cpu_graph_memory_hold(kiln__cpu_graph_memory *memory)
{
  if (memory != NULL)
    atomic_fetch_add(&memory->refs, 1);
  return memory;
}

void kiln__cpu_graph_memory_drop(kiln__cpu_graph_memory *memory)
{
  if (memory == NULL || atomic_fetch_sub(&memory->refs, 1) != 1)
    return;
  kiln__cpu_footprint_freed(memory);
  kiln__cpu_block_remove(memory->address);
  kiln__free(&machine()->alloc, memory);
}
