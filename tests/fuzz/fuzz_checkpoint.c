/* Checkpoints: the manifest and both agents' files, read into a run that they fit. Each of the
 * three has a checksum, and the manifest those of the other two besides. */
#include <inttypes.h>

#include "run/checkpoint.h"
#include "util/hash.h"
#include "util/memory.h"

#include "fuzz.h"

#define FOLDER "checkpoint/2/"

/* The run that corpus/checkpoint was written by (make_corpus.sh). */
static ct_run *run_of_corpus(void) {
    static const char *const options[][2] = {
        {"dataset", "shapes"}, {"train-samples", "40"}, {"test-samples", "10"}, {"model", "mlp:1"},
        {"agents", "2"},       {"topology", "full"},    {"partition", "iid"},   {"batch-size", "4"},
        {"lr", "0.01"},        {"epochs", "1"},         {"augment", "off"},     {"threads", "1"},
        {"device", "cpu"},     {"algorithm", "dsgdm"}};
    static ct_run run;
    static ct_config config;
    static bool is_made;
    if (is_made) return &run;
    ct_config_init(&config);
    for (size_t k = 0; k < sizeof options / sizeof *options; k++)
        if (ct_config_put(&config, options[k][0], options[k][1]) != CT_OK) abort();
    if (ct_run_build(&config, &run) != CT_OK) abort();
    mkdir(fuzz_path("checkpoint"), 0700);
    mkdir(fuzz_path(FOLDER), 0700);
    is_made = true;
    return &run;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char *const names[] = {FOLDER "manifest.json", FOLDER "agent-0.ckpt",
                                        FOLDER "agent-1.ckpt"};
    ct_run *run = run_of_corpus();
    static ct_config config;
    ct_tally tally;
    ct_position position = {.tallies = &tally};
    CT_SCOPED_HANDLE(ct_checkpoint) checkpoint = NULL;
    fuzz_folder(names, 3, data, n);
    if (ct_checkpoint_open(fuzz_dir(), &checkpoint) != CT_OK) return 0;
    ct_config_init(&config);
    if (ct_checkpoint_options(checkpoint, &config) != CT_OK) return 0;
    if (ct_checkpoint_read(checkpoint, run, &position) != CT_OK) return 0;
    (void)ct_checkpoint_metrics_bytes(checkpoint, 0);
    fuzz_n_accepted++;
    return 0;
}

/* Writes a checksum over the hexadecimal digits at `at`. */
static void put_sum(uint8_t *at, uint64_t sum) {
    char digits[17];
    snprintf(digits, sizeof digits, "%016" PRIx64, sum);
    memcpy(at, digits, 16);
}

/* Behind the k-th place (from 0) where the word stands; NULL: there are not so many. */
static uint8_t *behind(uint8_t *text, size_t n, const char *word, int k) {
    size_t n_word = strlen(word);
    for (size_t at = 0; at + n_word + 16 <= n; at++)
        if (memcmp(text + at, word, n_word) == 0 && k-- == 0) return text + at + n_word;
    return NULL;
}

void fuzz_repair(uint8_t *data, size_t n) {
    char name[64];
    size_t at = 0, begin, end, manifest = 0, manifest_end = 0;
    uint64_t sums[2] = {0};
    while (at < n && fuzz_next_part(data, n, &at, name, &begin, &end)) {
        if (strcmp(name, FOLDER "manifest.json") == 0) manifest = begin, manifest_end = end;
        int row = strcmp(name, FOLDER "agent-1.ckpt") == 0;
        if (strncmp(name, FOLDER "agent-", sizeof FOLDER + 5) != 0 || end - begin < 8) continue;
        sums[row] = ct_checksum(CT_HASH_START, data + begin, end - begin - 8);
        memcpy(data + end - 8, &sums[row], 8);
    }
    for (int row = 0; row < 2; row++) {
        uint8_t *digits = behind(data + manifest, manifest_end - manifest, "\"checksum\": \"", row);
        if (digits != NULL) put_sum(digits, sums[row]);
    }
    uint8_t *head = behind(data + manifest, manifest_end - manifest, "crosstalk checkpoint 1 ", 0);
    if (head == NULL || head + 17 > data + manifest_end) return;
    put_sum(head, ct_checksum(CT_HASH_START, head + 17, (size_t)(data + manifest_end - head - 17)));
}
