/* Layout of the file: TensorFlow's record format (length, its checksum, bytes, their checksum) with
 * one Event message a record; field numbers are those of event.proto and summary.proto. */
#include "run/tensorboard.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/file.h"
#include "util/json.h"
#include "util/memory.h"
#include "util/text.h"

static const struct {
    const char *metric, *tag;
} tags[] = {
    {"consensus_accuracy", "accuracy/consensus"},
    {"local_accuracy_mean", "accuracy/local_mean"},
    {"local_accuracy_min", "accuracy/local_worst"},
    {"local_accuracy_max", "accuracy/local_best"},
    {"train_accuracy", "accuracy/train"},
    {"ce", "loss/cross_entropy"},
    {"mv", "loss/model_variant"},
    {"dv", "loss/data_variant"},
    {"consensus_loss", "loss/consensus_test"},
    {"consensus_distance", "agents/consensus_distance"},
    {"bytes_sent_per_agent", "agents/bytes_sent"},
    {"lr", "training/learning_rate"},
};
enum { N_TAGS = sizeof tags / sizeof *tags };

/* Room for an event of all tags; put_*() below never write more. */
typedef struct message {
    uint8_t bytes[2048];
    size_t n;
} message;

typedef enum wire { WIRE_VARINT = 0, WIRE_8_BYTES = 1, WIRE_LENGTH = 2, WIRE_4_BYTES = 5 } wire;

static void put_bytes(message *m, const void *bytes, size_t n) {
    if (n > sizeof m->bytes - m->n) return;
    memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

static void put_varint(message *m, uint64_t value) {
    for (; value >= 0x80; value >>= 7) put_bytes(m, &(uint8_t){(uint8_t)(value | 0x80)}, 1);
    put_bytes(m, &(uint8_t){(uint8_t)value}, 1);
}

/* Little-endian on any machine. */
static void put_fixed(message *m, uint64_t bits, int n_bytes) {
    for (int k = 0; k < n_bytes; k++) put_bytes(m, &(uint8_t){(uint8_t)(bits >> 8 * k)}, 1);
}

static void put_key(message *m, int field, wire type) {
    put_varint(m, (uint64_t)field << 3 | (uint64_t)type);
}

static void put_block(message *m, int field, const void *bytes, size_t n) {
    put_key(m, field, WIRE_LENGTH);
    put_varint(m, n);
    put_bytes(m, bytes, n);
}

static void put_double(message *m, int field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, WIRE_8_BYTES);
    put_fixed(m, bits, 8);
}

static void put_float(message *m, int field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, WIRE_4_BYTES);
    put_fixed(m, bits, 4);
}

/* CRC-32C (Castagnoli), which the format wants where zlib's is another one. */
static uint32_t crc32c(const uint8_t *bytes, size_t n) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static uint32_t masked(uint32_t crc) {
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_record(message *to, const message *event) {
    size_t length_at = to->n;
    put_fixed(to, event->n, 8);
    put_fixed(to, masked(crc32c(to->bytes + length_at, 8)), 4);
    put_bytes(to, event->bytes, event->n);
    put_fixed(to, masked(crc32c(event->bytes, event->n)), 4);
}

/* The record that every event file begins with. */
static void put_version(message *to, double wall_s) {
    static const char version[] = "brain.Event:2";
    message event = {.n = 0};
    put_double(&event, 1, wall_s);
    put_block(&event, 3, version, strlen(version));
    put_record(to, &event);
}

static void put_value(message *summary, const char *tag, double number) {
    message value = {.n = 0};
    put_block(&value, 1, tag, strlen(tag));
    put_float(&value, 2, (float)number);
    put_block(summary, 1, value.bytes, value.n);
}

static double number_of(const ct_json *line, const char *key) {
    const ct_json *member = ct_json_get(line, key);
    return member != NULL && member->kind == CT_JSON_NUMBER ? member->number : 0;
}

static void put_epoch(message *to, const ct_json *line, double wall_s) {
    message event = {.n = 0}, summary = {.n = 0};
    for (int k = 0; k < N_TAGS; k++) {
        const ct_json *value = ct_json_get(line, tags[k].metric);
        if (value != NULL && value->kind == CT_JSON_NUMBER)
            put_value(&summary, tags[k].tag, value->number);
    }
    put_double(&event, 1, wall_s);
    put_key(&event, 2, WIRE_VARINT);
    put_varint(&event, (uint64_t)number_of(line, "epoch"));
    put_block(&event, 5, summary.bytes, summary.n);
    put_record(to, &event);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* `seconds_now`: of the run; a line that was measured earlier gets its own time. */
static ct_status add_line(const char *path, const char *text, size_t n, double seconds_now) {
    ct_json *line = NULL;
    CT_TRY(ct_json_parse(text, n, "metrics.jsonl", &line));
    double earlier_s = seconds_now >= 0 ? seconds_now - number_of(line, "seconds") : 0;
    message records = {.n = 0};
    if (!ct_file_exists(path)) put_version(&records, now_s() - earlier_s);
    put_epoch(&records, line, now_s() - earlier_s);
    ct_json_free(&line);
    return ct_file_append(path, records.bytes, records.n);
}

ct_status ct_tensorboard_add(const char *dir, const char *line) {
    char *path = ct_path_join(dir, CT_TENSORBOARD_FILE);
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
    ct_status status = add_line(path, line, strlen(line), -1);
    ct_free(path);
    return status;
}

/* Seconds of the run in the last line. */
static ct_status last_seconds(const char *text, size_t n, double *out) {
    size_t end = n;
    while (end > 0 && text[end - 1] == '\n') end--;
    size_t begin = end;
    while (begin > 0 && text[begin - 1] != '\n') begin--;
    ct_json *line = NULL;
    CT_TRY(ct_json_parse(text + begin, end - begin, "metrics.jsonl", &line));
    *out = number_of(line, "seconds");
    ct_json_free(&line);
    return CT_OK;
}

static ct_status add_lines(const char *path, const char *text, size_t n) {
    double seconds_now = 0;
    CT_TRY(last_seconds(text, n, &seconds_now));
    for (const char *at = text; at < text + n;) {
        const char *end = memchr(at, '\n', (size_t)(text + n - at));
        if (end == NULL) end = text + n;
        CT_TRY(add_line(path, at, (size_t)(end - at), seconds_now));
        at = end + 1;
    }
    return CT_OK;
}

static ct_status rewrite(const char *metrics, const char *path) {
    if (remove(path) != 0 && errno != ENOENT)
        return ct_fail(CT_IO, "%s: %s", path, strerror(errno));
    if (!ct_file_exists(metrics)) return CT_OK;
    ct_blob blob = {0};
    CT_TRY(ct_file_read(metrics, SIZE_MAX / 2, &blob));
    ct_status status = blob.n > 0 ? add_lines(path, (const char *)blob.bytes, blob.n) : CT_OK;
    ct_blob_free(&blob);
    return status;
}

ct_status ct_tensorboard_rewrite(const char *dir) {
    char *metrics = ct_path_join(dir, "metrics.jsonl");
    char *path = ct_path_join(dir, CT_TENSORBOARD_FILE);
    bool ok = metrics != NULL && path != NULL;
    ct_status status = ok ? rewrite(metrics, path) : ct_fail(CT_NOMEM, "no memory for a path");
    ct_free(path);
    ct_free(metrics);
    return status;
}
