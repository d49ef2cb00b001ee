#include "model/proto.h"

#include <string.h>

#include "util/memory.h"

enum { VARINT = 0, BYTES = 2, FIXED32 = 5 }; /* wire types */

void ct_proto_free(ct_proto *message) {
    ct_free(message->bytes);
    *message = (ct_proto){0};
}

ct_status ct_proto_status(const ct_proto *message) {
    return message->failed ? ct_no_memory("an ONNX graph") : CT_OK;
}

static void add(ct_proto *m, const void *bytes, size_t n) {
    if (m->failed) return;
    if (m->capacity - m->n < n) {
        size_t capacity = 2 * (m->capacity + n) + 64;
        uint8_t *grown = ct_grow(m->bytes, m->capacity, capacity, 1);
        m->failed = grown == NULL;
        if (m->failed) return;
        m->bytes = grown;
        m->capacity = capacity;
    }
    if (n > 0) memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

/* Seven bits a byte, the lowest first; the eighth says that more follow. */
static void add_varint(ct_proto *m, uint64_t value) {
    uint8_t bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) bytes[n++] = (uint8_t)(value | 0x80);
    bytes[n++] = (uint8_t)value;
    add(m, bytes, n);
}

static void add_key(ct_proto *m, int field, int type) {
    add_varint(m, (uint64_t)field << 3 | (uint64_t)type);
}

void ct_proto_whole(ct_proto *m, int field, int64_t value) {
    add_key(m, field, VARINT);
    add_varint(m, (uint64_t)value);
}

void ct_proto_float(ct_proto *m, int field, float value) {
    uint32_t bits;
    uint8_t bytes[4];
    memcpy(&bits, &value, sizeof bits);
    for (int b = 0; b < 4; b++) bytes[b] = (uint8_t)(bits >> (8 * b));
    add_key(m, field, FIXED32);
    add(m, bytes, sizeof bytes);
}

void ct_proto_begin(ct_proto *m, int field, size_t n) {
    add_key(m, field, BYTES);
    add_varint(m, n);
}

void ct_proto_text(ct_proto *m, int field, const char *text) {
    ct_proto_begin(m, field, strlen(text));
    add(m, text, strlen(text));
}

void ct_proto_message(ct_proto *m, int field, ct_proto *inner) {
    ct_proto_begin(m, field, inner->n);
    add(m, inner->bytes, inner->n);
    m->failed = m->failed || inner->failed;
    ct_proto_free(inner);
}
