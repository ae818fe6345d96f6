/* inspect.h -- look inside an image: source lines, PTX, machine code, SASS.
 *
 *   kiln_image --> kiln_image_lines()   which source line became which
 *              |                        instruction, and which PTX line
 *              --> kiln_image_code()    the machine code of one kernel
 *              --> kiln_image_source()  the source and headers as compiled
 *              --> kiln_image_sass()    SASS, the machine code as text
 *
 * kiln_image_resources() in program.h reports registers, spills and memory.
 *
 * None of these functions needs a GPU. The first three need nothing but the
 * image. kiln_image_sass() runs NVIDIA's program nvdisasm, which Kiln does not
 * contain; see kiln_disassembler().
 *
 * The line tables exist only in an image that was compiled with
 * kiln_program_desc.lineinfo. That option does not change the machine code.
 * With kiln_program_desc.debug the tables exist too, but the code is not
 * optimised. */
#ifndef KILN_INSPECT_H
#define KILN_INSPECT_H

#include <kiln/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Line tables --------------------------------------------------------- */

/** A place in the source of a program. If the compiler inlined the function
 * that contains the place, `caller` is the place of the call. The place of the
 * call may be inlined as well. The last place of such a chain is in the kernel
 * itself. The size of this struct never changes. */
typedef struct kiln_place {
  const char *function; /**< lowered name of the inlined function that contains
                             the place; NULL if the place is not inlined */
  int32_t file;         /**< index of the source file in kiln_lines.files */
  int32_t line;         /**< line in the file, which counts from 1 */
  int32_t caller; /**< index in kiln_lines.places of the call that was inlined,
                       which is less than the index of this place; -1 if the
                       place is not inlined */
  int32_t reserved; /**< 0 */
} kiln_place;

/** A row of a table of instructions. It applies from its address up to the
 * address of the next row of the same kernel. The size of this struct never
 * changes. */
typedef struct kiln_line_row {
  uint32_t kernel;  /**< index of the kernel, as for kiln_image_resources() */
  uint32_t address; /**< distance in bytes from the start of the machine code of
                         the kernel, as in SASS text */
  int32_t at;       /**< the place or the PTX line of the instructions; -1 if
                         unknown */
} kiln_line_row;

/** The line tables of an image. Rows are sorted by kernel, then by address. If
 * two rows have the same address, the second one applies. The library
 * allocates this struct, so it may get new members. */
typedef struct kiln_lines {
  const char *const *files; /**< names of the source files, as the compiler
                                 wrote them */
  size_t n_files;           /**< number of source files */
  const kiln_place *places; /**< all different places with their callers */
  size_t n_places;          /**< number of places */
  /** Which place each instruction comes from: `at` is an index in places. The
   * compiler may omit the row of an instruction whose line has the same number
   * as that of the one before it, but another file or caller. Such rows are
   * added from its PTX line. */
  const kiln_line_row *code;
  size_t n_code; /**< number of rows of code */
  /** Which PTX line each instruction comes from: `at` counts from 1. */
  const kiln_line_row *ptx;
  size_t n_ptx; /**< number of rows of ptx */
  /** The place of each line of the PTX source, as an index in places; -1
   * where there is none. Line 1 is element 0. */
  const int32_t *ptx_places;
  size_t n_ptx_lines; /**< number of lines of the PTX source */
} kiln_lines;

/**
 * Reads the line tables of an image.
 *
 * Images without machine code have only ptx_places. Code that the compiler
 * attributes to no source line has no row. Damaged tables give an error or
 * fewer rows; all indices in the result are valid.
 *
 * @param[out] out  the tables; the caller frees them with kiln_lines_free().
 *                  They are independent of the image. NULL on failure.
 * @retval KILN_OK
 * @retval KILN_EINVAL    an argument is NULL
 * @retval KILN_ENOTFOUND the image was compiled without line information: set
 *                        kiln_program_desc.lineinfo
 * @retval KILN_ECORRUPT  the line table of the machine code is damaged
 * @retval KILN_ENOMEM
 * Thread-safe. Never blocks. The time is proportional to the size of the
 * image.
 */
KILN_API kiln_status kiln_image_lines(kiln_lines **out,
                                      const kiln_image *image);

/** Frees line tables; NULL is allowed.
 * Not thread-safe: no other thread may use the tables. Never blocks. */
KILN_API void kiln_lines_free(kiln_lines *lines);

/* ---- Machine code and source --------------------------------------------- */

/** Returns the machine code of one kernel, which is a part of
 * kiln_image_cubin(), or NULL if the image holds only PTX. The image owns the
 * code.
 * @param i          index of the kernel, 0 to kiln_image_kernels() - 1.
 * @param[out] size  receives the size in bytes; may be NULL.
 * Thread-safe. Never blocks. */
