#include "algo/copies.h"

#include <string.h>

#include "algo/agents_internal.h"
#include "util/memory.h"
#include "util/rng.h"

/* A key's index: models count from 0, the second bank has its own, class sums go by receiver. */
enum { ALSO = 8, FIRST_RECEIVER = 16 };

ct_status ct_copies_choose(ct_agents *a, const ct_graph *graph) {
    ct_copies *c = &a->copies;
    if (c->compressor == NULL || strcmp(c->compressor, "none") == 0) return CT_OK;
    ct_compressor_sums((size_t)graph->n_classes, ct_graph_n_features(graph) + 1, &c->sums);
    c->iteration = -1;
    return ct_compressor_parse_model(c->compressor, graph, &c->models);
}

static bool unpack_model(const void *copies, int row, const void *packed, float *values) {
    const ct_copies *c = copies;
    return c->models.kind->decode(&c->models, &c->keys[row], packed, values);
}

static bool unpack_sums(const void *copies, int row, const void *packed, float *values) {
    const ct_copies *c = copies;
    return c->sums.kind->decode(&c->sums, &c->sum_keys[row], packed, values);
}

/* What sites send is checked and unpacked by the transport. */
static ct_status create_unpacking(ct_agents *a) {
    ct_copies *c = &a->copies;
    const ct_routes *answers = &a->links.neighbours;
    if (!ct_transport_is_apart(a->transport)) return CT_OK;
    CT_TRY(ct_make(&c->sum_keys, (size_t)(answers->most_own + answers->most_halo), "class sums"));
    CT_TRY(ct_make(&c->values, c->models.n > c->sums.n ? c->models.n : c->sums.n, "packed models"));
    c->of_models = (ct_unpacking){
        .values = c->values, .are_changes = true, .unpack = unpack_model, .context = c};
    c->of_sums = (ct_unpacking){
        .rows = &a->ccl.edge_sums, .values = c->values, .unpack = unpack_sums, .context = c};
    a->links.models.unpacking = &c->of_models;
    a->links.neighbours.unpacking = &c->of_sums;
    return CT_OK;
}

ct_status ct_copies_create(ct_agents *a) {
    ct_copies *c = &a->copies;
    const ct_routes *models = &a->links.models, *answers = &a->links.neighbours;
    int n_models = a->n + models->most_halo, n_sums = answers->most_own + answers->most_halo;
    if (!ct_copies_are_used(c)) return CT_OK;
    CT_TRY(ct_bank_create(a->backend, a->n, models->most_halo, ct_packed_columns(&c->models),
                          &c->packed));
    CT_TRY(ct_make(&c->keys, (size_t)(n_models > n_sums ? n_models : n_sums), "packed models"));
    CT_TRY(create_unpacking(a));
    if (!a->loss.ccl) return CT_OK;
    return ct_bank_create(a->backend, answers->most_own, answers->most_halo,
                          ct_packed_columns(&c->sums), &c->packed_sums);
}

void ct_copies_free(ct_copies *c) {
    ct_bank_free(&c->packed);
    ct_bank_free(&c->packed_sums);
    ct_free(c->keys);
    ct_free(c->sum_keys);
    ct_free(c->values);
}

/* Others' start values are one's own; sites say no more before they train. */
static ct_status copy_start_values(ct_agents *a) {
    ct_copies *c = &a->copies;
    c->of_models.rows = c->known;
    CT_TRY(ct_bank_read(&a->x, 0, 0, a->x.n, c->values));
    for (int h = 0; h < a->links.models.most_halo; h++)
        CT_TRY(ct_bank_write(c->known, a->n + h, 0, a->x.n, c->values));
    return CT_OK;
}

/* Whole rows over the graph of now: what usually travels is packed. */
static ct_status publish(ct_agents *a, ct_bank *known, bool is_counted) {
    const ct_routes *models = &a->links.models;
    CT_SCOPED(ct_routes) routes = {0};
    CT_TRY(ct_routes_create(models->n, &routes));
    memcpy(routes.from, models->from, (size_t)models->n * sizeof *routes.from);
    memcpy(routes.to, models->to, (size_t)models->n * sizeof *routes.to);
    CT_TRY(ct_routes_open(a->transport, a->backend, false, a->x.n, &routes));
    if (!is_counted) return ct_transport_refresh(a->transport, &routes, known);
    return ct_transport_exchange(a->transport, &routes, CT_TRAFFIC_PARAMETERS, known);
}

ct_status ct_copies_start(ct_agents *a) {
    ct_copies *c = &a->copies;
    if (!ct_copies_are_used(c)) return CT_OK;
    CT_TRY(ct_agents_add_buffer(a, "public copy", NULL));
    c->known = ct_own_buffer(a, a->n_buffers - 1);
    ct_update u = ct_agents_update(a);
    SET(&u, c->known, {1, &a->x});
    CT_TRY(ct_update_run(a->backend, &u));
    if (ct_transport_is_apart(a->transport)) return copy_start_values(a);
    return publish(a, c->known, c->are_sent_first);
}

ct_status ct_copies_add(ct_agents *a, const char *name) {
    if (!ct_copies_are_used(&a->copies)) return CT_OK;
    CT_TRY(ct_agents_add_buffer(a, name, NULL));
    a->copies.also = ct_own_buffer(a, a->n_buffers - 1);
    return CT_OK;
}

