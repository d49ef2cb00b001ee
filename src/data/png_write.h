/* PNG files of our own making: contact sheets. */
#ifndef CT_DATA_PNG_WRITE_H
#define CT_DATA_PNG_WRITE_H

#include "util/status.h"

/* pixels: [height][width][3] R, G, B. The file appears whole or not at all. */
ct_status ct_png_write(const char *path, int width, int height, const uint8_t *pixels);

#endif
