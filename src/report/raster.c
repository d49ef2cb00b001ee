#include "report/raster.h"

#include "ct_config.h"

#if CT_WITH_RSVG

#include <cairo.h>
#include <librsvg/rsvg.h>

#include "util/file.h"

#define MAX_SIDE 30000.0 /* cairo's limit is 32767 */

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

static ct_status write_surface(const char *path, cairo_surface_t *surface) {
    ct_writer *writer = NULL;
    CT_TRY(ct_writer_open(path, &writer));
    cairo_status_t status = cairo_surface_write_to_png_stream(surface, add_bytes, writer);
    if (status == CAIRO_STATUS_SUCCESS) return ct_writer_commit(&writer);
    ct_writer_abandon(&writer);
    return ct_fail(CT_IO, "%s: %s", path, cairo_status_to_string(status));
}

static ct_status fail(const char *path, GError *error) {
    ct_status status =
        ct_fail(CT_IO, "%s: %s", path, error != NULL ? error->message : "librsvg failed");
    g_clear_error(&error);
    return status;
}

static ct_status draw(const char *path, RsvgHandle *handle, double scale) {
    double width = 0, height = 0;
    GError *error = NULL;
    if (!rsvg_handle_get_intrinsic_size_in_pixels(handle, &width, &height) || width <= 0)
        return ct_fail(CT_IO, "%s: the drawing has no size", path);
    if (scale * (width > height ? width : height) > MAX_SIDE)
        scale = MAX_SIDE / (width > height ? width : height);
    RsvgRectangle all = {0, 0, scale * width, scale * height};
    cairo_surface_t *surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)all.width, (int)all.height);
    cairo_t *cairo = cairo_create(surface);
    ct_status status = rsvg_handle_render_document(handle, cairo, &all, &error)
                           ? write_surface(path, surface)
                           : fail(path, error);
    cairo_destroy(cairo);
    cairo_surface_destroy(surface);
    return status;
}

ct_status ct_raster_write(const char *path, const ct_text *svg, double scale) {
    GError *error = NULL;
    CT_TRY(ct_text_status(svg));
    RsvgHandle *handle =
        rsvg_handle_new_from_data((const unsigned char *)svg->chars, svg->n, &error);
    if (handle == NULL) return fail(path, error);
    ct_status status = draw(path, handle, scale);
    g_object_unref(handle);
    return status;
}

#else

ct_status ct_raster_check(void) {
    return ct_fail(CT_NOTBUILT, "PNG needs librsvg, which this build is without: install "
                                "librsvg2-dev, configure with -DCT_WITH_RSVG=ON and build again, "
                                "or take SVG");
}

ct_status ct_raster_write(const char *path, const ct_text *svg, double scale) {
    (void)path;
    (void)svg;
    (void)scale;
    return ct_raster_check();
}

#endif
