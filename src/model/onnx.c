/* A model as ONNX: IR version 7, opset 13 of the default domain, which every runtime since 2021 reads.
 * Field numbers are those of onnx.proto.
 *
 * Norms in standard operators, x [N][C][H][W], G groups (nn/graph.h):
 *   g     = Reshape(x, [0, G, -1])                       [N][G][C/G H W]
 *   d     = g - ReduceMean(g, axes 2)
 *   sigma = Sqrt(ReduceMean(d d, axes 2) + eps)          [N][G][1]
 *   evonorm     y = Reshape(Reshape(x HardSigmoid(x; 1/6, 1/2)) / sigma) w + b
 *   evonorm-s0  the same with Sigmoid(v x)
 *   groupnorm   y = Reshape(d / sigma) w + b
 *   batchnorm   BatchNormalization with the running statistics */
#include <stdio.h>
#include <string.h>

#include "model/model_internal.h"
#include "model/proto.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/version.h"

enum { IR_VERSION = 7, OPSET = 13 };
enum {
    MODEL_IR = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_METADATA = 14
};
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_TYPE = 20
};
enum { IS_FLOAT = 1, IS_INT = 2, IS_INTS = 7 }; /* of attributes */
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { FLOAT = 1, UINT8 = 2, INT64 = 7 }; /* elements of tensors */

#define MAX_BYTES ((size_t)INT32_MAX) /* of a message of Protocol Buffers */

/* A constant; floats are written when their turn comes, whole numbers are in `head` already. */
typedef struct constant {
    ct_proto head; /* the tensor but for its floats */
    const float *values;
    size_t n; /* floats */
} constant;

typedef struct onnx {
    const ct_model *model;
    ct_onnx_options options;
    ct_proto graph; /* nodes, inputs, outputs */
    constant *constants;
    size_t n_constants;
    float scale[2 * CT_MAX_CHANNELS]; /* of preprocessing: factors, then offsets */
    float epsilon;
    ct_status status; /* the first failure; after it nothing is added */
} onnx;

static void onnx_free(onnx *o) {
    for (size_t k = 0; k < o->n_constants; k++) ct_proto_free(&o->constants[k].head);
    ct_free(o->constants);
    ct_proto_free(&o->graph);
}

/* ---- constants ---- */

static constant *add_constant(onnx *o, const char *name, int type, const int64_t *dims,
                              int n_dims) {
    if (o->status == CT_OK) o->status = ct_extend(&o->constants, o->n_constants, "an ONNX graph");
    if (o->status != CT_OK) return NULL;
    constant *c = &o->constants[o->n_constants++];
    *c = (constant){.n = 0};
    for (int d = 0; d < n_dims; d++) ct_proto_whole(&c->head, TENSOR_DIMS, dims[d]);
    ct_proto_whole(&c->head, TENSOR_TYPE, type);
    ct_proto_text(&c->head, TENSOR_NAME, name);
    return c;
}

static void add_floats(onnx *o, const char *name, const float *values, const int64_t *dims,
                       int n_dims) {
    constant *c = add_constant(o, name, FLOAT, dims, n_dims);
    if (c == NULL) return;
    c->values = values;
    c->n = 1;
    for (int d = 0; d < n_dims; d++) c->n *= (size_t)dims[d];
    ct_proto_begin(&c->head, TENSOR_RAW, c->n * sizeof(float));
}

/* Whole numbers: they go into int64_data, a field of varints. */
static void add_wholes(onnx *o, const char *name, const int64_t *values, int n) {
    enum { TENSOR_INT64 = 7 };
    constant *c = add_constant(o, name, INT64, &(int64_t){n}, 1);
    for (int k = 0; c != NULL && k < n; k++) ct_proto_whole(&c->head, TENSOR_INT64, values[k]);
}

/* A parameter under its own name, [C][1][1] where it goes with images. */
static const char *add_param(onnx *o, int param, bool goes_with_images) {
    const ct_param *p = &o->model->graph.params[param];
    int64_t dims[4] = {1, 1, 1, 1};
    for (int d = 0; d < p->n_dims; d++) dims[d] = (int64_t)p->dims[d];
    add_floats(o, p->name, o->model->row + p->offset, dims, goes_with_images ? 3 : p->n_dims);
    return p->name;
}

