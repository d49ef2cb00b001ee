/* The network fixtures (tests/fixtures/nets): one batch through a whole network, node by node on
 * the ref backend's functions, against float64 PyTorch. The formats are told in
 * tests/oracle/README.md. */
#ifndef CT_TESTS_NETS_H
#define CT_TESTS_NETS_H

#include <stdint.h>
#include <stdlib.h>

#include "backend/ref/ref_internal.h"
#include "nn/graph.h"
#include "test.h"
#include "util/file.h"
#include "util/memory.h"

#define N_PROBES 8

/* A network's values and gradients in double: value[i] is [batch][shape of node i]. */
typedef struct net {
    ct_graph graph;
    int n;
    double *params, *dparams;
    double **value, **grad; /* [n_nodes] */
    float *buffers;
    int32_t *labels; /* [n] */
} net;

static void net_free(net *t) {
    for (int i = 0; i < t->graph.n_nodes; i++) {
        if (t->value != NULL) ct_free(t->value[i]);
        if (t->grad != NULL) ct_free(t->grad[i]);
    }
    ct_free(t->value);
    ct_free(t->grad);
    ct_free(t->params);
    ct_free(t->dparams);
    ct_free(t->buffers);
    ct_free(t->labels);
    ct_graph_free(&t->graph);
    memset(t, 0, sizeof *t);
}

static ct_status net_create(const ct_model_spec *spec, int n, net *t) {
    memset(t, 0, sizeof *t);
    CT_TRY(ct_graph_create(spec, &t->graph));
    t->n = n;
    size_t n_nodes = (size_t)t->graph.n_nodes;
    t->value = ct_new(double *, n_nodes);
    t->grad = ct_new(double *, n_nodes);
    for (int i = 0; i < t->graph.n_nodes; i++) {
        size_t size = (size_t)n * ct_shape_size(t->graph.nodes[i].shape);
        t->value[i] = ct_new(double, size);
        t->grad[i] = ct_new(double, size);
    }
    t->params = ct_new(double, t->graph.n_weights);
    t->dparams = ct_new(double, t->graph.n_weights);
    t->buffers = ct_new(float, t->graph.n_buffer_values);
    t->labels = ct_new(int32_t, (size_t)n);
    ct_init_buffers(&t->graph, t->buffers);
    return CT_OK;
}

static ref_call net_call(net *t, int i) {
    const ct_node *node = &t->graph.nodes[i];
    ref_call call = {.graph = &t->graph,
                     .node = node,
                     .n = t->n,
                     .mode = REF_FEATURES,
                     .params = t->params,
                     .buffers = t->buffers,
                     .out = t->value[i],
                     .dout = t->grad[i],
                     .dparams = t->dparams};
    for (int k = 0; k < 2 && node->in[k] >= 0; k++) {
        call.in[k] = t->value[node->in[k]];
        call.din[k] = t->grad[node->in[k]];
    }
    call.shape = t->graph.nodes[node->in[0]].shape;
    return call;
}

/* Cross-entropy at the logits, its gradient into theirs. */
static double net_loss(net *t) {
    int n_classes = t->graph.n_classes;
    double loss = 0;
    for (int b = 0; b < t->n; b++) {
        const double *logits = t->value[t->graph.logits] + b * n_classes;
        double *grad = t->grad[t->graph.logits] + b * n_classes, sum = 0;
        for (int c = 0; c < n_classes; c++) sum += exp(logits[c]);
        loss += (log(sum) - logits[t->labels[b]]) / t->n;
        for (int c = 0; c < n_classes; c++)
            grad[c] = (exp(logits[c]) / sum - (c == t->labels[b])) / t->n;
    }
    return loss;
}

/* From value[0], params and labels to all values and gradients; returns the loss. */
static double net_run(net *t) {
    for (int i = 1; i < t->graph.n_nodes; i++) {
        ref_call call = net_call(t, i);
        ct_ref_kernel(call.node->op)->forward(&call);
    }
    double loss = net_loss(t);
    for (int i = t->graph.logits; i > 0; i--) {
        ref_call call = net_call(t, i);
        ct_ref_kernel(call.node->op)->backward(&call);
    }
    return loss;
}

/* ---- numbers from a hash ---- */

