/* A network as a list of nodes in the order they are computed, and the table of its parameters.
 * A model file describes its layers with the ct_* builder calls below; a backend compiles the
 * finished graph into a plan. Every parameter has a fixed place in one flat row of floats. */
#ifndef CT_NN_GRAPH_H
#define CT_NN_GRAPH_H

#include <crosstalk/base.h>

#include "util/registry.h"

typedef enum ct_op {
    CT_OP_INPUT,
    CT_OP_CONV,       /* kernel, stride, pad, groups; optional bias */
    CT_OP_LINEAR,     /* flattens its input; optional bias */
    CT_OP_RELU,       /* max(x, 0) */
    CT_OP_MAXPOOL,    /* kernel, stride, pad */
    CT_OP_AVGPOOL,    /* the mean over height and width */
    CT_OP_ADD,        /* in[0] + in[1] */
    CT_OP_EVONORM,    /* EvoNorm-S0 with a hard sigmoid: x s(x) / sqrt(var_g + eps) w + b */
    CT_OP_EVONORM_S0, /* the original: s = sigmoid(v x), v learnable per channel */
    CT_OP_GROUPNORM,  /* (x - mean_g) / sqrt(var_g + eps) w + b */
    CT_OP_BATCHNORM,  /* statistics over the batch; running ones for evaluation */
    CT_N_OPS,
} ct_op;

#define CT_NORM_EPSILON       1e-5
#define CT_BATCHNORM_MOMENTUM 0.1 /* running <- 0.9 running + 0.1 batch, as in PyTorch */

typedef struct ct_shape {
    int c, h, w;
} ct_shape;

static inline size_t ct_shape_size(ct_shape s) {
    return (size_t)s.c * (size_t)s.h * (size_t)s.w;
}

typedef enum ct_init {
    CT_INIT_ZERO,
    CT_INIT_ONE,
    CT_INIT_NORMAL,  /* N(0, scale) */
    CT_INIT_UNIFORM, /* U(-scale, scale) */
} ct_init;

#define CT_PARAM_NAME 120

typedef struct ct_param {
    char name[CT_PARAM_NAME]; /* PyTorch's: layer1.0.conv1.weight */
    int n_dims;
    size_t dims[CT_MAX_DIMS];
    size_t offset; /* first float in the row */
    size_t count;
    ct_init init;
    double scale;
} ct_param;

#define CT_NO_PARAM (-1)

typedef struct ct_node {
    ct_op op;
    int in[2];      /* nodes read; -1 = none */
    ct_shape shape; /* of the output, per sample */
    int kernel, stride, pad, groups;
    int weight, bias, slope; /* entries of the parameter table, or CT_NO_PARAM; slope: v of S0 */
    size_t buffer;           /* batchnorm: running means, then variances, in the buffer row */
} ct_node;

typedef struct ct_graph {
    char model[64];
    ct_node *nodes;
    int n_nodes;
    ct_param *params;
    int n_params;      /* tensors */
    size_t n_weights;  /* floats in a parameter row */
    ct_param *buffers; /* running statistics: not trained, never exchanged */
    int n_buffers;
    size_t n_buffer_values;
    int features; /* node whose output is the paper's phi(x; d) */
    int logits;   /* last node */
    int n_classes;
    ct_status status;      /* first error of the builder calls */
    bool took_argument;    /* the model has read what stands behind the colon of its name */
    bool starts_by_fan_in; /* of convolutions, see ct_start_by_fan_in() */
} ct_graph;

static inline size_t ct_graph_n_features(const ct_graph *g) {
    return ct_shape_size(g->nodes[g->features].shape);
}

/* --- builder: each call adds one node and returns its number; after an error they do nothing ---
 */
int ct_input(ct_graph *g, ct_shape shape);
/* Convolutions added from here on start as U(+-1 / sqrt(fan_in)), as PyTorch's do where a model
 * does not say how, instead of N(0, sqrt(2 / (kernel^2 channels))). */
void ct_start_by_fan_in(ct_graph *g);
int ct_conv(ct_graph *g, int in, const char *name, int channels, int kernel, int stride, int pad,
            int groups, bool bias);
int ct_linear(ct_graph *g, int in, const char *name, int width);
int ct_relu(ct_graph *g, int in);
int ct_maxpool(ct_graph *g, int in, int kernel, int stride, int pad);
int ct_avgpool(ct_graph *g, int in);
int ct_add(ct_graph *g, int a, int b);
/* A norm by kind; CT_OP_INPUT stands for "none" and returns `in`. */
int ct_norm(ct_graph *g, int in, ct_op kind, const char *name);
void ct_set_features(ct_graph *g, int node);

/* --- models --- */
typedef struct ct_model_spec {
    const char *name; /* registry name, with an argument after a colon where the model takes one */
    ct_shape input;
    int n_classes;
    const char *norm; /* evonorm, evonorm-s0, groupnorm, batchnorm, none; NULL = evonorm */
} ct_model_spec;

/* Unknown names and shapes that do not fit are CT_INVAL. */
ct_status ct_graph_create(const ct_model_spec *spec, ct_graph *out);
void ct_graph_free(ct_graph *g);

bool ct_op_is_norm(ct_op op);
/* How many inputs of nodes take this node's value. */
int ct_graph_n_consumers(const ct_graph *g, int node);
/* Is the node's value needed by the node behind it alone? */
bool ct_graph_is_inner(const ct_graph *g, int node);

/* Multiply-adds of one sample's forward pass, up to and including `last` (logits for all of it). */
double ct_graph_macs(const ct_graph *g, int last);

/* The image shape a model was made for. */
ct_status ct_model_usual_input(const char *name, ct_shape *out);
void ct_model_each(ct_name_visit each, void *context);

/* Fills one parameter row (n_weights floats) with the start values of `seed`. */
void ct_init_params(const ct_graph *g, unsigned long long seed, float *row);
/* And one buffer row: running means 0, variances 1. */
void ct_init_buffers(const ct_graph *g, float *row);

/* For model files: what the norm option asks for. `act` puts a ReLU behind norms that have no
 * nonlinearity of their own (EvoNorm has one). */
typedef struct ct_model_context {
    ct_shape input;
    int n_classes;
    ct_op norm;           /* CT_OP_INPUT = none */
    const char *argument; /* behind the colon, or NULL; read it with ct_model_argument */
} ct_model_context;

/* The argument of a model that takes one (NULL if none was given); others refuse theirs. */
const char *ct_model_argument(ct_graph *g, const ct_model_context *m);

int ct_norm_act(ct_graph *g, int in, const ct_model_context *m, const char *name);
/* The ReLU behind a residual addition: none with EvoNorm. */
int ct_join_act(ct_graph *g, int in, const ct_model_context *m);

#endif
