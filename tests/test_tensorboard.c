/* The event file against metrics.jsonl, read by a reader of its own: framing, checksums (with the
 * published check value of CRC-32C), protobuf fields, one point for every number. */
#include "program.h"

#define CT_TENSORBOARD_FILE "events.out.tfevents.0.crosstalk"

enum { MAX_EVENTS = 16, MAX_VALUES = 16 };

typedef struct event {
    double wall_s;
    long step;
    char version[32];
    int n_values;
    struct {
        char tag[64];
        float value;
    } values[MAX_VALUES];
} event;

static uint32_t table[256];

static void fill_table(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? 0x82f63b78u ^ c >> 1 : c >> 1;
        table[i] = c;
    }
}

static uint32_t castagnoli(const uint8_t *bytes, size_t n) {
    uint32_t c = ~0u;
    while (n-- > 0) c = table[(c ^ *bytes++) & 255] ^ c >> 8;
    return ~c;
}

static uint64_t little(const uint8_t *at, int n) {
    uint64_t value = 0;
    for (int k = n - 1; k >= 0; k--) value = value << 8 | at[k];
    return value;
}

static bool checksum_is_right(const uint8_t *bytes, size_t n, const uint8_t *stored) {
    uint32_t c = castagnoli(bytes, n);
    return (uint32_t)little(stored, 4) == (((c >> 15) | (c << 17)) + 0xa282ead8u);
}

static uint64_t varint(const uint8_t **at) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

static void read_value(event *e, const uint8_t *at, const uint8_t *end) {
    if (e->n_values == MAX_VALUES) return;
    for (; at < end;) {
        uint64_t key = varint(&at);
        if (key == (1 << 3 | 2)) {
            size_t n = (size_t)varint(&at);
            snprintf(e->values[e->n_values].tag, 64, "%.*s", (int)n, (const char *)at);
            at += n;
        } else if (key == (2 << 3 | 5)) {
            uint32_t bits = (uint32_t)little(at, 4);
            memcpy(&e->values[e->n_values].value, &bits, 4);
            at += 4;
        } else {
            CHECK(!"a field of Value that nobody knows");
            return;
        }
    }
    e->n_values++;
}

static void read_event(event *e, const uint8_t *at, const uint8_t *end) {
    while (at < end) {
        uint64_t key = varint(&at);
        if (key == (1 << 3 | 1)) {
            uint64_t bits = little(at, 8);
            memcpy(&e->wall_s, &bits, 8);
            at += 8;
        } else if (key == (2 << 3 | 0)) {
            e->step = (long)varint(&at);
        } else {
            size_t n = (size_t)varint(&at);
            const uint8_t *stop = at + n;
            if (key == (3 << 3 | 2)) snprintf(e->version, 32, "%.*s", (int)n, (const char *)at);
            for (const uint8_t *v = at; key == (5 << 3 | 2) && v < stop;) {
                CHECK(varint(&v) == (1 << 3 | 2));
                size_t length = (size_t)varint(&v);
                read_value(e, v, v + length);
                v += length;
            }
            at = stop;
        }
    }
}

/* Every record of the file; -1 where it is damaged. */
static int read_events(const char *path, event *events) {
    ct_blob blob = {0};
    if (ct_file_read(path, 1 << 20, &blob) != CT_OK) return -1;
    int n = 0;
    size_t at = 0;
    while (n >= 0 && at < blob.n) {
        uint64_t length = at + 16 <= blob.n ? little(blob.bytes + at, 8) : UINT64_MAX;
        const uint8_t *body = blob.bytes + at + 12;
        bool whole = length <= blob.n && at + 16 + length <= blob.n && n < MAX_EVENTS &&
                     checksum_is_right(blob.bytes + at, 8, blob.bytes + at + 8) &&
                     checksum_is_right(body, length, body + length);
        if (whole) read_event(&events[n], body, body + length);
        at += 16 + (whole ? (size_t)length : 0);
        n = whole ? n + 1 : -1;
    }
    ct_blob_free(&blob);
    return n;
}

static float value_of(const event *e, const char *tag) {
    for (int k = 0; k < e->n_values; k++)
        if (strcmp(e->values[k].tag, tag) == 0) return e->values[k].value;
    return NAN;
}

/* The file's events are the lines of metrics.jsonl, `n_epochs` of them. */
static void events_match(const char *dir, int n_epochs) {
    static event events[MAX_EVENTS];
    memset(events, 0, sizeof events);
    char path[256], metrics[256];
    snprintf(path, sizeof path, "%s/%s", dir, CT_TENSORBOARD_FILE);
    snprintf(metrics, sizeof metrics, "%s/metrics.jsonl", dir);
    int n = read_events(path, events);
    CHECK(n == n_epochs + 1);
    CHECK(strcmp(events[0].version, "brain.Event:2") == 0);
    for (int k = 1; k < n; k++) {
        ct_json *line = read_json(metrics, k - 1);
        bool is_evaluated = !isnan(number_of(line, "consensus_accuracy"));
        CHECK(events[k].step == (long)number_of(line, "epoch"));
        CHECK(events[k].wall_s >= events[k - 1].wall_s && events[k].wall_s > 1.7e9);
        CHECK(value_of(&events[k], "loss/cross_entropy") == (float)number_of(line, "ce"));
        CHECK(value_of(&events[k], "training/learning_rate") == (float)number_of(line, "lr"));
        CHECK(isnan(value_of(&events[k], "accuracy/consensus")) == !is_evaluated);
        if (is_evaluated)
            CHECK(value_of(&events[k], "accuracy/consensus") ==
                  (float)number_of(line, "consensus_accuracy"));
        bool are_all = !isnan(number_of(line, "local_accuracy_mean")); /* and min and max */
        CHECK(events[k].n_values == 6 + (is_evaluated ? 3 : 0) + (are_all ? 3 : 0));
        ct_json_free(&line);
    }
}

static void the_check_value_is_the_published_one(void) {
    CHECK(castagnoli((const uint8_t *)"123456789", 9) == 0xe3069283u);
}

static void every_line_of_the_metrics_is_an_event(void) {
    succeeds(TINY "--force --epochs 3 --eval-every 2 --eval-agents 2 --tensorboard");
    events_match("run", 3);
}

static void a_run_that_goes_on_has_no_epoch_twice(void) {
    succeeds(TINY "--force --epochs 4 --iterations 1 --eval-agents 1 --tensorboard "
                  "--checkpoint-every 1");
    succeeds("train --quiet --resume run --iterations 0 --tensorboard");
    events_match("run", 4);
    succeeds(TINY "--force --epochs 4 --iterations 1 --eval-agents 1 --checkpoint-every 1");
    CHECK(!ct_file_exists("run/" CT_TENSORBOARD_FILE));
    succeeds("train --quiet --resume run --iterations 0 --tensorboard");
    events_match("run", 4);
}

static void every_seed_has_its_own_file(void) {
    succeeds(TINY "--force --seeds 1,2 --eval-agents 1 --tensorboard");
    events_match("run/seed-1", 2);
    events_match("run/seed-2", 2);
    CHECK(!ct_file_exists("run/" CT_TENSORBOARD_FILE));
}

int main(void) {
    fill_table();
    if (CT_PROGRAM[0] == '\0' || !enter_folder()) return 1;
    TEST(the_check_value_is_the_published_one);
    TEST(every_line_of_the_metrics_is_an_event);
    TEST(a_run_that_goes_on_has_no_epoch_twice);
    TEST(every_seed_has_its_own_file);
    leave_folder();
    return test_report();
}
