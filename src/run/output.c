#include "run/output.h"

#include <math.h>
#include <string.h>

#include "record/folder.h"
#include "run/output_internal.h"
#include "run/restart.h"
#include "run/together.h"
#include "util/file.h"
#include "util/memory.h"

/* The options of all seeds of a world's pair of lambdas. */
static ct_config pair_config(const ct_run *run, int world) {
    ct_config c = run->config;
    c.lambda_m = run->worlds[world].lambda_m;
    c.lambda_d = run->worlds[world].lambda_d;
    c.lambdas[0] = '\0';
    return c;
}

/* A world's own options: its seed, its lambdas and its directory. */
static ct_config world_config(const ct_run *run, int world) {
    ct_config c = pair_config(run, world);
    c.seed = (int64_t)run->worlds[world].seed;
    c.seeds[0] = '\0';
    memcpy(c.out, run->worlds[world].dir, sizeof c.out);
    return c;
}

/* Whether this rank writes the record of all agents, */
static bool writes(const ct_run *run) {
    return ct_run_leads(run) && !ct_run_writes_nothing(run);
}

/* or looks after a folder: its own, or rank 0's, which has the record. */
static bool keeps(const ct_run *run) {
    return ct_run_keeps(run) && !ct_run_writes_nothing(run);
}

/* ---- the beginning ---- */

static ct_status begin_world(const ct_run *run, int world) {
    const ct_world *w = &run->worlds[world];
    ct_config config = world_config(run, world);
    size_t n_counts = (size_t)w->graph.n * (size_t)run->dataset.n_classes;
    CT_TRY(ct_record_write_options(w->dir, &config));
    /* numbers of samples say nothing where every agent counts its own */
    if (!run->is_own) CT_TRY(ct_record_write_partition(w->dir, &w->partition));
    return ct_record_write_setting(
        w->dir, &run->identity, &run->dataset, &w->graph, config.agent_names,
        run->class_counts != NULL ? run->class_counts + (size_t)world * n_counts : NULL);
}

/* What ct_output_resume will need, looked at before anything is written. */
static ct_status check_metrics(const ct_run *run, const ct_checkpoint *checkpoint) {
    for (int k = 0; k < run->n_worlds; k++) {
        char dir[CT_CONFIG_TEXT];
        CT_TRY(ct_output_world_dir(run, run->config.resume, k, dir, sizeof dir));
        CT_TRY(ct_record_check_metrics(dir, ct_checkpoint_metrics_bytes(checkpoint, k)));
    }
    return CT_OK;
}

/* A run that begins again, as it had no checkpoint, is the one that was begun. */
static ct_status check_begun(const ct_run *run) {
    CT_SCOPED_HANDLE(ct_json) setting = NULL;
    const char *dir = run->worlds[0].dir;
    if (!ct_record_has(dir, CT_FILE_SETTING) || run->config.site != NULL) return CT_OK;
    CT_TRY(ct_record_read_file(dir, CT_FILE_SETTING, &setting));
    const ct_json *begun = ct_json_get(setting, "identity");
    return begun != NULL ? ct_identity_check(&run->identity, begun) : CT_OK;
}

static ct_status claim(const ct_run *run, const char *dir) {
    return ct_record_claim(dir, run->config.force);
}

static ct_status clean(const ct_run *run, const char *dir) {
    (void)run;
    ct_record_clean(dir);
    return CT_OK;
}

static ct_status begin_again(const ct_run *run, const char *dir) {
    (void)run;
    return ct_record_begin_again(dir);
}

/* May the run be written here? Nothing of an earlier one is touched yet. */
static ct_status check_begin(const ct_run *run, const ct_checkpoint *checkpoint, int *lock) {
    const ct_config *c = &run->config;
    if (!keeps(run)) return CT_OK;
    if (checkpoint != NULL && writes(run)) CT_TRY(check_metrics(run, checkpoint));
    CT_TRY(ct_dir_create(c->out));
    CT_TRY(ct_output_lock(run, lock));
    if (ct_dir_is_same(c->resume, c->out)) return checkpoint == NULL ? check_begun(run) : CT_OK;
    if (c->force) return CT_OK;
    CT_TRY(ct_restart_offer(c, run->named_out));
    return ct_output_each(run, claim);
}

static ct_status write_begin(const ct_run *run, const ct_checkpoint *checkpoint) {
    const ct_config *c = &run->config;
    if (ct_dir_is_same(c->resume, c->out)) {
        CT_TRY(ct_output_each(run, checkpoint != NULL ? clean : begin_again));
    } else if (c->force) {
        /* before config.txt goes: were this cut short, the next one must still find them */
        CT_TRY(ct_record_clear_inside(c->out, c->resume));
        CT_TRY(ct_output_each(run, claim));
    }
    if (run->n_worlds > 1) CT_TRY(ct_record_write_options(c->out, c));
    for (int k = 0; k < run->n_worlds; k++) CT_TRY(begin_world(run, k));
    return CT_OK;
}

