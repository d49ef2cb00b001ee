/* Files of packed pictures. Every picture, the table and the tail have checksums. */
#include "data/dataset.h"
#include "data/pack.h"
#include "util/file.h"

#include "fuzz.h"

/* As in data/pack.c. */
typedef struct tail {
    ct_pack_facts facts;
    uint64_t table_at, names_bytes;
    uint32_t table_crc, tail_crc;
    uint64_t magic;
} tail;

/* The set that it is, with all its pictures. */
static void open_set(const char *path) {
    ct_dataset d = {0};
    ct_dataset_options options = {.dir = path, .n_workers = 1, .augment = true};
    if (ct_dataset_open("pack", &options, &d) == CT_OK) fuzz_n_accepted++;
    ct_dataset_free(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static ct_decoder *decoder;
    ct_pack *pack = NULL;
    const char *path = fuzz_file("x.ctpack", data, n);
    if (decoder == NULL && ct_decoder_create(&decoder) != CT_OK) return 0;
    if (ct_pack_open(path, &pack) == CT_OK) {
        ct_picture p;
        uint64_t n_read = ct_pack_facts_of(pack)->n < 100 ? ct_pack_facts_of(pack)->n : 100;
        for (uint64_t i = 0; i < n_read; i++) ct_pack_read(pack, (size_t)i, decoder, &p);
        ct_pack_close(&pack);
        open_set(path);
    }
    return 0;
}

void fuzz_repair(uint8_t *data, size_t n) {
    tail t;
    ct_pack_entry e;
    if (n < sizeof t) return;
    size_t end = n - sizeof t;
    memcpy(&t, data + end, sizeof t);
    if (t.table_at > end) return;
    for (size_t at = t.table_at; end - at >= sizeof e; at += sizeof e) {
        memcpy(&e, data + at, sizeof e);
        size_t length = (size_t)e.width * e.height * 3;
        if (e.at > end || length > end - e.at) continue;
        e.crc = ct_crc32(0, data + e.at, length);
        memcpy(data + at, &e, sizeof e);
    }
    t.table_crc = ct_crc32(0, data + t.table_at, end - t.table_at);
    t.tail_crc = ct_crc32(0, &t, offsetof(tail, tail_crc));
    memcpy(data + end, &t, sizeof t);
}
