/* One hidden layer: the smallest network with features, for quick studies. */
#include "nn/model.h"

#include "util/text.h"

void ct_model_mlp(ct_graph *g, const ct_model_context *m) {
    int64_t width = 64;
    if (m->argument != NULL && (!ct_parse_i64(m->argument, &width) || width < 1 || width > 65536)) {
        g->status = ct_fail(CT_INVAL, "mlp:%s: the width is a number from 1 to 65536", m->argument);
        return;
    }
    int x = ct_input(g, m->input);
    x = ct_relu(g, ct_linear(g, x, "fc1", (int)width));
    ct_set_features(g, x);
    ct_linear(g, x, "fc2", m->n_classes);
}
