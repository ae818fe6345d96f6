/* exec_report.h -- the report of `kiln exec`: what the processes of a program
 * wrote, merged, and its output as text, JSON, SARIF and JUnit XML. */
#ifndef KILN_CLI_EXEC_REPORT_H
#define KILN_CLI_EXEC_REPORT_H

#include "cli/commands.h"

/* One object of the report. */
typedef struct exec_item {
  uint64_t key; /* hash of the members that identify the subject */
  uint64_t run; /* hash of the process that wrote the object */
  cJSON *json;
  /* The suppression that matches a finding, or NULL. */
  const struct exec_suppression *suppression;
} exec_item;

typedef struct exec_list {
  exec_item *items;
  size_t n, capacity;
} exec_list;

/* The merged report of all processes. kiln__exec_free() frees the objects. */
typedef struct exec_report {
  cli *c;
  char **program; /* program and arguments; NULL-terminated; borrowed */
  int rc;         /* exit code of the program */
  double seconds; /* run time of the program */
  exec_list findings;
  exec_list missing;  /* functions that are not implemented */
  exec_list kernels;  /* sums per kernel */
  exec_list counters; /* counters per kernel */
  exec_list faults, errors;
  exec_list processes; /* processes that used the driver */
  exec_list ended;     /* processes that wrote all of their report */
  exec_list loaded;
  exec_list checked; /* processes that ran with a check */
} exec_report;

/* The sums that the last lines show. */
typedef struct exec_sums {
  size_t findings, suppressed;
  size_t kernels;  /* number of kernels that ran with a check */
  double launches; /* number of launches with a check */
} exec_sums;

/* exec_text() and exec_number() return a member of an object. If the member is
 * missing, they return "" or 0. */
static inline const char *exec_text(const cJSON *object, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

  return cJSON_IsString(item) ? item->valuestring : "";
}

static inline double exec_number(const cJSON *object, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

  return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* ---- read_report.c ------------------------------------------------------- */

/* Reads the file that the processes wrote, and merges their objects. Lines that
 * are no JSON are ignored. r->c is set, and the other members are zero. */
void kiln__exec_read(exec_report *r, const char *path);
void kiln__exec_free(exec_report *r);
exec_sums kiln__exec_sums(const exec_report *r);

/* A line of the source. */
typedef struct exec_place {
  const char *file; /* "" if unknown */
  double line;      /* 0 if unknown */
} exec_place;

/* Returns the line at which a finding is shown: where its instruction stands, or
 * where the kernel calls it, if it stands in a header outside the current
 * folder. */
exec_place kiln__exec_place(const cJSON *finding);

/* ---- suppress.c ---------------------------------------------------------- */

/* One line of a suppression file. A pattern that is NULL matches everything. */
typedef struct exec_suppression {
  unsigned at; /* line in the suppression file */
  unsigned uses;
  const char *kind, *kernel, *file; /* patterns with *, ? and [ ] */
  const char *reason;               /* "" if none is given */
  unsigned least, most;             /* range of lines; 0 and UINT_MAX: all */
} exec_suppression;

typedef struct exec_suppressions {
  const char *path; /* NULL without a file */
  exec_suppression *items;
  size_t n;
} exec_suppressions;

/* Reads a suppression file. @return CLI_OK, or CLI_USAGE having reported the
 * line that is wrong */
int kiln__exec_suppressions(exec_suppressions *s, cli *c, const char *path);
/* Marks the findings that a suppression matches. */
void kiln__exec_suppress(exec_report *r, exec_suppressions *s);

/* ---- show_report.c ------------------------------------------------------- */

/* Prints findings, faults, what is missing, and the sums. */
void kiln__exec_show(const exec_report *r, const exec_suppressions *s,
                     FILE *out);
/* Print a table on standard output: counters per kernel; time per kernel. */
void kiln__exec_show_counters(const exec_report *r);
void kiln__exec_show_time(const exec_report *r);
/* Returns the sentence about a function that is missing. */
const char *kiln__exec_missing_text(const exec_report *r, const cJSON *object);

/* ---- json_report.c, sarif_report.c, junit_report.c ----------------------- */

/* Write a file. @return CLI_OK, or CLI_FAILED having reported why */
int kiln__exec_json(const exec_report *r, const char *path);
int kiln__exec_sarif(const exec_report *r, const char *path);
int kiln__exec_junit(const exec_report *r, const char *path);

#endif
