#include "site/federation.h"

#include <stdio.h>
#include <string.h>

#include "util/budget.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/sha256.h"

#define DEFAULT_HEARTBEAT_S 2.0
#define MAX_WORDS           4
#define STATE_BYTES         100 /* of a site's state, and of each of its links, at the most */
#define LINK_BYTES          5

/* The file while it is read. */
typedef struct reading {
    const char *path;
    unsigned line;
    ct_federation *out;
} reading;

static ct_status wrong(const reading *r, const char *what, const char *word) {
    return ct_fail(CT_INVAL, "%s: line %u: %s '%s'", r->path, r->line, what, word);
}

static bool is_name(const char *text) {
    static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strlen(text);
    return n > 0 && n < CT_MESH_NAME && strspn(text, known) == n && text[0] != '-' &&
           text[0] != '.';
}

/* host:port, the host perhaps [v6]. */
static bool is_address(const char *text) {
    int64_t port = 0;
    const char *colon = strrchr(text, ':');
    bool fits = strlen(text) < CT_MESH_ADDRESS;
    return fits && colon != NULL && colon > text && strpbrk(text, "/@*;") == NULL &&
           ct_parse_i64(colon + 1, &port) && port >= 1 && port <= 65535;
}

void ct_federation_fingerprint(const ct_federation *f, char out[CT_FINGERPRINT]) {
    char hash[CT_KEY_TEXT];
    ct_key_print(f->hash, hash);
    snprintf(out, CT_FINGERPRINT, "%.16s", hash);
}

int ct_federation_find(const ct_federation *f, const char *name) {
    for (int i = 0; i < f->n_sites; i++)
        if (strcmp(f->sites[i].name, name) == 0) return i;
    return -1;
}

int ct_federation_find_key(const ct_federation *f, const uint8_t key[CT_KEY_BYTES]) {
    for (int i = 0; i < f->n_sites; i++)
        if (ct_keys_equal(f->sites[i].key, key)) return i;
    return -1;
}

/* ---- lines ---- */

static ct_status add_name(reading *r, char **words, int n) {
    (void)n;
    if (r->out->name[0] != '\0') return wrong(r, "there is a second name,", words[1]);
    if (!is_name(words[1]))
        return wrong(r, "a name has letters, digits, '.', '_' and '-', not", words[1]);
    snprintf(r->out->name, sizeof r->out->name, "%s", words[1]);
    return CT_OK;
}

static ct_status add_site(reading *r, char **words, int n) {
    ct_federation *f = r->out;
    ct_federation_site site = {0};
    if (!is_name(words[1]))
        return wrong(r, "a name has letters, digits, '.', '_' and '-', not", words[1]);
    if (ct_federation_find(f, words[1]) >= 0) return wrong(r, "there are two sites", words[1]);
    if (n < 3 || !ct_key_parse(words[2], site.key))
        return wrong(r, "a public key has 64 hexadecimal digits (crosstalk site keygen); site",
                     words[1]);
    if (ct_federation_find_key(f, site.key) >= 0)
        return wrong(r, "another site has the same key as", words[1]);
    if (n > 3 && !is_address(words[3])) return wrong(r, "an address is host:port, not", words[3]);
    if (f->n_sites == CT_MAX_SITES) return wrong(r, "there are too many sites:", words[1]);
    snprintf(site.name, sizeof site.name, "%s", words[1]);
    snprintf(site.address, sizeof site.address, "%s", n > 3 ? words[3] : "");
    CT_TRY(ct_extend(&f->sites, (size_t)f->n_sites, "the sites"));
    f->sites[f->n_sites++] = site;
    return CT_OK;
}

static ct_status add_edge(reading *r, char **words, int n) {
    ct_federation *f = r->out;
    int ends[2];
    if (n < 3) return wrong(r, "an edge joins two sites, not only", words[1]);
    for (int k = 0; k < 2; k++) {
        ends[k] = ct_federation_find(f, words[1 + k]);
        if (ends[k] < 0)
            return wrong(r, "sites stand before their edges; there is no", words[1 + k]);
    }
    if (ends[0] == ends[1]) return wrong(r, "an edge joins two sites, not only", words[1]);
    for (int e = 0; e < f->n_edges; e++)
        if ((f->edges[e][0] == ends[0] && f->edges[e][1] == ends[1]) ||
            (f->edges[e][0] == ends[1] && f->edges[e][1] == ends[0]))
            return wrong(r, "this edge is there twice, of", words[1]);
    CT_TRY(ct_extend(&f->edges, (size_t)f->n_edges, "the edges"));
    memcpy(f->edges[f->n_edges++], ends, sizeof ends);
    return CT_OK;
}

