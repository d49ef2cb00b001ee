/* Where tensors lie. Step s of S runs at time s forward and at time 2 S - s backward (the loss at
 * S); a tensor lives from its first write to its last read, and tensors whose lives do not overlap
 * share memory. */
#include "backend/cpu/cpu_internal.h"

#include <stdint.h>
#include <string.h>

#include "util/memory.h"

typedef struct life {
    int from, to; /* times; from > to: never used */
    int shared;   /* node whose value's place it has, -1: a place of its own */
    size_t size;  /* floats */
    size_t offset;
} life;

enum { N_KINDS = 4 };

typedef struct lives {
    const cpu_plan *plan;
    life *value, *grad, *stats, *again; /* [n_nodes] each */
    bool train;
} lives;

static void use_at(life *l, int time) {
    if (time < l->from) l->from = time;
    if (time > l->to) l->to = time;
}

static bool is_remade(const cpu_plan *plan, int node) {
    for (int s = 0; s < plan->n_steps; s++) {
        int remake = plan->steps[s].remake;
        if (remake >= 0 && plan->steps[remake].out == node) return true;
    }
    return false;
}

/* What the backward pass of a step reads of the forward values. */
static void keep_for_backward(const lives *all, const cpu_step *step, int time) {
    bool reads_out =
        (step->relu && !step->pool) || step->op == CT_OP_RELU || step->op == CT_OP_MAXPOOL;
    const int source = ct_cpu_source(all->plan, step);
    if (ct_cpu_reads_input(step))
        use_at(is_remade(all->plan, source) ? &all->again[source] : &all->value[source], time);
    if (reads_out) use_at(&all->value[step->out], time);
    if (step->pool) use_at(&all->grad[step->inner], time);
    use_at(&all->stats[step->out], time);
}

static void find_lives(const lives *all) {
    const cpu_plan *plan = all->plan;
    const ct_graph *g = plan->base.graph;
    int loss = plan->n_steps;
    use_at(&all->value[0], 0);
    if (!all->train) use_at(&all->value[0], loss); /* the next job may be about the same pictures */
    use_at(&all->value[g->features], loss);
    use_at(&all->value[g->logits], loss);
    use_at(&all->grad[plan->root[g->logits]], loss);
    if (g->features > 0) use_at(&all->grad[plan->root[g->features]], loss);
    for (int s = 0; s < plan->n_steps; s++) {
        const cpu_step *step = &plan->steps[s];
        int back = 2 * loss - s;
        use_at(&all->value[ct_cpu_source(plan, step)], s);
        if (!step->is_lazy) use_at(&all->value[step->out], s);
        use_at(&all->stats[step->out], s);
        if (step->norm >= 0) use_at(&all->stats[step->in], s);
        if (step->residual >= 0) use_at(&all->value[step->residual], s);
        if (!all->train) continue;
        keep_for_backward(all, step, back);
        use_at(&all->grad[plan->root[step->out]], back);
        if (step->in > 0) use_at(&all->grad[plan->root[step->in]], back);
        if (step->residual > 0) use_at(&all->grad[plan->root[step->residual]], back);
    }
}

static size_t stats_floats(const cpu_plan *plan, int out) {
    for (int s = 0; s < plan->n_steps; s++) {
        const cpu_step *step = &plan->steps[s];
        if (step->out != out) continue;
        size_t n_blocks = cpu_pass_blocks(plan);
        if (step->pool) /* a byte per pooled value */
            return cpu_round(n_blocks * cpu_tensor_floats(step->to) / 4 / sizeof(float));
        if (step->op == CT_OP_BATCHNORM) return cpu_round(2 * (size_t)step->to.c);
        if (ct_op_is_norm(step->op)) return n_blocks * (size_t)step->node->groups * 2 * CT_LANES;
    }
    return 0;
}

