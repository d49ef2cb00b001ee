#include "run/own.h"

#include <stdio.h>
#include <string.h>

#include "data/pictures.h"
#include "util/hash.h"
#include "util/memory.h"
#include "util/text.h"

bool ct_config_is_own(const ct_config *c) {
    return strcmp(c->partition, CT_PARTITION_OWN) == 0 && ct_config_inputs(c)->data == NULL;
}

/* ---- names ---- */

ct_voice ct_config_agent(const ct_config *c, int agent) {
    ct_voice voice = {.agent = agent};
    const char *at = c->agent_names;
    snprintf(voice.name, sizeof voice.name, "%d", agent);
    if (*at == '\0') return voice;
    for (int k = 0; k < agent; k++) {
        at += strcspn(at, ",");
        if (*at++ == '\0') return voice; /* too few: ct_own_check says so */
    }
    at += strspn(at, " \t");
    snprintf(voice.name, sizeof voice.name, "%.*s", (int)strcspn(at, ", \t"), at);
    return voice;
}

typedef struct name_list {
    int64_t n; /* names so far */
    const char *all;
} name_list;

typedef struct same_name {
    const char *name;
    int n;
} same_name;

static ct_status count_same(void *context, const char *field) {
    same_name *same = context;
    same->n += strcmp(field, same->name) == 0;
    return CT_OK;
}

static ct_status check_name(void *context, const char *field) {
    name_list *list = context;
    same_name same = {field, 0};
    list->n++;
    if (!ct_agent_name_is_right(field))
        return ct_refuse("agent-names",
                         "'%s' is no name of an agent: up to %d letters, digits, '.', '_' and '-'",
                         field, CT_AGENT_NAME - 1);
    CT_TRY(ct_split(list->all, count_same, &same));
    if (same.n == 1) return CT_OK;
    return ct_refuse("agent-names", "%s is there twice", field);
}

static ct_status check_names(const ct_config *c) {
    name_list list = {.all = c->agent_names};
    if (c->agent_names[0] == '\0') return CT_OK;
    CT_TRY(ct_split(c->agent_names, check_name, &list));
    if (list.n == c->agents) return CT_OK;
    return ct_refuse("agent-names", "%lld names for %lld agents", (long long)list.n,
                     (long long)c->agents);
}

/* ---- options ---- */

ct_status ct_own_check(const ct_config *c) {
    bool has_agent = strstr(c->data_dir, CT_DIR_AGENT) != NULL || c->site != NULL;
    CT_TRY(check_names(c));
    if (!ct_config_is_own(c)) {
        if (!has_agent) return CT_OK;
        return ct_refuse("data-dir",
                         "@data-dir %s: %%a stands for an agent with @partition own alone; name "
                         "one directory",
                         c->data_dir);
    }
    if (!has_agent)
        return ct_refuse("partition",
                         "@partition own needs a data set for every agent: write %%a, which stands "
                         "for its number or name, into @data-dir, as in site-%%a");
    if (c->partition_file[0] != '\0')
        return ct_refuse("partition-file", "@partition-file splits one data set; with @partition "
                                           "own every agent has its own: leave one of them out");
    if (ct_config_inputs(c)->external != NULL)
        return ct_refuse("partition", "@partition own has no samples that an external model could "
                                      "know by their numbers; lend them to the run");
    return CT_OK;
}

int ct_own_first_agent(const ct_config *c) {
    uint64_t seeds[CT_MAX_WORLDS];
    int n_seeds = 1;
    int64_t n_ranks = ct_transport_n_launched();
    if (CT_CATCH(NULL, ct_config_seeds(c, seeds, &n_seeds)) != CT_OK) return 0;
    int64_t n_rows = c->agents * n_seeds * ct_count_parts(c->lambdas, ',');
    if (n_ranks > n_rows || n_rows > CT_MAX_AGENTS) return 0; /* refused before long */
    ct_span own = ct_rank_rows((int)n_rows, (int)n_ranks, ct_transport_launch_rank());
    return own.first % (int)c->agents;
}

/* ---- the data sets of this process ---- */

typedef struct set {
    ct_voice who;
    ct_dataset data;
    uint64_t sum, test_sum; /* of what its files hold, before anything is agreed upon */
} set;

typedef struct sets {
    set *items;
    int n;
} sets;

static void sets_free(sets *all) {
    for (int k = 0; k < all->n; k++) ct_dataset_free(&all->items[k].data);
    ct_free(all->items);
}

