/* picture.h -- functions of the samples that write pictures: PNG files if the
 * samples were built with libpng, otherwise PGM files, which most viewers show. */
#ifndef KILN_SAMPLE_PICTURE_H
#define KILN_SAMPLE_PICTURE_H

#include "sample.h"

#ifdef KILN_SAMPLE_PNG
#include <png.h>
#endif

/* Writes the path of a picture: NAME.png or NAME.pgm in the folder
 * KILN_SAMPLE_OUT, or in the current folder. */
static inline void picture_path(char *out, size_t size, const char *name)
{
  const char *folder = getenv("KILN_SAMPLE_OUT");
#ifdef KILN_SAMPLE_PNG
  static const char type[] = "png";
#else
  static const char type[] = "pgm";
#endif

  snprintf(out, size, "%s/%s.%s", folder != NULL ? folder : ".", name, type);
}

static inline bool picture_save(const char *path, const uint8_t *pixels,
                                unsigned width, unsigned height)
{
#ifdef KILN_SAMPLE_PNG
  png_image image = {.version = PNG_IMAGE_VERSION,
                     .width = width,
                     .height = height,
                     .format = PNG_FORMAT_GRAY};

  return png_image_write_to_file(&image, path, 0, pixels, 0, NULL) != 0;
#else
  FILE *file = fopen(path, "wb");
  bool good = file != NULL;

  if (!good)
    return false;
  good = fprintf(file, "P5\n%u %u\n255\n", width, height) > 0 &&
         fwrite(pixels, width, height, file) == height;
  return fclose(file) == 0 && good;
#endif
}

/* Writes a grey picture of one byte per pixel and prints its path. Returns false
 * if the file cannot be written. */
static inline bool picture_write(const char *name, const uint8_t *pixels,
                                 unsigned width, unsigned height)
{
  char path[512];

  picture_path(path, sizeof path, name);
  if (!picture_save(path, pixels, width, height)) {
    fprintf(stderr, "cannot write %s\n", path);
    return false;
  }
  printf("  picture: %s\n", path);
  return true;
}

#endif
