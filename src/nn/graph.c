#include "nn/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/memory.h"

#define NORM_GROUPS      8 /* EvoNorm, as in the paper's code */
#define GROUPNORM_GROUPS 2 /* groupnorm(2) */
#define MAX_NODES        4096

static bool is_broken(const ct_graph *g) {
    return g->status != CT_OK;
}

static int add_node(ct_graph *g, ct_node node) {
    if (is_broken(g)) return 0;
    if (g->n_nodes >= MAX_NODES) {
        g->status = ct_fail(CT_INVAL, "model %s has more than %d nodes", g->model, MAX_NODES);
        return 0;
    }
    g->status = ct_extend(&g->nodes, (size_t)g->n_nodes, "the model graph");
    if (is_broken(g)) return 0;
    g->nodes[g->n_nodes] = node;
    g->logits = g->n_nodes;
    return g->n_nodes++;
}

static ct_node node_of(ct_op op, int in, ct_shape shape) {
    return (ct_node){.op = op,
                     .in = {in, -1},
                     .shape = shape,
                     .groups = 1,
                     .weight = CT_NO_PARAM,
                     .bias = CT_NO_PARAM,
                     .slope = CT_NO_PARAM};
}

/* One more at the end of a list of n, which has so many values so far. */
static int add_entry(ct_graph *g, ct_param **list, int *n, size_t *n_values, const char *name,
                     const char *suffix, ct_param p) {
    if (!is_broken(g)) g->status = ct_extend(list, (size_t)*n, "the model graph");
    if (is_broken(g)) return CT_NO_PARAM;
    snprintf(p.name, sizeof p.name, "%s.%s", name, suffix);
    p.count = 1;
    for (int d = 0; d < p.n_dims; d++) p.count *= p.dims[d];
    p.offset = *n_values;
    *n_values += p.count;
    (*list)[*n] = p;
    return (*n)++;
}

static int add_param(ct_graph *g, const char *name, const char *suffix, ct_param p) {
    return add_entry(g, &g->params, &g->n_params, &g->n_weights, name, suffix, p);
}

static int add_vector(ct_graph *g, const char *name, const char *suffix, int n, ct_init init,
                      double scale) {
    return add_param(g, name, suffix,
                     (ct_param){.n_dims = 1, .dims = {(size_t)n}, .init = init, .scale = scale});
}

static void add_buffer(ct_graph *g, const char *name, const char *suffix, int n, ct_init init) {
    add_entry(g, &g->buffers, &g->n_buffers, &g->n_buffer_values, name, suffix,
              (ct_param){.n_dims = 1, .dims = {(size_t)n}, .init = init});
}

int ct_input(ct_graph *g, ct_shape shape) {
    return add_node(g, node_of(CT_OP_INPUT, -1, shape));
}

/* Output extent of a window that slides over `extent`; 0 if it does not fit once. */
static int windows(int extent, int kernel, int stride, int pad) {
    int room = extent + 2 * pad - kernel;
    return room < 0 ? 0 : room / stride + 1;
}

static void check_window(ct_graph *g, const char *what, ct_shape in, ct_shape out) {
    if (is_broken(g) || (out.h > 0 && out.w > 0)) return;
    g->status = ct_fail(CT_INVAL, "model %s does not fit these images: %s gets %dx%d pixels",
                        g->model, what, in.h, in.w);
}

void ct_start_by_fan_in(ct_graph *g) {
    g->starts_by_fan_in = true;
}

int ct_conv(ct_graph *g, int in, const char *name, int channels, int kernel, int stride, int pad,
            int groups, bool bias) {
    if (is_broken(g)) return 0;
    ct_shape from = g->nodes[in].shape;
    ct_shape to = {channels, windows(from.h, kernel, stride, pad),
                   windows(from.w, kernel, stride, pad)};
    check_window(g, name, from, to);
    ct_node node = node_of(CT_OP_CONV, in, to);
    node.kernel = kernel;
    node.stride = stride;
    node.pad = pad;
    node.groups = groups;
    size_t k = (size_t)kernel;
    double bound = 1 / sqrt((double)from.c / groups * kernel * kernel);
    ct_param weight = {.n_dims = 4,
                       .dims = {(size_t)channels, (size_t)(from.c / groups), k, k},
                       .init = CT_INIT_NORMAL,
                       .scale = sqrt(2.0 / ((double)kernel * kernel * channels))};
    if (g->starts_by_fan_in) {
        weight.init = CT_INIT_UNIFORM;
        weight.scale = bound;
    }
    node.weight = add_param(g, name, "weight", weight);
    if (bias) node.bias = add_vector(g, name, "bias", channels, CT_INIT_UNIFORM, bound);
    return add_node(g, node);
}