/* The agents of own rows, each once and in order. */
static ct_status list_agents(const ct_run *run, sets *out) {
    ct_span own = ct_transport_own(run->transport);
    int n_agents = (int)run->config.agents;
    CT_SCOPED_BLOCK(bool) is_here = NULL;
    CT_TRY(ct_make(&is_here, (size_t)n_agents, "the agents of this process"));
    for (int i = 0; i < own.n; i++) is_here[(own.first + i) % n_agents] = true;
    CT_TRY(ct_make(&out->items, (size_t)n_agents, "the agents of this process"));
    for (int a = 0; a < n_agents; a++)
        if (is_here[a]) out->items[out->n++].who = ct_config_agent(&run->config, a);
    return CT_OK;
}

/* Tables are counted alone until it is agreed what their columns are. */
static ct_status open_all(const ct_run *run, const ct_columns *columns, sets *all) {
    int rank = ct_transport_rank(run->transport);
    for (set *s = all->items; s < all->items + all->n; s++) {
        ct_error error;
        ct_dataset_free(&s->data);
        ct_status status = CT_CATCH(
            &error, ct_run_open_agent(&run->config, rank, s->who.agent, columns, &s->data));
        if (status != CT_OK) return ct_fail_in(&error, "agent %s", s->who.name);
        s->sum = ct_dataset_fingerprint(&s->data);
        s->test_sum = ct_dataset_test_sum(&s->data);
    }
    return CT_OK;
}

/* ---- what all have alike ---- */

/* An agent speaks once: where its row of the first world is. */
static bool speaks(const ct_run *run, const set *s) {
    ct_span own = ct_transport_own(run->transport);
    return s->who.agent >= own.first && s->who.agent < own.first + own.n;
}

static ct_status agree(const ct_run *run, const sets *all, ct_text *text, ct_profile *out) {
    CT_SCOPED(ct_profile) merged = {0};
    for (const set *s = all->items; s < all->items + all->n; s++) {
        CT_SCOPED(ct_profile) one = {0};
        if (!speaks(run, s)) continue;
        CT_TRY(ct_profile_of(&s->data, s->who.agent, s->who.name, &one));
        CT_TRY(ct_profile_merge(&one, &merged));
    }
    ct_profile_print(&merged, text);
    CT_TRY(ct_text_status(text));
    CT_TRY(ct_transport_merge(run->transport, ct_profile_merge_text, NULL, text));
    CT_TRY(ct_profile_parse(text->chars, text->n, out));
    /* what sites had agreed on stands when others join them */
    bool has_grown = run->config.site != NULL && out->n_agents < run->config.agents;
    if (out->n_agents != run->config.agents && !has_grown)
        return ct_fail(CT_IO, "%d of %lld agents have said what data they have", out->n_agents,
                       (long long)run->config.agents);
    if (out->n_classes >= 2) return CT_OK;
    return ct_fail(CT_INVAL, "all agents together have one class alone (%s); there must be two",
                   out->class_names != NULL ? out->class_names : "0");
}

/* ---- all of them as one ---- */

static ct_pictures **pictures_of(ct_dataset *d, bool is_test) {
    return is_test ? &d->test_pictures : &d->train_pictures;
}

typedef struct picture_list {
    ct_pictures **parts;
    size_t *sizes;
    int n;
} picture_list;

static void picture_list_free(picture_list *list) {
    for (int k = 0; k < list->n; k++) ct_pictures_free(&list->parts[k]);
    ct_free(list->parts);
    ct_free(list->sizes);
}

static size_t count_all(const sets *all, bool is_test) {
    size_t n = 0;
    for (int k = 0; k < all->n; k++)
        n += is_test ? all->items[k].data.test.n : all->items[k].data.train.n;
    return n;
}

