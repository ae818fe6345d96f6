/* graph_attributes.c -- stores and copies the attributes of kernel nodes.
 *
 * Two attributes decide how a kernel runs: whether the launch is cooperative, and its
 * cluster dimensions. They belong to the work of the node, which never changes, so
 * setting them makes new work. The node only stores the other attributes. */
#include "graph_exec.h"

/* ---- Stored attributes --------------------------------------------------- */

static kiln__cpu_hint *hint_of(const struct CUgraphNode_st *node,
                               CUlaunchAttributeID attribute)
{
  kiln__cpu_hint *h = node->hints;

  while (h != NULL && h->attribute.id != attribute)
    h = h->next;
  return h;
}

static bool hint_set(CUgraphNode node, CUlaunchAttributeID attribute,
                     const CUlaunchAttributeValue *value)
{
  kiln__cpu_hint *h = hint_of(node, attribute);

  if (h == NULL) {
    h = kiln__calloc(&machine()->alloc, 1, sizeof *h);
    if (h == NULL)
      return false;
    h->attribute.id = attribute;
    h->next = node->hints;
    node->hints = h;
  }
  h->attribute.value = *value;
  return true;
}

bool kiln__cpu_hints_copy(CUgraphNode to, const struct CUgraphNode_st *from)
{
  bool ok = true;

  for (const kiln__cpu_hint *h = from->hints; h != NULL && ok; h = h->next)
    ok = hint_set(to, h->attribute.id, &h->attribute.value);
  return ok;
}

void kiln__cpu_hints_drop(CUgraphNode node)
{
  while (node->hints != NULL) {
    kiln__cpu_hint *h = node->hints;

    node->hints = h->next;
    kiln__free(&machine()->alloc, h);
  }
}

/* ---- Attributes of the work ---------------------------------------------- */

static bool changes_launch(CUlaunchAttributeID attribute)
{
  return attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE ||
         attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
}

CUresult kiln__cpu_launch_like(kiln__cpu_work *work,
                               const kiln__cpu_work *other)
{
  static const CUlaunchAttributeID both[] = {
      CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};

  for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
    CUlaunchAttributeValue value = {{0}};

    kiln__cpu_kernel_work_get(other, both[i], &value);
    CU_TRY(kiln__cpu_kernel_work_set(work, both[i], &value));
  }
  return CUDA_SUCCESS;
}

/* Replaces the work of a node by a copy with another value of an attribute. If
 * `value` is NULL, the attributes are those of `like`. */
static CUresult replace_work(CUgraphNode node, CUlaunchAttributeID attribute,
                             const CUlaunchAttributeValue *value,
                             const kiln__cpu_work *like)
{
  CUDA_KERNEL_NODE_PARAMS params;
  kiln__cpu_shared *shared = NULL;
  kiln__cpu_work *work;
  CUresult rc;

  CU_TRY(kiln__cpu_kernel_work_params(node->shared->work, &params));
  CU_TRY(kiln__cpu_kernel_work(node->context, &params, &work));
  rc = kiln__cpu_launch_like(work, like);
  if (rc == CUDA_SUCCESS && value != NULL)
    rc = kiln__cpu_kernel_work_set(work, attribute, value);
  if (rc == CUDA_SUCCESS) {
    shared = kiln__cpu_share(work);
    rc = allocated(shared);
  }
  if (rc != CUDA_SUCCESS) {
    work->free(work);
    return rc;
  }
  kiln__cpu_share_drop(node->shared);
  node->shared = shared;
  return CUDA_SUCCESS;
}

/* ---- The driver's functions ---------------------------------------------- */

static CUresult kernel_node(CUgraphNode node)
{
  CU_TRY(kiln__cpu_ready());
  return valid(kiln__cpu_live(node, KILN__HANDLE_GRAPH_NODE) &&
               node->type == CU_GRAPH_NODE_TYPE_KERNEL);
}

CUresult kiln__cpu_graphKernelNodeCopyAttributes(CUgraphNode to,
                                                 CUgraphNode from)
{
  CUresult rc = CUDA_SUCCESS;

  CU_TRY(kernel_node(to));
  CU_TRY(kernel_node(from));
  if (to == from)
    return CUDA_SUCCESS;
  lock_graphs();
  kiln__cpu_hints_drop(to);
  if (!kiln__cpu_hints_copy(to, from))
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  if (rc == CUDA_SUCCESS)
    rc = replace_work(to, CU_LAUNCH_ATTRIBUTE_IGNORE, NULL, from->shared->work);
  unlock_graphs();
  return rc;
}

CUresult kiln__cpu_graphKernelNodeGetAttribute(CUgraphNode node,
                                               CUkernelNodeAttrID attribute,
                                               CUkernelNodeAttrValue *value)
{
  const kiln__cpu_hint *h;

  CU_TRY(kernel_node(node));
  CU_TRY(
      valid(value != NULL && attribute > CU_LAUNCH_ATTRIBUTE_IGNORE &&
            attribute <= CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING));
  *value = (CUkernelNodeAttrValue){{0}};
  lock_graphs();
  h = hint_of(node, attribute);
  if (h != NULL)
    *value = h->attribute.value;
  kiln__cpu_kernel_work_get(node->shared->work, attribute, value);
  unlock_graphs();
  return CUDA_SUCCESS;
}

static bool is_hint(CUlaunchAttributeID attribute)
{
  switch (attribute) {
  case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
  case CU_LAUNCH_ATTRIBUTE_PRIORITY:
  case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
  case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
  case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    return true;
  default:
    return false;
  }
}

CUresult
kiln__cpu_graphKernelNodeSetAttribute(CUgraphNode node,
                                      CUkernelNodeAttrID attribute,
                                      const CUkernelNodeAttrValue *value)
{
  CUresult rc = CUDA_SUCCESS;

  CU_TRY(kernel_node(node));
  CU_TRY(valid(value != NULL &&
               (is_hint(attribute) || changes_launch(attribute))));
  lock_graphs();
  if (changes_launch(attribute))
    rc = replace_work(node, attribute, value, node->shared->work);
  else if (!hint_set(node, attribute, value))
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  unlock_graphs();
  return rc;
}
