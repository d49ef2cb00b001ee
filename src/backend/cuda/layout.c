/* Where tensors lie. Step s of S runs at time s forward and at time 2 S - s backward (the loss at
 * S); a tensor lives from its first write to its last read, and tensors whose lives do not overlap
 * share memory. Everything is counted in floats a sample. */
#include <string.h>

#include "backend/cuda/cuda_internal.h"
#include "util/memory.h"

#define ROUND 32 /* floats: tensors begin on 128 bytes */

typedef struct life {
    int from, to; /* times; from > to: never used */
    size_t size;
    size_t offset;
} life;

typedef struct lives {
    const cuda_plan *plan;
    life *all; /* [3 * n_nodes]: values, gradients by root, statistics */
    life *value, *grad, *stats;
    bool train;
} lives;

static void use_at(life *l, int time) {
    if (time < l->from) l->from = time;
    if (time > l->to) l->to = time;
}

static bool is_conv(const cuda_step *step) {
    return step->op == CT_OP_CONV;
}

static bool is_norm(const cuda_step *step) {
    return ct_op_is_norm(step->op);
}

/* What a step reads of its input. */
static void use_input(const lives *l, const cuda_step *step, int time) {
    use_at(&l->value[cuda_value_in(l->plan, step)], time);
    if (step->gate >= 0) use_at(&l->stats[l->plan->steps[step->gate].out], time);
}

/* When weight gradients of a step that runs backward at `time` have been computed at the latest:
 * CUDA_LAG units later (backward.c). */
static int late(const cuda_plan *plan, int time) {
    int s = 2 * plan->n_steps - time;
    for (int k = 0; k < CUDA_LAG && !plan->is_single && plan->steps[s].unit > 0; k++)
        s = plan->steps[s].unit - 1;
    return 2 * plan->n_steps - plan->steps[s].unit;
}

static void use_backward(const lives *l, const cuda_step *step, int time) {
    const int *root = l->plan->root;
    if (step->op == CT_OP_MAXPOOL && step->unpools) return;
    if (is_conv(step) || is_norm(step) || step->op == CT_OP_MAXPOOL) use_input(l, step, time);
    if (step->relu || step->op == CT_OP_RELU) use_at(&l->value[step->out], time);
    if (step->inner >= 0) {
        use_at(&l->value[step->inner], time);
        use_at(&l->grad[root[step->inner]], time);
    }
    if (is_conv(step)) {
        use_input(l, step, late(l->plan, time));
        int d = step->inner >= 0 ? step->inner : step->unpools ? step->pooled : step->out;
        use_at(&l->grad[root[d]], late(l->plan, time));
        if (step->unpools) use_at(&l->value[step->out], late(l->plan, time));
    }
    use_at(&l->stats[step->out], time);
    if (!step->unpools) use_at(&l->grad[root[step->out]], time);
    if (step->in > 0) use_at(&l->grad[root[step->in]], time);
    if (step->residual > 0) use_at(&l->grad[root[step->residual]], time);
}

/* Step s, run at time t forward. */
static void use_step(const lives *l, const cuda_step *step, int t) {
    use_input(l, step, t);
    if (!step->is_gate) use_at(&l->value[step->out], t);
    if (step->residual >= 0) use_at(&l->value[step->residual], t);
    if (step->n_segments > 0 && is_norm(step)) use_at(&l->stats[step->out], t);
    if (step->pooled >= 0) use_at(&l->value[step->pooled], t);
    if (!l->train) return;
    if (step->inner >= 0) use_at(&l->value[step->inner], t);
    use_at(&l->stats[step->out], t);
    use_backward(l, step, 2 * l->plan->n_steps - t);
}

/* What a step writes, written at time t forward. */
static void use_outputs(const lives *l, const cuda_step *step, int t) {
    use_at(&l->value[step->out], t);
    if (!l->train) return;
    use_at(&l->value[step->inner], t);
    use_at(&l->stats[step->out], t);
}

/* A unit's steps run together: whatever one of them touches lives while any of them runs. */
static void use_together(const lives *l, int first, int n) {
    for (int k = 0; k < n; k++) {
        use_step(l, &l->plan->steps[first + k], first);
        use_step(l, &l->plan->steps[first + k], first + n - 1);
    }
}

/* The same of one that is closed, in a pass that keeps nothing: what it reads and its last value.
 */
static void use_ends(const lives *l, int first, int n) {
    const cuda_step *step = &l->plan->steps[first];
    int last = first + n - 1;
    for (int t = first; t <= last; t++) {
        use_input(l, step, t);
        if (step->residual >= 0) use_at(&l->value[step->residual], t);
        use_at(&l->value[l->plan->steps[last].out], t);
    }
}

/* Steps that run together forward alone: what they write lives from the first one on, what that one
 * reads to the last. */
static void use_ahead(const lives *l, int first, int n) {
    for (int k = 0; k < n; k++) {
        const cuda_step *step = &l->plan->steps[first + k];
        use_step(l, step, first + k);
        if (!step->is_gate) use_at(&l->value[step->out], first);
        use_at(&l->stats[step->out], first);
    }
    use_input(l, &l->plan->steps[first], first + n - 1);
}

/* Steps that run together backward alone: whatever they touch lives while any of them runs. */
static void use_behind(const lives *l, int last, int n) {
    int end = 2 * l->plan->n_steps - last;
    for (int k = 0; k < n; k++) {
        use_backward(l, &l->plan->steps[last - k], end);
        use_backward(l, &l->plan->steps[last - k], end + n - 1);
    }
}