static ct_status add_graph(reading *r, char **words, int n) {
    (void)n;
    ct_federation *f = r->out;
    if (f->graph_name[0] != '\0') return wrong(r, "there is a second graph,", words[1]);
    if (strlen(words[1]) >= sizeof f->graph_name) return wrong(r, "this is no graph:", words[1]);
    snprintf(f->graph_name, sizeof f->graph_name, "%s", words[1]);
    return CT_OK;
}

/* Not what the federation itself says, or every site for itself, or a simulation. */
static bool is_common(ct_option_id id) {
    const unsigned own = CT_ROLE_LOCAL | CT_ROLE_RANK | CT_ROLE_PATH | CT_ROLE_SINGLE |
                         CT_ROLE_UNSAVED | CT_ROLE_WORLDS;
    switch (id) {
    case CT_OPT_agents:
    case CT_OPT_agent_names:
    case CT_OPT_topology:
    case CT_OPT_partition:
    case CT_OPT_link_latency:
    case CT_OPT_link_bandwidth:
    case CT_OPT_fault:
    case CT_OPT_speed:
    case CT_OPT_validation_fraction:
    case CT_OPT_gossip_rounds:
    case CT_OPT_final_merge: return false;
    default: return (ct_run_options[id].roles & own) == 0;
    }
}

static ct_status add_option(reading *r, char **words, int n) {
    const ct_option *o;
    ct_error error;
    if (n < 3) return wrong(r, "an option needs a value:", words[1]);
    if (CT_CATCH(&error, ct_schema_look_up(words[1], &o)) != CT_OK)
        return ct_fail_in(&error, "%s: line %u", r->path, r->line);
    if (!is_common((ct_option_id)(o - ct_run_options)))
        return wrong(r, "not for a federation's file to say:", words[1]);
    if (ct_config_is_given(&r->out->options, o->name))
        return wrong(r, "this option is there twice:", words[1]);
    if (CT_CATCH(&error, ct_config_put(&r->out->options, o->name, words[2])) != CT_OK)
        return ct_fail_in(&error, "%s: line %u", r->path, r->line);
    r->out->options.named[o - ct_run_options] = true;
    return CT_OK;
}

static ct_status set_heartbeat(reading *r, char **words, int n) {
    (void)n;
    double *s = &r->out->heartbeat_s;
    if (!ct_parse_double(words[1], s) || !(*s >= 0.05 && *s <= 3600))
        return wrong(r, "a heartbeat is 0.05 to 3600 seconds, not", words[1]);
    return CT_OK;
}

static const struct {
    const char *word;
    int n_words;
    ct_status (*add)(reading *r, char **words, int n);
} kinds[] = {{"federation", 2, add_name}, {"site", 4, add_site},
             {"edge", 3, add_edge},       {"graph", 2, add_graph},
             {"option", 3, add_option},   {"heartbeat", 2, set_heartbeat}};

/* Words of a line; one more than MAX_WORDS tells that there are too many. */
static int cut_words(char *text, char *words[MAX_WORDS + 1]) {
    int n = 0;
    while (n <= MAX_WORDS) {
        text += strspn(text, " \t");
        if (*text == '\0') break;
        words[n++] = text;
        text += strcspn(text, " \t");
        if (*text != '\0') *text++ = '\0';
    }
    return n;
}

static ct_status read_line(reading *r, char *text) {
    char *words[MAX_WORDS + 1];
    int n = cut_words(text, words);
    if (n == 0 || words[0][0] == '#') return CT_OK;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (strcmp(words[0], kinds[k].word) != 0) continue;
        if (n < 2) return wrong(r, "there is nothing behind", words[0]);
        if (n > kinds[k].n_words) return wrong(r, "too much on a line that begins with", words[0]);
        return kinds[k].add(r, words, n);
    }
    return wrong(r, "a line begins with federation, site, edge, graph, option or heartbeat, not",
                 words[0]);
}

/* ---- the whole ---- */

static ct_status name_graph(const char *path, ct_federation *f) {
    ct_error error;
    if (f->graph_name[0] == '\0') {
        if (CT_CATCH(&error, ct_topology_of_edges(f->n_sites, (const int(*)[2])f->edges, f->n_edges,
                                                  &f->graph)) != CT_OK)
            return ct_fail_in(&error, "%s", path);
        return CT_OK;
    }
    if (f->n_edges > 0)
        return ct_fail(CT_INVAL, "%s: edges and a graph: it is one or the other", path);
    if (strncmp(f->graph_name, "file:", 5) == 0)
        return ct_fail(CT_INVAL, "%s: a graph of a file is written down as edges", path);
    if (CT_CATCH(&error, ct_topology_create(f->graph_name, f->n_sites, 1, &f->graph)) != CT_OK)
        return ct_fail_in(&error, "%s: graph", path);
    f->n_edges = f->graph.begin[f->n_sites] / 2;
    CT_TRY(ct_make(&f->edges, (size_t)f->n_edges, "the edges"));
    for (int i = 0, e = 0; i < f->n_sites; i++)
        for (int k = f->graph.begin[i]; k < f->graph.begin[i + 1]; k++)
            if (f->graph.neighbour[k] > i)
                memcpy(f->edges[e++], (int[2]){i, f->graph.neighbour[k]}, sizeof *f->edges);
    return CT_OK;
}

