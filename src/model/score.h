/* How good a model is on labelled images. */
#ifndef CT_MODEL_SCORE_H
#define CT_MODEL_SCORE_H

#include "data/dataset.h"
#include "model/model.h"

typedef struct ct_model_score {
    size_t n;
    double accuracy, loss; /* mean cross-entropy */
} ct_model_score;

/* On the test part of a data set, normalised as the model was trained, whatever the set's own mean
 * and deviation are. Classes go by their names, where both have names. CT_DIFFERS: images of another
 * shape, or a class that the model does not have. */
ct_status ct_model_evaluate(ct_model *model, const ct_dataset *data, ct_model_score *out);

#endif
