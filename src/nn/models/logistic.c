/* A linear classifier: the convex case. Its features are the input itself, so CCL adds nothing to
 * its gradient. */
#include "nn/model.h"

void ct_model_logistic(ct_graph *g, const ct_model_context *m) {
    int x = ct_input(g, m->input);
    ct_set_features(g, x);
    ct_linear(g, x, "fc", m->n_classes);
}