static ct_status check_reach(const char *path, const ct_federation *f) {
    for (int e = 0; e < f->n_edges; e++) {
        const ct_federation_site *a = &f->sites[f->edges[e][0]], *b = &f->sites[f->edges[e][1]];
        if (a->address[0] == '\0' && b->address[0] == '\0')
            return ct_fail(CT_INVAL,
                           "%s: %s and %s are neighbours, and neither has an address: one of them "
                           "must be reachable, perhaps through a relay",
                           path, a->name, b->name);
    }
    return CT_OK;
}

static ct_status check(const char *path, ct_federation *f) {
    if (f->name[0] == '\0') return ct_fail(CT_INVAL, "%s: no line 'federation NAME'", path);
    if (f->n_sites < 2)
        return ct_fail(CT_INVAL, "%s: %d sites: a federation has two or more", path, f->n_sites);
    CT_TRY(name_graph(path, f));
    /* every site tells its neighbours what it knows of all others (states.c) */
    size_t told = STATE_BYTES * (size_t)f->n_sites + 2 * LINK_BYTES * (size_t)f->n_edges;
    if (told > CT_MESH_STATUS)
        return ct_fail(CT_INVAL, "%s: %d sites with %d edges are too many; take fewer edges", path,
                       f->n_sites, f->n_edges);
    return check_reach(path, f);
}

/* Of everything that matters, spelled one way. */
static ct_status add_hash(ct_federation *f) {
    CT_SCOPED(ct_text) text = {0};
    char key[CT_KEY_TEXT], digest[CT_DIGEST_TEXT];
    ct_digest sum;
    ct_text_add(&text, "federation %s\nheartbeat %.17g\n", f->name, f->heartbeat_s);
    for (int i = 0; i < f->n_sites; i++) {
        ct_key_print(f->sites[i].key, key);
        ct_text_add(&text, "site %s %s %s\n", f->sites[i].name, key, f->sites[i].address);
    }
    for (int e = 0; e < f->graph.begin[f->n_sites]; e++)
        ct_text_add(&text, "%d ", f->graph.neighbour[e]);
    ct_text_add(&text, "graph %s\n", f->graph_name);
    ct_config_print_shared(&f->options, &text);
    CT_TRY(ct_text_status(&text));
    ct_digest_init(&sum);
    ct_digest_add(&sum, text.chars, text.n);
    ct_digest_text(&sum, digest);
    ct_key_parse(digest, f->hash);
    return CT_OK;
}

ct_status ct_federation_read(const char *path, ct_federation *out) {
    CT_SCOPED(ct_blob) file = {0};
    CT_SCOPED(ct_federation) f = {.heartbeat_s = DEFAULT_HEARTBEAT_S};
    reading r = {.path = path, .out = &f};
    ct_config_init(&f.options);
    CT_TRY(ct_file_read(path, CT_MAX_TEXT_BYTES, &file));
    ct_lines lines = ct_blob_lines(&file);
    for (char *line; (line = ct_lines_next(&lines)) != NULL;) {
        r.line = lines.number;
        CT_TRY(read_line(&r, line));
    }
    CT_TRY(check(path, &f));
    CT_TRY(add_hash(&f));
    ct_move(out, &f);
    return CT_OK;
}

void ct_federation_free(ct_federation *f) {
    ct_free(f->sites);
    ct_free(f->edges);
    ct_topology_free(&f->graph);
    *f = (ct_federation){0};
}

bool ct_federation_dials(const ct_federation *f, int from, int to) {
    bool from_listens = f->sites[from].address[0] != '\0';
    bool to_listens = f->sites[to].address[0] != '\0';
    return to_listens && (!from_listens || from < to);
}

ct_status ct_federation_peers(const ct_federation *f, int site, ct_mesh_peer **out, int *n) {
    int begin = f->graph.begin[site];
    *n = ct_topology_degree(&f->graph, site);
    CT_TRY(ct_make(out, (size_t)*n, "the neighbours"));
    for (int k = 0; k < *n; k++) {
        int other = f->graph.neighbour[begin + k];
        const ct_federation_site *s = &f->sites[other];
        ct_mesh_peer *p = &(*out)[k];
        memcpy(p->name, s->name, sizeof p->name);
        memcpy(p->key, s->key, sizeof p->key);
        memcpy(p->address, s->address, sizeof p->address);
        p->dials = ct_federation_dials(f, site, other);
    }
    return CT_OK;
}
