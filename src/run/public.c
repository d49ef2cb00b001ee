#include "run/public.h"

#include <stdlib.h>
#include <string.h>

#include "run/run.h"
#include "util/memory.h"
#include "util/rng.h"
#include "util/text.h"

static int n_classes(const ct_run *run) {
    return run->graph.n_classes;
}

static size_t width(const ct_run *run) {
    return run->public.n * (size_t)n_classes(run);
}

static const ct_partition *own_samples(const ct_run *run) {
    return run->config.validation_fraction > 0 ? &run->trained : &run->partition;
}

/* ---- what it goes with ---- */

ct_status ct_public_parse(const char *text, int n_epochs, ct_public *out) {
    const char *at = text;
    out->n_epochs = 0;
    if (text[0] == '\0') {
        out->epochs[out->n_epochs++] = n_epochs * 4 / 5;
        return CT_OK;
    }
    while (*at != '\0') {
        char word[16];
        int64_t epoch = 0;
        int n = (int)strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", n, at);
        const int64_t last = out->n_epochs > 0 ? out->epochs[out->n_epochs - 1] : 0;
        if (!ct_parse_i64(word, &epoch) || epoch <= last || epoch > n_epochs ||
            out->n_epochs == CT_MAX_LABELLINGS)
            return ct_refuse("distil-epochs",
                             "@distil-epochs %.40s: must be up to %d ascending numbers of epochs "
                             "from 1 to @epochs, with commas",
                             text, CT_MAX_LABELLINGS);
        out->epochs[out->n_epochs++] = (int)epoch;
        at += n + (at[n] == ',');
    }
    return CT_OK;
}

static ct_status refuse(const char *why) {
    return ct_refuse("public-data", "@public-data does not go with %s", why);
}

static ct_status check(const ct_run *run) {
    const ct_config *c = &run->config;
    CT_TRY(ct_algo_check_public(run->algo));
    if (run->is_own) return refuse("@partition own and sites");
    if (run->external != NULL) return refuse("an external model");
    if (run->schedule.n > 0) return refuse("graphs that change and @local-steps");
    if (c->fault[0] != '\0') return refuse("@fault");
    if (c->sam > 0) return refuse("@sam");
    if (c->clip_norm > 0) return refuse("@clip-norm");
    if (run->train_loader != NULL)
        return refuse("pictures that are streamed: more @memory (MiB), or @augment off");
    return CT_OK;
}

static ct_status check_shape(const ct_run *run) {
    const ct_images *own = &run->dataset.train, *other = &run->public.data.train;
    if (run->public.data.train_pictures != NULL || (own->values != NULL) != (other->values != NULL))
        return ct_refuse("public-data",
                         "@public-data %s: its samples must be stored as those of "
                         "@dataset are, and in memory",
                         run->config.public_data);
    if (own->channels == other->channels && own->height == other->height &&
        own->width == other->width)
        return CT_OK;
    return ct_refuse("public-data",
                     "@public-data %s: samples of %d x %d x %d; those of @dataset are %d x %d x %d",
                     run->config.public_data, other->channels, other->height, other->width,
                     own->channels, own->height, own->width);
}

/* ---- memory ---- */

/* Whoever learns from other samples than the others is told so. */
static ct_status agree(ct_run *run) {
    CT_SCOPED(ct_text) text = {0};
    ct_identity mine = {0};
    ct_identity_set_sum(&mine, CT_ID_public, ct_dataset_fingerprint(&run->public.data));
    memcpy(run->identity.value[CT_ID_public], mine.value[CT_ID_public],
           sizeof mine.value[CT_ID_public]);
    ct_identity_print(&mine, &text);
    CT_TRY(ct_text_status(&text));
    return ct_transport_agree(run->transport, &text);
}

static ct_status open_data(ct_run *run) {
    const ct_config *c = &run->config;
    ct_public *p = &run->public;
    ct_dataset_options options = ct_run_data_options(c);
    options.dir = c->public_data;
    options.n_train = (size_t)c->public_samples;
    options.test_fraction = 0;
    options.label = options.ignored_columns = NULL;
    CT_TRY(ct_dataset_open(c->public_dataset, &options, &p->data));
    CT_TRY(check_shape(run));
    CT_TRY(agree(run));
    p->n = p->data.train.n;
    if (c->public_samples > 0 && (size_t)c->public_samples < p->n) p->n = (size_t)c->public_samples;
    return ct_source_create(run->backend, &p->data.train, run->dataset.mean, run->dataset.std,
                            &p->source);
}

