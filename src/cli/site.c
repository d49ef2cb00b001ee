/* crosstalk site: keygen, check, run, status. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "record/file.h"
#include "run/site_train.h"
#include "util/budget.h"
#include "util/file.h"
#include "util/json.h"
#include "util/memory.h"

const ct_help ct_cli_site_help = {
    .usage = "site keygen [--key FILE]\n"
             "site check FEDERATION [--key FILE] [--data-dir DIR]\n"
             "site run FEDERATION --data-dir DIR [--key FILE] [--option value ...]\n"
             "site status FEDERATION|RUN [--key FILE]",
    .text = "Trains one model between sites that keep their data. Every site is an agent and "
            "talks to its neighbours alone, encrypted and authenticated; there is no server. "
            "FEDERATION is a text file, the same at all sites:\n\n"
            "  federation lungs\n"
            "  site north 5f6c...d2 north.example.org:4711   name, public key, address\n"
            "  site south 09ab...77                          no address: it dials\n"
            "  edge north south                              or all edges: graph ring\n"
            "  option dataset folder                         of train, for all sites\n"
            "  option algorithm ccl\n\n"
            "At every site: make a key pair (keygen) and send the public half to the others; "
            "write the file; check it (check); start (run).",
    .own = "-",
    .examples = CT_HELP_PAIRS(
        {"At the site north.",
         "crosstalk site keygen --key north.key\n"
         "crosstalk site check lungs.conf --key north.key --data-dir /data/scans\n"
         "crosstalk site run lungs.conf --key north.key --data-dir /data/scans"},
        {"Meanwhile, in another terminal.", "crosstalk site status lungs.conf --key north.key"}),
    .also = "train, docs/SITES.md"};

const ct_help ct_cli_site_keygen_help = {
    .usage = "site keygen [--key FILE]",
    .text = "Makes this site's key pair. The public half is printed on standard output; it is "
            "for the federation's file. The secret half stays in FILE, which only its owner "
            "can read. A key that exists is never overwritten.",
    .own = "key",
    .files = CT_HELP_PAIRS({"site.key", "the key pair (--key names another file)"}),
    .examples = CT_HELP_PAIRS(
        {"A key in site.key.", "crosstalk site keygen"},
        {"Only the public half, for a script.", "crosstalk site keygen --key north.key --quiet"}),
    .also = "site check, site run, docs/SITES.md"};

const ct_help ct_cli_site_check_help = {
    .usage = "site check FEDERATION [--key FILE] [--data-dir DIR]",
    .text = "Says what is wrong with the federation's file: sites, edges, graph, options. With "
            "--key also whether this site's key is in it, and with --data-dir whether its data "
            "fits. Talks to nobody.",
    .own = "key, site",
    .takes = "data-dir",
    .examples =
        CT_HELP_PAIRS({"The file alone.", "crosstalk site check lungs.conf"},
                      {"This site's key and data as well.",
                       "crosstalk site check lungs.conf --key north.key --data-dir /data/scans"}),
    .also = "site run, docs/SITES.md"};

const ct_help ct_cli_site_run_help = {
    .usage = "site run FEDERATION --data-dir DIR [--key FILE] [--option value ...]",
    .text = "Waits for the neighbours and trains with them. The same command resumes after any "
            "interruption; the others go on meanwhile. SIGHUP reads the federation's file "
            "again, for example with a new site. Options of this site alone (--data-dir, "
            "--out, --device, --threads) stand on the command line, all others in the file.",
    .own = "key, site, listen, patience",
    .takes = "data-dir, out, device, threads, quiet",
    .files = CT_HELP_PAIRS({"runs/FEDERATION-SITE/", "the run directory, as train writes it"},
                           {"site.json, sent.jsonl",
                            "in it: how this site and its neighbours stand, and what left it"}),
    .examples = CT_HELP_PAIRS(
        {"With this site's own data.",
         "crosstalk site run lungs.conf --key north.key --data-dir /data/scans"},
        {"Behind a firewall that forwards port 5000.",
         "crosstalk site run lungs.conf --key north.key --data-dir /data/scans --listen "
         "0.0.0.0:5000"}),
    .also = "site status, serve, docs/SITES.md"};

const ct_help ct_cli_site_status_help = {
    .usage = "site status FEDERATION|RUN [--key FILE]",
    .text = "Shows how this site stands: its phase and iteration, its neighbours, how far they "
            "are, and what was sent and received. crosstalk serve shows the same in a browser.",
    .own = "key, site",
    .takes = "out",
    .examples =
        CT_HELP_PAIRS({"By its file and key.", "crosstalk site status lungs.conf --key north.key"},
                      {"By its run directory.", "crosstalk site status runs/lungs-north"}),
    .also = "site run, serve"};

typedef struct site_args {
    ct_own own;
    ct_site_plan plan;
    const char *words[2]; /* sub-command and its word; NULL: there is none */
} site_args;

