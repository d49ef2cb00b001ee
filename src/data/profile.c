#include "data/profile.h"

#include "data/dataset_internal.h"
#include "data/pictures.h"
#include "util/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ct_agent_name_is_right(const char *name) {
    static const char signs[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strlen(name);
    return n > 0 && n < CT_AGENT_NAME && strspn(name, signs) == n;
}

void ct_profile_free(ct_profile *profile) {
    ct_free(profile->class_names);
    ct_columns_free(&profile->columns);
    *profile = (ct_profile){0};
}

/* ---- names of classes ---- */

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_text(const char *name) {
    while (*name != '\0') {
        size_t n = ct_utf8_length(name);
        if (n == 0) return false;
        name += n;
    }
    return true;
}

/* The n names, sorted, as one block. */
static ct_status pack_names(const char **names, int n, char **out) {
    size_t size = 0, at = 0;
    for (int k = 0; k < n; k++) size += strlen(names[k]) + 1;
    if (size > CT_MAX_NAMES_BYTES)
        return ct_fail(CT_INVAL, "the names of %d classes have %zu bytes; at most %zu", n, size,
                       CT_MAX_NAMES_BYTES);
    CT_TRY(ct_make(out, size, "the names of classes"));
    for (int k = 0; k < n; k++) {
        size_t length = strlen(names[k]) + 1;
        memcpy(*out + at, names[k], length);
        at += length;
    }
    return CT_OK;
}

static void list_names(const char *block, int n, const char **out) {
    for (int k = 0; k < n; k++) {
        out[k] = block;
        block += strlen(block) + 1;
    }
}

static ct_status take_names(const ct_dataset *d, const char *who, ct_profile *out) {
    CT_SCOPED_BLOCK(const char *) names = NULL;
    if (d->class_names == NULL) return CT_OK;
    CT_TRY(ct_make(&names, (size_t)d->n_classes, "the names of classes"));
    list_names(d->class_names, d->n_classes, names);
    qsort(names, (size_t)d->n_classes, sizeof *names, by_bytes);
    for (int k = 0; k < d->n_classes; k++) {
        if (!is_text(names[k]))
            return ct_fail(CT_IO, "agent %s: the name of class '%s' is not UTF-8; rename it", who,
                           names[k]);
        if (k > 0 && strcmp(names[k], names[k - 1]) == 0)
            return ct_fail(CT_IO, "agent %s has two classes of the name '%s'", who, names[k]);
    }
    return pack_names(names, d->n_classes, &out->class_names);
}

/* Both lists, which are sorted, as one. */
static ct_status unite_names(const ct_profile *theirs, ct_profile *mine) {
    size_t n_all = (size_t)theirs->n_classes + (size_t)mine->n_classes;
    CT_SCOPED_BLOCK(const char *) names = NULL;
    CT_TRY(ct_make(&names, n_all, "the names of classes"));
    list_names(mine->class_names, mine->n_classes, names);
    list_names(theirs->class_names, theirs->n_classes, names + mine->n_classes);
    qsort(names, n_all, sizeof *names, by_bytes);
    int n = 0;
    for (size_t k = 0; k < n_all; k++)
        if (n == 0 || strcmp(names[n - 1], names[k]) != 0) names[n++] = names[k];
    if (n > CT_MAX_CLASSES)
        return ct_fail(CT_INVAL, "the agents have %d classes together; at most %d", n,
                       CT_MAX_CLASSES);
    char *united = NULL;
    CT_TRY(pack_names(names, n, &united));
    ct_free(mine->class_names);
    mine->class_names = united;
    mine->n_classes = n;
    return CT_OK;
}

/* ---- what one says ---- */

static ct_status take_scale(const ct_dataset *d, ct_profile *out) {
    size_t size = (size_t)d->train.channels * sizeof *d->mean;
    out->has_scale = true;
    memcpy(out->mean, d->mean, size);
    memcpy(out->std, d->std, size);
    out->has_sums = d->is_measured && d->train.values == NULL && d->columns == NULL;
    if (!out->has_sums) return CT_OK;
    if (d->train_pictures != NULL) return ct_pictures_sum(d->train_pictures, &out->sums);
    ct_images_sum(&d->train, 1, &out->sums);
    return CT_OK;
}

ct_status ct_profile_of(const ct_dataset *d, int agent, const char *name, ct_profile *out) {
    CT_SCOPED(ct_profile)
    p = {.n_agents = 1,
         .first = {.agent = agent},
         .channels = d->train.channels,
         .height = d->train.height,
         .width = d->train.width,
         .has_values = d->train.values != NULL || d->columns != NULL,
         .resize = d->resize,
         .crop_padding = d->crop_padding,
         .flip = d->flip,
         .n_classes = d->n_classes,
         .n_test = d->test.n};
    snprintf(p.first.name, sizeof p.first.name, "%s", name);
    p.most = p.least = (ct_agent_size){d->train.n, p.first};
    CT_TRY(take_names(d, name, &p));
    CT_TRY(take_scale(d, &p));
    if (d->columns != NULL) CT_TRY(ct_columns_copy(d->columns, &p.columns));
    ct_move(out, &p);
    return CT_OK;
}

