/* profile_format.h -- the record file of `kiln profile`, which libkiln_profile.so
 * writes in the profiled process and the command reads.
 *
 * The file begins with a profile_header, and records follow without gaps. Every
 * record begins with a profile_record, and its size is a multiple of 8. The
 * writer maps the file and fills a record before it stores the record's type.
 * Therefore the file is valid up to the first record of type 0, or up to its end,
 * at whatever time the process ends. All numbers are little-endian. All times
 * are nanoseconds of one clock. */
#ifndef KILN_TOOL_PROFILE_FORMAT_H
#define KILN_TOOL_PROFILE_FORMAT_H

#include <stdint.h>

#define PROFILE_MAGIC "KILNPRF1"

/* Suffix of record files. The name before the suffix is the process id, and
 * ".1", ".2", ... if the name exists. */
#define PROFILE_SUFFIX ".kprof"

/* Environment variables through which the command controls the library. */
#define PROFILE_DIR_VARIABLE "KILN_PROFILE_DIR" /* folder for record files */
#define PROFILE_LIMIT_VARIABLE "KILN_PROFILE_LIMIT" /* bytes per record file */
/* Paths of libcupti to try, separated by colons. */
#define PROFILE_CUPTI_VARIABLE "KILN_PROFILE_CUPTI"
#define PROFILE_CALLS_VARIABLE "KILN_PROFILE_CALLS" /* "0": no API calls */

typedef enum profile_source {
  PROFILE_CUPTI = 1, /* records of CUPTI, from a GPU */
  PROFILE_CPU = 2    /* records of Kiln's CPU device */
} profile_source;

typedef struct profile_header {
  char magic[8];
  uint32_t pid;
  uint32_t source;   /* profile_source */
  uint32_t version;  /* of CUPTI, as cuptiGetVersion() returns it; else 0 */
  uint32_t parent;   /* process id of the parent process */
  uint64_t begin_ns; /* time at which recording began, on the records' clock */
  uint64_t real_ns;  /* the same time in nanoseconds since 1970 */
  uint64_t dropped;  /* number of records that were lost */
  uint32_t ended;    /* 1 after the process ended by exit() */
  uint32_t reserved;
  char program[72]; /* name of the program, NUL-terminated */
} profile_header;

typedef enum profile_type {
  PROFILE_NAME = 1, /* profile_name: a text, to which names refer */
  PROFILE_KERNEL,   /* profile_kernel */
  PROFILE_COPY,     /* profile_copy */
  PROFILE_FILL,     /* profile_copy without a source */
  PROFILE_CALL,     /* profile_call: a call of the driver or runtime API */
  PROFILE_SYNC,     /* profile_call: a wait of the host */
  PROFILE_OVERHEAD, /* profile_call: time that profiling took */
  PROFILE_HOST,     /* profile_copy: a host function in a stream */
  PROFILE_DEVICE,   /* profile_object: a device and its name */
  PROFILE_CONTEXT,  /* profile_object: a context, its device, default stream */
  PROFILE_STREAM,   /* profile_object: a stream of a context */
  PROFILE_THREAD,   /* profile_object: the name of a host thread */
  PROFILE_NOTE,     /* profile_name: a message for the user */
  PROFILE_N_TYPES
} profile_type;

typedef struct profile_record {
  uint16_t type; /* profile_type; 0 ends the file */
  uint16_t size; /* size of the record in bytes, with this header */
  uint32_t name; /* number of a name; 0 means no name */
} profile_record;

typedef struct profile_name {
  profile_record head; /* head.name is the number that the text gets */
  char text[8];        /* padded with NUL bytes, at least one */
} profile_name;

/* The part that all spans share: when, and to which call the work belongs. */
typedef struct profile_span {
  profile_record head;
  uint64_t begin_ns, end_ns;
  uint32_t correlation; /* number that the call and its work share */
} profile_span;

typedef struct profile_place {
  uint32_t device, context, stream;
} profile_place;

typedef struct profile_kernel {
  profile_record head;
  uint64_t begin_ns, end_ns;
  uint32_t correlation;
  profile_place place;
  uint32_t grid[3], block[3];
  uint32_t static_shared, dynamic_shared;
  uint32_t local; /* bytes of local memory per thread */
  uint16_t registers, in_graph;
} profile_kernel;

/* Values of profile_copy.from and .to, which are those of CUPTI. */
enum {
  PROFILE_PAGEABLE = 1,
  PROFILE_PINNED = 2,
  PROFILE_ON_DEVICE = 3,
  PROFILE_ARRAY = 4,
  PROFILE_MANAGED = 5
};

typedef struct profile_copy {
  profile_record head;
  uint64_t begin_ns, end_ns;
  uint32_t correlation;
  profile_place place;
  uint64_t bytes;
  uint8_t from, to, async, in_graph;
  uint32_t peer; /* device at the other end, plus 1; 0 if there is none */
} profile_copy;

typedef struct profile_call {
  profile_record head;
  uint64_t begin_ns, end_ns;
  uint32_t correlation;
  uint32_t thread;
  uint32_t result; /* result of a call; 0 means success */
  uint32_t domain; /* of a call: 1 driver API, 2 runtime API */
} profile_call;

typedef struct profile_object {
  profile_record head;
  uint32_t id;      /* number of the object */
  uint32_t context; /* context of a stream */
  uint32_t device;  /* device of a context */
  uint32_t stream;  /* default stream of a context */
} profile_object;

_Static_assert(sizeof(profile_header) == 128, "layout of the file");
_Static_assert(sizeof(profile_kernel) == 80, "layout of the file");
_Static_assert(sizeof(profile_copy) == 56, "layout of the file");
_Static_assert(sizeof(profile_call) == 40, "layout of the file");
_Static_assert(sizeof(profile_object) == 24, "layout of the file");

enum {
  /* Smallest limit of a file in bytes, which is the unit in which it grows. */
  PROFILE_LEAST_LIMIT = 4 << 20,
  /* Longest text of a name; longer names are cut. */
  PROFILE_MOST_TEXT = 8192,
  /* Largest number of names. Further names become the last one, "(others)". */
  PROFILE_MOST_NAMES = 1 << 16
};

#endif