static ct_status create_routes(ct_run *run) {
    const ct_routes *models = &run->agents.links.models;
    ct_routes *r = &run->public.routes;
    CT_TRY(ct_routes_create(models->n, r));
    for (int k = 0; k < r->n; k++) {
        r->from[k] = models->from[k];
        r->to[k] = models->to[k];
    }
    return ct_routes_open(run->transport, run->backend, false, width(run), r);
}

static size_t most_own(const ct_run *run) {
    size_t most = 0;
    for (int i = 0; i < run->agents.n; i++) {
        size_t n = ct_partition_size(own_samples(run), run->agents.first + i);
        if (n > most) most = n;
    }
    return most;
}

static ct_status create_lists(ct_run *run) {
    static const char what[] = "the public samples";
    ct_public *p = &run->public;
    const size_t n = (size_t)run->agents.n, batch = (size_t)run->plan->max_batch;
    const size_t classes = (size_t)n_classes(run);
    CT_TRY(ct_make(&p->host, n * width(run), what));
    CT_TRY(ct_make(&p->row, width(run), what));
    CT_TRY(ct_make(&p->chosen, n * p->n, what));
    CT_TRY(ct_make(&p->order, n * p->n, what));
    CT_TRY(ct_make(&p->index, n * batch, what));
    CT_TRY(ct_make(&p->n_chosen, n, what));
    CT_TRY(ct_make(&p->pass, n, what));
    CT_TRY(ct_make(&p->logits, n * batch * classes, what));
    CT_TRY(ct_make(&p->targets, batch * ct_soft_width(n_classes(run)), what));
    CT_TRY(ct_make(&p->confidence[0], n * most_own(run), what));
    CT_TRY(ct_make(&p->confidence[1], n * p->n, what));
    CT_TRY(ct_make(&p->all, p->n, what));
    CT_TRY(ct_make(&p->batches, n, what));
    CT_TRY(ct_make(&p->jobs, n, what));
    CT_TRY(ct_make(&p->n_said, (size_t)run->agents.n_rows, what));
    for (size_t k = 0; k < p->n; k++) p->all[k] = (uint32_t)k;
    return CT_OK;
}

ct_status ct_run_create_public(ct_run *run) {
    const ct_config *c = &run->config;
    ct_public *p = &run->public;
    const int n = run->agents.n;
    if (c->public_data[0] == '\0') return CT_OK;
    CT_TRY(check(run));
    CT_TRY(ct_public_parse(c->distil_epochs, (int)c->epochs, p));
    CT_TRY(open_data(run));
    CT_TRY(create_routes(run));
    CT_TRY(ct_bank_create(run->backend, n, p->routes.most_halo, width(run), &p->said));
    CT_TRY(ct_bank_create(run->backend, n, 0, width(run), &p->labels));
    CT_TRY(create_lists(run));
    CT_TRY(ct_lesson_create(&run->agents, p->source));
    p->is_wished = true;
    return CT_OK;
}

void ct_public_free(ct_public *p) {
    ct_source_free(&p->source);
    ct_dataset_free(&p->data);
    ct_routes_free(&p->routes);
    ct_bank_free(&p->said);
    ct_bank_free(&p->labels);
    void *const blocks[] = {p->host, p->row,           p->chosen,        p->order,   p->index,
                            p->pass, p->n_chosen,      p->logits,        p->all,     p->targets,
                            p->jobs, p->confidence[0], p->confidence[1], p->batches, p->n_said};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) ct_free(blocks[k]);
    *p = (ct_public){0};
}

/* ---- what agents say ---- */

