/* JPEG by libjpeg (libjpeg-turbo where there is a choice), with scaled decoding (the coarser
 * coefficients alone) of pictures much larger than needed, if that is allowed. */
#include "data/decode_internal.h"

#include "ct_config.h"

#if CT_WITH_JPEG

#include <setjmp.h>
#include <stdio.h> /* before jpeglib.h, which needs FILE and size_t */

#include <jpeglib.h>
#include <jerror.h>

#include "util/budget.h"
#include "util/memory.h"

/* To rows that begin on a vector, libjpeg-turbo writes past the caches; we read them at once. */
#define OFF_ALIGNMENT 16
#define GAP           4.0

typedef struct reader {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf out;
    ct_decoder *decoder;
    bool is_damaged;
} reader;

static void fail(j_common_ptr info) {
    reader *r = info->client_data;
    char words[JMSG_LENGTH_MAX];
    info->err->format_message(info, words);
    if (info->err->msg_code == JERR_OUT_OF_MEMORY) r->decoder->status = ct_no_memory("a JPEG");
    ct_decoder_refuse(r->decoder, "%.140s", words);
    longjmp(r->out, 1);
}

/* Warnings of data that is missing or cannot be right; others (stray bytes between markers, which
 * old cameras leave) are let pass, as Pillow does. */
static void warn(j_common_ptr info, int level) {
    reader *r = info->client_data;
    if (level >= 0) return;
    switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_BOGUS_PROGRESSION:
        if (!r->is_damaged) {
            char words[JMSG_LENGTH_MAX];
            info->err->format_message(info, words);
            ct_decoder_refuse(r->decoder, "%.140s", words);
        }
        r->is_damaged = true;
        break;
    default: break;
    }
}

/* Called now and then while scans are read. */
static void count_scans(j_common_ptr info) {
    reader *r = info->client_data;
    if (r->info.input_scan_number <= CT_MAX_JPEG_SCANS) return;
    ct_decoder_refuse(r->decoder, "a JPEG of more than %d scans", CT_MAX_JPEG_SCANS);
    longjmp(r->out, 1);
}

static void stay_silent(j_common_ptr info) {
    (void)info;
}

static reader *reader_of(ct_decoder *d) {
    if (d->jpeg != NULL) return d->jpeg;
    reader *r = NULL;
    d->status = ct_make(&r, 1, "a JPEG decoder");
    if (r == NULL) return NULL;
    r->decoder = d;
    r->info.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = fail;
    r->errors.emit_message = warn;
    r->errors.output_message = stay_silent;
    r->info.client_data = r;
    if (setjmp(r->out) != 0) {
        jpeg_destroy_decompress(&r->info);
        ct_free(r);
        return NULL;
    }
    jpeg_create_decompress(&r->info);
    r->progress.progress_monitor = count_scans;
    r->info.progress = &r->progress;
    d->jpeg = r;
    return r;
}

void ct_jpeg_free(ct_decoder *d) {
    reader *r = d->jpeg;
    if (r == NULL) return;
    jpeg_destroy_decompress(&r->info);
    ct_free(r);
    d->jpeg = NULL;
}

/* CMYK as Adobe's programs store it (inverted), to R, G, B. */
static void from_cmyk(uint8_t *row, int width) {
    for (int x = 0; x < width; x++) {
        uint8_t *p = row + (size_t)x * 4;
        unsigned k = p[3];
        for (int c = 0; c < 3; c++) {
            unsigned product = (255u - p[c]) * k + 128;
            p[c] = (uint8_t)(k - ((product + (product >> 8)) >> 8));
        }
    }
}

/* 3 bytes a pixel to 4, in place from the end. */
static void widen(uint8_t *row, int width) {
    for (size_t x = (size_t)width; x-- > 0;)
        for (size_t c = 3; c-- > 0;) row[4 * x + c] = row[3 * x + c];
}

static void choose_output(struct jpeg_decompress_struct *info) {
    bool is_cmyk = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
#ifdef JCS_EXTENSIONS
    info->out_color_space = is_cmyk ? JCS_CMYK : JCS_EXT_RGBX;
#else
    info->out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
#endif
}

/* The smallest of 1/8, 1/4, 1/2 and 1 that leaves GAP times the pixels needed, if any will do. */
static void choose_scale(struct jpeg_decompress_struct *info, int side, bool fast) {
    int width = (int)info->image_width, height = (int)info->image_height;
    int shorter = width < height ? width : height;
    info->scale_num = info->scale_denom = 1;
    for (unsigned denom = 8; denom > 1 && side > 0 && fast; denom /= 2) {
        if (shorter / (double)denom < GAP * side) continue;
        info->scale_denom = denom;
        return;
    }
}

static bool read_rows(reader *r) {
    struct jpeg_decompress_struct *info = &r->info;
    ct_decoder *d = r->decoder;
    int width = (int)info->output_width;
    uint8_t *row = ct_decoder_buffer(d, &d->row, (size_t)width * 4 + OFF_ALIGNMENT);
    if (row == NULL) return false;
    row += OFF_ALIGNMENT;
    while (info->output_scanline < info->output_height) {
        int y = (int)info->output_scanline;
        JSAMPROW rows[] = {row};
        if (jpeg_read_scanlines(info, rows, 1) != 1 || r->is_damaged) return false;
        if (info->output_components == 3) widen(row, width);
        if (info->out_color_space == JCS_CMYK) from_cmyk(row, width);
        ct_resizer_row(&d->resizer, y, row);
    }
    return true;
}

static bool read_picture(reader *r, const uint8_t *bytes, size_t n) {
    struct jpeg_decompress_struct *info = &r->info;
    ct_decoder *d = r->decoder;
    jpeg_mem_src(info, bytes, (unsigned long)n);
    if (jpeg_read_header(info, TRUE) != JPEG_HEADER_OK) return false;
    choose_output(info);
    choose_scale(info, d->side, d->fast);
    if (jpeg_has_multiple_scans(info) &&
        !ct_decoder_holds(d, "a JPEG in several scans", (int)info->image_width,
                          (int)info->image_height))
        return false;
    jpeg_calc_output_dimensions(info);
    if (!ct_decoder_begin(d, (int)info->image_width, (int)info->image_height,
                          (int)info->output_width, (int)info->output_height, info->scale_denom))
        return false;
    jpeg_start_decompress(info);
    return read_rows(r) && jpeg_finish_decompress(info);
}

bool ct_jpeg_decode(ct_decoder *d, const uint8_t *bytes, size_t n) {
    reader *r = reader_of(d);
    if (r == NULL) return false;
    r->is_damaged = false;
    if (setjmp(r->out) != 0) {
        jpeg_abort_decompress(&r->info);
        return false;
    }
    bool ok = read_picture(r, bytes, n) && !r->is_damaged;
    jpeg_abort_decompress(&r->info);
    if (!ok && d->status == CT_OK) ct_decoder_refuse(d, "damaged JPEG");
    return ok;
}

#else

bool ct_jpeg_decode(ct_decoder *d, const uint8_t *bytes, size_t n) {
    (void)bytes, (void)n;
    d->status = ct_fail(CT_NOTBUILT, "JPEG pictures cannot be read: built without libjpeg; install "
                                     "libjpeg-dev and configure again");
    return false;
}

void ct_jpeg_free(ct_decoder *d) {
    (void)d;
}

#endif
