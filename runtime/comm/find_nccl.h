/* find_nccl.h -- finds and loads NCCL. */
#ifndef KILN_COMM_FIND_NCCL_H
#define KILN_COMM_FIND_NCCL_H

#include "group.h"
#include "nccl.h"

enum { KILN__TRIED_SIZE = 1024 };

/* Fills the table from `path`, or from the first NCCL that is found if it is
 * NULL. Returns KILN_OK, or KILN_ENOTFOUND with the paths in the record. */
kiln_status kiln__find_nccl(kiln__nccl_api *api, const char *path);

#endif
