/* The folders of a run: how they are called, whose they are, what an earlier run left in them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/output_internal.h"
#include "run/tensorboard.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/text.h"

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
    long long seed = c->seeds[0] != '\0' ? strtoll(c->seeds, NULL, 10) : (long long)c->seed;
    snprintf(out, size, "runs/%.40s-%.40s-%.40s%s-%.60s%d-%s-s%lld", c->dataset, c->model,
             c->algorithm, is_ccl ? "+ccl" : "", c->topology, (int)c->agents, skew, seed);
    for (char *at = out + strlen("runs/"); *at != '\0'; at++)
        if (*at == '/' || *at == ':') *at = '_';
}

void ct_output_pair_name(double lambda_m, double lambda_d, char *out, size_t size) {
    snprintf(out, size, "m%.9g-d%.9g", lambda_m, lambda_d);
}

ct_status ct_output_pair_dir(const ct_run *run, const char *out, int world, char *dir,
                             size_t size) {
    char pair[64] = "";
    const ct_world *w = &run->worlds[world];
    if (run->lambdas != NULL) ct_output_pair_name(w->lambda_m, w->lambda_d, pair, sizeof pair);
    int n = snprintf(dir, size, "%s%s%s", out, pair[0] != '\0' ? "/" : "", pair);
    if (n >= 0 && (size_t)n < size) return CT_OK;
    return ct_refuse("out", "the name is too long: %s", out);
}

ct_status ct_output_world_dir(const ct_run *run, const char *out, int world, char *dir,
                              size_t size) {
    CT_TRY(ct_output_pair_dir(run, out, world, dir, size));
    if (run->n_seeds == 1) return CT_OK;
    size_t n = strlen(dir);
    int more = snprintf(dir + n, size - n, "/seed-%" PRIu64, run->seeds[world]);
    if (more >= 0 && (size_t)more < size - n) return CT_OK;
    return ct_refuse("out", "the name is too long: %s", out);
}

ct_status ct_output_name(ct_run *run) {
    char dir[CT_CONFIG_TEXT];
    ct_output_dir(&run->config, dir, sizeof dir);
    memcpy(run->config.out, dir, sizeof dir);
    for (int k = 0; k < run->n_worlds; k++)
        CT_TRY(ct_output_world_dir(run, dir, k, run->worlds[k].dir, sizeof run->worlds[k].dir));
    return CT_OK;
}

/* ---- what is in them ---- */

static const char *const run_files[] = {
    "config.txt",      "partition.csv",    "setting.json",          "metrics.jsonl",
    "evaluation.json", "summary.json",     "consensus.safetensors", "agents.safetensors",
    "ledger.csv",      CT_TENSORBOARD_FILE};
enum { N_RUN_FILES = sizeof run_files / sizeof *run_files };

static ct_status refuse(const char *path) {
    if (!ct_file_exists(path)) return CT_OK;
    return ct_fail(CT_IO, "%s is there already; name another @out or replace it with @force", path);
}

ct_status ct_output_delete(const char *path) {
    if (remove(path) == 0 || errno == ENOENT) return CT_OK;
    return ct_fail(CT_IO, "%s: %s", path, strerror(errno));
}

/* Calls act(path) for every one of these files of the directory, until it fails. */
static ct_status each_file(const char *dir, const char *const *names, int n,
                           ct_status (*act)(const char *path)) {
    for (int i = 0; i < n; i++) {
        char *path = ct_path_join(dir, names[i]);
        if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
        ct_status status = act(path);
        ct_free(path);
        if (status != CT_OK) return status;
    }
    return CT_OK;
}

ct_status ct_output_forget(const ct_run *run) {
    /* the summary first: it says that the run is finished */
    static const char *const results[] = {"summary.json", "evaluation.json",
                                          "consensus.safetensors", "agents.safetensors",
                                          "ledger.csv"};
    enum { N = sizeof results / sizeof *results };
    CT_TRY(each_file(run->config.out, results, N, ct_output_delete));
    for (int k = 0; k < run->n_worlds; k++) {
        char dir[CT_CONFIG_TEXT];
        CT_TRY(ct_output_pair_dir(run, run->config.out, k, dir, sizeof dir));
        CT_TRY(each_file(dir, results, N, ct_output_delete));
        CT_TRY(each_file(run->worlds[k].dir, results, N, ct_output_delete));
    }
    return CT_OK;
}

