#include "util/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/file.h"
#include "util/json.h"
#include "util/memory.h"
#include "util/text.h"

#define MAX_HEADER_BYTES ((size_t)100 << 20) /* the limit of the format's own library */
#define METADATA         "__metadata__"      /* a member that is no tensor: strings by name */

static uint32_t load_u32(const uint8_t *b) {
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint64_t load_u64(const uint8_t *b) {
    return (uint64_t)load_u32(b) | (uint64_t)load_u32(b + 4) << 32;
}

static float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float load_f32(const uint8_t *b) {
    return float_of_bits(load_u32(b));
}

static float load_f64(const uint8_t *b) {
    uint64_t bits = load_u64(b);
    double value;
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

static float load_bf16(const uint8_t *b) {
    return float_of_bits(((uint32_t)b[0] | (uint32_t)b[1] << 8) << 16);
}

static float load_f16(const uint8_t *b) {
    uint32_t half = (uint32_t)b[0] | (uint32_t)b[1] << 8;
    uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 0x1Fu, mantissa = half & 0x3FFu;
    if (exponent == 0x1F) return float_of_bits(sign | 0x7F800000u | mantissa << 13);
    if (exponent > 0) return float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    float small = (float)mantissa * 0x1p-24f; /* subnormal, or zero */
    return sign != 0 ? -small : small;
}

typedef struct dtype {
    const char *name;
    size_t n_bytes;
    float (*load)(const uint8_t *bytes);
} dtype;

static const dtype *find_dtype(const char *name) {
    static const dtype all[] = {
        {"F32", 4, load_f32}, {"F64", 8, load_f64}, {"F16", 2, load_f16}, {"BF16", 2, load_bf16}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0) return &all[i];
    return NULL;
}

/* Where a tensor's bytes lie, relative to the end of the header. */
typedef struct span {
    size_t begin, end;
    const dtype *type;
    size_t index; /* in ct_tensors */
} span;

typedef struct source {
    const char *path;
    const uint8_t *data;
    size_t n_data;
} source;

static ct_status refuse(const source *s, const char *tensor, const char *reason) {
    return ct_fail(CT_IO, "%s: tensor '%.200s': %s", s->path, tensor, reason);
}

static bool read_size(const ct_json *json, size_t *out) {
    if (json == NULL || json->kind != CT_JSON_NUMBER) return false;
    if (json->number < 0 || json->number > 0x1p53 || json->number != floor(json->number))
        return false;
    *out = (size_t)json->number;
    return true;
}

static ct_status read_shape(const source *s, const ct_json *entry, ct_tensor *tensor) {
    const ct_json *shape = ct_json_get(entry, "shape");
    if (shape == NULL || shape->kind != CT_JSON_ARRAY)
        return refuse(s, entry->key, "its shape is no list");
    if (shape->n_children > CT_TENSOR_MAX_DIMS)
        return refuse(s, entry->key, "its shape has more than 8 dimensions");
    tensor->count = 1;
    for (const ct_json *d = shape->child; d != NULL; d = d->next) {
        size_t dim = 0;
        if (!read_size(d, &dim)) return refuse(s, entry->key, "a dimension is no whole number");
        if (dim != 0 && tensor->count > SIZE_MAX / sizeof(double) / dim)
            return refuse(s, entry->key, "its shape is too large");
        tensor->dims[tensor->n_dims++] = dim;
        tensor->count *= dim;
    }
    return CT_OK;
}

static ct_status read_span(const source *s, const ct_json *entry, size_t count, span *out) {
    const ct_json *type = ct_json_get(entry, "dtype");
    const ct_json *offsets = ct_json_get(entry, "data_offsets");
    if (type == NULL || type->kind != CT_JSON_STRING)
        return refuse(s, entry->key, "its dtype is missing");
    out->type = find_dtype(type->string);
    if (out->type == NULL) return refuse(s, entry->key, "its dtype is none of F32, F64, F16, BF16");
    if (offsets == NULL || offsets->kind != CT_JSON_ARRAY || offsets->n_children != 2 ||
        !read_size(offsets->child, &out->begin) || !read_size(offsets->child->next, &out->end))
        return refuse(s, entry->key, "its data_offsets are not two whole numbers");
    if (out->begin > out->end || out->end > s->n_data)
        return refuse(s, entry->key, "its data lie outside the file");
    if (out->end - out->begin != count * out->type->n_bytes)
        return refuse(s, entry->key, "its data_offsets do not fit its shape");
    return CT_OK;
}

static ct_status read_tensor(const source *s, const ct_json *entry, ct_tensor *tensor,
                             span *where) {
    if (entry->kind != CT_JSON_OBJECT || entry->n_children != 3)
        return refuse(s, entry->key, "needs dtype, shape and data_offsets, and nothing else");
    CT_TRY(read_shape(s, entry, tensor));
    CT_TRY(read_span(s, entry, tensor->count, where));
    CT_TRY(ct_make_text(&tensor->name, entry->key));
    CT_TRY(ct_make(&tensor->values, tensor->count, entry->key));
    const uint8_t *bytes = s->data + where->begin;
    for (size_t i = 0; i < tensor->count; i++)
        tensor->values[i] = where->type->load(bytes + i * where->type->n_bytes);
    return CT_OK;
}

static ct_status read_notes(const source *s, const ct_json *entry, ct_tensors *out) {
    if (entry->kind != CT_JSON_OBJECT) return refuse(s, METADATA, "is not an object of strings");
    CT_TRY(ct_make(&out->notes, entry->n_children, s->path));
    for (const ct_json *c = entry->child; c != NULL; c = c->next) {
        if (c->kind != CT_JSON_STRING) return refuse(s, METADATA, "is not an object of strings");
        ct_tensors_note *note = &out->notes[out->n_notes++]; /* counted first, as tensors are */
        CT_TRY(ct_make_text(&note->name, c->key));
        CT_TRY(ct_make_text(&note->value, c->string));
    }
    return CT_OK;
}

static int compare_spans(const void *a, const void *b) {
    const span *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* The tensors fill the data without overlap, gap or rest. */
static ct_status check_spans(const source *s, span *spans, const ct_tensors *tensors) {
    qsort(spans, tensors->n, sizeof *spans, compare_spans);
    size_t at = 0;
    for (size_t i = 0; i < tensors->n; i++) {
        const char *name = tensors->items[spans[i].index].name;
        if (spans[i].begin < at) return refuse(s, name, "overlaps another one");
        if (spans[i].begin > at) return refuse(s, name, "there is a gap before its data");
        at = spans[i].end;
    }
    if (at == s->n_data) return CT_OK;
    return ct_fail(CT_IO, "%s: %zu bytes after the last tensor", s->path, s->n_data - at);
}

static int compare_names(const void *a, const void *b) {
    return strcmp((*(const ct_tensor *const *)a)->name, (*(const ct_tensor *const *)b)->name);
}

static ct_status sort_names(const char *path, ct_tensors *out) {
    CT_TRY(ct_make(&out->by_name, out->n, path));
    for (size_t i = 0; i < out->n; i++) out->by_name[i] = &out->items[i];
    qsort(out->by_name, out->n, sizeof *out->by_name, compare_names);
    return CT_OK;
}

static ct_status read_entries(const source *s, const ct_json *header, ct_tensors *out) {
    CT_SCOPED_BLOCK(span) spans = NULL;
    CT_TRY(ct_make(&out->items, header->n_children, s->path));
    CT_TRY(ct_make(&spans, header->n_children, s->path));
    for (const ct_json *e = header->child; e != NULL; e = e->next) {
        if (strcmp(e->key, METADATA) == 0) {
            CT_TRY(read_notes(s, e, out));
            continue;
        }
        size_t k = out->n++; /* counted first: a failed one is freed with the others */
        spans[k].index = k;
        CT_TRY(read_tensor(s, e, &out->items[k], &spans[k]));
    }
    CT_TRY(check_spans(s, spans, out));
    return sort_names(s->path, out);
}

ct_status ct_tensors_read(const char *path, ct_tensors *out) {
    CT_SCOPED(ct_blob) blob = {0};
    CT_SCOPED(ct_tensors) tensors = {0};
    CT_SCOPED_HANDLE(ct_json) header = NULL;
    CT_TRY(ct_file_read(path, CT_MAX_MODEL_BYTES, &blob));
    if (blob.n < 8) return ct_fail(CT_IO, "%s: too short for a safetensors file", path);
    uint64_t n_header = load_u64(blob.bytes);
    if (n_header > blob.n - 8 || n_header > MAX_HEADER_BYTES)
        return ct_fail(CT_IO, "%s: not a safetensors file, or cut off in its header", path);
    CT_TRY(ct_json_parse((const char *)blob.bytes + 8, (size_t)n_header, path, &header));
    if (header->kind != CT_JSON_OBJECT)
        return ct_fail(CT_IO, "%s: the safetensors header is not an object", path);
    source s = {path, blob.bytes + 8 + n_header, blob.n - 8 - (size_t)n_header};
    CT_TRY(read_entries(&s, header, &tensors));
    ct_move(out, &tensors);
    return CT_OK;
}

void ct_tensors_free(ct_tensors *tensors) {
    for (size_t i = 0; i < tensors->n; i++) {
        ct_free(tensors->items[i].name);
        ct_free(tensors->items[i].values);
    }
    for (size_t i = 0; i < tensors->n_notes; i++) {
        ct_free(tensors->notes[i].name);
        ct_free(tensors->notes[i].value);
    }
    ct_free(tensors->notes);
    ct_free(tensors->by_name);
    ct_free(tensors->items);
    *tensors = (ct_tensors){0};
}

const ct_tensor *ct_tensors_find(const ct_tensors *tensors, const char *name) {
    const ct_tensor wanted = {.name = (char *)name}, *key = &wanted;
    const ct_tensor **found =
        bsearch(&key, tensors->by_name, tensors->n, sizeof *tensors->by_name, compare_names);
    return found != NULL ? *found : NULL;
}

const char *ct_tensors_note_of(const ct_tensors *tensors, const char *name) {
    for (size_t i = 0; i < tensors->n_notes; i++)
        if (strcmp(tensors->notes[i].name, name) == 0) return tensors->notes[i].value;
    return NULL;
}

static ct_status check_item(const char *path, const ct_tensor *item) {
    bool good = item->n_dims >= 0 && item->n_dims <= CT_TENSOR_MAX_DIMS;
    size_t count = 1;
    for (int d = 0; good && d < item->n_dims; d++) {
        good = item->dims[d] == 0 || count <= SIZE_MAX / sizeof(double) / item->dims[d];
        count *= item->dims[d];
    }
    if (good && count == item->count && strcmp(item->name, METADATA) != 0) return CT_OK;
    return ct_fail(CT_INVAL, "%s: tensor '%.200s' of %zu values cannot be written: %s", path,
                   item->name, item->count, good ? "wrong count or name" : "wrong shape");
}

static void add_notes(const ct_tensors_note *notes, size_t n, ct_text *out) {
    ct_text_add(out, "\"" METADATA "\":{");
    for (size_t i = 0; i < n; i++) {
        if (i > 0) ct_text_add(out, ",");
        ct_json_add_string(out, notes[i].name);
        ct_text_add(out, ":");
        ct_json_add_string(out, notes[i].value);
    }
    ct_text_add(out, "}");
}

/* The header, padded with blanks so that the data begin at a multiple of 8. */
static ct_status make_header(const char *path, const ct_tensor *items, size_t n,
                             const ct_tensors_note *notes, size_t n_notes, ct_text *out) {
    size_t offset = 0;
    ct_text_add(out, "{");
    if (n_notes > 0) add_notes(notes, n_notes, out);
    for (size_t i = 0; i < n; i++) {
        CT_TRY(check_item(path, &items[i]));
        if (i > 0 || n_notes > 0) ct_text_add(out, ",");
        ct_json_add_string(out, items[i].name);
        ct_text_add(out, ":{\"dtype\":\"F32\",\"shape\":[");
        for (int d = 0; d < items[i].n_dims; d++)
            ct_text_add(out, "%s%zu", d > 0 ? "," : "", items[i].dims[d]);
        size_t end = offset + items[i].count * sizeof(float);
        ct_text_add(out, "],\"data_offsets\":[%zu,%zu]}", offset, end);
        offset = end;
    }
    ct_text_add(out, "}");
    while (!out->failed && out->n % 8 != 0) ct_text_add(out, " ");
    CT_TRY(ct_text_status(out));
    CT_SCOPED_HANDLE(ct_json) again = NULL;
    /* two tensors of one name would make a file nobody can read */
    return ct_json_parse(out->chars, out->n, path, &again);
}

ct_status ct_tensors_write(const char *path, const ct_tensor *items, size_t n) {
    return ct_tensors_write_noted(path, items, n, NULL, 0);
}

ct_status ct_tensors_write_noted(const char *path, const ct_tensor *items, size_t n,
                                 const ct_tensors_note *notes, size_t n_notes) {
    CT_SCOPED(ct_text) header = {0};
    CT_SCOPED_BY(ct_writer_abandon, ct_writer *) writer = NULL;
    CT_TRY(make_header(path, items, n, notes, n_notes, &header));
    CT_TRY(ct_writer_open(path, &writer));
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)((uint64_t)header.n >> (8 * i));
    CT_TRY(ct_writer_add(writer, length, sizeof length));
    CT_TRY(ct_writer_add(writer, header.chars, header.n));
    for (size_t i = 0; i < n; i++)
        CT_TRY(ct_writer_add_floats(writer, items[i].values, items[i].count));
    return ct_writer_commit(&writer);
}
