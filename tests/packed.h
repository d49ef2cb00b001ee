/* Rows that are packed on one backend and on ref: payloads and public copies must have the same
 * bits. */
#ifndef CT_TESTS_PACKED_H
#define CT_TESTS_PACKED_H

#include "backend/backend.h"
#include "runs.h"
#include "test.h"
#include "util/memory.h"
#include "util/rng.h"

#define PACKED_ROWS 5

static const char *const packed_kinds[] = {
    "quantize:8",  "quantize:4",    "quantize:3", "quantize:2", "sign",       "top-k:0.1",
    "top-k:0.003", "random-k:0.05", "top-k:1",    "random-k:1", "top-k8:0.1", "top-k8:0.003"};
enum { N_PACKED_KINDS = sizeof packed_kinds / sizeof *packed_kinds };

/* What takes rows that are models: compressors of tensors. */
static const char *const matrix_kinds[] = {"low-rank:1", "low-rank:2",  "low-rank:4",
                                           "low-rank:7", "low-rank:19", "low-rank:256"};
enum { N_MATRIX_KINDS = sizeof matrix_kinds / sizeof *matrix_kinds };

static inline void packed_open_model(const char *name, ct_graph *graph) {
    ct_model_spec spec = {.name = name, .input = {1, 28, 28}, .n_classes = 10};
    REQUIRE_OK(ct_graph_create(&spec, graph));
}

typedef struct packed_banks {
    ct_backend *backend;
    ct_bank x, known, packed, copy; /* copy: what a receiver makes of the payloads */
    ct_compress_key keys[PACKED_ROWS];
    int n_at_once; /* rows of a call; 0: all */
} packed_banks;

static inline void packed_create(const char *backend, const ct_compressor *how, packed_banks *b) {
    ct_backend_options options = {.n_threads = 2};
    memset(b, 0, sizeof *b);
    REQUIRE_OK(ct_backend_create(backend, &options, &b->backend));
    CHECK_OK(ct_bank_create(b->backend, PACKED_ROWS, 0, how->n, &b->x));
    CHECK_OK(ct_bank_create(b->backend, PACKED_ROWS, 0, how->n, &b->known));
    CHECK_OK(ct_bank_create(b->backend, PACKED_ROWS, 0, how->n, &b->copy));
    CHECK_OK(ct_bank_create(b->backend, PACKED_ROWS, 0, ct_packed_columns(how), &b->packed));
}

static inline void packed_free(packed_banks *b) {
    ct_bank_free(&b->x);
    ct_bank_free(&b->known);
    ct_bank_free(&b->copy);
    ct_bank_free(&b->packed);
    ct_backend_free(&b->backend);
}

/* Values of all sizes, in the last row with many ties, in the first many zeros. */
static inline void packed_values(size_t n, int row, int step, float *out) {
    ct_rng rng;
    ct_rng_init(&rng, 7, CT_RNG_TEST, (uint32_t)row, (uint32_t)step, 0);
    for (size_t i = 0; i < n; i++) {
        double value = ct_rng_normal(&rng) * exp(2 * ct_rng_normal(&rng));
        if (row == PACKED_ROWS - 1) value = round(2 * ct_rng_normal(&rng)) / 2;
        if (row == 0 && ct_rng_below(&rng, 3) > 0) value = 0;
        out[i] = (float)value;
    }
}

/* Says where they differ first, and how often. */
static inline bool packed_row_is_same(const uint32_t *a, const uint32_t *b, size_t n, int row) {
    size_t first = n, n_others = 0;
    for (size_t i = n; i-- > 0;) {
        if (a[i] == b[i]) continue;
        n_others += first < n;
        first = i;
    }
    if (first == n) return true;
    float values[2];
    memcpy(&values[0], &a[first], sizeof *values);
    memcpy(&values[1], &b[first], sizeof *values);
    printf("    row %d: word %zu of %zu should be %08x (%g) and is %08x (%g), and %zu others\n",
           row, first, n, a[first], (double)values[0], b[first], (double)values[1], n_others);
    return false;
}