static ct_status keygen(site_args *a) {
    ct_key_pair pair;
    char text[CT_KEY_TEXT];
    CT_TRY(ct_keys_make(&pair));
    CT_TRY(ct_keys_write(&pair, a->plan.key));
    ct_key_print(pair.public_key, text);
    ct_show(stdout, "%s\n", text);
    if (!a->plan.local.quiet)
        ct_show(stderr,
                "the secret half is in %s and stays there; a line for the federation's file:\n"
                "    site NAME %s HOST:PORT\n",
                a->plan.key, text);
    return CT_OK;
}

/* ---- check ---- */

static void show_edges(const ct_federation *f, int i) {
    for (int e = f->graph.begin[i]; e < f->graph.begin[i + 1]; e++) {
        int j = f->graph.neighbour[e];
        ct_show(stdout, "%s%s", e > f->graph.begin[i] ? ", " : "", f->sites[j].name);
        if (ct_federation_dials(f, i, j)) ct_show(stdout, " (dials it)");
    }
    ct_show(stdout, "\n");
}

static ct_status show_federation(const ct_federation *f) {
    CT_SCOPED(ct_sparse) w = {0};
    CT_SCOPED(ct_text) options = {0};
    ct_topology_facts facts;
    char fingerprint[CT_FINGERPRINT];
    ct_federation_fingerprint(f, fingerprint);
    CT_TRY(ct_mixing_create(&f->graph, f->options.weights, &w));
    CT_TRY(ct_topology_measure(&f->graph, &w, &facts));
    ct_show(stdout, "federation %s, %s: %d sites, %d edges, diameter %d, spectral gap %.4f\n",
            f->name, fingerprint, f->n_sites, f->n_edges, facts.diameter, facts.spectral_gap);
    for (int i = 0; i < f->n_sites; i++) {
        const char *address = f->sites[i].address;
        ct_show(stdout, "  %-16s %-28s ", f->sites[i].name,
                address[0] != '\0' ? address : "(cannot be dialled)");
        show_edges(f, i);
    }
    ct_config_print_command(&f->options, &options);
    CT_TRY(ct_text_status(&options));
    ct_show(stdout, "trains with%s\n", options.n > 0 ? options.chars : " the defaults");
    return CT_OK;
}

static ct_status show_data(const ct_config *config) {
    CT_SCOPED(ct_dataset) d = {0};
    CT_TRY(ct_run_open_data(config, 0, &d));
    ct_show(stdout, "%s: %s, %zu training and %zu test samples, %d classes, %dx%dx%d\n", d.source,
            d.name, d.train.n, d.test.n, d.n_classes, d.train.channels, d.train.height,
            d.train.width);
    for (int c = 0; c < d.n_classes && d.class_names != NULL; c++)
        ct_show(stdout, "%s%s", c > 0 ? ", " : "  ", ct_dataset_class_name(&d, c));
    if (d.class_names != NULL) ct_show(stdout, "\n");
    return CT_OK;
}