/* ---- two as one ---- */

typedef struct shown {
    char text[160];
} shown;

static shown show_shape(const ct_profile *p) {
    shown s;
    const char *what = p->columns.n > 0 ? "rows" : p->has_values ? "samples" : "pictures";
    snprintf(s.text, sizeof s.text, "%s of %dx%dx%d", what, p->channels, p->height, p->width);
    return s;
}

static shown show_cut(const ct_profile *p) {
    shown s;
    snprintf(s.text, sizeof s.text, "pictures resized to %d, cropped by %d, %s", p->resize,
             p->crop_padding, p->flip ? "flipped" : "not flipped");
    return s;
}

static shown show_classes(const ct_profile *p) {
    shown s;
    if (p->class_names != NULL)
        snprintf(s.text, sizeof s.text, "%d classes with names ('%.60s', ...)", p->n_classes,
                 p->class_names);
    else
        snprintf(s.text, sizeof s.text, "%d classes without names", p->n_classes);
    return s;
}

static shown show_scale(const ct_profile *p) {
    shown s;
    snprintf(s.text, sizeof s.text, "a mean of %.9g and a deviation of %.9g in channel 0",
             (double)p->mean[0], (double)p->std[0]);
    return s;
}

static ct_status disagree(const ct_profile *theirs, const ct_profile *mine,
                          shown (*show)(const ct_profile *), const char *advice) {
    /* the same line whichever of them says it */
    bool is_mine_first = mine->first.agent <= theirs->first.agent;
    const ct_profile *a = is_mine_first ? mine : theirs, *b = is_mine_first ? theirs : mine;
    return ct_fail(CT_INVAL, "agent %s has %s, agent %s %s: %s", b->first.name, show(b).text,
                   a->first.name, show(a).text, advice);
}

/* Inputs of tables follow from all their columns. */
static bool same_shape(const ct_profile *a, const ct_profile *b) {
    if (a->columns.n > 0 && b->columns.n > 0) return true;
    return a->columns.n == 0 && b->columns.n == 0 && a->channels == b->channels &&
           a->height == b->height && a->width == b->width && a->has_values == b->has_values;
}

static bool same_cut(const ct_profile *a, const ct_profile *b) {
    return a->resize == b->resize && a->crop_padding == b->crop_padding && a->flip == b->flip;
}

static bool same_scale(const ct_profile *a, const ct_profile *b) {
    size_t size = (size_t)a->channels * sizeof *a->mean;
    return a->has_scale && b->has_scale && memcmp(a->mean, b->mean, size) == 0 &&
           memcmp(a->std, b->std, size) == 0;
}

static ct_status add_sums(const ct_profile *theirs, ct_profile *mine) {
    ct_pixel_sums *sums = &mine->sums;
    sums->n += theirs->sums.n;
    if (sums->n > CT_MAX_PIXELS)
        return ct_fail(CT_INVAL, "the agents have more than %.0f pixels together",
                       (double)CT_MAX_PIXELS);
    for (int c = 0; c < mine->channels; c++) {
        sums->sum[c] += theirs->sums.sum[c];
        sums->squares[c] += theirs->sums.squares[c];
    }
    return CT_OK;
}

/* One scale that all have; or what they have measured, all of them. */
static ct_status merge_scale(const ct_profile *theirs, ct_profile *mine) {
    bool is_same = same_scale(theirs, mine), has_sums = theirs->has_sums && mine->has_sums;
    if (!is_same && !has_sums)
        return disagree(theirs, mine, show_scale, "normalise the data alike everywhere");
    if (has_sums) CT_TRY(add_sums(theirs, mine));
    /* what no longer counts is gone, so that the order of merging leaves no trace */
    if (!has_sums) mine->sums = (ct_pixel_sums){0};
    if (!is_same) memset(mine->mean, 0, sizeof mine->mean);
    if (!is_same) memset(mine->std, 0, sizeof mine->std);
    mine->has_scale = is_same;
    mine->has_sums = has_sums;
    return CT_OK;
}

static ct_status merge_classes(const ct_profile *theirs, ct_profile *mine) {
    if ((theirs->class_names != NULL) != (mine->class_names != NULL))
        return disagree(theirs, mine, show_classes,
                        "labels mean the same only if all classes have names, or none has");
    if (mine->class_names != NULL) return unite_names(theirs, mine);
    if (theirs->n_classes > mine->n_classes) mine->n_classes = theirs->n_classes;
    return CT_OK;
}

static ct_status merge_columns(const ct_profile *theirs, ct_profile *mine) {
    ct_error error;
    if (mine->columns.n == 0) return CT_OK;
    bool is_mine_first = mine->first.agent <= theirs->first.agent;
    const ct_profile *a = is_mine_first ? mine : theirs, *b = is_mine_first ? theirs : mine;
    ct_status status = CT_CATCH(&error, ct_columns_merge(&mine->columns, &theirs->columns));
    if (status != CT_OK)
        return ct_fail_in(&error, "agents %s and %s", a->first.name, b->first.name);
    mine->width = (int)ct_columns_inputs(&mine->columns);
    return CT_OK;
}