static double hash_value(uint32_t k) {
    k ^= k >> 16;
    k *= 0x85ebca6bu;
    k ^= k >> 13;
    k *= 0xc2b2ae35u;
    k ^= k >> 16;
    return (double)(k >> 8) * 0x1p-23 - 1;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_norm(ct_op op) {
    return op == CT_OP_EVONORM || op == CT_OP_EVONORM_S0 || op == CT_OP_GROUPNORM ||
           op == CT_OP_BATCHNORM;
}

static double hashed_param(const ct_param *p, bool of_norm, double gain, uint32_t k) {
    double u = hash_value(k);
    if (ends_with(p->name, ".bias")) return (double)(float)(0.1 * u);
    if (of_norm) return (double)(float)(1 + 0.1 * u);
    double fan_in = (double)(p->count / p->dims[0]);
    return (double)(float)(gain * sqrt(3.0 / fan_in) * u);
}

static void hash_params(net *t, double gain) {
    for (int p = 0; p < t->graph.n_params; p++) {
        const ct_param *param = &t->graph.params[p];
        bool of_norm = false;
        for (int i = 1; i < t->graph.n_nodes; i++) {
            const ct_node *node = &t->graph.nodes[i];
            bool uses = node->weight == p || node->bias == p || node->slope == p;
            of_norm = of_norm || (uses && is_norm(node->op));
        }
        for (size_t k = 0; k < param->count; k++) {
            size_t at = param->offset + k;
            t->params[at] = hashed_param(param, of_norm, gain, (uint32_t)at);
        }
    }
}

static void hash_inputs(net *t, uint32_t offset) {
    size_t n = (size_t)t->n * ct_shape_size(t->graph.nodes[0].shape);
    for (size_t k = 0; k < n; k++) t->value[0][k] = 2 * hash_value(offset + (uint32_t)k);
    for (int b = 0; b < t->n; b++) t->labels[b] = (7 * b + 3) % t->graph.n_classes;
}

/* ---- fixtures ---- */

typedef struct net_header {
    char model[32], norm[32];
    size_t n_params;
    int batch, channels, height, width, n_classes;
    uint32_t input_offset;
    double gain, tolerance, loss;
} net_header;

/* The header's lines; returns where the rest begins, or NULL. */
static char *read_net_header(char *text, net_header *h) {
    int used = 0;
    int n = sscanf(text,
                   "model %31s norm %31s parameters %zu batch %d input %d %d %d classes %d "
                   "input_offset %u gain %lf tolerance %lf loss %lf %n",
                   h->model, h->norm, &h->n_params, &h->batch, &h->channels, &h->height, &h->width,
                   &h->n_classes, &h->input_offset, &h->gain, &h->tolerance, &h->loss, &used);
    return n == 12 && used > 0 ? text + used : NULL;
}

/* A line "name n v..." against the first n values of a node, relative to the largest of them.
 * Returns the next line. */
static char *check_values(char *line, const char *name, const double *values, double tolerance) {
    double largest = 0, error = 0;
    CHECK(strncmp(line, name, strlen(name)) == 0);
    char *at = line + strlen(name);
    long n = strtol(at, &at, 10);
    for (long k = 0; k < n; k++) {
        double expected = strtod(at, &at);
        largest = fmax(largest, fabs(expected));
        error = fmax(error, fabs(values[k] - expected));
    }
    CHECK(n > 0);
    CHECK_NEAR(error / largest, 0, tolerance);
    return at + strspn(at, "\n");
}

static const ct_param *find_param(const ct_graph *g, const char *name) {
    for (int p = 0; p < g->n_params; p++)
        if (strcmp(g->params[p].name, name) == 0) return &g->params[p];
    return NULL;
}

/* A line "grad name n norm p0 ... p7": norm and probes of a tensor's gradient. `last` is the
 * offset of the line's before: tensors come in the order of the parameter vector. */
static char *check_gradient(const net *t, char *line, long *last, double tolerance) {
    char name[80] = "";
    int used = 0;
    CHECK(sscanf(line, "grad %79s %n", name, &used) == 1);
    char *at = line + used;
    size_t n = (size_t)strtol(at, &at, 10);
    double norm = strtod(at, &at), squares = 0, probes[N_PROBES] = {0}, error = 0;
    const ct_param *p = find_param(&t->graph, name);
    if (p == NULL) printf("    the model has no tensor %s\n", name);
    if (p != NULL && p->count == n && (long)p->offset > *last) {
        for (size_t k = 0; k < n; k++) {
            double g = t->dparams[p->offset + k];
            squares += g * g;
            for (uint32_t i = 0; i < N_PROBES; i++)
                probes[i] += g * hash_value((uint32_t)k + (i + 1) * 0x7f4a7c15u);
        }
        *last = (long)p->offset;
    } else {
        CHECK(!"name, size and order of a tensor agree");
    }
    error = fabs(sqrt(squares) - norm);
    for (int i = 0; i < N_PROBES; i++) error = fmax(error, fabs(probes[i] - strtod(at, &at)));
    if (!(error <= tolerance * norm)) printf("    gradient of %s:\n", name);
    CHECK_NEAR(error / norm, 0, tolerance);
    return at + strspn(at, "\n");
}

static void check_net_text(char *text, double tolerance) {
    net_header h = {0};
    net t;
    char *line = read_net_header(text, &h);
    REQUIRE(line != NULL);
    ct_model_spec spec = {.name = h.model,
                          .input = {h.channels, h.height, h.width},
                          .n_classes = h.n_classes,
                          .norm = h.norm};
    REQUIRE_OK(net_create(&spec, h.batch, &t));
    CHECK(t.graph.n_weights == h.n_params);
    hash_params(&t, h.gain);
    hash_inputs(&t, h.input_offset);
    CHECK_NEAR(net_run(&t), h.loss, tolerance * h.loss);
    line = check_values(line, "logits", t.value[t.graph.logits], tolerance);
    line = check_values(line, "features", t.value[t.graph.features], tolerance);
    int n_lines = 0;
    for (long last = -1; *line != '\0'; n_lines++)
        line = check_gradient(&t, line, &last, tolerance);
    CHECK(n_lines > 0);
    net_free(&t);
}

/* The ref backend computes in double, so that it must agree far better than the tolerance that
 * the files give for float32. */
static void check_net(const char *name) {
    char path[512];
    ct_blob file = {0};
    snprintf(path, sizeof path, CT_SOURCE_DIR "/tests/fixtures/nets/%s.txt", name);
    REQUIRE_OK(ct_file_read(path, 1 << 20, &file));
    check_net_text((char *)file.bytes, 1e-9);
    ct_blob_free(&file);
}

#endif