static ct_status check_site(site_args *a, const ct_federation *f) {
    ct_key_pair key;
    ct_inputs inputs;
    ct_edges edges;
    ct_config config;
    const ct_algo *algo;
    int me;
    CT_TRY(ct_site_plan_check(&a->plan, f, &key, &me));
    CT_TRY(ct_site_config(&a->plan, f, me, &inputs, &edges, &config));
    ct_show(stdout, "this is %s; its run goes to %s\n", f->sites[me].name, config.out);
    bool has_data = config.data_dir[0] != '\0';
    snprintf(config.partition, sizeof config.partition, "iid"); /* of this site's data, all of it */
    if (has_data) CT_TRY(ct_run_name_data(&config));
    CT_TRY(ct_config_choose(&config));
    CT_TRY(ct_algo_find(config.algorithm, &algo));
    CT_TRY(ct_algo_check_sites(algo));
    return has_data ? show_data(&config) : CT_OK;
}

static ct_status check(site_args *a) {
    CT_SCOPED(ct_federation) f = {0};
    CT_TRY(ct_federation_read(a->plan.federation, &f));
    CT_TRY(show_federation(&f));
    bool is_here = a->plan.site != NULL || ct_own_is_given(&a->own, "key");
    if (!is_here) return CT_OK;
    CT_TRY(check_site(a, &f));
    CT_SCOPED(ct_text) words = {0};
    const char *const parts[] = {"site run ", a->plan.federation, " --key ", a->plan.key};
    for (int k = 0; k < 4; k++)
        if (k % 2 == 0)
            ct_text_add(&words, "%s", parts[k]);
        else
            ct_shell_add(&words, parts[k]);
    ct_text_add(&words, " --data-dir ");
    ct_shell_add(&words, a->plan.local.data_dir[0] != '\0' ? a->plan.local.data_dir : "DIR");
    CT_TRY(ct_text_status(&words));
    ct_cli_next("%s", words.chars);
    return CT_OK;
}

/* ---- status ---- */

/* A site that runs tells how far it is every few heartbeats. */
#define QUIET_HEARTBEATS 10

static double number_of(const ct_json *object, const char *key) {
    const ct_json *value = ct_json_get(object, key);
    bool fits = value != NULL && (value->kind == CT_JSON_NUMBER || value->kind == CT_JSON_BOOL);
    return fits ? value->number : NAN;
}

static const char *word_of(const ct_json *object, const char *key) {
    const ct_json *value = ct_json_get(object, key);
    return value != NULL && value->kind == CT_JSON_STRING ? value->string : "?";
}

static void show_neighbour(const ct_json *n) {
    ct_show(stdout, "  %-16s %-9s %9.0f %10.0f s %11.1f MB %11.1f MB %8.1f ms  %s\n",
            word_of(n, "name"), word_of(n, "phase"), number_of(n, "iteration"),
            number_of(n, "for_s"), 1e-6 * number_of(n, "bytes_sent"),
            1e-6 * number_of(n, "bytes_received"), number_of(n, "rtt_ms"), word_of(n, "note"));
}

static ct_status show_status(const char *dir) {
    CT_SCOPED(ct_blob) file = {0};
    CT_SCOPED_HANDLE(ct_json) status = NULL;
    ct_path path = ct_record_path(dir, CT_FILE_SITE);
    if (!ct_file_exists(path.text))
        return ct_fail(CT_IO,
                       "%s: no site has run here, or it still waits for others to begin with; "
                       "@out says where one runs",
                       dir);
    CT_TRY(ct_file_read(path.text, CT_MAX_RECORD_BYTES, &file));
    CT_TRY(ct_json_parse((const char *)file.bytes, file.n, path.text, &status));
    double age_s = (double)time(NULL) - number_of(status, "time");
    bool is_silent = age_s > QUIET_HEARTBEATS * number_of(status, "heartbeat_s") + 1;
    bool is_over = strcmp(word_of(status, "phase"), "finished") == 0;
    ct_show(stdout, "%s of %s: %s%s, iteration %.0f of %.0f, told %.0f s ago\n",
            word_of(status, "site"), word_of(status, "federation"), word_of(status, "phase"),
            is_silent && !is_over ? " when last heard of (it is busy, or does not run)" : "",
            number_of(status, "iteration"), number_of(status, "n_iterations"), age_s);
    ct_show(stdout, "  %-16s %-9s %9s %12s %14s %14s %11s  %s\n", "neighbour", "phase", "iteration",
            "for", "sent", "received", "round trip", "note");
    const ct_json *list = ct_json_get(status, "neighbours");
    for (const ct_json *n = list != NULL ? list->child : NULL; n != NULL; n = n->next)
        show_neighbour(n);
    return CT_OK;
}

