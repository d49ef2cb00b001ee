#include "run/site_train.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "record/file.h"
#include "run/output.h"
#include "run/signals.h"
#include "run/training.h"
#include "util/log.h"
#include "util/memory.h"
#include "util/version.h"

/* Class sums of single samples are their features: they stay at home. */
#define SITE_MIN_CLASS_COUNT 2

/* ---- what is asked for ---- */

ct_status ct_site_plan_check(const ct_site_plan *plan, const ct_federation *f, ct_key_pair *key,
                             int *me) {
    if (plan->key == NULL)
        return ct_refuse("key", "which key is this site's? @key FILE, as site keygen wrote it");
    if (!ct_file_exists(plan->key))
        return ct_refuse("key",
                         "there is no key file %s; name it with @key, or make one with "
                         "crosstalk site keygen",
                         plan->key);
    CT_TRY(ct_keys_read(plan->key, key));
    *me = ct_federation_find_key(f, key->public_key);
    int named = plan->site != NULL ? ct_federation_find(f, plan->site) : *me;
    if (plan->site != NULL && named < 0)
        return ct_refuse("site", "%s has no site '%s'", plan->federation, plan->site);
    if (*me < 0 || named != *me)
        return ct_fail(CT_INVAL, "%s: no site %s%swith the public key of %s", plan->federation,
                       plan->site != NULL ? plan->site : "", plan->site != NULL ? " " : "",
                       plan->key);
    return CT_OK;
}

/* What a site may say for itself changes no numbers. */
static ct_status check_local(const ct_config *local) {
    const unsigned own = CT_ROLE_LOCAL | CT_ROLE_RANK;
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        const ct_option *o = &ct_run_options[id];
        if (!local->named[id] || ((o->roles & own) != 0 && id != CT_OPT_transport)) continue;
        return ct_refuse(o->name,
                         "@%s is the same for all sites: it belongs in the federation's "
                         "file, as 'option %s ...'",
                         o->name, o->name);
    }
    return CT_OK;
}

/* Names for messages and pages, where there is room for all of them. */
static void name_agents(const ct_federation *f, ct_config *out) {
    size_t n = 0;
    for (int i = 0; i < f->n_sites; i++) n += strlen(f->sites[i].name) + 1;
    if (n > sizeof out->agent_names) return;
    out->agent_names[0] = '\0';
    for (int i = 0, at = 0; i < f->n_sites; i++)
        at += snprintf(out->agent_names + at, sizeof out->agent_names - (size_t)at, "%s%s",
                       i > 0 ? "," : "", f->sites[i].name);
}

static void choose_out(const ct_federation *f, int me, ct_config *out) {
    if (!out->given[CT_OPT_out])
        snprintf(out->out, sizeof out->out, "runs/%s-%s", f->name, f->sites[me].name);
    out->given[CT_OPT_out] = true;
}

ct_status ct_site_config(const ct_site_plan *plan, const ct_federation *f, int me,
                         ct_inputs *inputs, ct_edges *edges, ct_config *out) {
    CT_TRY(check_local(&plan->local));
    *out = f->options;
    ct_config_override(out, &plan->local);
    out->quiet = plan->local.quiet;
    out->agents = f->n_sites;
    snprintf(out->partition, sizeof out->partition, "%s", CT_PARTITION_OWN);
    snprintf(out->transport, sizeof out->transport, "local");
    name_agents(f, out);
    choose_out(f, me, out);
    out->given[CT_OPT_agents] = out->given[CT_OPT_partition] = true;
    out->given[CT_OPT_topology] = out->given[CT_OPT_agent_names] = true;
    if (!f->options.given[CT_OPT_min_class_count]) out->min_class_count = SITE_MIN_CLASS_COUNT;
    if (f->graph_name[0] != '\0') {
        snprintf(out->topology, sizeof out->topology, "%s", f->graph_name);
        return CT_OK;
    }
    snprintf(out->topology, sizeof out->topology, "own");
    *edges = (ct_edges){sizeof *edges, f->n_edges, (const int(*)[2])f->edges};
    *inputs = (ct_inputs){.size = sizeof *inputs, .graph = edges};
    out->inputs = inputs;
    return CT_OK;
}

/* ---- one life: until the end, a signal, or another file ---- */

typedef struct life {
    const ct_site_plan *plan;
    ct_federation federation;
    ct_key_pair key;
    int me;
    ct_inputs inputs;
    ct_edges edges;
    ct_config config;
    ct_site *site;
    ct_checkpoint *checkpoint;
    bool is_done;
    ct_text unwritten; /* lines of sent.jsonl that there was no room for yet */
} life;

/* ---- what it tells its own people: site.json and sent.jsonl ---- */

static ct_status write_status(const char *dir, ct_site *site) {
    CT_SCOPED(ct_text) text = {0};
    ct_site_print_status(site, &text);
    CT_TRY(ct_text_status(&text));
    return ct_file_replace(ct_record_path(dir, CT_FILE_SITE).text, text.chars, text.n);
}

static ct_status write_sent(const char *dir, ct_text *lines) {
    CT_TRY(ct_text_status(lines));
    if (lines->n == 0) return CT_OK;
    CT_TRY(ct_file_append(ct_record_path(dir, CT_FILE_SENT).text, lines->chars, lines->n));
    ct_text_free(lines);
    return CT_OK;
}

/* A disk that is full does not end a training. */
static void tell(void *context, ct_site *site) {
    life *l = context;
    const char *dir = l->config.out;
    ct_site_print_sent(site, &l->unwritten);
    if (!ct_record_has(dir, CT_FILE_CONFIG)) return; /* the run has not begun */
    (void)CT_CATCH(NULL, write_status(dir, site));
    (void)CT_CATCH(NULL, write_sent(dir, &l->unwritten));
}

