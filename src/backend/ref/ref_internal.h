/* The node functions of the reference backend, on plain arrays of doubles. */
#ifndef CT_BACKEND_REF_INTERNAL_H
#define CT_BACKEND_REF_INTERNAL_H

#include "backend/backend.h"

typedef enum ref_mode {
    REF_TRAIN,    /* batch statistics; the running ones move */
    REF_FEATURES, /* batch statistics; nothing moves */
    REF_EVALUATE, /* running statistics */
} ref_mode;

/* One node of one job. Arrays are [n][c][h][w]; parameters and their gradients are whole rows. */
typedef struct ref_call {
    const ct_graph *graph;
    const ct_node *node;
    int n;
    ref_mode mode;
    const double *params;
    float *buffers; /* running statistics of this model row, or NULL */
    ct_shape shape; /* of in[0] */
    const double *in[2];
    double *out;
    /* backward: adds to din and dparams */
    const double *dout;
    double *din[2];
    double *dparams;
} ref_call;

typedef struct ref_kernel {
    void (*forward)(const ref_call *call);
    void (*backward)(const ref_call *call);
} ref_kernel;

extern const ref_kernel ct_ref_conv, ct_ref_linear, ct_ref_relu, ct_ref_maxpool, ct_ref_avgpool,
    ct_ref_add, ct_ref_evonorm, ct_ref_groupnorm, ct_ref_batchnorm;

const ref_kernel *ct_ref_kernel(ct_op op);

static inline const double *ref_param(const ref_call *c, int param) {
    return c->params + c->graph->params[param].offset;
}
static inline double *ref_dparam(const ref_call *c, int param) {
    return c->dparams + c->graph->params[param].offset;
}

#endif
