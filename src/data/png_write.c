/* PNG by libpng. */
#include "data/png_write.h"

#include "ct_config.h"

#if CT_WITH_PNG

#include <png.h>

#include "util/file.h"
#include "util/memory.h"

ct_status ct_png_write(const char *path, int width, int height, const uint8_t *pixels) {
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = PNG_FORMAT_RGB};
    png_alloc_size_t n = PNG_IMAGE_PNG_SIZE_MAX(image);
    CT_SCOPED_BLOCK(uint8_t) bytes = NULL;
    CT_TRY(ct_make(&bytes, n, path));
    if (png_image_write_to_memory(&image, bytes, &n, 0, pixels, 0, NULL) == 0)
        return ct_fail(CT_IO, "%s: %.64s", path, image.message);
    return ct_file_write(path, bytes, n);
}

#else

ct_status ct_png_write(const char *path, int width, int height, const uint8_t *pixels) {
    (void)width, (void)height, (void)pixels;
    return ct_fail(CT_NOTBUILT,
                   "%s cannot be written: built without libpng; install libpng-dev and configure "
                   "again",
                   path);
}

#endif