KILN_API const void *kiln_image_code(const kiln_image *image, size_t i,
                                     size_t *size);

/** Returns the text of a source file or header that the image was compiled
 * from, or NULL if the image does not hold it. An image holds the program, its
 * virtual headers and the files that it includes, but not the standard C
 * headers that Kiln provides. The image owns the text, which is not
 * NUL-terminated.
 * @param file       a name from kiln_lines.files, or the name that an #include
 *                   names.
 * @param[out] size  receives the size in bytes.
 * Thread-safe. Never blocks. */
KILN_API const char *kiln_image_source(const kiln_image *image,
                                       const char *file, size_t *size);

/* ---- SASS ---------------------------------------------------------------- */

/**
 * Finds nvdisasm, NVIDIA's disassembler. It is part of CUDA toolkits, and of
 * the Python package nvidia-cuda-nvdisasm.
 *
 * Kiln takes the first executable file of this list. The environment variables
 * are not used if kiln_runtime_opts.ignore_env is set.
 *   1. KILN_NVDISASM; if it is set, no other path is tried
 *   2. the absolute folders in PATH
 *   3. bin/ in CUDA_PATH, CUDA_HOME and CONDA_PREFIX
 *   4. /usr/local/cuda/bin, /usr/local/cuda-VERSION/bin and /opt/cuda/bin
 *   5. NVIDIA's Python packages in VIRTUAL_ENV, CONDA_PREFIX, ~/.local,
 *      /usr/local and /usr
 *
 * @param[out] path  receives the absolute path, at most `size` bytes with the
 *                   NUL; the empty string on failure.
 * @retval KILN_OK, KILN_EINVAL
 * @retval KILN_ENOTFOUND  there is no nvdisasm; the error record says how to
 *                         get it
 * Thread-safe. Blocks while it accesses files.
 */
KILN_API kiln_status kiln_disassembler(kiln_runtime *rt, char *path,
                                       size_t size);

/** How to disassemble. Initialise the struct with {0}; zero means "default" in
 * each member. All members are borrowed for the call. */
typedef struct kiln_sass_opts {
  const char *tool; /**< path of nvdisasm; default: kiln_disassembler() */
  /** Options of nvdisasm, one per entry; default: "-c", which prints only the
   * code. No shell interprets them. */
  const char *const *options;
  size_t n_options;    /**< number of options, at most 16 */
  unsigned timeout_ms; /**< longest time that nvdisasm may take in
                            milliseconds; default: 60,000 */
  size_t max_bytes;    /**< longest text; default: 1 GiB */
} kiln_sass_opts;

/**
 * Disassembles the machine code of an image. The call runs nvdisasm in a child
 * process, with an empty environment and without standard input. It creates no
 * file.
 *
 * A program that waits for all its child processes, or ignores SIGCHLD, may
 * take the exit status of nvdisasm away. The call then succeeds if nvdisasm
 * has printed anything.
 *
 * @param[out] out   SASS as a NUL-terminated string; the caller frees it with
 *                   kiln_text_free(). NULL on failure.
 * @param[out] size  receives the length in bytes without the NUL; may be NULL.
 * @param opts       NULL selects all defaults.
 * @retval KILN_OK
 * @retval KILN_EINVAL      an argument is NULL, or there are too many options
 * @retval KILN_ENOTFOUND   there is no nvdisasm; the error record says how to
 *                          get it
 * @retval KILN_EUNSUPPORTED the image holds only PTX, or nvdisasm cannot read
 *                          its machine code; kiln_last_error()->log holds what
 *                          nvdisasm printed
 * @retval KILN_ETIMEOUT    nvdisasm took longer than timeout_ms and was killed
 * @retval KILN_EIO, KILN_ENOMEM
 * Thread-safe. Blocks until nvdisasm ends, which takes about 0.1 s per MB of
 * machine code.
 */
KILN_INLINE kiln_status kiln_image_sass(char **out, size_t *size,
                                        kiln_runtime *rt,
                                        const kiln_image *image,
                                        const kiln_sass_opts *opts);

/** Frees a string that kiln_image_sass() returned; NULL is allowed.
 * Thread-safe. Never blocks. */
KILN_API void kiln_text_free(kiln_runtime *rt, char *text);

KILN__SIZED(kiln_image_sass,
            (char **out, size_t *size, kiln_runtime *rt,
             const kiln_image *image, const kiln_sass_opts *opts),
            (size_t opts_size), (out, size, rt, image, opts, sizeof *opts))

#ifdef __cplusplus
}
#endif
#endif
