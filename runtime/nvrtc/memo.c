/* memo.c -- the memo stores descriptions of NVRTC libraries and results of
 * searches between runs.
 *
 * Problem: a warm start should not load NVRTC (50 ms, 100 MB mapped), but the
 * cache key contains NVRTC's version and build.
 * Idea: a small text file in the cache folder describes each library that was
 * found. For each search it also records every examined path with its stamp. If
 * all stamps are unchanged, the search would give the same result.
 *
 * Each line holds one record. Fields are separated by tabs, and a path is
 * always the last field:
 *   kiln-nvrtc 1
 *   lib    size mtime inode version build archs path
 *   find   hash of the inputs; begins the result of one search
 *   watch  exists size mtime inode path   a path that the search examined
 *   step   how where reason               for the trail; empty reason: found
 *   hit    path                           library found; see its lib line
 *   end
 *   sum    hash of all preceding bytes
 *
 * Invariant: the memo is used only if its checksum is valid and no other user
 * could have written it, since the memo decides which libraries are loaded. */
#include "find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT = 1 << 18, MAX_LIBRARIES = 64, MAX_SEARCHES = 8, SUM_SIZE = 21 };

static const char first_line[] = "kiln-nvrtc 1\n";

/* ---- Reading ------------------------------------------------------------- */

/* Reads one field of a line up to the next tab, or up to the end of the line if
 * `last` is true, and advances *at past the field. Returns false if the line
 * ends too early. */
static bool field(const char **at, bool last, const char **text, size_t *size)
{
  const size_t n = strcspn(*at, last ? "\n" : "\t\n");

  if ((*at)[n] != (last ? '\n' : '\t'))
    return false;
  *text = *at;
  *size = n;
  *at += n + 1;
  return true;
}

static bool number(const char **at, int64_t *out)
{
  const char *text;
  char *end;
  size_t size;

  if (!field(at, false, &text, &size) || size == 0 || size > 20)
    return false;
  errno = 0;
  *out = strtoll(text, &end, 10);
  return errno == 0 && end == text + size;
}

static bool stamp_fields(const char **at, kiln__stamp *out)
{
  int64_t size, mtime, inode;

  if (!number(at, &size) || !number(at, &mtime) || !number(at, &inode))
    return false;
  out->exists = true;
  out->size = (uint64_t)size;
  out->mtime_ns = mtime;
  out->inode = (uint64_t)inode;
  return true;
}

/* Reads a path at the end of a line; the copy is NUL-terminated. */
static bool path_field(const char **at, char out[KILN__PATH_SIZE])
{
  const char *text;
  size_t size;

  if (!field(at, true, &text, &size) || size == 0 || size >= KILN__PATH_SIZE)
    return false;
  memcpy(out, text, size);
  out[size] = '\0';
  return true;
}

static const char *next_line(const char *line)
{
  const char *end = strchr(line, '\n');

  return end == NULL ? line + strlen(line) : end + 1;
}

static void write_sum(char out[SUM_SIZE + 1], const char *text, size_t size)
{
  kiln__format(out, SUM_SIZE + 1, "sum\t%016llx\n",
               (unsigned long long)kiln__sum64(text, size));
}

/* Checks the format and the checksum of a memo file, and removes the checksum
 * line. */
static bool check(kiln__buf *text)
{
  char sum[SUM_SIZE + 1];

  if (text->size < sizeof first_line - 1 + SUM_SIZE ||
      memchr(text->data, '\0', text->size) != NULL ||
      !kiln__starts_with(text->data, first_line))
    return false;
  text->size -= SUM_SIZE;
  write_sum(sum, text->data, text->size);
  if (memcmp(text->data + text->size, sum, SUM_SIZE) != 0)
    return false;
  text->data[text->size] = '\0';
  return true;
}

/* Returns false if other users may write to the memo file, which is then
 * ignored. */
static bool trusted(int fd, struct stat *info)
{
  return fstat(fd, info) == 0 && S_ISREG(info->st_mode) &&
         info->st_uid == geteuid() && (info->st_mode & 022) == 0 &&
         info->st_size > 0 && info->st_size <= LIMIT;
}