ct_status ct_copies_restore(ct_agents *a) {
    if (a->copies.also != NULL) CT_TRY(publish(a, a->copies.also, false));
    return publish(a, a->copies.known, false);
}

static ct_compress_key key_of(const ct_agents *a, int row, uint32_t index) {
    ct_rng rng;
    ct_rng_init(&rng, a->copies.seeds[row / a->n_agents], CT_RNG_COMPRESS,
                (uint32_t)(row % a->n_agents), (uint32_t)a->iteration, index);
    return (ct_compress_key){
        {rng.key[0], rng.key[1]}, rng.counter[1], rng.counter[2], rng.counter[3]};
}

/* Packs own rows of x, sends them, and unpacks what has come instead of others'. */
static ct_status pass_on(ct_agents *a, const ct_compressor *how, ct_routes *routes, ct_traffic kind,
                         const ct_bank *x, ct_bank *known, ct_bank *packed) {
    ct_packing own = {how, a->copies.keys, 0, routes->own.n};
    ct_packing others = {how, a->copies.keys, routes->own.n, routes->n_halo};
    CT_TRY(ct_bank_compress(&own, x, known, packed));
    CT_TRY(ct_transport_exchange(a->transport, routes, kind, packed));
    if (others.n_rows > 0) CT_TRY(ct_bank_decompress(&others, packed, known));
    known->fresh = true;
    return CT_OK;
}

/* known <- known + Q(bank - known), the random numbers of every row by this index. */
static ct_status share(ct_agents *a, ct_bank *bank, ct_bank *known, uint32_t index) {
    ct_copies *c = &a->copies;
    ct_routes *r = &a->links.models;
    CT_TRY(ct_transport_finish(a->transport, r)); /* which the keys before are of */
    for (int i = 0; i < a->n; i++) c->keys[i] = key_of(a, a->first + i, index);
    for (int h = 0; h < r->n_halo; h++) c->keys[a->n + h] = key_of(a, r->halo[h], index);
    bank->fresh = true;
    if (!ct_transport_is_apart(a->transport))
        return pass_on(a, &c->models, r, CT_TRAFFIC_PARAMETERS, bank, known, &c->packed);
    /* sites: the transport unpacks what comes, while the first of them are worked with */
    ct_packing own = {&c->models, c->keys, 0, a->n};
    CT_TRY(ct_bank_compress(&own, bank, known, &c->packed));
    known->fresh = true;
    return ct_transport_begin(a->transport, r, CT_TRAFFIC_PARAMETERS, &c->packed);
}

ct_status ct_copies_share(ct_agents *a) {
    ct_copies *c = &a->copies;
    if (a->x.fresh || ct_agents_are_apart(a)) return CT_OK;
    c->n_before = c->iteration == a->iteration ? c->n_before + 1 : 0;
    c->iteration = a->iteration;
    return share(a, &a->x, c->known, c->n_before);
}

ct_status ct_copies_share_also(ct_agents *a, ct_bank *bank) {
    if (bank->fresh || ct_agents_are_apart(a)) return CT_OK;
    return share(a, bank, a->copies.also, ALSO);
}

static ct_compress_key key_of_sums(const ct_agents *a, const ct_routes *r, int message) {
    uint32_t receiver = (uint32_t)(r->to[message] % a->n_agents);
    return key_of(a, r->from[message], FIRST_RECEIVER + receiver);
}

/* To the row that what is said of a message has. */
static void fill_keys(const ct_agents *a, const ct_routes *r, ct_compress_key *keys) {
    for (int k = 0; k < r->own.n + r->n_halo; k++)
        keys[k] = key_of_sums(a, r, k < r->own.n ? r->own.first + k : r->halo[k - r->own.n]);
}

ct_status ct_copies_send_sums(ct_agents *a, int row) {
    ct_copies *c = &a->copies;
    ct_routes *r = &a->links.neighbours;
    ct_bank *sums = &a->ccl.edge_sums;
    ct_packing one = {&c->sums, c->sum_keys, row, 1};
    if (!ct_transport_is_apart(a->transport)) return CT_OK;
    c->sum_keys[row] = key_of_sums(a, r, r->own.first + row);
    CT_TRY(ct_bank_compress(&one, sums, sums, &c->packed_sums));
    return ct_transport_send_ahead(a->transport, r, CT_TRAFFIC_CLASS_SUMS, &c->packed_sums,
                                   r->own.first + row);
}

ct_status ct_copies_share_sums(ct_agents *a) {
    ct_copies *c = &a->copies;
    ct_routes *r = &a->links.neighbours;
    ct_bank *sums = &a->ccl.edge_sums;
    bool is_apart = ct_transport_is_apart(a->transport);
    fill_keys(a, r, is_apart ? c->sum_keys : c->keys);
    if (!is_apart)
        return pass_on(a, &c->sums, r, CT_TRAFFIC_CLASS_SUMS, sums, sums, &c->packed_sums);
    CT_TRY(ct_transport_exchange(a->transport, r, CT_TRAFFIC_CLASS_SUMS, &c->packed_sums));
    sums->fresh = true;
    return CT_OK;
}
