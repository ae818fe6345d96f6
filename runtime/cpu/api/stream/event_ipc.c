/* event_ipc.c -- shares events between processes of one machine.
 *
 * An interprocess event has a page in a file in memory, which other processes map. The
 * page counts the records that were issued and the records that are done. A record adds
 * 1 to the first count at once, and its work sets the second count. A wait reads the
 * first count and lets the stream poll until the second has reached it. */
#include "../context/api_context.h"
#include "../graph/graph.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The counts, which all processes share. */
typedef struct counts {
  _Atomic uint64_t issued, done;
} counts;

typedef struct event_name {
  char magic[8];
  int32_t pid, fd;
  uint64_t inode;
} event_name;

typedef struct kiln__cpu_event_page {
  counts *counts;
  atomic_uint refs; /* the event, and work that has not ended */
  int fd;           /* -1 if another process made the event */
} kiln__cpu_event_page;

static const char magic[8] = "kilnevt";

_Static_assert(sizeof(event_name) <= sizeof(CUipcEventHandle),
               "a name fits into a handle");

/* ---- Pages --------------------------------------------------------------- */

/* Maps a file as the page of an event. The page owns `fd` on success if `keep` is
 * true. */
static CUresult page_of(CUevent event, int fd, bool keep)
{
  kiln__cpu_event_page *page = kiln__calloc(&machine()->alloc, 1, sizeof *page);
  void *p;

  CU_TRY(allocated(page));
  p = mmap(NULL, sizeof(counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) {
    kiln__free(&machine()->alloc, page);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  page->counts = p;
  page->fd = keep ? fd : -1;
  atomic_init(&page->refs, 1);
  event->page = page;
  return CUDA_SUCCESS;
}

static void page_drop(kiln__cpu_event_page *page)
{
  if (page == NULL || atomic_fetch_sub(&page->refs, 1) != 1)
    return;
  munmap(page->counts, sizeof(counts));
  if (page->fd >= 0)
    close(page->fd);
  kiln__free(&machine()->alloc, page);
}

CUresult kiln__cpu_event_page_make(CUevent event)
{
  const int fd = memfd_create("kiln-event", MFD_CLOEXEC);
  CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;

  if (fd < 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  if (ftruncate(fd, 4096) == 0)
    rc = page_of(event, fd, true);
  if (rc != CUDA_SUCCESS)
    close(fd);
  return rc;
}

void kiln__cpu_event_page_free(CUevent event)
{
  page_drop(event->page);
  event->page = NULL;
}

bool kiln__cpu_event_page_done(const struct CUevent_st *event)
{
  const counts *c = event->page->counts;

  return atomic_load(&c->done) >= atomic_load(&c->issued);
}

/* ---- Handles ------------------------------------------------------------- */

CUresult kiln__cpu_ipcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
  event_name name = {.pid = (int32_t)getpid()};
  struct stat st;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(handle != NULL));
  CU_TRY(kiln__cpu_known(event, KILN__HANDLE_EVENT));
  if (event->page == NULL || event->page->fd < 0 ||
      fstat(event->page->fd, &st) != 0)
    return CUDA_ERROR_INVALID_HANDLE;
  memcpy(name.magic, magic, sizeof magic);
  name.fd = event->page->fd;
  name.inode = st.st_ino;
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &name, sizeof name);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_event_page_open(CUevent event,
                                   const CUipcEventHandle *handle)
{
  event_name name;
  char path[64];
  struct stat st;
  CUresult rc = CUDA_ERROR_INVALID_HANDLE;
  int fd;

  memcpy(&name, handle, sizeof name);
  CU_TRY(valid(memcmp(name.magic, magic, sizeof magic) == 0));
  if (name.pid == (int32_t)getpid())
    return CUDA_ERROR_INVALID_CONTEXT;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", name.pid, name.fd);
  fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0)
    return rc;
  if (fstat(fd, &st) == 0 && st.st_ino == name.inode && st.st_size == 4096)
    rc = page_of(event, fd, false);
  close(fd);
  return rc;
}

/* ---- Records and waits --------------------------------------------------- */

typedef struct page_work {
  kiln__cpu_work base;
  kiln__cpu_event_page *page;
  uint64_t count; /* number of the record */
} page_work;

static CUresult run_record(kiln__cpu_work *work, CUstream stream)
{
  const page_work *w = (const page_work *)(void *)work;
  uint64_t done = atomic_load(&w->page->counts->done);

  (void)stream;
  while (done < w->count &&
         !atomic_compare_exchange_weak(&w->page->counts->done, &done, w->count))
    continue;
  return CUDA_SUCCESS;
}

static CUresult run_wait(kiln__cpu_work *work, CUstream stream)
{
  const page_work *w = (const page_work *)(void *)work;

  while (atomic_load(&w->page->counts->done) < w->count &&
         !atomic_load(&stream->context->dying))
    usleep(50);
  return CUDA_SUCCESS;
}

static void free_work(kiln__cpu_work *work)
{
  page_drop(((page_work *)(void *)work)->page);
  kiln__free(&machine()->alloc, work);
}

static CUresult enqueue(CUevent event, CUstream stream, uint64_t count,
                        CUresult (*run)(kiln__cpu_work *, CUstream))
{
  page_work *w = kiln__calloc(&machine()->alloc, 1, sizeof *w);

  CU_TRY(allocated(w));
  w->base.run = run;
  w->base.free = free_work;
  w->base.kind = KILN__WORK_EMPTY;
  w->base.always = true;
  w->page = event->page;
  w->count = count;
  atomic_fetch_add(&event->page->refs, 1);
  return kiln__cpu_queue_add(stream, &w->base, KILN__LATER, NULL, 0, NULL);
}

CUresult kiln__cpu_event_page_record(CUevent event, CUstream stream)
{
  const uint64_t count = atomic_fetch_add(&event->page->counts->issued, 1) + 1;

  return enqueue(event, stream, count, run_record);
}

CUresult kiln__cpu_event_page_wait(CUevent event, CUstream stream)
{
  return enqueue(event, stream, atomic_load(&event->page->counts->issued),
                 run_wait);
}
