/* Studies (.conf files), as far as their cells. */
#include "study/study.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static ct_config given;
    static ct_study study;
    ct_study_request request = {.table_only = true};
    ct_config_init(&given);
    memset(&study, 0, sizeof study);
    if (ct_study_open(fuzz_file("x.conf", data, n), &study) != CT_OK) return 0;
    snprintf(study.out, sizeof study.out, "%s", fuzz_path("nothing"));
    if (ct_study_build(&study, &given, &request) == CT_OK) fuzz_n_accepted++;
    ct_study_free(&study);
    return 0;
}