/* a: what it should be. */
static inline bool packed_is_same(const ct_bank *a, const ct_bank *b) {
    bool is_same = true;
    uint32_t *one = ct_new(uint32_t, a->n), *other = ct_new(uint32_t, a->n);
    for (int row = 0; row < PACKED_ROWS; row++) {
        CHECK_OK(ct_bank_read(a, row, 0, a->n, (float *)(void *)one));
        CHECK_OK(ct_bank_read(b, row, 0, a->n, (float *)(void *)other));
        is_same = packed_row_is_same(one, other, a->n, row) && is_same;
    }
    ct_free(one);
    ct_free(other);
    return is_same;
}

/* One round: rows are packed, all but the first and last (which stays) are received. */
static inline void packed_round(const ct_compressor *how, int step, packed_banks *b) {
    float *row = ct_new(float, how->n);
    for (int i = 0; i < PACKED_ROWS; i++) {
        packed_values(how->n, i, step, row);
        CHECK_OK(ct_bank_write(&b->x, i, 0, how->n, row));
        b->keys[i] = (ct_compress_key){{11, 12}, (uint32_t)step, 3, (uint32_t)i};
    }
    ct_free(row);
    ct_packing some = {how, b->keys, 1, PACKED_ROWS - 2};
    int n_at_once = b->n_at_once > 0 ? b->n_at_once : PACKED_ROWS;
    CHECK_OK(ct_step_begin(b->backend));
    for (int first = 0; first < PACKED_ROWS; first += n_at_once) {
        int left = PACKED_ROWS - first;
        ct_packing these = {how, b->keys, first, left < n_at_once ? left : n_at_once};
        CHECK_OK(ct_bank_compress(&these, &b->x, &b->known, &b->packed));
    }
    CHECK_OK(ct_bank_decompress(&some, &b->packed, &b->copy));
    CHECK_OK(ct_step_end(b->backend));
}

/* Three rounds: the second has something to feed back, the third replays what the second recorded. */
static inline void packed_compare_groups(const char *backend, int n_at_once,
                                         const ct_compressor *how, const char *name) {
    packed_banks ref, other;
    packed_create("ref", how, &ref);
    packed_create(backend, how, &other);
    other.n_at_once = n_at_once;
    for (int step = 0; step < 3; step++) {
        packed_round(how, step, &ref);
        packed_round(how, step, &other);
        bool is_same = packed_is_same(&ref.packed, &other.packed);
        bool has_same = packed_is_same(&ref.known, &other.known);
        bool gave_same = packed_is_same(&ref.copy, &other.copy);
        if (!is_same || !has_same || !gave_same)
            printf("    %s of %zu values, round %d on %s: payloads %s, copies %s, received %s\n",
                   name, how->n, step, backend, is_same ? "same" : "differ",
                   has_same ? "same" : "differ", gave_same ? "same" : "differ");
        CHECK(is_same && has_same && gave_same);
    }
    packed_free(&ref);
    packed_free(&other);
}

static inline void packed_compare(const char *backend, const ct_compressor *how, const char *name) {
    packed_compare_groups(backend, 0, how, name);
}

/* Rates of their own, three rounds. */
static inline void packed_compare_steps(const char *backend) {
    ct_compressor how;
    packed_banks both[2];
    REQUIRE_OK(ct_compressor_parse("sign", 4097, &how));
    packed_create("ref", &how, &both[0]);
    packed_create(backend, &how, &both[1]);
    for (int step = 0; step < 3; step++) {
        ct_adaptive_steps steps = {0.1f, 0.999f, 1e-3f * (float)(step + 1), 1e-8f};
        for (int k = 0; k < 2; k++) {
            packed_round(&how, step, &both[k]); /* x: what is scaled */
            CHECK_OK(ct_step_begin(both[k].backend));
            CHECK_OK(ct_bank_scale_steps(&steps, &both[k].copy, &both[k].x));
            CHECK_OK(ct_step_end(both[k].backend));
        }
        CHECK(packed_is_same(&both[0].x, &both[1].x) &&
              packed_is_same(&both[0].copy, &both[1].copy));
    }
    packed_free(&both[0]);
    packed_free(&both[1]);
}

