/* Drawings as PNG and PDF files, through librsvg and cairo. */
#ifndef CT_REPORT_RASTER_H
#define CT_REPORT_RASTER_H

#include "util/status.h"
#include "util/text.h"

/* The SVG as a PNG file, `scale` pixels for each of its units. CT_NOTBUILT in a build without
 * librsvg. */
ct_status ct_raster_write(const char *path, const ct_text *svg, double scale);

/* The same as a PDF file of one page, a unit a CSS pixel; the same bytes every time. */
ct_status ct_raster_write_pdf(const char *path, const ct_text *svg);

/* CT_OK, or what ct_raster_write would answer in this build. */
ct_status ct_raster_check(void);

#endif