/* Where this site's run lies. */
static ct_status find_run(const site_args *a, ct_path *out) {
    CT_SCOPED(ct_federation) f = {0};
    ct_key_pair key;
    ct_inputs inputs;
    ct_edges edges;
    ct_config config;
    int me;
    CT_TRY(ct_federation_read(a->plan.federation, &f));
    *out = ct_path_in("", a->plan.local.out);
    if (a->plan.local.given[CT_OPT_out]) return CT_OK;
    CT_TRY(ct_site_plan_check(&a->plan, &f, &key, &me));
    CT_TRY(ct_site_config(&a->plan, &f, me, &inputs, &edges, &config));
    *out = ct_path_in("", config.out);
    return CT_OK;
}

static ct_status status(site_args *a) {
    ct_path dir;
    if (ct_dir_exists(a->plan.federation)) return show_status(a->plan.federation);
    CT_TRY(find_run(a, &dir));
    return show_status(dir.text);
}

/* ---- all of them ---- */

static ct_status run(site_args *a) {
    ct_path dir;
    ct_cli_outlive_readers();
    bool is_known = CT_CATCH(NULL, find_run(a, &dir)) == CT_OK; /* if not, training says why */
    CT_TRY(ct_site_train(&a->plan));
    return a->plan.local.quiet || !is_known ? CT_OK : ct_cli_tell_result(dir.text);
}

static const struct {
    const char *name;
    bool has_file;
    ct_status (*act)(site_args *a);
} actions[] = {{"keygen", false, keygen},
               {"check", true, check},
               {"run", true, run},
               {"status", true, status}};

ct_status ct_cli_site(int n_args, char **args) {
    site_args a = {.plan.patience_s = 0};
    ct_config_init(&a.plan.local);
    CT_TRY(ct_own_take("site", &n_args, args, &a.own));
    CT_TRY(ct_cli_options(n_args, args, &a.plan.local, a.words, 2));
    ct_cli_quiet(a.plan.local.quiet);
    a.plan.federation = a.words[1];
    a.plan.site = ct_own_text(&a.own, "site");
    a.plan.key = ct_own_text(&a.own, "key");
    a.plan.listen = ct_own_text(&a.own, "listen");
    ct_parse_double(ct_own_text(&a.own, "patience"), &a.plan.patience_s);
    for (size_t k = 0; k < sizeof actions / sizeof *actions && a.words[0] != NULL; k++) {
        if (strcmp(a.words[0], actions[k].name) != 0) continue;
        if (actions[k].has_file && a.words[1] == NULL)
            return ct_fail(CT_INVAL, "site %s needs the federation's file (crosstalk help site %s)",
                           a.words[0], a.words[0]);
        if (!actions[k].has_file && a.words[1] != NULL)
            return ct_fail(CT_INVAL, "site %s takes no word more, not '%s'", a.words[0],
                           a.words[1]);
        return actions[k].act(&a);
    }
    if (a.words[0] != NULL) return ct_cli_no_part("site", a.words[0]);
    return ct_fail(CT_INVAL, "say what: keygen, check, run or status (crosstalk help site)");
}
