/* Packed rows have the bits they always had, whatever vectors a processor has: this program is built
 * twice, test_packed_bits_plain with vectors that every processor has. */
#include "compress/compress.h"
#include "nn/graph.h"
#include "test.h"
#include "util/memory.h"
#include "util/rng.h"

#include <stdlib.h>

enum { N_ROUNDS = 2 };

/* Values of many sizes, without a function whose last bit may be another elsewhere: a whole number
 * times a power of two; every fifth one is 0, and every seventh is one of few. */
static void fill(size_t n, uint32_t round, float *x) {
    ct_rng rng;
    ct_rng_init(&rng, 9, CT_RNG_TEST, round, 0, 0);
    for (size_t i = 0; i < n; i++) {
        uint32_t word = ct_rng_u32(&rng);
        float value = (float)((int)(word >> 8) - (1 << 23));
        for (uint32_t half = word % 12; half > 0; half--) value /= 2;
        x[i] = i % 5 == 0 ? 0 : i % 7 == 0 ? (float)(word % 3) : value * 0x1p-20f;
    }
}

static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t n) {
    const uint8_t *b = bytes;
    for (size_t i = 0; i < n; i++) hash = (hash ^ b[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

typedef struct rows {
    float *x, *known, *copy; /* copy: what a receiver makes of the payloads */
    uint32_t *scratch;
    uint8_t *packed;
} rows;

static void rows_create(const ct_compressor *how, rows *r) {
    r->x = ct_new(float, how->n);
    r->known = ct_new(float, how->n);
    r->copy = ct_new(float, how->n);
    r->scratch = ct_new(uint32_t, how->n_scratch + 1);
    r->packed = ct_new(uint8_t, how->n_bytes);
}

static void rows_free(rows *r) {
    ct_free(r->x);
    ct_free(r->known);
    ct_free(r->copy);
    ct_free(r->scratch);
    ct_free(r->packed);
}

/* What travels and what sender and receiver then have; both have the same. */
static uint64_t hash_of(const ct_compressor *how) {
    uint64_t hash = 0xcbf29ce484222325u;
    rows r;
    rows_create(how, &r);
    for (uint32_t round = 0; round < N_ROUNDS; round++) {
        const ct_compress_key key = {{1, 2}, 3, round, 4};
        fill(how->n, round, r.x);
        how->kind->encode(how, &key, r.x, r.known, r.scratch, r.packed);
        CHECK(how->kind->decode(how, &key, r.packed, r.copy));
        CHECK(memcmp(r.known, r.copy, how->n * sizeof *r.known) == 0);
        hash = add_bytes(hash, r.packed, how->n_bytes);
        hash = add_bytes(hash, r.known, how->n * sizeof *r.known);
    }
    rows_free(&r);
    return hash;
}

static void check_hash(const char *name, const ct_compressor *how, uint64_t wanted) {
    const uint64_t hash = hash_of(how);
    if (hash != wanted) printf("    %s: 0x%016llx\n", name, (unsigned long long)hash);
    CHECK(hash == wanted);
}

static void models_have_the_bits_they_always_had(void) {
    static const struct {
        const char *text;
        uint64_t hash;
    } known[] = {
        {"quantize:8", 0x27604009bfe3f1a0},  {"quantize:4", 0xa492b8bd0d1b0845},
        {"quantize:3", 0x8a11f4aef5de4137},  {"quantize:2", 0xe4ac228bf1e94aad},
        {"sign", 0x17555e158602ee8d},        {"top-k:0.1", 0x039ab3c0b065ca0f},
        {"top-k:0.01", 0x25de692d208878a9},  {"top-k:0.6", 0xe5be05f7b8c5d39b},
        {"top-k:1", 0x47a78a5a86860c21},     {"top-k8:0.1", 0xa4c0253b7af49a35},
        {"top-k8:0.01", 0xb9a12fbac6c4926f}, {"random-k:0.1", 0xd69beb5ad25e0a94},
        {"random-k:1", 0xb8550bd51301637d},  {"random-k:0.7", 0x9aa081ede0a67063},
        {"low-rank:1", 0xb4729443c730fc55},  {"low-rank:6", 0xea1950eabeeeb1f0},
    };
    ct_model_spec spec = {.name = "lenet5", .input = {1, 28, 28}, .n_classes = 10};
    ct_graph graph = {0};
    ct_compressor how;
    REQUIRE_OK(ct_graph_create(&spec, &graph));
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        REQUIRE_OK(ct_compressor_parse_model(known[k].text, &graph, &how));
        check_hash(known[k].text, &how, known[k].hash);
    }
    ct_graph_free(&graph);
}

static void class_sums_have_the_bits_they_always_had(void) {
    ct_compressor how;
    ct_compressor_sums(10, 85, &how);
    check_hash("class sums", &how, 0xe551515c37670fb0);
    ct_compressor_sums(3, 515, &how);
    check_hash("wide class sums", &how, 0x5fb5a77be4658b51);
}

/* What is no number stops the sender at the place where it stops receivers. */
static void sender_and_receiver_stop_alike(void) {
    static const char *const kinds[] = {"quantize:8", "quantize:2",   "sign",      "top-k:0.1",
                                        "top-k8:0.1", "random-k:0.5", "low-rank:2"};
    const float wrong[] = {(float)NAN, (float)INFINITY, -3e38f};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
            const ct_compress_key key = {{1, 2}, 3, 4, 5};
            ct_compressor how;
            rows r;
            REQUIRE_OK(ct_compressor_parse(kinds[k], 5000, &how));
            rows_create(&how, &r);
            fill(how.n, 0, r.x);
            for (size_t i = 3000; i < 3100; i++) r.x[i] = wrong[w];
            how.kind->encode(&how, &key, r.x, r.known, r.scratch, r.packed);
            (void)how.kind->decode(&how, &key, r.packed, r.copy);
            CHECK(memcmp(r.known, r.copy, how.n * sizeof *r.known) == 0);
            rows_free(&r);
        }
    }
}

int main(void) {
    TEST(models_have_the_bits_they_always_had);
    TEST(class_sums_have_the_bits_they_always_had);
    TEST(sender_and_receiver_stop_alike);
    return test_report();
}
