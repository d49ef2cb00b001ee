#include "report/raster.h"

#include "ct_config.h"

#if CT_WITH_RSVG

#include <cairo-pdf.h>
#include <cairo.h>
#include <librsvg/rsvg.h>

#include "util/file.h"
#include "util/memory.h"

#define MAX_SIDE 30000.0 /* cairo's limit is 32767 */
#define POINTS   0.75    /* of a CSS pixel */

#if defined(__SANITIZE_ADDRESS__)
/* Fontconfig keeps its tables until the process ends; the name is the sanitizer's, which looks for it
 * from outside. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libfontconfig\nleak:libpango\n";
}
#endif

ct_status ct_raster_check(void) {
    return CT_OK;
}

static cairo_status_t add_bytes(void *context, const unsigned char *bytes, unsigned n) {
    return ct_writer_add(context, bytes, n) == CT_OK ? CAIRO_STATUS_SUCCESS
                                                     : CAIRO_STATUS_WRITE_ERROR;
}

static ct_status fail(const char *path, GError *error) {
    ct_status status =
        ct_fail(CT_IO, "%s: %s", path, error != NULL ? error->message : "librsvg failed");
    g_clear_error(&error);
    return status;
}

/* A drawing, and the file that it becomes. */
typedef struct picture {
    const char *path;
    RsvgHandle *handle;
    double width, height;
    ct_writer *writer;
} picture;

static void close_picture(picture *p) {
    if (p->handle != NULL) g_object_unref(p->handle);
    if (p->writer != NULL) ct_writer_abandon(&p->writer);
}

static ct_status open_picture(const char *path, const ct_text *svg, picture *p) {
    GError *error = NULL;
    CT_TRY(ct_text_status(svg));
    p->path = path;
    p->handle = rsvg_handle_new_from_data((const unsigned char *)svg->chars, svg->n, &error);
    if (p->handle == NULL) return fail(path, error);
    if (!rsvg_handle_get_intrinsic_size_in_pixels(p->handle, &p->width, &p->height) ||
        p->width <= 0)
        return ct_fail(CT_IO, "%s: the drawing has no size", path);
    return ct_writer_open(path, &p->writer);
}

/* The surface is drawn on and given up; of a PDF that writes it. */
static ct_status draw(picture *p, double scale, bool is_png, cairo_surface_t *surface) {
    GError *error = NULL;
    RsvgRectangle all = {0, 0, scale * p->width, scale * p->height};
    cairo_t *cairo = cairo_create(surface);
    bool is_drawn = rsvg_handle_render_document(p->handle, cairo, &all, &error);
    cairo_destroy(cairo);
    cairo_status_t status = cairo_surface_status(surface);
    if (is_drawn && is_png)
        status = cairo_surface_write_to_png_stream(surface, add_bytes, p->writer);
    cairo_surface_finish(surface);
    if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_status(surface);
    cairo_surface_destroy(surface);
    if (!is_drawn) return fail(p->path, error);
    if (status == CAIRO_STATUS_SUCCESS) return ct_writer_commit(&p->writer);
    return ct_fail(CT_IO, "%s: %s", p->path, cairo_status_to_string(status));
}

ct_status ct_raster_write(const char *path, const ct_text *svg, double scale) {
    CT_SCOPED_BY(close_picture, picture) p = {0};
    CT_TRY(open_picture(path, svg, &p));
    double side = p.width > p.height ? p.width : p.height;
    if (scale * side > MAX_SIDE) scale = MAX_SIDE / side;
    return draw(&p, scale, true,
                cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(scale * p.width),
                                           (int)(scale * p.height)));
}

ct_status ct_raster_write_pdf(const char *path, const ct_text *svg) {
    CT_SCOPED_BY(close_picture, picture) p = {0};
    CT_TRY(open_picture(path, svg, &p));
    cairo_surface_t *surface = cairo_pdf_surface_create_for_stream(
        add_bytes, p.writer, POINTS * p.width, POINTS * p.height);
    /* No clock: the same drawing is the same file. */
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, "2000-01-01T00:00:00Z");
    return draw(&p, POINTS, false, surface);
}

#else

ct_status ct_raster_check(void) {
    return ct_fail(CT_NOTBUILT, "PNG and PDF need librsvg, which this build is without: install "
                                "librsvg2-dev, configure with -DCT_WITH_RSVG=ON and build again, "
                                "or take SVG");
}

ct_status ct_raster_write(const char *path, const ct_text *svg, double scale) {
    (void)path;
    (void)svg;
    (void)scale;
    return ct_raster_check();
}

ct_status ct_raster_write_pdf(const char *path, const ct_text *svg) {
    (void)path;
    (void)svg;
    return ct_raster_check();
}

#endif