/* Labels, and pixels or values where they lie in memory. */
static ct_status join_images(sets *all, bool is_test, ct_images *out) {
    const ct_images *first = NULL;
    for (int k = 0; k < all->n; k++) {
        const ct_images *part = is_test ? &all->items[k].data.test : &all->items[k].data.train;
        if (first == NULL || (first->n == 0 && part->n > 0)) first = part;
    }
    *out = (ct_images){.n = count_all(all, is_test),
                       .channels = first->channels,
                       .height = first->height,
                       .width = first->width};
    if (out->n > UINT32_MAX) return ct_fail(CT_INVAL, "%zu samples are too many", out->n);
    CT_TRY(ct_make(&out->labels, out->n, "the agents' samples"));
    size_t image = ct_image_bytes(first), at = 0;
    uint8_t *bytes = NULL;
    if (ct_image_at(first, 0) != NULL)
        CT_TRY(ct_make_block(&bytes, out->n, image, "the agents' samples"));
    out->pixels = first->pixels != NULL ? bytes : NULL;
    out->values = first->values != NULL ? (float *)(void *)bytes : NULL;
    for (int k = 0; k < all->n; k++) {
        ct_dataset *d = &all->items[k].data;
        ct_images *part = is_test ? &d->test : &d->train;
        if (part->n == 0) continue;
        memcpy(out->labels + at, part->labels, part->n * sizeof *part->labels);
        if (bytes != NULL) memcpy(bytes + at * image, ct_image_at(part, 0), part->n * image);
        at += part->n;
        ct_images_free(part);
    }
    return CT_OK;
}

/* Where some agents' pictures are streamed, those of others that lie in memory are served the same way. */
static ct_status join_pictures(sets *all, bool is_test, ct_pictures **out) {
    CT_SCOPED(picture_list) list = {0};
    bool is_streamed = false;
    for (int k = 0; k < all->n; k++)
        is_streamed = is_streamed || *pictures_of(&all->items[k].data, is_test) != NULL;
    if (!is_streamed) return CT_OK;
    CT_TRY(ct_make(&list.parts, (size_t)all->n, "the agents' pictures"));
    CT_TRY(ct_make(&list.sizes, (size_t)all->n, "the agents' pictures"));
    for (int k = 0; k < all->n; k++) {
        ct_dataset *d = &all->items[k].data;
        ct_pictures **part = pictures_of(d, is_test);
        ct_images *images = is_test ? &d->test : &d->train;
        if (images->n == 0) continue;
        if (*part == NULL) CT_TRY(ct_pictures_of_images(images, part));
        list.sizes[list.n] = images->n;
        list.parts[list.n++] = ct_take(part);
        ct_free(ct_take(&images->pixels));
    }
    return ct_pictures_join(list.parts, list.sizes, list.n, out);
}

/* A sample's number is the one that its agent knows it by: nobody needs to know the others' sizes. */
static ct_status number_samples(const sets *all, const ct_agent_part *parts, ct_dataset *out) {
    CT_TRY(ct_make(&out->train_numbers, out->train.n, "the agents' samples"));
    for (int k = 0; k < all->n; k++)
        for (size_t i = 0; i < parts[k].n_train; i++)
            out->train_numbers[parts[k].first_train + i] = (uint32_t)i;
    out->n_whole = out->train.n;
    return CT_OK;
}

static ct_status list_parts(const sets *all, ct_run *run) {
    size_t n_train = 0, n_test = 0;
    CT_TRY(ct_make(&run->parts, (size_t)all->n, "the agents' samples"));
    for (int k = 0; k < all->n; k++) {
        const set *s = &all->items[k];
        run->parts[k] =
            (ct_agent_part){s->who.agent, n_train, s->data.train.n, n_test, s->data.test.n, s->sum};
        n_train += s->data.train.n;
        n_test += s->data.test.n;
    }
    run->n_parts = all->n;
    return CT_OK;
}

/* What the sets say of themselves is alike by now; the first one's serves for all. */
static ct_status join(sets *all, ct_run *run) {
    ct_dataset *d = &run->dataset, *first = &all->items[0].data;
    memcpy(d->name, first->name, sizeof d->name);
    memcpy(d->mean, first->mean, sizeof d->mean);
    memcpy(d->std, first->std, sizeof d->std);
    d->n_classes = first->n_classes;
    d->resize = first->resize;
    d->crop_padding = first->crop_padding;
    d->flip = first->flip;
    d->class_names = ct_take(&first->class_names);
    d->columns = ct_take(&first->columns);
    snprintf(d->source, sizeof d->source, "%s", run->config.data_dir);
    for (int k = 0; k < all->n; k++) {
        d->n_left_out += all->items[k].data.n_left_out;
        if (all->items[k].data.content != 0)
            d->content = ct_hash_number(d->content, all->items[k].data.content);
    }
    CT_TRY(join_pictures(all, false, &d->train_pictures));
    CT_TRY(join_pictures(all, true, &d->test_pictures));
    CT_TRY(join_images(all, false, &d->train));
    CT_TRY(join_images(all, true, &d->test));
    return number_samples(all, run->parts, d);
}