/* Rank 0 before the others: a run that it calls finished is so everywhere. */
static ct_status in_turn(const ct_run *run, const ct_checkpoint *checkpoint,
                         ct_status (*act)(const ct_run *run, const ct_checkpoint *checkpoint)) {
    ct_error error;
    (void)CT_CATCH(&error, writes(run) ? act(run, checkpoint) : CT_OK);
    CT_TRY(ct_together(run->transport, &error));
    (void)CT_CATCH(&error, keeps(run) && !writes(run) ? act(run, checkpoint) : CT_OK);
    return ct_together(run->transport, &error);
}

ct_status ct_output_begin(const ct_run *run, const ct_checkpoint *checkpoint, int *lock) {
    ct_error error;
    (void)CT_CATCH(&error, check_begin(run, checkpoint, lock));
    CT_TRY(ct_together(run->transport, &error));
    return in_turn(run, checkpoint, write_begin);
}

static ct_status forget(const ct_run *run, const char *dir) {
    (void)run;
    return ct_record_forget(dir);
}

static ct_status take_back(const ct_run *run, const ct_checkpoint *checkpoint) {
    CT_TRY(ct_output_each(run, forget));
    for (int k = 0; k < run->n_worlds && writes(run); k++) {
        char from[CT_CONFIG_TEXT];
        CT_TRY(ct_output_world_dir(run, run->config.resume, k, from, sizeof from));
        CT_TRY(ct_record_resume_metrics(from, run->worlds[k].dir,
                                        ct_checkpoint_metrics_bytes(checkpoint, k), &run->config));
    }
    return CT_OK;
}

ct_status ct_output_resume(const ct_run *run, const ct_checkpoint *checkpoint) {
    return in_turn(run, checkpoint, take_back);
}

/* ---- an epoch ---- */

ct_status ct_output_settle(ct_run *run) {
    for (int k = 0; k < run->n_worlds && writes(run); k++) {
        ct_world *w = &run->worlds[k];
        CT_TRY(ct_record_write_epochs(w->dir, &run->config, &w->unwritten));
    }
    return CT_OK;
}

ct_status ct_output_epoch(ct_run *run, int world, const ct_epoch *e) {
    const char *dir = run->worlds[world].dir;
    size_t n = (size_t)run->dataset.n_classes;
    if (!writes(run)) return CT_OK;
    ct_record_add_epoch(&run->worlds[world].unwritten, &run->config, e);
    CT_TRY(ct_record_write_epochs(dir, &run->config, &run->worlds[world].unwritten));
    if (!e->is_evaluated) return CT_OK;
    return ct_record_write_evaluation(
        dir, e, run->n_tested, run->dataset.n_classes,
        run->local_accuracy + world * run->agents.n_agents, run->agents.n_agents,
        run->confusion != NULL && ct_run_is_tested(run) ? run->confusion + (size_t)world * n * n
                                                        : NULL);
}

/* ---- the end ---- */

static ct_costs costs_of(const ct_run *run, int world, long iterations) {
    ct_cost macs = ct_run_cost(run);
    double n = iterations > 0 ? (double)iterations : 1;
    return (ct_costs){
        .own_macs = macs.own_macs,
        .cross_macs = macs.cross_macs,
        .parameter_bytes = ct_run_mean_sent(run, world, CT_TRAFFIC_PARAMETERS) / n,
        .class_sum_bytes = ct_run_mean_sent(run, world, CT_TRAFFIC_CLASS_SUMS) / n,
        .waited_s = ct_transport_waited_s(run->transport),
        .data_wait_s = ct_run_data_wait(run),
        .peak_memory_bytes = ct_peak_bytes(),
    };
}

/* Of n_seeds worlds from this one on; of several, costs and setting are the first one's. */
static ct_status write_summary(const ct_run *run, int world, int n_seeds, const ct_config *config,
                               const ct_epoch *last) {
    ct_summary s = {
        .config = config,
        .last = last + world,
        .seeds = run->seeds,
        .n_seeds = n_seeds,
        .n_parameters = run->graph.n_weights,
        .n_features = ct_graph_n_features(&run->graph),
        .costs = costs_of(run, world, last[world].iteration),
        .topology = &run->worlds[world].topology_facts,
        .partition = &run->worlds[world].partition_facts,
        .identity = &run->identity,
        .data_source = run->dataset.source,
        .n_threads = run->backend->n_threads,
        .n_ranks = ct_transport_n_ranks(run->transport),
    };
    return ct_record_write_summary(&s);
}

/* Of the seeds from world `first` on, which have the same lambdas. */
static ct_status write_means(const ct_run *run, int first, const ct_epoch *last) {
    ct_config config = pair_config(run, first);
    CT_TRY(ct_output_pair_dir(run, run->config.out, first, config.out, sizeof config.out));
    if (run->lambdas != NULL) CT_TRY(ct_record_write_options(config.out, &config));
    return write_summary(run, first, run->n_seeds, &config, last);
}

