/* runtime.h -- the root object: it owns driver, compilers, cache and threads.
 */
#ifndef KILN_RUNTIME_INTERNAL_H
#define KILN_RUNTIME_INTERNAL_H

#include "../base/os.h"
#include "../cache/cache.h"
#include "../driver/driver.h"
#include "../nvrtc/nvrtc.h"
#include "compile_pool.h"

struct kiln_runtime {
  kiln_allocator alloc;
  kiln__log log;
  kiln__fork_guard fork;
  kiln__trail *trail;
  kiln__cache *cache;
  kiln__nvrtc_set *nvrtc;
  kiln__pool *pool;

  pthread_mutex_t lock; /* guards what follows; never held while compiling */
  bool driver_ready, driver_missing;
  kiln__driver driver;
  kiln_error driver_error; /* the record, if driver_missing */
  bool link_tried;
  kiln__nvjitlink *link;

  bool ignore_env;
  const kiln__driver *given_driver;   /* the caller's table, or NULL */
  char *driver_path, *nvjitlink_path; /* as the caller gave them, or NULL */
};

/* The initialised driver, found at the first call. Any thread. KILN_OK,
 * KILN_ENODRIVER, KILN_ENODEVICE, KILN_EDRIVER, KILN_EFORKED. */
kiln_status kiln__runtime_driver(kiln_runtime *rt, const kiln__driver **out);

/* nvJitLink, found at the first call; NULL if there is none, which is no
 * failure. Any thread. KILN_OK, KILN_ENOMEM. */
kiln_status kiln__runtime_link(kiln_runtime *rt, kiln__nvjitlink **out);

#endif
