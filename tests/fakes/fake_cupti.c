/* fake_cupti.c -- a libcupti that plays records without a GPU, in the layout of
 * version 11.8, 12 or 13.
 *
 * The records are written at offsets that were read off NVIDIA's headers, not by
 * means of Kiln's declarations, so that both are compared. The player
 * (tests/profile/player.c) calls fake_cupti_launch() once per launch.
 * FAKE_CUPTI_VERSION selects the layout, and FAKE_CUPTI_DROPS the number of
 * dropped records that every buffer reports. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, LIMIT = 12, KINDS = 64 };

typedef void (*request_fn)(uint8_t **, size_t *, size_t *);
typedef void (*complete_fn)(void *, uint32_t, uint8_t *, size_t, size_t);

static struct {
  pthread_mutex_t lock;
  request_fn request;
  complete_fn complete;
  uint8_t *buffer;
  size_t size, used;
  uint64_t now, lost;
  _Bool enabled[KINDS];
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .now = 1000000};

static int version(void)
{
  const char *text = getenv("FAKE_CUPTI_VERSION");

  return text == NULL ? 13 : atoi(text);
}

/* Returns the size of a record of this kind. */
static size_t size_of(uint32_t kind)
{
  const int v = version();

  switch (kind) {
  case 10:
    return v == 11 ? 200 : v == 12 ? 208 : 216;
  case 1:
    return v == 11 ? 88 : 96;
  case 2:
    return 88;
  case 8:
    return v == 11 ? 176 : 184;
  case 9:
    return v == 11 ? 16 : 32;
  case 38:
    return v == 11 ? 40 : 56;
  default:
    return 40; /* 4 and 5: calls */
  }
}

/* ---- CUPTI's functions ------------------------------------------------------ */

uint32_t cuptiGetVersion(uint32_t *out)
{
  *out = version() == 11 ? 18 : version() == 12 ? 28 : 130001;
  return OK;
}

uint32_t cuptiGetTimestamp(uint64_t *ns)
{
  *ns = fake.now;
  return OK;
}

uint32_t cuptiActivityEnable(uint32_t kind)
{
  if (kind == 11 && version() == 11)
    return 2; /* one kind that this version refuses */
  if (kind < KINDS)
    fake.enabled[kind] = 1;
  return OK;
}

uint32_t cuptiActivityRegisterCallbacks(request_fn request,
                                        complete_fn complete)
{
  fake.request = request;
  fake.complete = complete;
  return OK;
}

uint32_t cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid,
                                    void **record)
{
  uint8_t *next = buffer;

  if (*record != NULL) {
    uint32_t kind;

    memcpy(&kind, *record, 4);
    next = (uint8_t *)*record + size_of(kind);
  }
  if (next >= buffer + valid)
    return LIMIT;
  *record = next;
  return OK;
}

uint32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream,
                                           size_t *dropped)
{
  (void)context;
  (void)stream;
  *dropped = fake.lost;
  fake.lost = 0;
  return OK;
}

uint32_t cuptiGetCallbackName(uint32_t domain, uint32_t function,
                              const char **name)
{
  *name = domain == 1 && function == 307 ? "cuLaunchKernel"
          : domain == 2                  ? "cudaLaunchKernel_v7000"
                                         : NULL;
  return *name == NULL ? 1 : OK;
}

uint32_t cuptiGetResultString(uint32_t result, const char **text)
{
  *text = result == 2 ? "CUPTI_ERROR_INVALID_KIND" : "CUPTI_ERROR";
  return OK;
}

/* Returns the filled buffer to the client. The caller holds the lock. */
static void flush(void)
{
  uint8_t *buffer = fake.buffer;
  const char *drops = getenv("FAKE_CUPTI_DROPS");

  if (buffer == NULL || fake.used == 0)
    return;
  fake.buffer = NULL;
  fake.lost += drops == NULL ? 0 : (uint64_t)atoi(drops);
  fake.complete(NULL, 0, buffer, fake.size, fake.used);
}

uint32_t cuptiActivityFlushAll(uint32_t flag)
{
  (void)flag;
  pthread_mutex_lock(&fake.lock);
  flush();
  pthread_mutex_unlock(&fake.lock);
  return OK;
}

/* ---- Playing ---------------------------------------------------------------- */

