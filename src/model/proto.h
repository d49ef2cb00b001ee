/* Messages of Protocol Buffers, as much as an ONNX file needs: a message is a row of fields, each a
 * key (field number << 3 | wire type) and a value. A message within another is its bytes. */
#ifndef CT_MODEL_PROTO_H
#define CT_MODEL_PROTO_H

#include "util/status.h"

typedef struct ct_proto {
    uint8_t *bytes;
    size_t n, capacity;
    bool failed; /* memory ran out: it is incomplete */
} ct_proto;

void ct_proto_free(ct_proto *message);
/* CT_OK, or CT_NOMEM if something could not be added. */
ct_status ct_proto_status(const ct_proto *message);

void ct_proto_whole(ct_proto *message, int field, int64_t value);
void ct_proto_float(ct_proto *message, int field, float value);
void ct_proto_text(ct_proto *message, int field, const char *text);
/* Adds `inner` and frees it. */
void ct_proto_message(ct_proto *message, int field, ct_proto *inner);
/* The beginning of a field of n bytes, which follow. */
void ct_proto_begin(ct_proto *message, int field, size_t n);

#endif
