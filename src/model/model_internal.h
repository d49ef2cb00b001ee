/* What an open model is made of. */
#ifndef CT_MODEL_MODEL_INTERNAL_H
#define CT_MODEL_MODEL_INTERNAL_H

#include "backend/backend.h"
#include "data/pictures.h"
#include "model/facts.h"
#include "util/threads.h"

/* What computes; made when something is to be predicted. */
typedef struct ct_model_engine {
    ct_backend *backend;
    ct_plan *plan;
    ct_bank params, running;
    ct_images images; /* room for a piece of what is to be predicted */
    ct_source *source;
    float *logits;    /* [images.n rounded up to whole batches][n_classes] */
    ct_score *scores; /* [batches] */
    ct_batch *batches;
    ct_job *jobs;
    uint32_t *index; /* [images.n] 0, 1, 2, ... */
    /* for picture files */
    ct_pool *pool;
    ct_decoder **decoders; /* [workers] */
    ct_cutter *cutters;    /* [workers] */
} ct_model_engine;

struct ct_model {
    char *path;
    ct_facts facts;
    ct_model_facts view;
    ct_graph graph;
    float *row;     /* [graph.n_weights] */
    float *running; /* [graph.n_buffer_values] */
    char device[16];
    ct_backend_options compute;
    char (*numbers)[12]; /* [n_classes] what classes without names are called */
    ct_model_engine engine;
};

/* Facts and weights into a new model; the facts are taken. Tensors are named prefix + name. */
ct_status ct_model_create(const char *path, ct_facts *facts, const ct_tensors *tensors,
                          const char *prefix, ct_model **out);

/* Room for n images (fewer where there is not so much use), and all that computes. */
ct_status ct_engine_open(ct_model *model, size_t n, bool as_floats);
void ct_engine_close(ct_model *model);
/* A pool with a decoder and a cutter for each worker. */
ct_status ct_engine_open_decoders(ct_model *model);
/* Adds the scores of the first n images that lie in the engine's, with their labels. */
ct_status ct_engine_score(ct_model *model, size_t n, ct_score *sum);
/* Probabilities of the first n images that lie in the engine's, [n][n_classes]. */
ct_status ct_engine_run(ct_model *model, size_t n, float *probabilities);
/* So many of all are done: the hooks hear of it. CT_STOPPED if they say so. */
ct_status ct_engine_tell(size_t now, size_t total);

#endif