/* Returns space for a record of this kind, or NULL if the kind is not enabled or
 * the client gives no buffer, which loses the record. */
static uint8_t *new_record(uint32_t kind)
{
  const size_t size = size_of(kind);
  size_t most = 0;
  uint8_t *at;

  if (!fake.enabled[kind])
    return NULL;
  if (fake.buffer != NULL && fake.used + size > fake.size)
    flush();
  if (fake.buffer == NULL) {
    fake.request(&fake.buffer, &fake.size, &most);
    fake.used = 0;
  }
  if (fake.buffer == NULL) {
    fake.lost++;
    return NULL;
  }
  at = fake.buffer + fake.used;
  fake.used += size;
  memset(at, 0xa5, size); /* whatever Kiln must not read */
  memcpy(at, &kind, 4);
  return at;
}

static void put32(uint8_t *record, size_t offset, uint32_t value)
{
  memcpy(record + offset, &value, 4);
}

static void put64(uint8_t *record, size_t offset, uint64_t value)
{
  memcpy(record + offset, &value, 8);
}

static void put_call(uint32_t kind, uint32_t function, uint32_t number,
                     uint64_t begin, uint64_t end)
{
  uint8_t *r = new_record(kind);

  if (r == NULL)
    return;
  put32(r, 4, function);
  put64(r, 8, begin);
  put64(r, 16, end);
  put32(r, 24, 1);
  put32(r, 28, 4711);
  put32(r, 32, number);
  put32(r, 36, 0);
}

static void put_kernel(uint32_t number, uint64_t begin, uint64_t end)
{
  static const char *const names[] = {"_Z4stepIfEvPT_",
                                      "_ZN2ns4copyIfLi4EEEvPT_", "plain"};
  uint8_t *r = new_record(10);

  if (r == NULL)
    return;
  r[6] = 40; /* registers per thread */
  r[7] = 0;
  put64(r, 16, begin);
  put64(r, 24, end);
  put32(r, 40, 0);              /* device */
  put32(r, 44, 1);              /* context */
  put32(r, 48, 7 + number % 5); /* stream */
  for (size_t i = 0; i < 6; i++)
    put32(r, 52 + 4 * i, 1 + (uint32_t)i); /* grid and block */
  put32(r, 76, 128);
  put32(r, 80, 256);
  put32(r, 84, 0);
  put32(r, 92, number);
  put64(r, 104, (uint64_t)(uintptr_t)names[number % 3]);
  put32(r, 156, number % 10 == 9); /* graph */
}

static void put_copy(uint32_t number, uint64_t begin, uint64_t end)
{
  uint8_t *r = new_record(1);

  if (r == NULL)
    return;
  r[4] = 1;
  r[5] = 1; /* pageable */
  r[6] = 3; /* device */
  r[7] = 1;
  put64(r, 8, 4096);
  put64(r, 16, begin);
  put64(r, 24, end);
  put32(r, 32, 0);
  put32(r, 36, 1);
  put32(r, 40, 7);
  put32(r, 44, number);
  put32(r, 72, 0);
}

static void put_objects(void)
{
  static const char name[] = "Fake GPU";
  uint8_t *r = new_record(8);

  if (r != NULL) {
    put32(r, 112, 0);
    put64(r, 136, (uint64_t)(uintptr_t)name);
  }
  r = new_record(9);
  if (r != NULL) {
    put32(r, 4, 1);
    put32(r, 8, 0);
    r[14] = 7;
    r[15] = 0;
  }
}

/* Plays one launch: a runtime call, the driver call within, and a kernel of
 * 1000 + number % 100 ns. Every tenth launch also copies 4,096 bytes in 500 ns. */
__attribute__((visibility("default"))) void fake_cupti_launch(uint32_t number)
{
  uint64_t t;

  pthread_mutex_lock(&fake.lock);
  if (number == 1)
    put_objects();
  t = fake.now += 5000;
  put_call(5, 211, number, t, t + 2000);
  put_call(4, 307, number, t + 200, t + 1800);
  put_kernel(number, t + 2500, t + 3500 + number % 100);
  if (number % 10 == 0)
    put_copy(number, t + 4000, t + 4500);
  pthread_mutex_unlock(&fake.lock);
}