/* ---- its beginning and end ---- */

static void life_free(life *l) {
    ct_text_free(&l->unwritten);
    ct_checkpoint_free(&l->checkpoint);
    ct_site_close(&l->site);
    ct_federation_free(&l->federation);
}

/* A run that is over was one of this federation's file. Older versions did not say. */
static ct_status check_finished(const life *l) {
    CT_SCOPED(ct_blob) file = {0};
    CT_SCOPED_HANDLE(ct_json) status = NULL;
    ct_path path = ct_record_path(l->config.out, CT_FILE_SITE);
    char ours[CT_FINGERPRINT];
    if (!ct_file_exists(path.text)) return CT_OK;
    CT_TRY(ct_file_read(path.text, CT_MAX_RECORD_BYTES, &file));
    CT_TRY(ct_json_parse((const char *)file.bytes, file.n, path.text, &status));
    const ct_json *theirs = ct_json_get(status, "file");
    ct_federation_fingerprint(&l->federation, ours);
    if (theirs == NULL || theirs->kind != CT_JSON_STRING || strcmp(theirs->string, ours) == 0)
        return CT_OK;
    return ct_fail(CT_DIFFERS,
                   "%s is finished, with another federation file (%s, ours is %s): name another "
                   "@out, or give the federation another name",
                   l->config.out, theirs->string, ours);
}

/* What is in --out: a run to go on with, one that is over, or nothing. */
static ct_status find_state(life *l) {
    const char *dir = l->config.out;
    if (!ct_record_has(dir, CT_FILE_CONFIG) || l->config.force) return CT_OK;
    CT_TRY(ct_record_is_finished(dir, &l->is_done));
    if (l->is_done) CT_TRY(check_finished(l));
    memcpy(l->config.resume, dir, sizeof l->config.resume);
    return l->is_done ? CT_OK : ct_checkpoint_open_site(dir, l->me, &l->checkpoint);
}

static ct_status take_agreement(life *l) {
    CT_SCOPED(ct_blob) file = {0};
    ct_path path = ct_record_path(l->config.out, CT_FILE_AGREEMENT);
    if (l->config.resume[0] == '\0' || !ct_file_exists(path.text)) return CT_OK;
    CT_TRY(ct_file_read(path.text, CT_MAX_RECORD_BYTES, &file));
    return ct_site_take_agreed(l->site, (const char *)file.bytes, file.n, path.text);
}

static ct_status open_site(life *l) {
    char program[128];
    snprintf(program, sizeof program, "%.60s (%.60s)", CT_VERSION, ct_commit);
    ct_site_options options = {.federation = &l->federation,
                               .me = l->me,
                               .key = &l->key,
                               .listen = l->plan->listen,
                               .program = program,
                               .timeout_s = l->config.timeout,
                               .patience_s = l->plan->patience_s,
                               .tell = tell,
                               .context = l,
                               .signal = ct_signals_seen};
    CT_TRY(ct_site_open(&options, &l->site));
    l->config.site = l->site;
    return take_agreement(l);
}

static ct_status train(life *l) {
    CT_SCOPED_BY(ct_run_clear, ct_run) run = {0};
    CT_TRY(ct_run_build(&l->config, &run));
    CT_TRY(ct_training_begin(&run, l->checkpoint, ct_signals_seen));
    CT_TRY(ct_training_advance(&run, 0));
    ct_site_linger(l->site);
    return CT_OK;
}

/* A file that is wrong when it is read again does not end a site that trains. */
static ct_status read_federation(const ct_site_plan *plan, ct_federation *before,
                                 ct_federation *out) {
    ct_error error;
    ct_status status = CT_CATCH(&error, ct_federation_read(plan->federation, out));
    if (status == CT_OK || before->n_sites == 0)
        return status == CT_OK ? CT_OK : ct_fail_again(&error);
    ct_log(CT_LOG_WARNING, "%s; going on with the file as it was", error.text);
    ct_move(out, before);
    return CT_OK;
}

/* kept: the federation of the life before, and then of this one. */
static ct_status live(const ct_site_plan *plan, ct_federation *kept) {
    CT_SCOPED(life) l = {.plan = plan};
    CT_TRY(read_federation(plan, kept, &l.federation));
    ct_federation_free(kept);
    CT_TRY(ct_site_plan_check(plan, &l.federation, &l.key, &l.me));
    CT_TRY(ct_site_config(plan, &l.federation, l.me, &l.inputs, &l.edges, &l.config));
    CT_TRY(find_state(&l));
    if (l.is_done) {
        ct_note("%s is finished already", l.config.out);
        return CT_OK;
    }
    CT_TRY(open_site(&l));
    ct_error error;
    ct_status status = CT_CATCH(&error, train(&l));
    tell(&l, l.site);
    if (status == CT_OK) return CT_OK;
    ct_site_close(&l.site);
    ct_move(kept, &l.federation);
    return ct_fail_again(&error);
}

ct_status ct_site_train(const ct_site_plan *plan) {
    ct_site_plan now = *plan;
    CT_SCOPED(ct_federation) kept = {0};
    ct_error error;
    ct_status status;
    do {
        ct_signals_catch();
        status = CT_CATCH(&error, live(&now, &kept));
        int signal = ct_signals_seen();
        ct_signals_restore();
        if (status != CT_STOPPED || signal != SIGHUP) break;
        now.local.force = false; /* what was begun goes on */
        ct_note("reading %s again", plan->federation);
    } while (true);
    return status == CT_OK ? CT_OK : ct_fail_again(&error);
}