/* ---- nodes ---- */

/* What a value between nodes is called: that of node i, and of a step within it. */
typedef struct name {
    char text[48];
} name;

static name name_of(int i, const char *step) {
    name n;
    snprintf(n.text, sizeof n.text, "n%d%s%s", i, step[0] != '\0' ? "." : "", step);
    return n;
}

static ct_proto attribute(const char *called, int type) {
    ct_proto a = {0};
    ct_proto_text(&a, ATTRIBUTE_NAME, called);
    ct_proto_whole(&a, ATTRIBUTE_TYPE, type);
    return a;
}

static void set_int(ct_proto *node, const char *called, int64_t value) {
    ct_proto a = attribute(called, IS_INT);
    ct_proto_whole(&a, ATTRIBUTE_I, value);
    ct_proto_message(node, NODE_ATTRIBUTE, &a);
}

static void set_float(ct_proto *node, const char *called, float value) {
    ct_proto a = attribute(called, IS_FLOAT);
    ct_proto_float(&a, ATTRIBUTE_F, value);
    ct_proto_message(node, NODE_ATTRIBUTE, &a);
}

static void set_ints(ct_proto *node, const char *called, const int64_t *values, int n) {
    ct_proto a = attribute(called, IS_INTS);
    for (int k = 0; k < n; k++) ct_proto_whole(&a, ATTRIBUTE_INTS, values[k]);
    ct_proto_message(node, NODE_ATTRIBUTE, &a);
}

/* A node whose attributes are still to be set; NULL stands for no input. */
static ct_proto begin_node(const char *op, const char *const *inputs, int n, const char *output) {
    ct_proto node = {0};
    for (int k = 0; k < n && inputs[k] != NULL; k++) ct_proto_text(&node, NODE_INPUT, inputs[k]);
    ct_proto_text(&node, NODE_OUTPUT, output);
    ct_proto_text(&node, NODE_OP, op);
    return node;
}

static void end_node(onnx *o, ct_proto *node) {
    ct_proto_message(&o->graph, GRAPH_NODE, node);
}

/* One without attributes. */
static void add_node(onnx *o, const char *op, const char *a, const char *b, const char *output) {
    ct_proto node = begin_node(op, (const char *const[]){a, b}, 2, output);
    end_node(o, &node);
}

static void add_mean(onnx *o, const char *input, const char *output) {
    ct_proto node = begin_node("ReduceMean", &input, 1, output);
    set_ints(&node, "axes", &(int64_t){2}, 1);
    set_int(&node, "keepdims", 1);
    end_node(o, &node);
}

static void set_window(ct_proto *node, const ct_node *n) {
    const int64_t k[] = {n->kernel, n->kernel}, s[] = {n->stride, n->stride};
    const int64_t p[] = {n->pad, n->pad, n->pad, n->pad};
    set_ints(node, "kernel_shape", k, 2);
    set_ints(node, "strides", s, 2);
    set_ints(node, "pads", p, 4);
}

static void add_conv(onnx *o, const ct_node *n, const char *input, const char *output) {
    const char *weight = add_param(o, n->weight, false);
    const char *bias = n->bias != CT_NO_PARAM ? add_param(o, n->bias, false) : NULL;
    ct_proto node = begin_node("Conv", (const char *const[]){input, weight, bias}, 3, output);
    set_window(&node, n);
    set_int(&node, "group", n->groups);
    end_node(o, &node);
}

static void add_linear(onnx *o, int i, const ct_node *n, const char *input, const char *output) {
    name flat = name_of(i, "flat");
    const char *weight = add_param(o, n->weight, false), *bias = add_param(o, n->bias, false);
    ct_proto node = begin_node("Flatten", &input, 1, flat.text);
    set_int(&node, "axis", 1);
    end_node(o, &node);
    node = begin_node("Gemm", (const char *const[]){flat.text, weight, bias}, 3, output);
    set_int(&node, "transB", 1);
    end_node(o, &node);
}

static void add_pool(onnx *o, const ct_node *n, const char *input, const char *output) {
    ct_proto node = begin_node("MaxPool", &input, 1, output);
    set_window(&node, n);
    end_node(o, &node);
}