static void find_lives(const lives *l) {
    const cuda_plan *plan = l->plan;
    const ct_graph *g = plan->base.graph;
    int loss = plan->n_steps;
    for (int s = 0; s < plan->n_steps; s++)
        if (l->train && plan->steps[s].n_behind > 0) use_behind(l, s, plan->steps[s].n_behind);
    use_at(&l->value[0], 0);
    use_at(&l->value[g->features], loss);
    use_at(&l->value[g->logits], loss);
    for (int s = 0; s < plan->n_steps; s++) {
        const cuda_step *step = &plan->steps[s];
        int n_closed = cuda_n_ahead(step, l->train);
        if (n_closed > 0 && l->train) {
            use_ahead(l, s, n_closed);
            s += n_closed - 1;
            continue;
        }
        if (step->together != NULL && step->together->is_closed) n_closed = step->n_unit;
        if (n_closed > 0 && !l->train) {
            use_ends(l, s, n_closed);
            s += n_closed - 1;
            continue;
        }
        use_step(l, step, s);
        if (step->together != NULL) use_together(l, s, step->n_unit);
        if (step->has_twin) use_outputs(l, step + 1, s);
    }
    if (!l->train) return;
    use_at(&l->grad[plan->root[g->logits]], loss);
    use_at(&l->grad[plan->root[g->features]], loss);
}

/* Statistics a step leaves for its backward pass. */
static size_t stats_size(const cuda_step *step) {
    if (step->op == CT_OP_MAXPOOL && step->gate >= 0) /* places of the maxima, bytes */
        return (ct_shape_size(step->node->shape) + 3) / 4;
    if (step->norm == NULL && !is_norm(step)) return 0;
    if (step->op == CT_OP_BATCHNORM) return 2 * (size_t)step->norm_shape.channels;
    if (step->n_segments > 0 && is_norm(step))
        return cuda_scale_at(&step->norm_shape) + (size_t)step->norm_shape.channels;
    return 2 * (size_t)step->norm_shape.groups;
}

static size_t round_up(size_t n) {
    return (n + ROUND - 1) / ROUND * ROUND;
}

/* The lowest place where `l` meets none of the n tensors placed before it in the same time. */
static void place(life *l, const life *placed, int n) {
    l->offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < n; i++) {
            const life *o = &placed[i];
            bool in_time = o->from <= o->to && o->from <= l->to && l->from <= o->to;
            if (!in_time || o->offset + o->size <= l->offset || l->offset + l->size <= o->offset)
                continue;
            l->offset = o->offset + o->size;
            moved = true;
        }
    }
}

static void set_sizes(const lives *l) {
    const cuda_plan *plan = l->plan;
    const ct_graph *g = plan->base.graph;
    for (int i = 0; i < 3 * g->n_nodes; i++) l->all[i] = (life){.from = 1 << 30, .to = -1};
    for (int i = 0; i < g->n_nodes; i++) {
        size_t n = ct_shape_size(g->nodes[i].shape);
        l->value[i].size = round_up(cuda_floats(n, plan->value_element[i]));
        l->grad[i].size = round_up(cuda_floats(n, plan->grad_element[i]));
    }
    if (plan->pairs.size > 0) l->value[0].size = round_up(2 * 4 * (size_t)plan->pairs.size);
    for (int s = 0; s < plan->n_steps; s++)
        l->stats[plan->steps[s].out].size = round_up(stats_size(&plan->steps[s]));
}

/* A norm whose input has a gradient already, or needs none, writes its own to a spare place. */
static size_t spare_size(const cuda_plan *plan) {
    size_t size = 0;
    for (int s = 0; s < plan->n_steps; s++) {
        const cuda_step *step = &plan->steps[s];
        size_t n = round_up(ct_shape_size(plan->base.graph->nodes[step->in].shape));
        if (is_norm(step) && (step->add_in || step->in == 0) && n > size) size = n;
    }
    return size;
}

/* A convolution's measures, read by the step behind it; backward, by the one before it. */
static size_t measures_size(const cuda_plan *plan) {
    size_t size = 0;
    for (int s = 0; s < plan->n_steps; s++) {
        const cuda_step *step = &plan->steps[s];
        size_t n = 2 * (size_t)step->n_segments * (size_t)step->conv.co;
        if (is_conv(step) && n > size) size = n;
        n = 2 * (size_t)step->n_parts * (size_t)step->norm_shape.channels;
        if (is_norm(step) && n > size) size = n;
    }
    return round_up(size);
}

ct_status ct_cuda_layout(const cuda_plan *plan, bool train, cuda_layout *out) {
    size_t n = (size_t)plan->base.graph->n_nodes;
    CT_SCOPED_BLOCK(life) all = NULL;
    CT_TRY(ct_make(&all, 3 * n, plan->base.graph->model));
    CT_TRY(ct_make(&out->value, 3 * n, plan->base.graph->model));
    lives l = {.plan = plan, .all = all, .train = train};
    out->grad = out->value + n;
    out->stats = out->grad + n;
    l.value = l.all;
    l.grad = l.value + n;
    l.stats = l.grad + n;
    set_sizes(&l);
    find_lives(&l);
    size_t end = 0;
    for (size_t i = 0; i < 3 * n; i++) {
        if (l.all[i].from > l.all[i].to) continue;
        place(&l.all[i], l.all, (int)i);
        out->value[i] = l.all[i].offset;
        if (l.all[i].offset + l.all[i].size > end) end = l.all[i].offset + l.all[i].size;
    }
    out->spare = end;
    out->measures = end + (train ? spare_size(plan) : 0);
    out->n_floats = out->measures + measures_size(plan);
    return CT_OK;
}

void ct_cuda_layout_free(cuda_layout *layout) {
    ct_free(layout->value);
    memset(layout, 0, sizeof *layout);
}