static inline void packed_compare_all(const char *backend) {
    static const size_t sizes[] = {1, 2, 31, 33, 255, 256, 257, 4095, 4097, 61706};
    ct_compressor how;
    for (int k = 0; k < N_PACKED_KINDS; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            REQUIRE_OK(ct_compressor_parse(packed_kinds[k], sizes[s], &how));
            packed_compare(backend, &how, packed_kinds[k]);
        }
    static const size_t widths[] = {2, 9, 65, 85, 257, 513};
    for (size_t s = 0; s < sizeof widths / sizeof *widths; s++) {
        ct_compressor_sums(10, widths[s], &how);
        packed_compare(backend, &how, "class sums");
    }
}

/* Rows that are models; resnet20 has more matrices than a call has rows. */
static inline void packed_compare_models(const char *backend) {
    static const char *const models[] = {"lenet5", "mlp:7", "resnet20"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        ct_graph graph = {0};
        ct_compressor how;
        packed_open_model(models[m], &graph);
        for (int k = 0; k < N_MATRIX_KINDS; k++) {
            REQUIRE_OK(ct_compressor_parse_model(matrix_kinds[k], &graph, &how));
            packed_compare(backend, &how, matrix_kinds[k]);
        }
        ct_graph_free(&graph);
    }
}

/* The mean of all agents' models; how far the first one is from it, squared. */
static inline double packed_means(const ct_run *run, double *means) {
    static float rows[5][RUN_MAX_COLUMNS];
    size_t n = run->graph.n_weights;
    double distance = 0;
    for (int i = 0; i < 5; i++) CHECK_OK(ct_bank_read(&run->agents.x, i, 0, n, rows[i]));
    for (size_t k = 0; k < n; k++) {
        means[k] = 0;
        for (int i = 0; i < 5; i++) means[k] += (double)rows[i][k] / 5;
        distance += pow((double)rows[0][k] - means[k], 2);
    }
    return distance;
}

/* Without gradients the average of x stays, and agents that start apart meet: what is left of their
 * distance after 200 iterations is less than `part` of that after the first. */
static inline void packed_check_meeting(const char *device, const char *form, const char *kind,
                                        double part, double rounding) {
    static ct_run run;
    static double before[RUN_MAX_COLUMNS], now[RUN_MAX_COLUMNS];
    char options[256];
    double first = 0, last = 0;
    bool failed_before = test_failed;
    test_failed = false;
    snprintf(options, sizeof options,
             "%s --lr 1e-12 --weight-decay 0 --init init-agents.safetensors --agents 5 "
             "--compress %s",
             form, kind);
    REQUIRE_OK(run_create(device, RUN_PLAIN, options, &run));
    REQUIRE(run.graph.n_weights <= RUN_MAX_COLUMNS);
    (void)packed_means(&run, before);
    for (int step = 0; step < 200; step++) {
        CHECK_OK(ct_run_iterate(&run, step));
        last = packed_means(&run, now);
        if (step == 0) first = last;
        for (size_t i = 0; i < run.graph.n_weights; i++) CHECK_NEAR(now[i], before[i], rounding);
    }
    CHECK(last < part * first);
    if (test_failed) printf("    %s, %s: %g, then %g\n", form, kind, first, last);
    test_failed = test_failed || failed_before;
    ct_run_clear(&run);
}

static inline void packed_check_compressor(const char *device, const char *kind) {
    bool is_slow = strstr(kind, ":0.0") != NULL || strcmp(kind, "low-rank:1") == 0;
    /* floats of order one, rounded 200 times */
    packed_check_meeting(device, "--algorithm dsgd", kind, is_slow ? 1 : 0.2, 3e-6);
}

static inline void packed_check_meetings(const char *device) {
    for (int k = 0; k < N_PACKED_KINDS; k++) packed_check_compressor(device, packed_kinds[k]);
    for (int k = 0; k < N_MATRIX_KINDS; k++) packed_check_compressor(device, matrix_kinds[k]);
}

#endif
