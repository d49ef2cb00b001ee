/* VGG-11 for 32x32 images (Simonyan and Zisserman 2015, configuration A): eight 3x3 convolutions,
 * five poolings, one linear layer. Convolutions carry a bias only where no norm follows. Numbers in
 * names are those of the usual sequence convolution, norm, activation, pooling. */
#include "nn/model.h"

#include <stdio.h>

void ct_model_vgg11(ct_graph *g, const ct_model_context *m) {
    enum { POOL = 0 };
    static const int layers[] = {64,  POOL, 128,  POOL, 256, 256, POOL,
                                 512, 512,  POOL, 512,  512, POOL};
    bool has_norm = m->norm != CT_OP_INPUT;
    int x = ct_input(g, m->input);
    int number = 0;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        if (layers[i] == POOL) {
            x = ct_maxpool(g, x, 2, 2, 0);
            number++;
            continue;
        }
        char name[32];
        snprintf(name, sizeof name, "features.%d", number++);
        x = ct_conv(g, x, name, layers[i], 3, 1, 1, 1, !has_norm);
        snprintf(name, sizeof name, "features.%d", number);
        x = ct_norm_act(g, x, m, name);
        number += has_norm ? 2 : 1;
    }
    x = ct_avgpool(g, x);
    ct_set_features(g, x);
    ct_linear(g, x, "classifier", m->n_classes);
}