/* Of two agents with as many samples, the first. */
static void merge_size(const ct_agent_size *theirs, bool is_more, ct_agent_size *mine) {
    bool is_better = is_more ? theirs->n > mine->n : theirs->n < mine->n;
    if (is_better || (theirs->n == mine->n && theirs->who.agent < mine->who.agent)) *mine = *theirs;
}

static ct_status copy(const ct_profile *from, ct_profile *out) {
    CT_SCOPED(ct_profile) p = *from;
    p.class_names = NULL;
    p.columns = (ct_columns){0};
    if (from->columns.n > 0) CT_TRY(ct_columns_copy(&from->columns, &p.columns));
    if (from->class_names != NULL)
        CT_TRY(ct_make_copy(&p.class_names, from->class_names,
                            ct_names_bytes(from->class_names, from->n_classes),
                            "the names of classes"));
    ct_move(out, &p);
    return CT_OK;
}

ct_status ct_profile_merge(const ct_profile *theirs, ct_profile *mine) {
    if (theirs->n_agents == 0) return CT_OK;
    if (mine->n_agents == 0) return copy(theirs, mine);
    if (!same_shape(theirs, mine))
        return disagree(theirs, mine, show_shape, "all agents need the same");
    if (!same_cut(theirs, mine))
        return disagree(theirs, mine, show_cut, "all agents need the same");
    CT_TRY(merge_scale(theirs, mine));
    CT_TRY(merge_columns(theirs, mine));
    CT_TRY(merge_classes(theirs, mine));
    merge_size(&theirs->most, true, &mine->most);
    merge_size(&theirs->least, false, &mine->least);
    mine->n_agents += theirs->n_agents;
    mine->n_test += theirs->n_test;
    if (theirs->first.agent < mine->first.agent) mine->first = theirs->first;
    return CT_OK;
}

/* ---- what follows for a data set ---- */

/* Rounded once, from whole numbers: n * squares - sum^2 is n^2 times the variance of levels. */
static void scale_of(const ct_pixel_sums *sums, int channel, float *mean, float *std) {
    __extension__ typedef unsigned __int128 whole;
    double n = (double)sums->n * 255;
    whole sum = sums->sum[channel];
    whole spread = (whole)sums->n * sums->squares[channel] - sum * sum;
    *mean = (float)((double)sums->sum[channel] / n);
    *std = spread > 0 ? (float)(sqrt((double)spread) / n) : 1.0f;
}

static void set_scale(const ct_profile *p, ct_dataset *d) {
    for (int c = 0; c < p->channels; c++) {
        d->mean[c] = p->mean[c];
        d->std[c] = p->std[c];
        if (!p->has_scale) scale_of(&p->sums, c, &d->mean[c], &d->std[c]);
    }
}

static ct_status find_class(const char *const *names, int n, const char *name, int32_t *out) {
    const char *const *found = bsearch(&name, names, (size_t)n, sizeof *names, by_bytes);
    if (found == NULL) return ct_fail(CT_INVAL, "class '%s' is not among the agreed ones", name);
    *out = (int32_t)(found - names);
    return CT_OK;
}

static void relabel_part(ct_images *images, ct_pictures *pictures, const int32_t *relabel) {
    for (size_t i = 0; i < images->n; i++) images->labels[i] = relabel[images->labels[i]];
    if (pictures != NULL) ct_pictures_relabel(pictures, relabel);
}

static ct_status relabel(ct_dataset *d, const ct_profile *p) {
    CT_SCOPED_BLOCK(const char *) own = NULL;
    CT_SCOPED_BLOCK(const char *) agreed = NULL;
    CT_SCOPED_BLOCK(int32_t) place = NULL;
    CT_TRY(ct_make(&own, (size_t)d->n_classes, "the classes"));
    CT_TRY(ct_make(&agreed, (size_t)p->n_classes, "the classes"));
    CT_TRY(ct_make(&place, (size_t)d->n_classes, "the classes"));
    list_names(d->class_names, d->n_classes, own);
    list_names(p->class_names, p->n_classes, agreed);
    for (int c = 0; c < d->n_classes; c++)
        CT_TRY(find_class(agreed, p->n_classes, own[c], &place[c]));
    relabel_part(&d->train, d->train_pictures, place);
    relabel_part(&d->test, d->test_pictures, place);
    char *names = NULL;
    CT_TRY(ct_make_copy(&names, p->class_names, ct_names_bytes(p->class_names, p->n_classes),
                        "the names of classes"));
    ct_free(d->class_names);
    d->class_names = names;
    return CT_OK;
}

ct_status ct_dataset_conform(ct_dataset *d, const ct_profile *p) {
    if (p->class_names != NULL) CT_TRY(relabel(d, p));
    d->n_classes = p->n_classes;
    set_scale(p, d);
    return CT_OK;
}
