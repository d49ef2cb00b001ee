/* DLPack 1.x, how frameworks hand tensors to each other: layout and names of its published ABI. */
#ifndef CT_API_DLPACK_H
#define CT_API_DLPACK_H

#include <stdint.h>

enum { CT_DL_MAJOR = 1, CT_DL_MINOR = 0 };
enum { CT_DL_CPU = 1, CT_DL_CUDA = 2 }; /* device_type */
enum { CT_DL_FLOAT = 2 };               /* code */

typedef struct ct_dl_device {
    int32_t device_type;
    int32_t device_id;
} ct_dl_device;

typedef struct ct_dl_type {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} ct_dl_type;

typedef struct ct_dl_tensor {
    void *data;
    ct_dl_device device;
    int32_t ndim;
    ct_dl_type dtype;
    int64_t *shape;   /* [ndim] */
    int64_t *strides; /* [ndim], in elements */
    uint64_t byte_offset;
} ct_dl_tensor;

struct DLManagedTensorVersioned {
    struct {
        uint32_t major, minor;
    } version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    ct_dl_tensor dl_tensor;
};

#endif
