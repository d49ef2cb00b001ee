/* VGG-11 (Simonyan and Zisserman 2015, configuration A) for 32x32 images, as narrow as the CCL
 * authors' code has it: widths 16 .. 128, five poolings, one linear layer. Numbers in the names
 * count the layers of the usual sequence: convolution, norm, activation where the norm has none,
 * pooling. */
#include "nn/model.h"

#include <stdio.h>

void ct_model_vgg11(ct_graph *g, const ct_model_context *m) {
    enum { POOL = 0 };
    static const int layers[] = {16, POOL, 32, POOL, 64, 64, POOL, 128, 128, POOL, 128, 128, POOL};
    bool has_norm = m->norm != CT_OP_INPUT;
    bool has_relu = m->norm != CT_OP_EVONORM && m->norm != CT_OP_EVONORM_S0;
    int x = ct_input(g, m->input), number = 0;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        if (layers[i] == POOL) {
            x = ct_maxpool(g, x, 2, 2, 0);
            number++;
            continue;
        }
        char name[32];
        snprintf(name, sizeof name, "features.%d", number);
        x = ct_conv(g, x, name, layers[i], 3, 1, 1, 1, true);
        snprintf(name, sizeof name, "features.%d", number + 1);
        x = ct_norm_act(g, x, m, name);
        number += 1 + has_norm + has_relu;
    }
    x = ct_avgpool(g, x);
    ct_set_features(g, x);
    ct_linear(g, x, "classifier.0", m->n_classes);
}
