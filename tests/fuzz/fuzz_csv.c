/* Tables: what is read can be counted, encoded, written down and read back. */
#include "data/table.h"

#include <math.h>

#include "fuzz.h"
#include "util/memory.h"

/* What a model file says of the columns is enough to encode with. */
static void use_again(const ct_table *t, const ct_columns *columns, const ct_images *before) {
    CT_SCOPED(ct_text) text = {0};
    CT_SCOPED_HANDLE(ct_json) json = NULL;
    CT_SCOPED(ct_columns) again = {0};
    CT_SCOPED(ct_images) images = {0};
    ct_columns_print(columns, false, &text);
    if (ct_json_parse(text.chars, text.n, "fuzz", &json) != CT_OK) abort();
    if (ct_columns_parse(json, "fuzz", &again) != CT_OK) abort();
    if (ct_table_encode(t, &again, (ct_rows){.flags = NULL}, &images) != CT_OK) abort();
    if (memcmp(images.values, before->values, images.n * ct_image_bytes(&images)) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    CT_SCOPED(ct_table) t = {0};
    CT_SCOPED(ct_columns) columns = {0};
    CT_SCOPED(ct_images) images = {0};
    ct_blob blob = {.bytes = ct_alloc(n + 1, 1), .n = n};
    if (blob.bytes == NULL) return 0;
    if (n > 0) memcpy(blob.bytes, data, n);
    if (ct_table_parse("fuzz", &blob, &t) != CT_OK) return 0;
    for (size_t k = 0; k < t.n_rows * t.n_columns; k++)
        if (t.cells[k] + strlen((char *)t.text.bytes + t.cells[k]) > n) abort();
    if (ct_columns_of(&t, t.n_columns - 1, "", (ct_rows){.flags = NULL}, &columns) != CT_OK)
        return 0;
    if (ct_table_encode(&t, &columns, (ct_rows){.flags = NULL}, &images) != CT_OK) abort();
    for (size_t k = 0; k < images.n * ct_image_values(&images); k++)
        if (!isfinite(images.values[k])) abort();
    use_again(&t, &columns, &images);
    fuzz_n_accepted++;
    return 0;
}
