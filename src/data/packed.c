/* `pack`: folders of pictures as `crosstalk data import` writes them, one file; or a part of one.
 */
#include "data/dataset_internal.h"

#include "data/pictures_internal.h"
#include "util/hash.h"
#include "util/memory.h"

#include <stdio.h>

static ct_status keep_names(const ct_pack *pack, ct_dataset *out) {
    const char *names = ct_pack_class_names(pack);
    if (names == NULL) return CT_OK;
    return ct_make_copy(&out->class_names, names, ct_names_bytes(names, out->n_classes),
                        "the names of classes");
}

/* A part's training pictures have the numbers that they had in the whole. */
static ct_status keep_numbers(const char *path, const ct_pack *pack, ct_dataset *out) {
    const ct_pack_facts *facts = ct_pack_facts_of(pack);
    size_t n = (size_t)(facts->n - facts->n_test);
    if (facts->n_whole == 0) return CT_OK;
    CT_TRY(ct_make(&out->train_numbers, n, path));
    out->n_whole = facts->n_whole;
    for (size_t i = 0; i < n; i++) out->train_numbers[i] = ct_pack_entries(pack)[i].source;
    if (ct_numbers_are_right(out->train_numbers, n, out->n_whole)) return CT_OK;
    return ct_fail(CT_IO, "%s: a damaged part of packed pictures; split it again", path);
}

static ct_status describe(const char *path, const ct_dataset_options *options, ct_pack_facts *facts,
                          ct_dataset *out) {
    CT_SCOPED_BY(ct_pack_close, ct_pack *) pack = NULL;
    CT_TRY(ct_pack_open(path, &pack));
    *facts = *ct_pack_facts_of(pack);
    out->n_classes = (int)facts->n_classes;
    out->content = ct_checksum(CT_HASH_START + facts->n_test, ct_pack_entries(pack),
                               (size_t)facts->n * sizeof(ct_pack_entry));
    CT_TRY(keep_names(pack, out));
    CT_TRY(keep_numbers(path, pack, out));
    if (options->image_size > (int)facts->side)
        return ct_fail(CT_INVAL,
                       "%s: its pictures have %u pixels, not the %d of @image-size; "
                       "import them again",
                       path, facts->side, options->image_size);
    if (options->image_size > 0) facts->size = (uint32_t)options->image_size;
    for (int c = 0; c < 3; c++)
        if (facts->std[c] == 0)
            return ct_fail(CT_IO, "%s: a cache, which has no deviations of its own", path);
    ct_dataset_scale(out, facts->mean, facts->std);
    out->is_measured = true; /* as far as a pack can tell */
    snprintf(out->source, sizeof out->source, "%s", path);
    return CT_OK;
}

ct_status ct_dataset_open_pack(const ct_dataset_options *options, ct_dataset *out) {
    const char *path;
    ct_pack_facts facts;
    CT_TRY(ct_data_dir(out, options, "give the file with @data-dir FILE.ctpack", &path));
    CT_TRY(describe(path, options, &facts, out));
    out->resize = (int)facts.side;
    size_t n_train = (size_t)(facts.n - facts.n_test), n_test = (size_t)facts.n_test;
    if (n_train == 0 || (n_test == 0 && !options->is_agents))
        return ct_fail(CT_IO, "%s: %zu pictures to train on and %zu to test", path, n_train,
                       n_test);
    ct_pictures_spec spec = ct_pictures_spec_for(options, (int)facts.side, (int)facts.size);
    ct_pictures *part = NULL;
    CT_TRY(ct_pictures_open_pack(&spec, path, 0, n_train, &part));
    CT_TRY(ct_part_of_pictures(part, &out->train, &out->train_pictures, &out->n_left_out));
    if (out->train_numbers != NULL && out->train.n != n_train)
        return ct_fail(CT_IO, "%s: %zu of this part's pictures are damaged; split it again", path,
                       n_train - out->train.n);
    spec.random = false;
    out->test = (ct_images){.channels = 3, .height = spec.size, .width = spec.size};
    if (n_test == 0) return CT_OK;
    CT_TRY(ct_pictures_open_pack(&spec, path, n_train, n_test, &part));
    return ct_part_of_pictures(part, &out->test, &out->test_pictures, &out->n_left_out);
}

bool ct_dataset_probe_pack(const char *path) {
    return ct_pack_looks_right(path);
}
