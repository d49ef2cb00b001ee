/* One hidden layer: the smallest network with features, for quick studies. */
#include "nn/model.h"

#include "util/text.h"

void ct_model_mlp(ct_graph *g, const ct_model_context *m) {
    int64_t width = 64;
    const char *given = ct_model_argument(g, m);
    if (given != NULL && (!ct_parse_i64(given, &width) || width < 1 || width > 65536)) {
        g->status = ct_fail(CT_INVAL, "mlp:%s: the width is a number from 1 to 65536", given);
        return;
    }
    int x = ct_input(g, m->input);
    x = ct_relu(g, ct_linear(g, x, "fc1", (int)width));
    ct_set_features(g, x);
    ct_linear(g, x, "fc2", m->n_classes);
}
