/* unified_list.cu -- a linked list in managed memory, which host and device change. */
#include "program.cuh"

struct node {
  int value;
  node *next;
};

__managed__ int total;
__managed__ node *head;

__global__ void sum_list()
{
  int s = 0;
  for (node *p = head; p != nullptr; p = p->next) {
    s += p->value;
    p->value = -p->value;
  }
  total = s;
}

int main()
{
  const int n = 100;
  for (int i = 1; i <= n; i++) {
    node *p;
    CALL(cudaMallocManaged(&p, sizeof *p));
    p->value = i;
    p->next = head;
    head = p;
  }
  sum_list<<<1, 1>>>();
  CALL(cudaDeviceSynchronize());
  CHECK(total == n * (n + 1) / 2);
  int negative = 0;
  while (head != nullptr) {
    node *p = head;
    negative += p->value < 0;
    head = p->next;
    CALL(cudaFree(p));
  }
  CHECK(negative == n);
  cudaPointerAttributes a;
  CALL(cudaPointerGetAttributes(&a, &total));
  CHECK(a.type == cudaMemoryTypeManaged);
  return verdict();
}
