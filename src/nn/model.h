/* What model files and the registry share: one describing function per line of model_list.h. */
#ifndef CT_NN_MODEL_H
#define CT_NN_MODEL_H

#include "nn/graph.h"

#define MODEL(id, name, channels, side, text)                                                      \
    void ct_model_##id(ct_graph *g, const ct_model_context *m);
#include "nn/model_list.h"
#undef MODEL

#endif