static void add_batchnorm(onnx *o, int i, const ct_node *n, const char *input, const char *output) {
    const float *running = o->model->running + n->buffer;
    const int64_t c = n->shape.c;
    name mean = name_of(i, "mean"), variance = name_of(i, "variance");
    add_floats(o, mean.text, running, &c, 1);
    add_floats(o, variance.text, running + c, &c, 1);
    const char *inputs[] = {input, add_param(o, n->weight, false), add_param(o, n->bias, false),
                            mean.text, variance.text};
    ct_proto node = begin_node("BatchNormalization", inputs, 5, output);
    set_float(&node, "epsilon", (float)CT_NORM_EPSILON);
    end_node(o, &node);
}

/* ---- norms of groups ---- */

/* x s(x) of an EvoNorm, in groups. */
static void add_gated(onnx *o, int i, const ct_node *n, const char *x, const char *groups,
                      const char *output) {
    name s = name_of(i, "gate"), vx = name_of(i, "slope"), y = name_of(i, "gated");
    if (n->slope == CT_NO_PARAM) {
        ct_proto node = begin_node("HardSigmoid", &x, 1, s.text);
        set_float(&node, "alpha", 1.0f / 6);
        set_float(&node, "beta", 0.5f);
        end_node(o, &node);
    } else {
        add_node(o, "Mul", x, add_param(o, n->slope, true), vx.text);
        add_node(o, "Sigmoid", vx.text, NULL, s.text);
    }
    add_node(o, "Mul", x, s.text, y.text);
    add_node(o, "Reshape", y.text, groups, output);
}

static void add_group_norm(onnx *o, int i, const ct_node *n, const char *x, const char *output) {
    const int64_t in_groups[] = {0, n->groups, -1};
    const int64_t as_before[] = {0, n->shape.c, n->shape.h, n->shape.w};
    name groups = name_of(i, "groups"), shape = name_of(i, "shape"), g = name_of(i, "grouped"),
         mean = name_of(i, "mean"), d = name_of(i, "centred"), square = name_of(i, "square"),
         var = name_of(i, "variance"), safe = name_of(i, "safe"), sigma = name_of(i, "sigma"),
         top = name_of(i, "numerator"), ratio = name_of(i, "ratio"), whole = name_of(i, "whole"),
         scaled = name_of(i, "scaled");
    if (o->epsilon == 0) { /* of all norms */
        o->epsilon = (float)CT_NORM_EPSILON;
        add_floats(o, "epsilon", &o->epsilon, NULL, 0);
    }
    add_wholes(o, groups.text, in_groups, 3);
    add_wholes(o, shape.text, as_before, 4);
    add_node(o, "Reshape", x, groups.text, g.text);
    add_mean(o, g.text, mean.text);
    add_node(o, "Sub", g.text, mean.text, d.text);
    add_node(o, "Mul", d.text, d.text, square.text);
    add_mean(o, square.text, var.text);
    add_node(o, "Add", var.text, "epsilon", safe.text);
    add_node(o, "Sqrt", safe.text, NULL, sigma.text);
    bool is_evonorm = n->op != CT_OP_GROUPNORM;
    if (is_evonorm) add_gated(o, i, n, x, groups.text, top.text);
    add_node(o, "Div", is_evonorm ? top.text : d.text, sigma.text, ratio.text);
    add_node(o, "Reshape", ratio.text, shape.text, whole.text);
    add_node(o, "Mul", whole.text, add_param(o, n->weight, true), scaled.text);
    add_node(o, "Add", scaled.text, add_param(o, n->bias, true), output);
}

/* ---- the graph ---- */

