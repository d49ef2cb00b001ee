/* LeNet-5 with ReLU, as in the paper: biases everywhere, no norm, features of width 84. */
#include "nn/model.h"

void ct_model_lenet5(ct_graph *g, const ct_model_context *m) {
    int x = ct_input(g, m->input);
    /* 28x28 images are padded so that both usual sizes give 400 inputs to fc1. */
    int pad = m->input.h <= 28 ? 2 : 0;
    x = ct_relu(g, ct_conv(g, x, "conv1", 6, 5, 1, pad, 1, true));
    x = ct_maxpool(g, x, 2, 2, 0);
    x = ct_relu(g, ct_conv(g, x, "conv2", 16, 5, 1, 0, 1, true));
    x = ct_maxpool(g, x, 2, 2, 0);
    x = ct_relu(g, ct_linear(g, x, "fc1", 120));
    x = ct_relu(g, ct_linear(g, x, "fc2", 84));
    ct_set_features(g, x);
    ct_linear(g, x, "fc3", m->n_classes);
}
