/* From nodes to steps. Neighbouring nodes become one step where the second only finishes what the
 * first computes: conv or linear + relu, 5x5 conv + relu + 2x2 max pooling, norm + add. */
#include "backend/cpu/cpu_internal.h"

#include "util/memory.h"

static bool takes_relu(const ct_graph *g, int i) {
    ct_op op = g->nodes[i].op;
    return (op == CT_OP_CONV || op == CT_OP_LINEAR) && ct_graph_is_inner(g, i) &&
           g->nodes[i + 1].op == CT_OP_RELU && g->nodes[i + 1].in[0] == i;
}

/* A relu node i between a convolution and a pooling of 2x2 windows without a remainder. */
static bool takes_pool(const ct_graph *g, int i) {
    const ct_node *pool = &g->nodes[i + 1];
    ct_shape s = g->nodes[i].shape;
    return g->nodes[i - 1].op == CT_OP_CONV && g->nodes[i - 1].groups == 1 &&
           g->nodes[i - 1].stride == 1 && ct_graph_is_inner(g, i) && pool->op == CT_OP_MAXPOOL &&
           pool->in[0] == i && pool->kernel == 2 && pool->stride == 2 && pool->pad == 0 &&
           s.h % 2 == 0 && s.w % 2 == 0;
}

static bool takes_add(const ct_graph *g, int i) {
    const ct_node *next = &g->nodes[i + 1];
    return ct_op_is_norm(g->nodes[i].op) && ct_graph_is_inner(g, i) && next->op == CT_OP_ADD &&
           (next->in[0] == i || next->in[1] == i);
}

/* Winograd's tiles of 4x4 pay where there are channels to sum over and the picture has a few; tiles
 * of 8x8, which save a third of the products for dearer transforms, where they fit the picture (of
 * gradients alone, see conv.c).
 * Their weights are 100 floats a filter: more than 128 x 128 filters leave the caches. Of stride 2
 * there are tiles of 4x4, for channels by fours. */
static int winograd_tile(const ct_node *node, ct_shape from) {
    const int c_out = node->shape.c;
    if (node->op != CT_OP_CONV || node->kernel != 3 || node->pad != 1 || node->groups != 1 ||
        from.h < 4 || from.w < 4)
        return 0;
    if (node->stride == 2) return from.c % 4 == 0 && c_out % 4 == 0 ? 4 : 0;
    if (node->stride != 1 || from.c < 3 || c_out < 8) return 0;
    return from.h % 8 == 0 && from.w % 8 == 0 && from.c >= 8 && from.c * c_out <= 128 * 128 ? 8 : 4;
}

bool ct_cpu_reads_input(const cpu_step *step) {
    return step->op != CT_OP_RELU && step->op != CT_OP_ADD && step->op != CT_OP_AVGPOOL;
}

/* An EvoNorm that nothing is added to and whose output need not be there at the end. */
static bool is_plain_evonorm(const cpu_plan *plan, const cpu_step *step) {
    return cpu_is_evonorm(step) && step->residual < 0 && step->out != plan->base.graph->features;
}

/* EvoNorm's output after a convolution is not kept for the backward pass: its input is, and one
 * pass over it gives the output again, just before the last of its readers needs it. */
static void forget_norms(cpu_plan *plan) {
    const ct_graph *g = plan->base.graph;
    for (int s = 0; s < plan->n_steps; s++) plan->steps[s].remake = -1;
    for (int s = 1; s < plan->n_steps; s++) {
        const cpu_step *norm = &plan->steps[s];
        if (!is_plain_evonorm(plan, norm)) continue;
        if (g->nodes[norm->in].op != CT_OP_CONV) continue;
        int last = -1;
        for (int r = s + 1; r < plan->n_steps; r++)
            if (plan->steps[r].in == norm->out && ct_cpu_reads_input(&plan->steps[r])) last = r;
        if (last >= 0) plan->steps[last].remake = s;
    }
}

int ct_cpu_n_readers(const cpu_plan *plan, int node) {
    int n = 0;
    for (int s = 0; s < plan->n_steps; s++)
        n += (plan->steps[s].in == node) + (plan->steps[s].residual == node);
    return n;
}

/* A 1x1 convolution copies a few pixels of all channels side by side before it multiplies them, a
 * depthwise one goes channel by channel (separable.c): an EvoNorm that they alone read is applied
 * on the way, and its output is never stored. */
static void delay_norms(cpu_plan *plan) {
    for (int s = 0; s < plan->n_steps; s++) plan->steps[s].norm = -1;
    for (int s = 0; s < plan->n_steps; s++) {
        cpu_step *norm = &plan->steps[s];
        if (!is_plain_evonorm(plan, norm)) continue;
        if (ct_cpu_n_readers(plan, norm->out) != 1 || ct_cpu_n_readers(plan, norm->in) != 1)
            continue;
        for (int r = s + 1; r < plan->n_steps; r++) {
            cpu_step *reader = &plan->steps[r];
            bool applies = ct_cpu_is_pointwise(reader) || ct_cpu_is_depthwise(reader);
            if (reader->in != norm->out || !applies) continue;
            norm->is_lazy = true;
            norm->is_idle = ct_cpu_is_depthwise(reader);
            reader->norm = s;
            reader->remake = -1;
        }
    }
}

int ct_cpu_source(const cpu_plan *plan, const cpu_step *step) {
    return step->norm >= 0 ? plan->steps[step->norm].in : step->in;
}

/* And those of whole windows of the pooling for kernels of 5x5. */
static bool suits_winograd5(const ct_node *node, ct_shape from) {
    return node->kernel == 5 && node->stride == 1 && node->pad == 0 && from.c >= 4 &&
           node->shape.c >= 8;
}

/* Along rows only where there are too few channels for that, and the pictures need no gradient. */
static bool suits_rows5(const cpu_step *step) {
    return step->node->kernel == 5 && step->in == 0 && !step->winograd5;
}

ct_status ct_cpu_compile(cpu_plan *plan, bool exact_conv) {
    const ct_graph *g = plan->base.graph;
    plan->steps = ct_new(cpu_step, (size_t)g->n_nodes);
    if (plan->steps == NULL) return ct_fail(CT_NOMEM, "no memory for the plan of %s", g->model);
    for (int i = 1; i < g->n_nodes; i++) {
        const ct_node *node = &g->nodes[i];
        cpu_step *step = &plan->steps[plan->n_steps++];
        *step = (cpu_step){.op = node->op,
                           .node = node,
                           .in = node->in[0],
                           .residual = node->in[1],
                           .out = i,
                           .from = g->nodes[node->in[0]].shape,
                           .to = node->shape};
        step->winograd = exact_conv ? 0 : winograd_tile(node, step->from);
        if (takes_relu(g, i)) {
            step->relu = true;
            step->inner = i;
            step->out = ++i;
            const bool may_pool = step->winograd == 0 && !exact_conv && takes_pool(g, i);
            step->winograd5 = may_pool && suits_winograd5(node, step->from);
            step->rows5 = may_pool && suits_rows5(step);
            step->pool = step->winograd5 || step->rows5;
            if (step->pool) step->out = ++i;
        } else if (takes_add(g, i)) {
            const ct_node *next = &g->nodes[i + 1];
            step->residual = next->in[0] == i ? next->in[1] : next->in[0];
            step->out = ++i;
        }
        if (step->out <= g->features) plan->n_feature_steps = plan->n_steps;
    }
    forget_norms(plan);
    delay_norms(plan);
    return CT_OK;
}
