/* Named tensors in one file, the safetensors layout: 8 bytes little-endian header length, a JSON
 * header {name: {dtype, shape, data_offsets}}, then the data. PyTorch state dicts load both ways.
 */
#ifndef CT_UTIL_SAFETENSORS_H
#define CT_UTIL_SAFETENSORS_H

#include "util/status.h"

#define CT_TENSOR_MAX_DIMS 8

typedef struct ct_tensor {
    char *name;
    int n_dims;
    size_t dims[CT_TENSOR_MAX_DIMS];
    size_t count;
    float *values; /* [count] */
} ct_tensor;

/* What a file says besides its tensors: __metadata__, strings by name. */
typedef struct ct_tensors_note {
    char *name, *value;
} ct_tensors_note;

typedef struct ct_tensors {
    ct_tensor *items;
    size_t n;
    const ct_tensor **by_name; /* [n] sorted */
    ct_tensors_note *notes;    /* [n_notes] in the file's order */
    size_t n_notes;
} ct_tensors;

/* Reads F32, and F64, F16, BF16 rounded to float. Every header field is checked against the file's
 * size; overlapping, truncated or unknown content is refused (CT_IO), naming the tensor. */
ct_status ct_tensors_read(const char *path, ct_tensors *out);
void ct_tensors_free(ct_tensors *tensors);
const ct_tensor *ct_tensors_find(const ct_tensors *tensors, const char *name);
/* The value of a note; NULL: there is none of this name. */
const char *ct_tensors_note_of(const ct_tensors *tensors, const char *name);

/* Writes F32 atomically, in the order given. Values are only read. */
ct_status ct_tensors_write(const char *path, const ct_tensor *items, size_t n);
/* The same, and what there is to say about them. */
ct_status ct_tensors_write_noted(const char *path, const ct_tensor *items, size_t n,
                                 const ct_tensors_note *notes, size_t n_notes);

#endif
