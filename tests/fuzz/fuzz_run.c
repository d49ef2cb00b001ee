/* Run directories: all of a run's record, and the page about some of them. */
#include "record/record.h"
#include "report/report.h"
#include "util/hash.h"
#include "util/memory.h"

#include "fuzz.h"

static void make_page(void) {
    CT_SCOPED(ct_report) report = {0};
    CT_SCOPED(ct_text) page = {0};
    const char *dir = fuzz_dir();
    if (ct_report_load(&dir, 1, &report) == CT_OK)
        (void)ct_report_page(&report, &(ct_report_options){0}, &page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char *const names[] = {"config.txt",      "setting.json", "metrics.jsonl",
                                        "evaluation.json", "summary.json", "diverged.json",
                                        "failed.json"};
    static int n_runs; /* the corpus comes first */
    ct_record run = {0};
    char words[64];
    fuzz_folder(names, sizeof names / sizeof *names, data, n);
    if (ct_record_load(fuzz_dir(), CT_READ_END, &run) == CT_OK)
        ct_record_print_end(&run.end, words, sizeof words);
    ct_record_unload(&run);
    if (ct_record_load(fuzz_dir(), CT_READ_ALL, &run) != CT_OK) return 0;
    if (run.summary != NULL) (void)ct_summary_add_late(fuzz_dir(), run.summary);
    if (n_runs++ < 16 || ct_hash(CT_HASH_START, data, n) % 32 == 0) make_page();
    ct_record_unload(&run);
    fuzz_n_accepted++;
    return 0;
}