/* Without a backward pass a norm or relu leaves its output where its input was. */
static bool works_in_place(const lives *all, const cpu_step *step) {
    const ct_graph *g = all->plan->base.graph;
    bool is_pointwise = step->op == CT_OP_RELU || ct_op_is_norm(step->op);
    return is_pointwise && !step->is_lazy && step->in != 0 && step->in != g->features &&
           step->in != g->logits && ct_cpu_n_readers(all->plan, step->in) == 1;
}

static void share_places(const lives *all) {
    for (int s = all->plan->n_steps - 1; s >= 0; s--) {
        const cpu_step *step = &all->plan->steps[s];
        life *in = &all->value[step->in], *out = &all->value[step->out];
        if (!works_in_place(all, step)) continue;
        use_at(in, out->to);
        *out = (life){INT32_MAX, -1, step->in, 0, 0};
    }
}

/* The lowest place where `l` meets none of the n tensors placed before it in the same time. */
static void place(life *l, const life *placed, int n) {
    l->offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < n; i++) {
            const life *o = &placed[i];
            bool meets_in_time = o->from <= o->to && o->from <= l->to && l->from <= o->to;
            bool meets =
                meets_in_time && o->offset < l->offset + l->size && l->offset < o->offset + o->size;
            if (!meets) continue;
            l->offset = o->offset + o->size;
            moved = true;
        }
    }
}

static ct_status take(const cpu_plan *plan, const lives *all, cpu_layout *out) {
    int n = plan->base.graph->n_nodes;
    out->value = ct_new(size_t, N_KINDS * (size_t)n);
    if (out->value == NULL)
        return ct_fail(CT_NOMEM, "no memory for the layout of %s", plan->base.graph->model);
    out->again = out->value + n;
    out->grad = out->again + n;
    out->stats = out->grad + n;
    for (int i = 0; i < n; i++) {
        const life *again = &all->again[i];
        int shared = all->value[i].shared; /* an earlier node */
        out->value[i] = shared >= 0 ? out->value[shared] : all->value[i].offset;
        out->again[i] = again->from <= again->to ? again->offset : out->value[i];
        out->grad[i] = all->grad[plan->root[i]].offset;
        out->stats[i] = all->stats[i].offset;
    }
    for (int i = 0; i < N_KINDS * n; i++) {
        const life *l = &all->value[i];
        if (l->from <= l->to && l->offset + l->size > out->n_floats)
            out->n_floats = l->offset + l->size;
    }
    return CT_OK;
}

ct_status ct_cpu_layout(const cpu_plan *plan, bool train, cpu_layout *out) {
    const ct_graph *g = plan->base.graph;
    int n = g->n_nodes;
    size_t n_blocks = cpu_pass_blocks(plan);
    life *block = ct_new(life, N_KINDS * (size_t)n);
    if (block == NULL) return ct_fail(CT_NOMEM, "no memory for the layout of %s", g->model);
    lives all = {plan, block, block + n, block + 2 * n, block + 3 * n, train};
    for (int i = 0; i < n; i++) {
        size_t size = n_blocks * cpu_tensor_floats(g->nodes[i].shape);
        all.value[i] = all.again[i] = (life){INT32_MAX, -1, -1, size, 0};
        all.grad[i] = (life){INT32_MAX, -1, -1, size, 0};
        all.stats[i] = (life){INT32_MAX, -1, -1, stats_floats(plan, i), 0};
    }
    find_lives(&all);
    if (!train) {
        for (int i = 0; i < n; i++) all.grad[i] = (life){INT32_MAX, -1, -1, 0, 0};
        share_places(&all);
    }
    for (int i = 0; i < N_KINDS * n; i++)
        if (block[i].from <= block[i].to) place(&block[i], block, i);
    ct_status status = take(plan, &all, out);
    ct_free(block);
    return status;
}

void ct_cpu_layout_free(cpu_layout *layout) {
    ct_free(layout->value); /* and the others with it */
    memset(layout, 0, sizeof *layout);
}
