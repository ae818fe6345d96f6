/* runtime.h -- the runtime, the root object that owns the driver table, the
 * compilers, the cache and the compile pool. */
#ifndef KILN_RUNTIME_INTERNAL_H
#define KILN_RUNTIME_INTERNAL_H

#include "../base/os.h"
#include "../cache/cache.h"
#include "../driver/driver.h"
#include "../nvrtc/nvrtc.h"
#include "compile_pool.h"

/* When operations link a program instead of compiling it as a whole. Both forms
 * have the same results. */
typedef enum kiln__link_use {
  KILN__LINK_CHEAP = 0, /* where a linked program is as fast */
  KILN__LINK_NEVER,
  KILN__LINK_ALWAYS /* wherever the results are the same */
} kiln__link_use;

struct kiln_runtime {
  kiln_allocator alloc;
  kiln__log log;
  kiln__fork_guard fork;
  kiln__trail *trail;
  kiln__cache *cache;
  kiln__nvrtc_set *nvrtc;
  kiln__pool *pool;

  /* Mutex that guards the following members. It is never held while a program
   * compiles. */
  pthread_mutex_t lock;
  bool driver_ready, driver_missing;
  kiln__driver driver;
  /* error record of the failed search for the driver, if driver_missing is
   * set */
  kiln_error driver_error;
  bool link_tried;
  kiln__nvjitlink *link;

  bool ignore_env;
  kiln__link_use link_use;          /* from KILN_LINK */
  const kiln__driver *given_driver; /* the caller's driver table, or NULL */
  /* paths of libraries that the caller supplied, or NULL */
  char *driver_path, *nvjitlink_path;
};

/* Returns the initialised driver in *out; the first call finds and loads it.
 * Returns KILN_OK, KILN_ENODRIVER, KILN_ENODEVICE, KILN_EDRIVER or
 * KILN_EFORKED. Thread-safe. */
kiln_status kiln__runtime_driver(kiln_runtime *rt, const kiln__driver **out);

/* Returns nvJitLink in *out; the first call finds and loads it. *out is NULL if
 * nvJitLink is not installed, which is not a failure. Returns KILN_OK or
 * KILN_ENOMEM. Thread-safe. */
kiln_status kiln__runtime_link(kiln_runtime *rt, kiln__nvjitlink **out);

#endif