/* ---- claiming them ---- */

ct_status ct_output_lock(const ct_run *run, int *lock) {
    const char *dir = run->config.out;
    if (!ct_run_leads(run) || *lock >= 0 || !ct_dir_exists(dir)) return CT_OK;
    if (ct_dir_lock(dir, lock)) return CT_OK;
    return ct_fail(CT_BUSY, "%s is being trained by another process", dir);
}

static ct_status claim_dir(const ct_config *c, const char *dir) {
    CT_TRY(ct_dir_create(dir));
    CT_TRY(each_file(dir, run_files, N_RUN_FILES, c->force ? ct_output_delete : refuse));
    if (!ct_checkpoint_exists(dir)) return CT_OK;
    if (c->force) return ct_checkpoint_remove_all(dir);
    return ct_fail(CT_IO,
                   "%s has checkpoints already; go on with @resume %s, name another @out or "
                   "replace it with @force",
                   dir, dir);
}

/* The run that was here before, of which the directories of seeds and pairs of lambdas are cleared:
 * those that its config.txt names, for others are runs of their own. */
typedef struct old_run {
    const ct_run *run; /* the new one */
    ct_config config;
    char dir[CT_CONFIG_TEXT]; /* of the seeds */
} old_run;

/* A run that goes on from there, or that someone trains, stays; the folder goes if it is empty. */
static ct_status clear_folder(const ct_run *run, const char *dir) {
    int lock = -1;
    if (!ct_dir_exists(dir) || ct_dir_is_same(dir, run->config.resume)) return CT_OK;
    if (!ct_dir_lock(dir, &lock)) return CT_OK;
    ct_status status = each_file(dir, run_files, N_RUN_FILES, ct_output_delete);
    if (status == CT_OK && ct_checkpoint_exists(dir)) status = ct_checkpoint_remove_all(dir);
    ct_dir_unlock(&lock);
    rmdir(dir);
    return status;
}

static ct_status clear_seed(void *context, const char *seed) {
    const old_run *old = context;
    char dir[CT_CONFIG_TEXT + 32];
    int64_t number = 0;
    if (!ct_parse_i64(seed, &number)) return CT_OK;
    snprintf(dir, sizeof dir, "%s/seed-%" PRId64, old->dir, number);
    return clear_folder(old->run, dir);
}

static ct_status clear_pair(void *context, const char *field) {
    const old_run *old = context;
    old_run pair = *old;
    char name[64];
    double lambdas[2];
    if (!ct_run_parse_pair(field, lambdas)) return CT_OK;
    ct_output_pair_name(lambdas[0], lambdas[1], name, sizeof name);
    int length = snprintf(pair.dir, sizeof pair.dir, "%s/%s", old->dir, name);
    if (length < 0 || (size_t)length >= sizeof pair.dir) return CT_OK;
    CT_TRY(ct_split(old->config.seeds, clear_seed, &pair));
    return clear_folder(old->run, pair.dir);
}

static ct_status clear_old(const ct_run *run) {
    old_run old = {.run = run};
    ct_config_init(&old.config);
    snprintf(old.dir, sizeof old.dir, "%s", run->config.out);
    char *path = ct_path_join(old.dir, "config.txt");
    bool is_known = path != NULL && ct_file_exists(path) &&
                    CT_CATCH(NULL, ct_config_read(&old.config, path)) == CT_OK;
    ct_free(path);
    if (!is_known) return CT_OK;
    if (old.config.lambdas[0] != '\0') return ct_split(old.config.lambdas, clear_pair, &old);
    return ct_split(old.config.seeds, clear_seed, &old);
}

ct_status ct_output_claim(const ct_run *run) {
    /* before config.txt goes: were this cut short, the next one must still find them */
    if (run->config.force) CT_TRY(clear_old(run));
    CT_TRY(claim_dir(&run->config, run->config.out));
    for (int k = 0; k < run->n_worlds && run->n_worlds > 1; k++)
        CT_TRY(claim_dir(&run->config, run->worlds[k].dir));
    for (int k = 0; k < run->n_worlds && run->lambdas != NULL; k += run->n_seeds) {
        char dir[CT_CONFIG_TEXT];
        CT_TRY(ct_output_pair_dir(run, run->config.out, k, dir, sizeof dir));
        CT_TRY(claim_dir(&run->config, dir));
    }
    return CT_OK;
}
