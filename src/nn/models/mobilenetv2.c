/* MobileNet-V2 for 32x32 images (Sandler et al., CVPR 2018; the usual CIFAR variant): the stem and
 * the second group keep their resolution, a 1x1 shortcut joins blocks of stride 1 whose widths
 * differ. A norm follows every convolution, the projection too. The CCL authors' model says nothing
 * about start values, unlike their ResNets, so that PyTorch's own hold: the others go by a
 * depthwise convolution's many outputs, make it two to thirteen times smaller, and learn more
 * slowly. */
#include "nn/model.h"

#include <stdio.h>

static int inverted_residual(ct_graph *g, int in, const ct_model_context *m, int number,
                             int expansion, int channels, int stride) {
    if (g->status != CT_OK) return 0;
    char part[64];
#define PART(text) (snprintf(part, sizeof part, "layers.%d.%s", number, text), part)
    int from = g->nodes[in].shape.c;
    int wide = from * expansion;
    int x = ct_conv(g, in, PART("conv1"), wide, 1, 1, 0, 1, false);
    x = ct_norm_act(g, x, m, PART("bn1"));
    x = ct_conv(g, x, PART("conv2"), wide, 3, stride, 1, wide, false);
    x = ct_norm_act(g, x, m, PART("bn2"));
    x = ct_conv(g, x, PART("conv3"), channels, 1, 1, 0, 1, false);
    x = ct_norm(g, x, m->norm, PART("bn3"));
    if (stride != 1) return x;
    int shortcut = in;
    if (from != channels) {
        shortcut = ct_conv(g, in, PART("shortcut.0"), channels, 1, 1, 0, 1, false);
        shortcut = ct_norm(g, shortcut, m->norm, PART("shortcut.1"));
    }
#undef PART
    return ct_add(g, x, shortcut);
}

void ct_model_mobilenetv2(ct_graph *g, const ct_model_context *m) {
    static const struct {
        int expansion, channels, n_blocks, stride;
    } groups[] = {{1, 16, 1, 1}, {6, 24, 2, 1},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    int x = ct_input(g, m->input);
    ct_start_by_fan_in(g);
    x = ct_conv(g, x, "conv1", 32, 3, 1, 1, 1, false);
    x = ct_norm_act(g, x, m, "bn1");
    int number = 0;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        for (int block = 0; block < groups[i].n_blocks; block++)
            x = inverted_residual(g, x, m, number++, groups[i].expansion, groups[i].channels,
                                  block == 0 ? groups[i].stride : 1);
    x = ct_conv(g, x, "conv2", 1280, 1, 1, 0, 1, false);
    x = ct_norm_act(g, x, m, "bn2");
    x = ct_avgpool(g, x);
    ct_set_features(g, x);
    ct_linear(g, x, "linear", m->n_classes);
}
