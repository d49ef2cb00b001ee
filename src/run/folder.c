/* The folders of a run: how they are called, and whose they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/folder.h"
#include "run/output_internal.h"
#include "run/restart.h"
#include "run/together.h"
#include "util/file.h"
#include "util/memory.h"

/* ---- names ---- */

void ct_output_dir(const ct_config *c, char *out, size_t size) {
    if (c->out[0] != '\0') {
        snprintf(out, size, "%s", c->out);
        return;
    }
    bool is_ccl = strcmp(c->loss, "ccl") == 0;
    char skew[32] = "file";
    if (c->partition_file[0] == '\0') snprintf(skew, sizeof skew, "%.30s", c->partition);
    if (strcmp(skew, "dirichlet") == 0) snprintf(skew, sizeof skew, "a%g", c->alpha);
    char seeds[32];
    snprintf(seeds, sizeof seeds, "s%lld", (long long)c->seed);
    int n_seeds = ct_count_parts(c->seeds, ',');
    if (c->seeds[0] != '\0') snprintf(seeds, sizeof seeds, "s%.20s", c->seeds);
    if (n_seeds > 1) snprintf(seeds, sizeof seeds, "%dseeds", n_seeds);
    snprintf(out, size, "runs/%.40s-%.40s-%.40s%s-%.60s%d-%s-%s", c->dataset, c->model,
             c->algorithm, is_ccl ? "+ccl" : "", c->topology, (int)c->agents, skew, seeds);
    for (char *at = out + strlen("runs/"); *at != '\0'; at++)
        if (*at == '/' || *at == ':') *at = '_';
}

static ct_status too_long(const char *out) {
    return ct_refuse("out", "the name is too long: %s", out);
}

/* "" for none: nothing is added. */
ct_status ct_output_place(const char *named, int rank, char *dir, size_t size) {
    CT_SCOPED(ct_text) text = {0};
    for (const char *at = named; *at != '\0';) {
        size_t n = strcspn(at, "%");
        bool is_rank = at[n] == '%' && at[n + 1] == 'r';
        if (at[n] == '%' && !is_rank) n++;
        ct_text_add(&text, "%.*s", (int)n, at);
        if (is_rank) ct_text_add(&text, "%d", rank);
        at += is_rank ? n + 2 : n;
    }
    CT_TRY(ct_text_status(&text));
    if (text.n >= size) return too_long(named);
    snprintf(dir, size, "%s", text.n > 0 ? text.chars : "");
    return CT_OK;
}

static ct_status add_folder(const char *out, const char *name, char *dir, size_t size) {
    size_t n = strlen(dir);
    int more = snprintf(dir + n, size - n, "%s%s", name[0] != '\0' ? "/" : "", name);
    return more >= 0 && (size_t)more < size - n ? CT_OK : too_long(out);
}

ct_status ct_output_pair_dir(const ct_run *run, const char *out, int world, char *dir,
                             size_t size) {
    char pair[64] = "";
    const ct_world *w = &run->worlds[world];
    if (run->lambdas != NULL) ct_record_name_pair(w->lambda_m, w->lambda_d, pair, sizeof pair);
    int n = snprintf(dir, size, "%s", out);
    if (n < 0 || (size_t)n >= size) return too_long(out);
    return add_folder(out, pair, dir, size);
}

ct_status ct_output_world_dir(const ct_run *run, const char *out, int world, char *dir,
                              size_t size) {
    char seed[32] = "";
    CT_TRY(ct_output_pair_dir(run, out, world, dir, size));
    if (run->n_seeds > 1) ct_record_name_seed(run->seeds[world], seed, sizeof seed);
    return add_folder(out, seed, dir, size);
}

/* A name made of what is run may be an earlier run's. Rank 0 looks for all: others might see the
 * directory that it has made. */
static ct_status number_out(ct_run *run) {
    int number = 1;
    ct_error error;
    bool looks = ct_transport_rank(run->transport) == 0;
    if (run->config.given[CT_OPT_out] || run->config.force || run->config.site != NULL)
        return CT_OK;
    (void)CT_CATCH(&error,
                   looks ? ct_restart_number(&run->config, run->named_out, &number) : CT_OK);
    CT_TRY(ct_together(run->transport, &error));
    CT_TRY(ct_together_hear(run->transport, 0, number, &number));
    return ct_restart_name(run->named_out, number, run->named_out, sizeof run->named_out);
}

ct_status ct_output_name(ct_run *run) {
    char dir[CT_CONFIG_TEXT], *resume = run->config.resume;
    int rank = ct_transport_rank(run->transport);
    if (ct_run_writes_nothing(run)) return CT_OK;
    ct_output_dir(&run->config, run->named_out, sizeof run->named_out);
    CT_TRY(number_out(run));
    CT_TRY(ct_output_place(run->named_out, rank, dir, sizeof dir));
    memcpy(run->config.out, dir, sizeof dir);
    CT_TRY(ct_output_place(resume, rank, resume, sizeof run->config.resume));
    for (int k = 0; k < run->n_worlds; k++)
        CT_TRY(ct_output_world_dir(run, dir, k, run->worlds[k].dir, sizeof run->worlds[k].dir));
    return CT_OK;
}

/* ---- whose they are ---- */

ct_status ct_output_lock(const ct_run *run, int *lock) {
    const char *dir = run->config.out;
    if (!ct_run_keeps(run) || ct_run_writes_nothing(run) || *lock >= 0 || !ct_dir_exists(dir))
        return CT_OK;
    if (ct_dir_lock(dir, lock)) return CT_OK;
    return ct_fail(CT_BUSY, "%s is being trained by another process", dir);
}

ct_status ct_output_each(const ct_run *run, ct_status (*act)(const ct_run *run, const char *dir)) {
    CT_TRY(act(run, run->config.out));
    for (int k = 0; k < run->n_worlds && run->n_worlds > 1; k++)
        CT_TRY(act(run, run->worlds[k].dir));
    for (int k = 0; k < run->n_worlds && run->lambdas != NULL; k += run->n_seeds) {
        char dir[CT_CONFIG_TEXT];
        CT_TRY(ct_output_pair_dir(run, run->config.out, k, dir, sizeof dir));
        if (run->n_seeds > 1) CT_TRY(act(run, dir));
    }
    return CT_OK;
}
