/* launch_store.h -- an allocator that keeps the host memory of launches for the
 * next launch. */
#ifndef KILN_CPU_LAUNCH_STORE_H
#define KILN_CPU_LAUNCH_STORE_H

#include "../../base/base.h"

#include <pthread.h>

enum { KILN__STORE_CLASSES = 16 };

/* The memory that is kept. Initialise with kiln__cpu_store_init(). */
typedef struct kiln__cpu_store {
  pthread_mutex_t lock;
  /* list of free blocks per size class */
  struct kiln__cpu_stored *free[KILN__STORE_CLASSES];
  size_t kept; /* bytes in these lists */
} kiln__cpu_store;

/* Initialises a store. Returns false if there are no resources for the lock. The
 * store lives as long as the process. */
bool kiln__cpu_store_init(kiln__cpu_store *store);
/* Returns an allocator that uses the store, which must outlive the allocator.
 * The functions of the allocator are thread-safe. */
kiln_allocator kiln__cpu_store_allocator(kiln__cpu_store *store);

#endif