int ct_linear(ct_graph *g, int in, const char *name, int width) {
    if (is_broken(g)) return 0;
    size_t n_in = ct_shape_size(g->nodes[in].shape);
    double bound = 1.0 / sqrt((double)n_in);
    ct_node node = node_of(CT_OP_LINEAR, in, (ct_shape){width, 1, 1});
    node.weight = add_param(
        g, name, "weight",
        (ct_param){
            .n_dims = 2, .dims = {(size_t)width, n_in}, .init = CT_INIT_UNIFORM, .scale = bound});
    node.bias = add_vector(g, name, "bias", width, CT_INIT_UNIFORM, bound);
    return add_node(g, node);
}

int ct_relu(ct_graph *g, int in) {
    if (is_broken(g)) return 0;
    return add_node(g, node_of(CT_OP_RELU, in, g->nodes[in].shape));
}

int ct_maxpool(ct_graph *g, int in, int kernel, int stride, int pad) {
    if (is_broken(g)) return 0;
    ct_shape from = g->nodes[in].shape;
    ct_shape to = {from.c, windows(from.h, kernel, stride, pad),
                   windows(from.w, kernel, stride, pad)};
    check_window(g, "a max pooling", from, to);
    ct_node node = node_of(CT_OP_MAXPOOL, in, to);
    node.kernel = kernel;
    node.stride = stride;
    node.pad = pad;
    return add_node(g, node);
}

int ct_avgpool(ct_graph *g, int in) {
    if (is_broken(g)) return 0;
    return add_node(g, node_of(CT_OP_AVGPOOL, in, (ct_shape){g->nodes[in].shape.c, 1, 1}));
}

int ct_add(ct_graph *g, int a, int b) {
    if (is_broken(g)) return 0;
    ct_node node = node_of(CT_OP_ADD, a, g->nodes[a].shape);
    node.in[1] = b;
    return add_node(g, node);
}

int ct_norm(ct_graph *g, int in, ct_op kind, const char *name) {
    if (is_broken(g) || kind == CT_OP_INPUT) return in;
    ct_shape shape = g->nodes[in].shape;
    ct_node node = node_of(kind, in, shape);
    node.groups = kind == CT_OP_GROUPNORM   ? GROUPNORM_GROUPS
                  : kind == CT_OP_BATCHNORM ? 1
                                            : NORM_GROUPS;
    if (shape.c % node.groups != 0) {
        g->status = ct_fail(CT_INVAL, "%s: %d channels cannot be normalised in %d groups", name,
                            shape.c, node.groups);
        return 0;
    }
    node.weight = add_vector(g, name, "weight", shape.c, CT_INIT_ONE, 0);
    node.bias = add_vector(g, name, "bias", shape.c, CT_INIT_ZERO, 0);
    if (kind == CT_OP_EVONORM_S0) node.slope = add_vector(g, name, "v", shape.c, CT_INIT_ONE, 0);
    if (kind == CT_OP_BATCHNORM) {
        node.buffer = g->n_buffer_values;
        add_buffer(g, name, "running_mean", shape.c, CT_INIT_ZERO);
        add_buffer(g, name, "running_var", shape.c, CT_INIT_ONE);
    }
    return add_node(g, node);
}

void ct_set_features(ct_graph *g, int node) {
    if (!is_broken(g)) g->features = node;
}

int ct_norm_act(ct_graph *g, int in, const ct_model_context *m, const char *name) {
    int x = ct_norm(g, in, m->norm, name);
    return ct_join_act(g, x, m);
}

int ct_join_act(ct_graph *g, int in, const ct_model_context *m) {
    bool has_own = m->norm == CT_OP_EVONORM || m->norm == CT_OP_EVONORM_S0;
    return has_own ? in : ct_relu(g, in);
}

bool ct_op_is_norm(ct_op op) {
    return op == CT_OP_EVONORM || op == CT_OP_EVONORM_S0 || op == CT_OP_GROUPNORM ||
           op == CT_OP_BATCHNORM;
}

int ct_graph_n_consumers(const ct_graph *g, int node) {
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++)
        n += (g->nodes[i].in[0] == node) + (g->nodes[i].in[1] == node);
    return n;
}

bool ct_graph_is_inner(const ct_graph *g, int node) {
    if (node == g->features || node == g->logits || node + 1 == g->n_nodes) return false;
    const ct_node *next = &g->nodes[node + 1];
    return ct_graph_n_consumers(g, node) == 1 && (next->in[0] == node || next->in[1] == node);
}

void ct_graph_free(ct_graph *g) {
    ct_free(g->nodes);
    ct_free(g->params);
    ct_free(g->buffers);
    memset(g, 0, sizeof *g);
}

double ct_graph_macs(const ct_graph *g, int last) {
    double macs = 0;
    for (int i = 0; i <= last; i++) {
        const ct_node *node = &g->nodes[i];
        if (node->op != CT_OP_CONV && node->op != CT_OP_LINEAR) continue;
        double per_output =
            (double)g->params[node->weight].count / (double)g->params[node->weight].dims[0];
        macs += per_output * (double)ct_shape_size(node->shape);
    }
    return macs;
}