static int upwards(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

float ct_best_threshold(float *own, size_t n_own, float *others, size_t n_others) {
    size_t i = n_own, j = n_others; /* values from here on are t or more */
    double best = 0;
    float threshold = own[n_own - 1];
    qsort(own, n_own, sizeof *own, upwards);
    qsort(others, n_others, sizeof *others, upwards);
    threshold = own[n_own - 1];
    while (i > 0) {
        const float t = own[i - 1];
        while (i > 0 && own[i - 1] >= t) i--;
        while (j > 0 && others[j - 1] >= t) j--;
        const double apart =
            (double)(n_own - i) * (double)n_others - (double)(n_others - j) * (double)n_own;
        if (apart > best) best = apart, threshold = t;
    }
    return threshold;
}

/* rows [n][C] <- softmax(logits / T); their largest. */
static void soften(const ct_run *run, float *logits, int n, float *largest) {
    const int c_max = n_classes(run);
    const ct_softening how = {.temperature = run->config.distil_temperature};
    for (int b = 0; b < n; b++, logits += c_max) {
        ct_soften(&how, logits, 1, c_max, run->public.targets);
        memcpy(logits, run->public.targets, (size_t)c_max * sizeof *logits);
        largest[b] = 0;
        for (int c = 0; c < c_max; c++)
            if (logits[c] > largest[b]) largest[b] = logits[c];
    }
}

/* What every own agent's model says of the next samples of its list, [most] each at most; how many
 * they are is in the batches. */
static ct_status ask(ct_run *run, const ct_source *source, int n_jobs) {
    ct_public *p = &run->public;
    ct_work work = {.params = &run->agents.x,
                    .buffers = run->agents.running.n > 0 ? &run->agents.running : NULL,
                    .source = source,
                    .batches = p->batches,
                    .jobs = p->jobs,
                    .n_jobs = n_jobs};
    return n_jobs > 0 ? ct_logits(run->plan, &work, p->logits) : CT_OK;
}

static size_t part(const ct_run *run, size_t n, size_t first) {
    const size_t batch = (size_t)run->plan->max_batch;
    return first >= n ? 0 : n - first < batch ? n - first : batch;
}

/* Confidences on own samples. */
static ct_status ask_own(ct_run *run) {
    ct_public *p = &run->public;
    const ct_partition *own = own_samples(run);
    const size_t most = most_own(run),
                 stride = (size_t)run->plan->max_batch * (size_t)n_classes(run);
    for (size_t first = 0; first < most; first += (size_t)run->plan->max_batch) {
        int n_jobs = 0;
        for (int i = 0; i < run->agents.n; i++) {
            const int row = run->agents.first + i;
            const size_t n = part(run, ct_partition_size(own, row), first);
            if (n == 0) continue;
            p->batches[n_jobs] =
                (ct_batch){.n = (int)n, .index = own->index + own->begin[row] + first};
            p->jobs[n_jobs] = (ct_job){.model = i, .batch = n_jobs, .out = i};
            n_jobs++;
        }
        CT_TRY(ask(run, run->train, n_jobs));
        for (int k = 0; k < n_jobs; k++)
            soften(run, p->logits + (size_t)k * stride, p->batches[k].n,
                   p->confidence[0] + (size_t)p->jobs[k].model * most + first);
    }
    return CT_OK;
}

/* Confidences on public samples, and all that is said of them, in p->host. */
static ct_status ask_public(ct_run *run) {
    ct_public *p = &run->public;
    const size_t classes = (size_t)n_classes(run);
    const size_t stride = (size_t)run->plan->max_batch * classes;
    for (size_t first = 0; first < p->n; first += (size_t)run->plan->max_batch) {
        const size_t n = part(run, p->n, first);
        for (int i = 0; i < run->agents.n; i++) {
            p->batches[i] = (ct_batch){.n = (int)n, .index = p->all + first};
            p->jobs[i] = (ct_job){.model = i, .batch = i, .out = i};
        }
        CT_TRY(ask(run, p->source, run->agents.n));
        for (size_t i = 0; i < (size_t)run->agents.n; i++) {
            soften(run, p->logits + i * stride, (int)n, p->confidence[1] + i * p->n + first);
            memcpy(p->host + i * width(run) + first * classes, p->logits + i * stride,
                   n * classes * sizeof *p->host);
        }
    }
    return CT_OK;
}

/* Of agent i, what it is not sure of becomes zeros; how much is left. */
static uint32_t keep_sure(ct_run *run, size_t i) {
    ct_public *p = &run->public;
    const size_t classes = (size_t)n_classes(run), most = most_own(run);
    const int row = run->agents.first + (int)i;
    float *confidence = p->confidence[1] + i * p->n;
    float threshold = (float)run->config.distil_threshold;
    uint32_t n = 0;
    memcpy(p->row, confidence, p->n * sizeof *p->row);
    if (threshold <= 0)
        threshold = ct_best_threshold(p->confidence[0] + i * most,
                                      ct_partition_size(own_samples(run), row), p->row, p->n);
    for (size_t u = 0; u < p->n; u++) {
        if (confidence[u] >= threshold)
            n++;
        else
            memset(p->host + i * width(run) + u * classes, 0, classes * sizeof *p->host);
    }
    return n;
}

/* ---- labels ---- */

/* sum += what the row says; count: how many have said something of a sample. */
static void add_said(const ct_run *run, const float *row, float *sum, uint32_t *count) {
    const size_t classes = (size_t)n_classes(run);
    for (size_t u = 0; u < run->public.n; u++, row += classes, sum += classes) {
        float all = 0;
        for (size_t c = 0; c < classes; c++) {
            all += row[c];
            sum[c] += row[c];
        }
        count[u] += all > 0;
    }
}

/* The same of what the agent of another row, or of this one, has said. */
static ct_status add_agent(ct_run *run, int row, float *sum, uint32_t *count) {
    ct_public *p = &run->public;
    CT_TRY(ct_bank_read(&p->said, ct_routes_row(&p->routes, row), 0, width(run), p->row));
    add_said(run, p->row, sum, count);
    return CT_OK;
}

/* The mean over agent i and its neighbours, in the agents' order. */
static ct_status label(ct_run *run, int i) {
    ct_public *p = &run->public;
    const ct_topology *t = run->agents.links.topology;
    const size_t classes = (size_t)n_classes(run);
    const int row = run->agents.first + i;
    float *sum = p->host + (size_t)i * width(run);
    uint32_t *count = p->order; /* until the next pass */
    int e = t->begin[row];
    memset(sum, 0, width(run) * sizeof *sum);
    memset(count, 0, p->n * sizeof *count);
    for (; e < t->begin[row + 1] && t->neighbour[e] < row; e++)
        CT_TRY(add_agent(run, t->neighbour[e], sum, count));
    CT_TRY(add_agent(run, row, sum, count));
    for (; e < t->begin[row + 1]; e++) CT_TRY(add_agent(run, t->neighbour[e], sum, count));
    for (size_t u = 0; u < p->n; u++)
        for (size_t c = 0; c < classes && count[u] > 1; c++)
            sum[u * classes + c] /= (float)count[u];
    return ct_bank_write(&p->labels, i, 0, width(run), sum);
}

/* A number and the classes' probabilities of every sample, to every neighbour. */
static ct_status count_labels(ct_run *run, const uint32_t *mine) {
    ct_public *p = &run->public;
    const ct_topology *t = run->agents.links.topology;
    const uint64_t bytes = sizeof(uint32_t) + (uint64_t)n_classes(run) * sizeof(float);
    CT_TRY(ct_transport_gather(run->transport, mine, sizeof *mine, p->n_said));
    for (int row = 0; row < run->agents.n_rows; row++)
        for (int e = t->begin[row]; e < t->begin[row + 1]; e++)
            ct_transport_count(run->transport, row, CT_TRAFFIC_PARAMETERS, p->n_said[row] * bytes);
    return CT_OK;
}

static ct_status label_samples(ct_run *run) {
    ct_public *p = &run->public;
    uint32_t *mine = p->chosen; /* until they are listed */
    if (run->config.distil_threshold <= 0) CT_TRY(ask_own(run));
    CT_TRY(ask_public(run));
    for (int i = 0; i < run->agents.n; i++) {
        mine[i] = keep_sure(run, (size_t)i);
        CT_TRY(ct_bank_write(&p->said, i, 0, width(run), p->host + (size_t)i * width(run)));
    }
    CT_TRY(count_labels(run, mine));
    CT_TRY(ct_transport_refresh(run->transport, &p->routes, &p->said));
    for (int i = 0; i < run->agents.n; i++) CT_TRY(label(run, i));
    p->is_listed = false;
    return CT_OK;
}

static ct_status list_labelled(ct_run *run) {
    ct_public *p = &run->public;
    const size_t classes = (size_t)n_classes(run);
    for (size_t i = 0; i < (size_t)run->agents.n; i++) {
        float *row = p->host + i * width(run);
        CT_TRY(ct_bank_read(&p->labels, (int)i, 0, width(run), row));
        p->n_chosen[i] = 0;
        p->pass[i] = -1;
        for (size_t u = 0; u < p->n; u++) {
            float all = 0;
            for (size_t c = 0; c < classes; c++) all += row[u * classes + c];
            if (all > 0) p->chosen[i * p->n + p->n_chosen[i]++] = (uint32_t)u;
        }
    }
    p->is_listed = true;
    return CT_OK;
}

/* ---- an iteration ---- */

/* How many of them agent i takes with every batch. */
static int share_of(const ct_run *run, int i) {
    const double m = (double)run->public.n_chosen[i];
    const double n = (double)ct_partition_size(own_samples(run), run->agents.first + i);
    double share = (double)(long)((double)run->config.batch_size * m / n + 0.5);
    if (m == 0) return 0;
    if (share > (double)run->config.batch_size) share = (double)run->config.batch_size;
    if (share > m) share = m;
    return share < 1 ? 1 : (int)share;
}

static void shuffle(ct_run *run, int i, long since, long pass) {
    ct_public *p = &run->public;
    const int row = run->agents.first + i, n_agents = run->agents.n_agents;
    uint32_t *order = p->order + (size_t)i * p->n;
    ct_rng rng;
    if (p->pass[i] == pass) return;
    memcpy(order, p->chosen + (size_t)i * p->n, p->n_chosen[i] * sizeof *order);
    ct_rng_init(&rng, run->seeds[row / n_agents], CT_RNG_PUBLIC, (uint32_t)(row % n_agents),
                (uint32_t)since, (uint32_t)pass);
    ct_rng_shuffle(&rng, order, p->n_chosen[i]);
    p->pass[i] = pass;
}

/* Agent i's samples of an iteration, `since` iterations after they were labelled. */
static ct_status take_batch(ct_run *run, int i, int epoch, long since, int n) {
    ct_public *p = &run->public;
    const size_t classes = (size_t)n_classes(run), wide = ct_soft_width(n_classes(run));
    const long m = (long)p->n_chosen[i], first = since * n;
    uint32_t *index = p->index + (size_t)i * (size_t)run->plan->max_batch;
    for (int b = 0; b < n; b++) {
        shuffle(run, i, epoch, (first + b) / m);
        index[b] = p->order[(size_t)i * p->n + (size_t)((first + b) % m)];
        float *target = p->targets + (size_t)b * wide;
        memcpy(target, p->host + (size_t)i * width(run) + index[b] * classes,
               classes * sizeof *target);
        target[classes] = 0;
        target[classes + 1] = 1;
    }
    return ct_lesson_add(&run->agents, i, n, index, p->targets);
}

ct_status ct_run_use_public(ct_run *run, long iteration) {
    ct_public *p = &run->public;
    int epoch = 0;
    if (!p->is_wished) return CT_OK;
    for (int k = 0; k < p->n_epochs; k++) {
        const long begin = (long)p->epochs[k] * run->epoch_iterations;
        if (iteration >= begin) epoch = p->epochs[k];
        if (iteration == begin) CT_TRY(label_samples(run));
    }
    ct_lesson_clear(&run->agents);
    if (epoch == 0) return CT_OK;
    if (!p->is_listed) CT_TRY(list_labelled(run));
    for (int i = 0; i < run->agents.n; i++) {
        const int n = share_of(run, i);
        if (n > 0)
            CT_TRY(take_batch(run, i, epoch, iteration - (long)epoch * run->epoch_iterations, n));
    }
    return CT_OK;
}
