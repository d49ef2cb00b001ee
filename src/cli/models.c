#include "cli/models.h"

#include <string.h>

#include "record/file.h"
#include "run/run.h"
#include "util/log.h"
#include "util/memory.h"
#include "util/text.h"

const char *ct_cli_run_of(const char *path, ct_path *room) {
    *room = ct_dir_exists(path) ? ct_path_in("", path) : ct_path_dir(path);
    return ct_record_has(room->text, CT_FILE_CONFIG) ? room->text : NULL;
}

ct_model_facts ct_cli_facts_of(const ct_dataset *d, const char **names) {
    for (int c = 0; c < d->n_classes && names != NULL; c++) names[c] = ct_dataset_class_name(d, c);
    return (ct_model_facts){.channels = d->test.channels,
                            .height = d->test.height,
                            .width = d->test.width,
                            .resize = d->resize,
                            .mean = d->mean,
                            .deviation = d->std,
                            .n_classes = d->n_classes,
                            .class_names = names};
}

/* The same model again, with what the data of its run say about it. */
static ct_status open_with_data(const char *path, const char *dir, ct_model_options *options,
                                ct_model **out) {
    CT_SCOPED(ct_dataset) data = {0};
    CT_SCOPED_BLOCK(const char *) names = NULL;
    ct_config config;
    ct_config_init(&config);
    CT_TRY(ct_config_load(&config, ct_record_path(dir, CT_FILE_CONFIG).text));
    CT_TRY(ct_run_open_data(&config, 0, &data));
    if (data.class_names != NULL) CT_TRY(ct_make(&names, (size_t)data.n_classes, "the classes"));
    ct_model_facts known = ct_cli_facts_of(&data, names);
    if (options->known->network != NULL) known.network = options->known->network;
    if (options->known->norm != NULL) known.norm = options->known->norm;
    options->known = &known;
    CT_TRY(ct_model_load(path, options, out));
    ct_note("%s does not describe itself; size and normalisation of images are those of %s", path,
            data.source);
    return CT_OK;
}

typedef struct floats {
    float values[CT_MAX_CHANNELS];
    int n;
} floats;

static ct_status add_float(void *context, const char *field) {
    floats *list = context;
    double value = 0;
    if (list->n == CT_MAX_CHANNELS || !ct_parse_double(field, &value) ||
        !(value >= 0 && value <= 1))
        return CT_INVAL;
    list->values[list->n++] = (float)value;
    return CT_OK;
}

/* One number from 0 to 1 for each channel; without the option, none. */
static ct_status read_floats(const ct_own *own, const char *name, floats *out) {
    const char *text = ct_own_text(own, name);
    if (text == NULL) return CT_OK;
    int64_t n = ct_own_whole(own, "channels");
    ct_error error;
    ct_status status = CT_CATCH(&error, ct_split(text, add_float, out));
    if (status == CT_NOMEM) return ct_fail_again(&error);
    if (status == CT_OK && out->n == n && (strcmp(name, "mean") == 0 || out->values[0] > 0))
        return CT_OK;
    return ct_refuse(name, "@%s %s: it takes a number from 0 to 1 for each of @channels", name,
                     text);
}

ct_status ct_cli_open_model(const char *path, const ct_own *own, ct_model **out) {
    floats mean = {.n = 0}, deviation = {.n = 0};
    ct_path room;
    ct_error error;
    CT_TRY(read_floats(own, "mean", &mean));
    CT_TRY(read_floats(own, "deviation", &deviation));
    ct_model_facts known = {.network = ct_own_text(own, "model"),
                            .norm = ct_own_text(own, "norm"),
                            .channels = (int)ct_own_whole(own, "channels"),
                            .height = (int)ct_own_whole(own, "image-size"),
                            .width = (int)ct_own_whole(own, "image-size"),
                            .mean = mean.n > 0 ? mean.values : NULL,
                            .deviation = deviation.n > 0 ? deviation.values : NULL};
    ct_model_options options = CT_MODEL_OPTIONS;
    options.device = ct_own_text(own, "device");
    options.n_threads = (int)ct_own_whole(own, "threads");
    if (ct_own_is_given(own, "agent")) options.agent = (int)ct_own_whole(own, "agent");
    options.known = &known;
    ct_status status = CT_CATCH(&error, ct_model_load(path, &options, out));
    const char *dir = ct_cli_run_of(path, &room);
    /* what is missing, if nothing was named wrongly, the data may tell */
    if (status == CT_INVAL && error.about[0] == '\0' && dir != NULL) {
        ct_error other;
        status = CT_CATCH(&other, open_with_data(path, dir, &options, out));
        if (status == CT_NOMEM) return ct_fail_again(&other);
    }
    return status == CT_OK ? CT_OK : ct_fail_again(&error);
}
