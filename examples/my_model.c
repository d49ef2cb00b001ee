/* Two convolutions and a classifier. A worked example for docs/ADDING.md. */
#include "nn/model.h"

void ct_model_tiny(ct_graph *g, const ct_model_context *m) {
    int x = ct_input(g, m->input);
    x = ct_relu(g, ct_conv(g, x, "conv1", 8, 3, 1, 1, 1, true)); /* 8 channels, 3x3, stride 1 */
    x = ct_maxpool(g, x, 2, 2, 0);
    x = ct_relu(g, ct_linear(g, x, "fc1", 32));
    ct_set_features(g, x); /* what CCL compares */
    ct_linear(g, x, "fc2", m->n_classes);
}
