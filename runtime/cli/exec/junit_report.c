/* junit_report.c -- writes the report of `kiln exec` as JUnit XML, which CI
 * servers show as tests.
 *
 * The document has one test suite, the program. Its exit code is a test case,
 * each finding is a failed test case, and each kernel without findings is a test
 * case that passed. Suppressed findings are skipped test cases. What is missing
 * is in the standard error of the suite. Every test case has at most one
 * <failure>, since some readers accept no more. */
#include "cli/exec/exec_report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- XML ------------------------------------------------------------------ */

/* Writes text with the five special characters escaped. Bytes that XML 1.0 does
 * not allow become question marks. */
static void put_escaped(FILE *out, const char *text)
{
  static const char *const names[128] = {
      ['<'] = "&lt;",   ['>'] = "&gt;",   ['&'] = "&amp;",
      ['"'] = "&quot;", ['\n'] = "&#10;", ['\t'] = "&#9;"};

  while (*text != '\0') {
    bool control = false;
    const size_t n = kiln__cli_utf8(text, &control);
    const unsigned char byte = (unsigned char)*text;

    if (byte < 128 && names[byte] != NULL)
      fputs(names[byte], out);
    else if (n == 0 || (n == 1 && control))
      putc('?', out);
    else
      fwrite(text, 1, n, out);
    text += n == 0 ? 1 : n;
  }
}

static void put_attribute(FILE *out, const char *name, const char *value)
{
  fprintf(out, " %s=\"", name);
  put_escaped(out, value);
  putc('"', out);
}

/* Begins a test case, up to the end of its start tag without the bracket. */
static void begin_case(const exec_report *r, FILE *out, const char *name,
                       double seconds)
{
  fputs("    <testcase", out);
  put_attribute(out, "classname", r->program[0]);
  put_attribute(out, "name", name);
  fprintf(out, " time=\"%.3f\"", seconds);
}

/* Writes a test case with one element: <failure> or <error>. */
static void put_failed(const exec_report *r, FILE *out, const char *name,
                       const char *element, const char *message,
                       const char *type, const char *text)
{
  begin_case(r, out, name, 0);
  fprintf(out, ">\n      <%s", element);
  put_attribute(out, "message", message);
  put_attribute(out, "type", type);
  putc('>', out);
  put_escaped(out, text);
  fprintf(out, "</%s>\n    </testcase>\n", element);
}

/* ---- Test cases ----------------------------------------------------------- */

/* Returns "KIND in KERNEL at FILE:LINE", as far as these are known. */
static const char *title(const exec_report *r, const cJSON *f)
{
  const exec_place place = kiln__exec_place(f);
  const char *kernel = exec_text(f, "name");
  const char *in = *kernel == '\0' ? "" : " in ";

  if (*place.file == '\0')
    return kiln__cli_text(r->c, "%s%s%s at PTX line %.0f", exec_text(f, "kind"),
                          in, kernel, exec_number(f, "ptx_line"));
  return kiln__cli_text(r->c, "%s%s%s at %s:%.0f", exec_text(f, "kind"), in,
                        kernel, place.file, place.line);
}

static void put_finding(const exec_report *r, FILE *out, const exec_item *item)
{
  const cJSON *f = item->json;

  if (item->suppression == NULL) {
    put_failed(r, out, title(r, f), "failure", title(r, f),
               exec_text(f, "kind"), exec_text(f, "text"));
    return;
  }
  begin_case(r, out, title(r, f), 0);
  fputs(">\n      <skipped", out);
  put_attribute(out, "message", item->suppression->reason);
  fputs("/>\n    </testcase>\n", out);
}

static bool has_finding(const exec_report *r, const char *kernel)
{
  for (size_t i = 0; i < r->findings.n; i++) {
    if (strcmp(exec_text(r->findings.items[i].json, "kernel"), kernel) == 0)
      return true;
  }
  return false;
}

/* Writes the kernels without findings. Returns their number if `out` is NULL. */
static size_t put_kernels(const exec_report *r, FILE *out)
{
  size_t n = 0;

  for (size_t i = 0; i < r->kernels.n; i++) {
    const cJSON *k = r->kernels.items[i].json;

    if (has_finding(r, exec_text(k, "kernel")))
      continue;
    n++;
    if (out == NULL)
      continue;
    begin_case(r, out, exec_text(k, "name"), exec_number(k, "ns") / 1e9);
    fputs("/>\n", out);
  }
  return n;
}

static void put_exit_code(const exec_report *r, FILE *out)
{
  const char *message =
      kiln__cli_text(r->c, "the program ended with exit code %d", r->rc);

  if (r->rc != 0) {
    put_failed(r, out, "exit code", "error", message, "exit code", message);
    return;
  }
  begin_case(r, out, "exit code", r->seconds);
  fputs("/>\n", out);
}

/* ---- The document --------------------------------------------------------- */

static void put_suite(const exec_report *r, FILE *out)
{
  const exec_sums s = kiln__exec_sums(r);
  const time_t now = time(NULL);
  struct tm utc;
  char when[32] = "";

  if (gmtime_r(&now, &utc) != NULL)
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
  fputs("  <testsuite", out);
  put_attribute(out, "name", r->program[0]);
  fprintf(out,
          " tests=\"%zu\" failures=\"%zu\" errors=\"%d\" skipped=\"%zu\" "
          "time=\"%.3f\" timestamp=\"%s\" hostname=\"localhost\">\n",
          1 + r->findings.n + put_kernels(r, NULL), s.findings, r->rc != 0,
          s.suppressed, r->seconds, when);
}

static void put_errors(const exec_report *r, FILE *out)
{
  fputs("    <system-err>", out);
  for (size_t i = 0; i < r->errors.n; i++) {
    put_escaped(out, exec_text(r->errors.items[i].json, "text"));
    putc('\n', out);
  }
  for (size_t i = 0; i < r->faults.n; i++) {
    put_escaped(out, exec_text(r->faults.items[i].json, "text"));
    putc('\n', out);
  }
  for (size_t i = 0; i < r->missing.n; i++) {
    put_escaped(out, kiln__exec_missing_text(r, r->missing.items[i].json));
    putc('\n', out);
  }
  fputs("</system-err>\n", out);
}

int kiln__exec_junit(const exec_report *r, const char *path)
{
  const exec_sums s = kiln__exec_sums(r);
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  int rc;

  if (out == NULL)
    return CLI_FAILED;
  fprintf(out,
          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kiln "
          "exec\" tests=\"%zu\" failures=\"%zu\" errors=\"%d\" "
          "time=\"%.3f\">\n",
          1 + r->findings.n + put_kernels(r, NULL), s.findings, r->rc != 0,
          r->seconds);
  put_suite(r, out);
  put_exit_code(r, out);
  for (size_t i = 0; i < r->findings.n; i++)
    put_finding(r, out, &r->findings.items[i]);
  put_kernels(r, out);
  put_errors(r, out);
  fputs("  </testsuite>\n</testsuites>\n", out);
  fclose(out);
  rc = kiln__cli_write(r->c, path, text, size);
  free(text);
  return rc;
}
