/* What model files say about themselves. */
#include "model/model.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    ct_model *model = NULL;
    if (ct_model_load(fuzz_file("m.safetensors", data, n), NULL, &model) != CT_OK) return 0;
    const ct_model_facts *facts = ct_model_facts_of(model);
    for (int c = 0; c < facts->n_classes; c++)
        if (ct_model_find_class(model, ct_model_class(model, c)) < 0) abort();
    if (facts->channels < 1 || !(facts->deviation[0] > 0)) abort();
    fuzz_n_accepted++;
    ct_model_free(&model);
    return 0;
}