/* Opens the folder of the memo file, which must pass the same checks as the
 * cache folder, and finds the file name in the path. Returns -1 if the folder
 * does not exist or if other users may write to it. */
static int open_folder(const char *path, bool create, const char **name)
{
  const char *slash = strrchr(path, '/');
  char folder[4096];

  if (slash == NULL || slash == path || (size_t)(slash - path) >= sizeof folder)
    return -1;
  memcpy(folder, path, (size_t)(slash - path));
  folder[slash - path] = '\0';
  *name = slash + 1;
  return kiln__folder_open(&kiln__fs_posix, folder, create, NULL);
}

kiln_status kiln__memo_read(kiln__buf *out, const char *path)
{
  const kiln__fs *fs = &kiln__fs_posix;
  kiln_status st = KILN_OK;
  const char *name;
  struct stat info;
  bool good = false;
  int dir = open_folder(path, false, &name), fd = -1;

  if (dir >= 0)
    fd = kiln__file_open(fs, dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
  if (fd >= 0 && trusted(fd, &info)) {
    if (!kiln__buf_reserve(out, (size_t)info.st_size))
      KILN_TRY(kiln__fail_memory("NVRTC memo"));
    good = kiln__read_all(fs, fd, out->data, (size_t)info.st_size);
    out->size = (size_t)info.st_size;
    out->data[out->size] = '\0';
    good = good && check(out);
  }

done:
  kiln__file_close(fs, fd);
  kiln__file_close(fs, dir);
  if (!good)
    kiln__buf_clear(out);
  return st;
}

/* ---- Looking up ---------------------------------------------------------- */

static bool read_archs(const char *list, size_t size, kiln_nvrtc_info *out)
{
  const char *end = list + size;

  out->n_archs = 0;
  while (list < end && out->n_archs < sizeof out->archs / sizeof(int)) {
    char *after;
    const long arch = strtol(list, &after, 10);

    if (after == list || arch <= 0 || arch > 100000)
      return false;
    out->archs[out->n_archs++] = (int)arch;
    list = *after == ',' ? after + 1 : after;
  }
  return list == end && out->n_archs > 0;
}

static bool read_library(const char *at, kiln__stamp *stamp,
                         kiln__nvrtc_id *out)
{
  const char *build, *archs;
  size_t build_size, archs_size;
  int64_t version;

  memset(out, 0, sizeof *out);
  if (!stamp_fields(&at, stamp) || !number(&at, &version) ||
      !field(&at, false, &build, &build_size) ||
      build_size >= sizeof out->build ||
      !field(&at, false, &archs, &archs_size) ||
      !read_archs(archs, archs_size, &out->info) ||
      !path_field(&at, out->info.path) || version < KILN__LEAST_NVRTC ||
      version > 1000000)
    return false;
  memcpy(out->build, build, build_size);
  out->info.version = (int)version;
  out->size = stamp->size;
  out->mtime_ns = stamp->mtime_ns;
  return true;
}

bool kiln__memo_library(const char *memo, const char *path,
                        const kiln__stamp *stamp, kiln__nvrtc_id *out)
{
  const size_t n = strlen(path);

  for (const char *line = memo; *line != '\0'; line = next_line(line)) {
    const char *end = next_line(line);
    kiln__stamp known;

    /* Compare the path first: the comparison is cheap, and most paths
     * differ. */
    if (!kiln__starts_with(line, "lib\t") || (size_t)(end - line) < n + 2 ||
        memcmp(end - 1 - n, path, n) != 0 || end[-2 - (ptrdiff_t)n] != '\t')
      continue;
    if (read_library(line + 4, &known, out) &&
        kiln__stamp_same(&known, stamp) && strcmp(out->info.path, path) == 0)
      return true;
  }
  return false;
}

static const char *find_answer(const char *memo, const char *inputs)
{
  char head[64];

  kiln__format(head, sizeof head, "find\t%s\n", inputs);
  for (const char *line = memo; *line != '\0'; line = next_line(line)) {
    if (kiln__starts_with(line, head))
      return next_line(line);
  }
  return NULL;
}

static bool watch_holds(const char *at)
{
  char path[KILN__PATH_SIZE];
  kiln__stamp known = {0}, now;
  int64_t exists;

  if (!number(&at, &exists) || !stamp_fields(&at, &known) ||
      !path_field(&at, path))
    return false;
  known.exists = exists != 0;
  now = kiln__stamp_of(path);
  return kiln__stamp_same(&known, &now);
}

static bool take_hit(const char *memo, const char *at, kiln__search *s)
{
  kiln__nvrtc_entry entry = {0};
  char path[KILN__PATH_SIZE];

  if (!path_field(&at, path))
    return false;
  entry.stamp = kiln__stamp_of(path);
  return entry.stamp.exists &&
         kiln__memo_library(memo, path, &entry.stamp, &entry.id) &&
         kiln__search_push(s, &entry);
}

static void replay_step(const char *at, kiln__trail *trail)
{
  const char *text[3];
  size_t size[3];
  char copy[3][KILN__PATH_SIZE];

  for (int i = 0; i < 3; i++) {
    if (!field(&at, i == 2, &text[i], &size[i]))
      return;
    kiln__format(copy[i], sizeof copy[i], "%.*s", (int)size[i], text[i]);
  }
  kiln__trail_add(trail, "libnvrtc", copy[0], copy[1],
                  copy[2][0] == '\0' ? NULL : copy[2]);
}

bool kiln__memo_answer(const char *memo, kiln__search *s)
{
  const char *answer = find_answer(memo, s->inputs);
  const char *line;

  if (answer == NULL)
    return false;
  for (line = answer; *line != '\0'; line = next_line(line)) {
    if (kiln__starts_with(line, "end\n"))
      break;
    if ((kiln__starts_with(line, "watch\t") && !watch_holds(line + 6)) ||
        (kiln__starts_with(line, "hit\t") && !take_hit(memo, line + 4, s))) {
      s->n = 0;
      return false;
    }
  }
  if (s->n == 0 || *line == '\0')
    return false;
  for (line = answer; !kiln__starts_with(line, "end\n");
       line = next_line(line)) {
    if (kiln__starts_with(line, "step\t"))
      replay_step(line + 5, s->trail);
  }
  return true;
}

void kiln__memo_remembered(const char *memo, kiln__search *s)
{
  for (const char *line = memo; *line != '\0'; line = next_line(line)) {
    kiln__nvrtc_entry entry = {0};

    if (kiln__starts_with(line, "lib\t") &&
        read_library(line + 4, &entry.stamp, &entry.id) &&
        !kiln__search_push(s, &entry))
      return;
  }
}

/* ---- Writing ------------------------------------------------------------- */

void kiln__memo_watch(kiln__buf *out, const char *path,
                      const kiln__stamp *stamp)
{
  kiln__buf_format(out, "watch\t%d\t%lld\t%lld\t%lld\t%s\n", stamp->exists,
                   (long long)stamp->size, (long long)stamp->mtime_ns,
                   (long long)stamp->inode, path);
}

static void add_plain(kiln__buf *out, const char *text)
{
  size_t at;

  kiln__buf_text(out, text);
  if (out->failed)
    return;
  for (at = out->size - strlen(text); at < out->size; at++) {
    if (out->data[at] == '\t' || out->data[at] == '\n')
      out->data[at] = ' ';
  }
}

void kiln__memo_step(kiln__buf *out, const char *how, const char *where,
                     const char *reason)
{
  kiln__buf_text(out, "step\t");
  add_plain(out, how);
  kiln__buf_text(out, "\t");
  add_plain(out, where);
  kiln__buf_text(out, "\t");
  if (reason != NULL)
    add_plain(out, reason);
  kiln__buf_text(out, "\n");
}

static void add_library(kiln__buf *out, const kiln__nvrtc_entry *e)
{
  kiln__buf_format(out, "lib\t%lld\t%lld\t%lld\t%d\t%s\t",
                   (long long)e->stamp.size, (long long)e->stamp.mtime_ns,
                   (long long)e->stamp.inode, e->id.info.version, e->id.build);
  for (size_t i = 0; i < e->id.info.n_archs; i++)
    kiln__buf_format(out, "%s%d", i == 0 ? "" : ",", e->id.info.archs[i]);
  kiln__buf_format(out, "\t%s\n", e->id.info.path);
}

/* Copies the lines of the old memo that describe libraries, except for paths
 * that this search found. */
static void keep_libraries(kiln__buf *out, const char *old,
                           const kiln__search *s)
{
  size_t kept = s->n;

  for (const char *line = old; *line != '\0' && kept < MAX_LIBRARIES;
       line = next_line(line)) {
    kiln__nvrtc_id id;
    kiln__stamp stamp;
    bool again = false;

    if (!kiln__starts_with(line, "lib\t") ||
        !read_library(line + 4, &stamp, &id))
      continue;
    for (size_t i = 0; i < s->n; i++)
      again = again || strcmp(id.info.path, s->entries[i].id.info.path) == 0;
    if (again)
      continue;
    kiln__buf_add(out, line, (size_t)(next_line(line) - line));
    kept++;
  }
}

/* Copies the stored search results of the old memo to the new memo, except the
 * result for the same inputs as the current search. */
static void keep_searches(kiln__buf *out, const char *old, const char *inputs)
{
  const char *mine = find_answer(old, inputs);
  size_t kept = 1;
  bool copy = false;

  for (const char *line = old; *line != '\0'; line = next_line(line)) {
    const char *next = next_line(line);

    if (kiln__starts_with(line, "find\t")) {
      copy = next != mine && kept < MAX_SEARCHES;
      kept += copy;
    }
    if (copy)
      kiln__buf_add(out, line, (size_t)(next - line));
    if (kiln__starts_with(line, "end\n"))
      copy = false;
  }
}

static void compose(kiln__buf *out, const char *old, const kiln__search *s)
{
  char sum[SUM_SIZE + 1];

  kiln__buf_text(out, first_line);
  for (size_t i = 0; i < s->n; i++)
    add_library(out, &s->entries[i]);
  keep_libraries(out, old, s);
  if (!s->fresh) {
    kiln__buf_format(out, "find\t%s\n", s->inputs);
    kiln__buf_add(out, s->lines.data, s->lines.size);
    for (size_t i = 0; i < s->n; i++)
      kiln__buf_format(out, "hit\t%s\n", s->entries[i].id.info.path);
    kiln__buf_text(out, "end\n");
  }
  keep_searches(out, old, s->inputs);
  if (out->failed)
    return;
  write_sum(sum, out->data, out->size);
  kiln__buf_text(out, sum);
}

/* Replaces the memo file by a rename in the open folder, so that readers see
 * the complete old or new memo. The file is not synced: after a crash, the
 * checksum of an incomplete memo does not match, and the memo is ignored. */
static void publish(int dir, const char *name, const kiln__buf *text)
{
  const kiln__fs *fs = &kiln__fs_posix;
  char temporary[128];
  bool good;
  int fd;

  kiln__format(temporary, sizeof temporary, "%s.%ld.%llx.%llx.tmp", name,
               (long)getpid(), (unsigned long long)kiln__clock_ns(),
               (unsigned long long)(uintptr_t)&fd);
  fd = kiln__file_open(fs, dir, temporary,
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0)
    return;
  good = kiln__write_all(fs, fd, text->data, text->size);
  good = fs->close(fs->user, fd) == 0 && good;
  if (!good || fs->renameat(fs->user, dir, temporary, name) != 0)
    fs->unlinkat(fs->user, dir, temporary);
}

void kiln__memo_write(const char *old, const char *path, const kiln__search *s)
{
  const char *name;
  kiln__buf text;
  int dir;

  if (s->odd_text || s->n == 0 || s->n > MAX_LIBRARIES)
    return;
  kiln__buf_init(&text, s->alloc);
  compose(&text, old, s);
  dir = text.failed || text.size > LIMIT ? -1 : open_folder(path, true, &name);
  if (dir >= 0)
    publish(dir, name, &text);
  kiln__file_close(&kiln__fs_posix, dir);
  kiln__buf_free(&text);
}