static void add_step(onnx *o, int i, const char *output) {
    const ct_node *n = &o->model->graph.nodes[i];
    name in[2] = {name_of(n->in[0], ""), name_of(n->in[1], "")};
    const char *x = in[0].text;
    switch (n->op) {
    case CT_OP_CONV: add_conv(o, n, x, output); return;
    case CT_OP_LINEAR: add_linear(o, i, n, x, output); return;
    case CT_OP_RELU: add_node(o, "Relu", x, NULL, output); return;
    case CT_OP_MAXPOOL: add_pool(o, n, x, output); return;
    case CT_OP_AVGPOOL: add_node(o, "GlobalAveragePool", x, NULL, output); return;
    case CT_OP_ADD: add_node(o, "Add", x, in[1].text, output); return;
    case CT_OP_BATCHNORM: add_batchnorm(o, i, n, x, output); return;
    case CT_OP_EVONORM:
    case CT_OP_EVONORM_S0:
    case CT_OP_GROUPNORM: add_group_norm(o, i, n, x, output); return;
    case CT_OP_INPUT:
    case CT_N_OPS: return;
    }
}

/* (p / 255 - mean) / deviation = p factor - offset, from [n][h][w][c] bytes. */
static void add_preprocessing(onnx *o, const char *output) {
    const ct_facts *f = &o->model->facts;
    const int64_t dims[] = {f->channels, 1, 1}, order[] = {0, 3, 1, 2};
    const char *input = "input", *floats = "input.floats";
    float *factor = o->scale, *offset = o->scale + CT_MAX_CHANNELS;
    for (int c = 0; c < f->channels; c++) {
        factor[c] = (float)(1 / (255 * (double)f->deviation[c]));
        offset[c] = (float)((double)f->mean[c] / (double)f->deviation[c]);
    }
    add_floats(o, "input.factor", factor, dims, 3);
    add_floats(o, "input.offset", offset, dims, 3);
    ct_proto node = begin_node("Cast", &input, 1, floats);
    set_int(&node, "to", FLOAT);
    end_node(o, &node);
    node = begin_node("Transpose", &floats, 1, "input.planes");
    set_ints(&node, "perm", order, 4);
    end_node(o, &node);
    add_node(o, "Mul", "input.planes", "input.factor", "input.scaled");
    add_node(o, "Sub", "input.scaled", "input.offset", output);
}

/* An input or output, whose first dimension is free. */
static void add_value(onnx *o, int field, const char *called, int type, const int64_t *dims,
                      int n_dims) {
    enum {
        NAME = 1,
        TYPE = 2,
        TENSOR_TYPE_OF = 1,
        ELEMENT = 1,
        SHAPE = 2,
        DIM = 1,
        VALUE = 1,
        PARAM = 2
    };
    ct_proto shape = {0}, tensor = {0}, kind = {0}, value = {0}, free_dim = {0};
    ct_proto_text(&free_dim, PARAM, "n");
    ct_proto_message(&shape, DIM, &free_dim);
    for (int d = 0; d < n_dims; d++) {
        ct_proto dim = {0};
        ct_proto_whole(&dim, VALUE, dims[d]);
        ct_proto_message(&shape, DIM, &dim);
    }
    ct_proto_whole(&tensor, ELEMENT, type);
    ct_proto_message(&tensor, SHAPE, &shape);
    ct_proto_message(&kind, TENSOR_TYPE_OF, &tensor);
    ct_proto_text(&value, NAME, called);
    ct_proto_message(&value, TYPE, &kind);
    ct_proto_message(&o->graph, field, &value);
}

static void add_ends(onnx *o) {
    const ct_facts *f = &o->model->facts;
    const int64_t planes[] = {f->channels, f->height, f->width};
    const int64_t bytes[] = {f->height, f->width, f->channels}, classes[] = {f->n_classes};
    add_value(o, GRAPH_INPUT, "input", o->options.preprocess ? UINT8 : FLOAT,
              o->options.preprocess ? bytes : planes, 3);
    add_value(o, GRAPH_OUTPUT, o->options.logits ? "logits" : "probabilities", FLOAT, classes, 1);
}

static ct_status build(onnx *o) {
    const ct_graph *g = &o->model->graph;
    name first = name_of(0, "");
    if (o->options.preprocess)
        add_preprocessing(o, first.text);
    else
        add_node(o, "Identity", "input", NULL, first.text);
    for (int i = 1; i < g->n_nodes; i++)
        add_step(o, i, i == g->logits ? "logits" : name_of(i, "").text);
    if (!o->options.logits) {
        ct_proto node = begin_node("Softmax", &(const char *){"logits"}, 1, "probabilities");
        set_int(&node, "axis", 1);
        end_node(o, &node);
    }
    ct_proto_text(&o->graph, GRAPH_NAME, g->model);
    add_ends(o);
    CT_TRY(o->status);
    return ct_proto_status(&o->graph);
}

