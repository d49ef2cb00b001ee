/* Residual networks of basic blocks (He et al., CVPR 2016).
 * Small images (32x32, 28x28; section 4.2): depth 6k+2, three stages of k blocks, 16/32/64
 * channels. Large images (224x224; table 1): a 7x7/2 stem, max pooling, four stages, 64 .. 512
 * channels. With EvoNorm there is no activation after the addition. */
#include "nn/model.h"

#include <stdio.h>

static int basic_block(ct_graph *g, int in, const ct_model_context *m, const char *name,
                       int channels, int stride) {
    char part[64];
#define PART(text) (snprintf(part, sizeof part, "%s.%s", name, text), part)
    int x = ct_conv(g, in, PART("conv1"), channels, 3, stride, 1, 1, false);
    x = ct_norm_act(g, x, m, PART("bn1"));
    x = ct_conv(g, x, PART("conv2"), channels, 3, 1, 1, 1, false);
    x = ct_norm(g, x, m->norm, PART("bn2"));
    int shortcut = in;
    if (g->status == CT_OK && (stride != 1 || g->nodes[in].shape.c != channels)) {
        shortcut = ct_conv(g, in, PART("downsample.0"), channels, 1, stride, 0, 1, false);
        shortcut = ct_norm(g, shortcut, m->norm, PART("downsample.1"));
    }
#undef PART
    return ct_join_act(g, ct_add(g, x, shortcut), m);
}

static int stages(ct_graph *g, int x, const ct_model_context *m, int n_stages, const int *n_blocks,
                  int channels) {
    for (int stage = 0; stage < n_stages; stage++) {
        for (int block = 0; block < n_blocks[stage]; block++) {
            char name[32];
            snprintf(name, sizeof name, "layer%d.%d", stage + 1, block);
            x = basic_block(g, x, m, name, channels << stage, stage > 0 && block == 0 ? 2 : 1);
        }
    }
    return x;
}

static void classify(ct_graph *g, int x, const ct_model_context *m) {
    x = ct_avgpool(g, x);
    ct_set_features(g, x);
    ct_linear(g, x, "fc", m->n_classes);
}

static void describe_small(ct_graph *g, const ct_model_context *m, int k) {
    int x = ct_input(g, m->input);
    x = ct_conv(g, x, "conv1", 16, 3, 1, 1, 1, false);
    x = ct_norm_act(g, x, m, "bn1");
    classify(g, stages(g, x, m, 3, (int[]){k, k, k}, 16), m);
}

static void describe_large(ct_graph *g, const ct_model_context *m, const int n_blocks[4]) {
    int x = ct_input(g, m->input);
    x = ct_conv(g, x, "conv1", 64, 7, 2, 3, 1, false);
    x = ct_norm_act(g, x, m, "bn1");
    x = ct_maxpool(g, x, 3, 2, 1);
    classify(g, stages(g, x, m, 4, n_blocks, 64), m);
}

void ct_model_resnet20(ct_graph *g, const ct_model_context *m) {
    describe_small(g, m, 3);
}
void ct_model_resnet32(ct_graph *g, const ct_model_context *m) {
    describe_small(g, m, 5);
}
void ct_model_resnet44(ct_graph *g, const ct_model_context *m) {
    describe_small(g, m, 7);
}
void ct_model_resnet56(ct_graph *g, const ct_model_context *m) {
    describe_small(g, m, 9);
}
void ct_model_resnet110(ct_graph *g, const ct_model_context *m) {
    describe_small(g, m, 18);
}

void ct_model_resnet18(ct_graph *g, const ct_model_context *m) {
    describe_large(g, m, (int[]){2, 2, 2, 2});
}
void ct_model_resnet34(ct_graph *g, const ct_model_context *m) {
    describe_large(g, m, (int[]){3, 4, 6, 3});
}
