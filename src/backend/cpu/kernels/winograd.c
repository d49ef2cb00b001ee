/* Winograd's convolutions of stride 1: the kernels of the tile that the geometry names. */
#include "backend/cpu/kernels/winograd_internal.h"

static const ct_winograd_form *form(const ct_winograd_geometry *g) {
    return g->tile == 8 ? &KERNEL(winograd_tile8) : &KERNEL(winograd_tile4);
}

size_t KERNEL(winograd_scratch)(const ct_winograd_geometry *g) {
    return form(g)->scratch(g);
}

size_t KERNEL(winograd_weights_size)(const ct_winograd_geometry *g) {
    return form(g)->weights_size(g);
}

void KERNEL(winograd_weights)(const ct_winograd_geometry *g, const float *w, bool flip, float *u) {
    form(g)->weights(g, w, flip, u);
}

void KERNEL(winograd_conv)(const ct_winograd_geometry *g, const float *x, const float *u, float *y,
                           float *scratch) {
    form(g)->conv(g, x, u, y, scratch);
}

void KERNEL(winograd_backward)(const ct_winograd_geometry *g, const float *x, const float *dy,
                               const float *u, float *dx, bool accumulate, float *dw,
                               float *scratch) {
    form(g)->backward(g, x, dy, u, dx, accumulate, dw, scratch);
}