/* ---- the file ---- */

/* All of the model but its graph. */
static ct_status describe(const onnx *o, ct_proto *out) {
    CT_SCOPED(ct_fact_notes) notes = {.n = 0};
    ct_proto opset = {0};
    ct_proto_whole(out, MODEL_IR, IR_VERSION);
    ct_proto_text(out, MODEL_PRODUCER, "crosstalk");
    ct_proto_text(out, MODEL_PRODUCER_VERSION, CT_VERSION);
    ct_proto_text(&opset, 1, "");
    ct_proto_whole(&opset, 2, OPSET);
    ct_proto_message(out, MODEL_OPSET, &opset);
    CT_TRY(ct_facts_write(&o->model->view, &notes));
    for (size_t k = 0; k < notes.n; k++) {
        ct_proto entry = {0};
        ct_proto_text(&entry, 1, notes.notes[k].name);
        ct_proto_text(&entry, 2, notes.notes[k].value);
        ct_proto_message(out, MODEL_METADATA, &entry);
    }
    return ct_proto_status(out);
}

/* Keys and lengths of the constants, and all bytes of the graph. */
static ct_status measure(const onnx *o, ct_proto *keys, size_t *n_graph) {
    *n_graph = o->graph.n;
    for (size_t k = 0; k < o->n_constants; k++) {
        const constant *c = &o->constants[k];
        size_t before = keys->n, n = c->head.n + c->n * sizeof(float);
        CT_TRY(ct_proto_status(&c->head));
        ct_proto_begin(keys, GRAPH_INITIALIZER, n);
        CT_TRY(ct_proto_status(keys));
        *n_graph += keys->n - before + n;
        if (*n_graph > MAX_BYTES)
            return ct_fail(CT_INVAL,
                           "%s: as ONNX it would have more than 2 GiB, which its files "
                           "cannot have",
                           o->model->path);
    }
    return CT_OK;
}

static ct_status write_all(const onnx *o, const ct_proto *head, const char *path) {
    CT_SCOPED_BY(ct_writer_abandon, ct_writer *) writer = NULL;
    CT_TRY(ct_writer_open(path, &writer));
    CT_TRY(ct_writer_add(writer, head->bytes, head->n));
    CT_TRY(ct_writer_add(writer, o->graph.bytes, o->graph.n));
    for (size_t k = 0; k < o->n_constants; k++) {
        const constant *c = &o->constants[k];
        CT_SCOPED(ct_proto) key = {0};
        ct_proto_begin(&key, GRAPH_INITIALIZER, c->head.n + c->n * sizeof(float));
        CT_TRY(ct_proto_status(&key));
        CT_TRY(ct_writer_add(writer, key.bytes, key.n));
        CT_TRY(ct_writer_add(writer, c->head.bytes, c->head.n));
        if (c->n > 0) CT_TRY(ct_writer_add_floats(writer, c->values, c->n));
    }
    return ct_writer_commit(&writer);
}

ct_status ct_model_export_onnx(const ct_model *model, const char *path,
                               const ct_onnx_options *given) {
    CT_SCOPED(onnx) o = {.model = model, .options = CT_ONNX_OPTIONS};
    CT_SCOPED(ct_proto) head = {0};
    CT_SCOPED(ct_proto) keys = {0};
    size_t n_graph = 0;
    if (given != NULL)
        memcpy(&o.options, given, given->size < sizeof o.options ? given->size : sizeof o.options);
    if (o.options.preprocess && model->facts.columns.n > 0)
        return ct_refuse("preprocess",
                         "%s: its inputs are rows of a table, which are encoded before",
                         model->path);
    CT_TRY(build(&o));
    CT_TRY(measure(&o, &keys, &n_graph));
    CT_TRY(describe(&o, &head));
    ct_proto_begin(&head, MODEL_GRAPH, n_graph);
    CT_TRY(ct_proto_status(&head));
    return write_all(&o, &head, path);
}