/* ---- what everyone knows of everyone ---- */

typedef struct card {
    uint64_t n_train, sum, test_sum;
} card;

static ct_status check_cards(const ct_run *run, const card *cards) {
    int n = (int)run->config.agents;
    for (int row = n; row < n * run->n_worlds; row++)
        if (memcmp(&cards[row], &cards[row % n], sizeof *cards) != 0)
            return ct_fail(CT_INVAL,
                           "agent %s has other data on one rank than on another, where it trains "
                           "with another seed: both must read the same",
                           ct_config_agent(&run->config, row % n).name);
    return CT_OK;
}

static void keep_cards(ct_run *run, const ct_text *profile, const card *cards) {
    uint64_t data = ct_checksum(CT_HASH_START, profile->chars, profile->n), test = CT_HASH_START;
    for (int a = 0; a < (int)run->config.agents; a++) {
        run->own_sizes[a] = (size_t)cards[a].n_train;
        if (run->config.site != NULL) continue; /* of the others it knows what was agreed */
        data = ct_hash_number(data, cards[a].sum);
        test = ct_hash_number(test, cards[a].test_sum);
    }
    ct_identity_set_sum(&run->identity, CT_ID_data, data);
    ct_identity_set_sum(&run->identity, CT_ID_test, test);
}

static ct_status exchange_cards(ct_run *run, const sets *all, const ct_text *profile) {
    ct_span own = ct_transport_own(run->transport);
    size_t n_agents = (size_t)run->config.agents;
    CT_SCOPED_BLOCK(card) mine = NULL;
    CT_SCOPED_BLOCK(card) cards = NULL;
    CT_TRY(ct_make(&mine, (size_t)own.n, "the agents' data"));
    CT_TRY(ct_make(&cards, n_agents * (size_t)run->n_worlds, "the agents' data"));
    CT_TRY(ct_make(&run->own_sizes, n_agents, "the agents' data"));
    for (int i = 0; i < own.n; i++) {
        int part = ct_run_part_of(run, own.first + i);
        const set *s = &all->items[part];
        mine[i] = (card){s->data.train.n, s->sum, s->test_sum};
    }
    CT_TRY(ct_transport_gather(run->transport, mine, sizeof *mine, cards));
    CT_TRY(check_cards(run, cards));
    keep_cards(run, profile, cards);
    return CT_OK;
}

ct_status ct_own_open(ct_run *run) {
    CT_SCOPED(sets) all = {0};
    CT_SCOPED(ct_text) text = {0};
    CT_SCOPED(ct_profile) profile = {0};
    CT_TRY(list_agents(run, &all));
    CT_TRY(open_all(run, NULL, &all));
    CT_TRY(agree(run, &all, &text, &profile));
    if (profile.columns.n > 0) CT_TRY(open_all(run, &profile.columns, &all));
    CT_TRY(list_parts(&all, run));
    CT_TRY(exchange_cards(run, &all, &text));
    for (int k = 0; k < all.n; k++) CT_TRY(ct_dataset_conform(&all.items[k].data, &profile));
    run->most_samples = profile.most.n;
    run->n_tested = (size_t)profile.n_test;
    return join(&all, run);
}

ct_status ct_own_split(const ct_run *run, ct_partition *out) {
    int n_agents = (int)run->config.agents;
    CT_SCOPED(ct_partition) p = {.n_agents = n_agents};
    CT_TRY(ct_make(&p.begin, (size_t)n_agents + 1, "the agents' samples"));
    for (int a = 0; a < n_agents; a++) p.begin[a + 1] = p.begin[a] + run->own_sizes[a];
    CT_TRY(ct_make(&p.index, p.begin[n_agents], "the agents' samples"));
    for (int a = 0; a < n_agents; a++)
        for (size_t k = p.begin[a]; k < p.begin[a + 1]; k++)
            p.index[k] = (uint32_t)(k - p.begin[a]);
    ct_move(out, &p);
    return CT_OK;
}

void ct_own_place(ct_run *run) {
    ct_partition *p = &run->partition;
    for (int row = 0; row < p->n_agents; row++) {
        int part = ct_run_part_of(run, row);
        for (size_t k = p->begin[row]; k < p->begin[row + 1]; k++)
            p->index[k] =
                part < 0 ? UINT32_MAX : p->index[k] + (uint32_t)run->parts[part].first_train;
    }
}