/* What every edge carried, of one world. */
static ct_status write_ledger(const ct_run *run, int world) {
    ct_text lines = {0};
    const ct_ledger_edge *edges = ct_ledger_edges(run->transport);
    int n = run->agents.n_agents;
    for (int e = 0; e < ct_ledger_n_edges(run->transport); e++)
        if (edges[e].from / n == world)
            ct_record_add_edge(&lines, edges[e].from % n, edges[e].to % n,
                               edges[e].bytes[CT_TRAFFIC_PARAMETERS],
                               edges[e].bytes[CT_TRAFFIC_CLASS_SUMS]);
    ct_status status = ct_record_write_ledger(run->worlds[world].dir, &lines);
    ct_text_free(&lines);
    return status;
}

/* Where ranks share a folder that is not rank 0's, the one that looks after it gets the models of
 * the others. */
static ct_status bring_agents(ct_run *run) {
    int n_rows = run->agents.n_rows, is_apart;
    is_apart = !ct_run_keeps(run) && ct_run_home(run, run->agents.first) != 0;
    CT_TRY(ct_transport_vote(run->transport, is_apart, &is_apart));
    if (is_apart == 0 || !run->config.save_agents) return CT_OK;
    if (!ct_run_leads(run))
        CT_TRY(ct_bank_create(run->backend, n_rows, 0, run->graph.n_weights, run->all_x));
    CT_TRY(ct_transport_spread(run->transport, &run->agents.x, run->all_x));
    if (run->graph.n_buffer_values == 0) return CT_OK;
    if (!ct_run_leads(run))
        CT_TRY(
            ct_bank_create(run->backend, n_rows, 0, run->graph.n_buffer_values, run->all_running));
    return ct_transport_spread(run->transport, &run->agents.running, run->all_running);
}

/* The mean of the models as they are now, to ranks that do not have it yet. */
static ct_status bring_consensus(ct_run *run) {
    int is_missing = !run->has_consensus;
    CT_TRY(ct_transport_vote(run->transport, is_missing, &is_missing));
    return is_missing != 0 ? ct_run_find_consensus(run) : CT_OK;
}

/* In a folder of its own, a rank knows no more than its own agents and the consensus model. */
static void leave_out_scores(const ct_run *run, ct_epoch *last) {
    for (int k = 0; k < run->n_worlds && keeps(run) && !writes(run); k++) {
        ct_evaluation *e = &last[k].evaluation;
        e->consensus_accuracy = e->consensus_loss = e->consensus_distance = NAN;
        e->averaged_accuracy = e->averaged_loss = NAN;
    }
}

static ct_status write_results(ct_run *run, const ct_epoch *last) {
    CT_TRY(ct_output_settle(run));
    for (int k = 0; k < run->n_worlds; k++) {
        const char *dir = run->worlds[k].dir;
        ct_config config = world_config(run, k);
        CT_TRY(ct_run_save_consensus(run, k, ct_record_path(dir, CT_FILE_CONSENSUS).text));
        if (ct_run_has_average(run))
            CT_TRY(ct_run_save_averaged(run, k, ct_record_path(dir, CT_FILE_AVERAGED).text));
        if (run->config.save_agents)
            CT_TRY(ct_run_save_agents(run, k, ct_record_path(dir, CT_FILE_AGENTS).text));
        if (run->config.ledger && writes(run)) CT_TRY(write_ledger(run, k));
        CT_TRY(write_summary(run, k, 1, &config, last));
    }
    for (int k = 0; k < run->n_worlds && run->n_seeds > 1; k += run->n_seeds)
        CT_TRY(write_means(run, k, last));
    return CT_OK;
}

/* Folders without the record before the one with it: whose summary is there, all are. */
ct_status ct_output_end(ct_run *run, ct_epoch *last) {
    ct_error error;
    if (run->homes != NULL) CT_TRY(bring_consensus(run));
    if (run->homes != NULL) CT_TRY(bring_agents(run));
    leave_out_scores(run, last);
    (void)CT_CATCH(&error, keeps(run) && !writes(run) ? write_results(run, last) : CT_OK);
    CT_TRY(ct_together(run->transport, &error));
    (void)CT_CATCH(&error, writes(run) ? write_results(run, last) : CT_OK);
    return ct_together(run->transport, &error);
}

ct_status ct_output_fail(const ct_run *run, const ct_error *error, long iteration, int row) {
    bool has_diverged = error->status == CT_DIVERGED;
    ct_record_end end = {.state = has_diverged ? CT_RECORD_DIVERGED : CT_RECORD_FAILED,
                         .iteration = iteration,
                         .agent = row >= 0 ? row % run->agents.n_agents : -1};
    if (!keeps(run) || error->status == CT_OK || error->status == CT_STOPPED) return CT_OK;
    memcpy(end.reason, error->text, sizeof end.reason);
    for (int k = 0; k < run->n_worlds; k++) {
        ct_config config = world_config(run, k);
        CT_TRY(ct_record_fail(config.out, &end, &config));
    }
    return run->n_worlds > 1 ? ct_record_fail(run->config.out, &end, &run->config) : CT_OK;
}
