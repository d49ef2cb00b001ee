/* What the tests of libcrosstalk share: small runs from options, samples in memory. */
#ifndef CT_TESTS_API_H
#define CT_TESTS_API_H

#include <crosstalk/crosstalk.h>

#include "program.h"

/* What `crosstalk train` is asked for in TINY, once more as options. */
static const char *const tiny[][2] = {
    {"model", "mlp:8"}, {"agents", "5"},    {"batch-size", "8"},           {"partition", "iid"},
    {"threads", "1"},   {"dataset", "idx"}, {"data-dir", "fixtures/data"}, {"epochs", "2"},
    {"lr", "0.05"},
};
enum { N_TINY = sizeof tiny / sizeof *tiny };

static ct_error error;

#define WORKS(call)                                                                                \
    do {                                                                                           \
        if ((call) != CT_OK) {                                                                     \
            test_failed = true;                                                                    \
            printf("    %s:%d: %s: %s\n", __FILE__, __LINE__, #call, error.text);                  \
        }                                                                                          \
    } while (0)

/* The call fails with one clear sentence, which has these words. */
#define FAILS(call, wanted, words)                                                                 \
    do {                                                                                           \
        char text_[2048];                                                                          \
        ct_status got_ = (call);                                                                   \
        ct_error_text(&error, "", text_, sizeof text_);                                            \
        if (got_ != (wanted) || error.status != got_ || strstr(text_, (words)) == NULL ||          \
            strchr(text_, '\n') != NULL) {                                                         \
            test_failed = true;                                                                    \
            printf("    %s:%d: %s gave status %d: %s\n", __FILE__, __LINE__, #call, (int)got_,     \
                   text_);                                                                         \
        }                                                                                          \
    } while (0)

/* TINY's options in a fresh config, without those about data where that is given otherwise. */
static inline ct_config *configure(const char *out, bool with_files) {
    ct_config *config = NULL;
    WORKS(ct_config_create(&config, &error));
    for (int k = 0; k < N_TINY; k++) {
        bool is_file = strncmp(tiny[k][0], "data", 4) == 0;
        if (with_files || !is_file) WORKS(ct_config_set(config, tiny[k][0], tiny[k][1], &error));
    }
    if (out != NULL) WORKS(ct_config_set(config, "out", out, &error));
    return config;
}

static inline ct_run *build(ct_config *config, const ct_inputs *inputs) {
    ct_run *run = NULL;
    WORKS(ct_run_create(config, inputs, &run, &error));
    ct_config_free(&config);
    return run;
}

/* Trains in steps of n to the end. */
static inline void train(ct_config *config, const ct_inputs *inputs, long n) {
    ct_run *run = build(config, inputs);
    while (run != NULL && !ct_run_is_done(run) && !test_failed) WORKS(ct_run_step(run, n, &error));
    ct_run_free(&run);
}

/* A file's text without what a clock has written. */
static inline void slurp_metrics(const char *dir, char *text) {
    char path[300];
    snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
    slurp(path, text);
    for (char *at; (at = strstr(text, ", \"seconds\"")) != NULL;) {
        size_t n = strcspn(at, "}");
        memmove(at, at + n, strlen(at + n) + 1);
    }
}

/* What a model file says of itself (its header) aside: names of data differ. */
static inline bool same_tensors(const char *a, const char *b) {
    ct_blob x = {0}, y = {0};
    bool same = ct_file_read(a, 1 << 24, &x) == CT_OK && ct_file_read(b, 1 << 24, &y) == CT_OK;
    size_t i = same ? 8 + (x.bytes[0] | (size_t)x.bytes[1] << 8) : 0;
    size_t j = same ? 8 + (y.bytes[0] | (size_t)y.bytes[1] << 8) : 0;
    same = same && x.n > i && x.n - i == y.n - j && memcmp(x.bytes + i, y.bytes + j, x.n - i) == 0;
    ct_blob_free(&x);
    ct_blob_free(&y);
    return same;
}

static inline bool same_runs(const char *a, const char *b) {
    static char x[SAID], y[SAID];
    char from[300], to[300];
    snprintf(from, sizeof from, "%s/consensus.safetensors", a);
    snprintf(to, sizeof to, "%s/consensus.safetensors", b);
    slurp_metrics(a, x);
    slurp_metrics(b, y);
    return x[0] != '\0' && strcmp(x, y) == 0 && same_tensors(from, to);
}

/* ---- samples in memory: those of the fixtures ---- */

static struct {
    uint8_t *pixels[2];
    int32_t *labels[2];
    float *values[2];
    size_t n[2];
    ct_data data;
} mem;

static inline uint8_t *read_idx(const char *path, size_t header, size_t *n) {
    ct_blob blob = {0};
    CHECK_OK(ct_file_read(path, 1 << 24, &blob));
    *n = blob.n - header;
    uint8_t *out = malloc(*n);
    memcpy(out, blob.bytes + header, *n);
    ct_blob_free(&blob);
    return out;
}

static inline void load_memory(void) {
    static const char *const names[2][2] = {
        {"fixtures/data/train-images-idx3-ubyte", "fixtures/data/train-labels-idx1-ubyte"},
        {"fixtures/data/t10k-images-idx3-ubyte", "fixtures/data/t10k-labels-idx1-ubyte"}};
    uint8_t shape[16];
    FILE *f = fopen(names[0][0], "rb");
    if (f == NULL || fread(shape, 1, 16, f) != 16) printf("no fixtures\n");
    if (f != NULL) fclose(f);
    int side = shape[11];
    for (int part = 0; part < 2; part++) {
        size_t n_bytes = 0;
        mem.pixels[part] = read_idx(names[part][0], 16, &n_bytes);
        uint8_t *labels = read_idx(names[part][1], 8, &mem.n[part]);
        mem.labels[part] = malloc(mem.n[part] * sizeof(int32_t));
        for (size_t i = 0; i < mem.n[part]; i++) mem.labels[part][i] = labels[i];
        mem.values[part] = malloc(n_bytes * sizeof(float));
        free(labels);
    }
    mem.data = (ct_data)CT_DATA_INIT;
    static const float half = 0.5f; /* what the data set idx takes */
    mem.data.mean = mem.data.std = &half;
    mem.data.height = mem.data.width = side;
    for (size_t i = 0; i < mem.n[0]; i++)
        if (mem.labels[0][i] >= mem.data.n_classes) mem.data.n_classes = mem.labels[0][i] + 1;
    mem.data.train = (ct_samples){mem.n[0], mem.pixels[0], mem.labels[0]};
    mem.data.test = (ct_samples){mem.n[1], mem.pixels[1], mem.labels[1]};
}

static inline void free_memory(void) {
    for (int part = 0; part < 2; part++) {
        free(mem.pixels[part]);
        free(mem.labels[part]);
        free(mem.values[part]);
    }
}

static inline size_t n_values(int part) {
    return mem.n[part] * (size_t)mem.data.height * (size_t)mem.data.width;
}

#endif
