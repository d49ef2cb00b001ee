/* The metrics once more as TensorBoard's event file. Step = epoch. What was not measured in an epoch
 * has no point there.
 * Layout of the file: TensorFlow's record format (length, its checksum, bytes, their checksum) with
 * one Event message a record; field numbers are those of event.proto and summary.proto. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "record/record_internal.h"
#include "util/memory.h"

static const struct {
    ct_metric_id metric;
    const char *tag;
} tags[] = {
    {CT_METRIC_CONSENSUS_ACCURACY, "accuracy/consensus"},
    {CT_METRIC_AVERAGED_ACCURACY, "accuracy/averaged"},
    {CT_METRIC_VALIDATION_ACCURACY, "accuracy/validation"},
    {CT_METRIC_LOCAL_MEAN, "accuracy/local_mean"},
    {CT_METRIC_LOCAL_MIN, "accuracy/local_worst"},
    {CT_METRIC_LOCAL_MAX, "accuracy/local_best"},
    {CT_METRIC_TRAIN_ACCURACY, "accuracy/train"},
    {CT_METRIC_CE, "loss/cross_entropy"},
    {CT_METRIC_MV, "loss/model_variant"},
    {CT_METRIC_DV, "loss/data_variant"},
    {CT_METRIC_CONSENSUS_LOSS, "loss/consensus_test"},
    {CT_METRIC_DISTANCE, "agents/consensus_distance"},
    {CT_METRIC_BYTES, "agents/bytes_sent"},
    {CT_METRIC_LR, "training/learning_rate"},
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

static void put_epoch(message *to, const ct_json *line, double wall_s) {
    message event = {.n = 0}, summary = {.n = 0};
    for (int k = 0; k < N_TAGS; k++) {
        double value = ct_json_number(line, ct_metrics[tags[k].metric].key);
        if (!isnan(value)) put_value(&summary, tags[k].tag, value);
    }
    put_double(&event, 1, wall_s);
    put_key(&event, 2, WIRE_VARINT);
    put_varint(&event, (uint64_t)fmax(0, ct_json_number(line, "epoch")));
    put_block(&event, 5, summary.bytes, summary.n);
    put_record(to, &event);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static ct_status parse(const char *text, size_t n, ct_json **out) {
    return ct_json_parse(text, n, ct_record_name(CT_FILE_METRICS), out);
}

/* Measured `age_s` ago. */
static ct_status add_line(const char *path, const ct_json *line, double age_s) {
    message records = {.n = 0};
    if (!ct_file_exists(path)) put_version(&records, now_s() - age_s);
    put_epoch(&records, line, now_s() - age_s);
    return ct_file_append(path, records.bytes, records.n);
}

ct_status ct_tensorboard_add(const char *dir, const char *text, size_t n) {
    CT_SCOPED_HANDLE(ct_json) line = NULL;
    CT_TRY(parse(text, n, &line));
    return add_line(ct_record_path(dir, CT_FILE_EVENTS).text, line, 0);
}

/* A line that was measured earlier in the run than the last one gets its own time. */
static ct_status add_lines(const char *path, const ct_blob *blob) {
    CT_SCOPED_HANDLE(ct_json) newest = NULL;
    CT_TRY(ct_metrics_last(ct_record_name(CT_FILE_METRICS), blob, &newest));
    double seconds_now = fmax(0, ct_json_number(newest, "seconds"));
    ct_lines lines = ct_blob_lines(blob);
    for (char *line; (line = ct_lines_next(&lines)) != NULL;) {
        CT_SCOPED_HANDLE(ct_json) json = NULL;
        CT_TRY(parse(line, strlen(line), &json));
        CT_TRY(add_line(path, json, seconds_now - fmax(0, ct_json_number(json, "seconds"))));
    }
    return CT_OK;
}

ct_status ct_tensorboard_rewrite(const char *dir) {
    CT_SCOPED(ct_blob) blob = {0};
    CT_TRY(ct_record_remove(dir, CT_FILE_EVENTS));
    if (!ct_record_has(dir, CT_FILE_METRICS)) return CT_OK;
    CT_TRY(ct_file_read(ct_record_path(dir, CT_FILE_METRICS).text, CT_MAX_RECORD_BYTES, &blob));
    return add_lines(ct_record_path(dir, CT_FILE_EVENTS).text, &blob);
}
