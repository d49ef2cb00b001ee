/* crosstalk/run.h: a run's parameters, copied, lent and saved. */
#include "api/api_internal.h"
#include "api/dlpack.h"
#include "run/run.h"
#include "util/memory.h"

size_t ct_run_n_parameters(const ct_run *run) {
    return run->graph.n_weights;
}

int ct_run_n_tensors(const ct_run *run) {
    return run->graph.n_params;
}

bool ct_run_tensor(const ct_run *run, int k, ct_tensor_info *out) {
    if (k < 0 || k >= run->graph.n_params || out == NULL) return false;
    const ct_param *p = &run->graph.params[k];
    size_t size = out->size < sizeof *out ? out->size : sizeof *out;
    ct_tensor_info info = {.size = out->size,
                           .name = p->name,
                           .n_dims = p->n_dims,
                           .offset = p->offset,
                           .count = p->count};
    for (int d = 0; d < p->n_dims; d++) info.dims[d] = p->dims[d];
    memcpy(out, &info, size);
    return true;
}

/* ---- which row ---- */

static ct_status check_model(const ct_run *run, int world, int agent) {
    CT_NEED(run);
    if (world < 0 || world >= run->n_worlds)
        return ct_fail(CT_INVAL, "world %d; there are 0..%d", world, run->n_worlds - 1);
    if (agent != CT_CONSENSUS && (agent < 0 || agent >= run->agents.n_agents))
        return ct_fail(CT_INVAL, "agent %d; there are 0..%d and CT_CONSENSUS", agent,
                       run->agents.n_agents - 1);
    return CT_OK;
}

/* Where the agent's row is among this rank's; -1: on another rank. */
static int own_row(const ct_run *run, int world, int agent) {
    int row = world * run->agents.n_agents + agent - run->agents.first;
    return row >= 0 && row < run->agents.n ? row : -1;
}

static ct_status find_own(const ct_run *run, int world, int agent, int *out) {
    CT_TRY(check_model(run, world, agent));
    *out = agent != CT_CONSENSUS ? own_row(run, world, agent) : -1;
    if (*out >= 0) return CT_OK;
    if (agent == CT_CONSENSUS)
        return ct_fail(CT_INVAL, "the consensus model lies nowhere; it is computed to be read");
    return ct_fail(CT_INVAL, "agent %d lives on another rank", agent);
}

/* ---- copies ---- */

static ct_status read_model(ct_run *run, int world, int agent, float *out) {
    int row;
    CT_TRY(check_model(run, world, agent));
    CT_NEED(out);
    if (agent == CT_CONSENSUS) {
        CT_TRY(ct_run_find_consensus(run));
        return ct_bank_read(&run->consensus, world, 0, run->graph.n_weights, out);
    }
    CT_TRY(find_own(run, world, agent, &row));
    return ct_bank_read(&run->agents.x, row, 0, run->graph.n_weights, out);
}

ct_status ct_run_read(ct_run *run, int world, int agent, float *out, ct_error *error) {
    const ct_hooks *before = ct_run_listen(run);
    return ct_run_unlisten(before, CT_CATCH(error, read_model(run, world, agent, out)));
}

static ct_status write_model(ct_run *run, int world, int agent, const float *values) {
    CT_TRY(check_model(run, world, agent));
    CT_NEED(values);
    ct_agents *a = &run->agents;
    for (int k = 0; k < a->n_agents; k++) {
        int row = own_row(run, world, k);
        if ((agent != CT_CONSENSUS && agent != k) || row < 0) continue;
        CT_TRY(ct_bank_write(&a->x, row, 0, run->graph.n_weights, values));
    }
    a->x.fresh = false; /* neighbours have the old one */
    run->has_consensus = false;
    return CT_OK;
}

ct_status ct_run_write(ct_run *run, int world, int agent, const float *values, ct_error *error) {
    const ct_hooks *before = ct_run_listen(run);
    return ct_run_unlisten(before, CT_CATCH(error, write_model(run, world, agent, values)));
}

/* ---- where they lie ---- */

/* What is still being computed ends first: a device does its work when it likes. */
static ct_status view(ct_run *run, int world, int agent, float **out) {
    int row;
    float one;
    CT_TRY(find_own(run, world, agent, &row));
    CT_TRY(ct_bank_read(&run->agents.x, row, 0, 1, &one));
    *out = run->agents.x.data + (size_t)row * run->agents.x.stride;
    return CT_OK;
}

float *ct_run_view(ct_run *run, int world, int agent, bool *on_device) {
    float *found = NULL;
    if (CT_CATCH(NULL, view(run, world, agent, &found)) != CT_OK) return NULL;
    if (on_device != NULL) *on_device = ct_backend_has_device(run->backend);
    return found;
}

/* A description with its shape behind it, in one block. */
typedef struct lent_tensor {
    struct DLManagedTensorVersioned base;
    int64_t shape[1], strides[1];
} lent_tensor;

static void free_tensor(struct DLManagedTensorVersioned *self) {
    ct_free(self);
}

static ct_status lend(ct_run *run, int world, int agent, struct DLManagedTensorVersioned **out) {
    float *values;
    lent_tensor *t = NULL;
    CT_NEED(out);
    CT_TRY(view(run, world, agent, &values));
    CT_TRY(ct_make(&t, 1, "a tensor"));
    bool on_device = ct_backend_has_device(run->backend);
    *t = (lent_tensor){.shape = {(int64_t)run->graph.n_weights}, .strides = {1}};
    t->base.version.major = CT_DL_MAJOR;
    t->base.version.minor = CT_DL_MINOR;
    t->base.deleter = free_tensor;
    t->base.dl_tensor = (ct_dl_tensor){
        .data = values,
        .device = {on_device ? CT_DL_CUDA : CT_DL_CPU, on_device ? run->backend->device : 0},
        .ndim = 1,
        .dtype = {CT_DL_FLOAT, 8 * sizeof(float), 1},
        .shape = t->shape,
        .strides = t->strides};
    *out = &t->base;
    return CT_OK;
}

ct_status ct_run_dlpack(ct_run *run, int world, int agent, struct DLManagedTensorVersioned **out,
                        ct_error *error) {
    return CT_CATCH(error, lend(run, world, agent, out));
}

/* ---- files ---- */

static ct_status save(ct_run *run, int world, int agent, const char *path) {
    int row;
    CT_TRY(check_model(run, world, agent));
    CT_NEED(path);
    if (agent == CT_CONSENSUS) {
        CT_TRY(ct_run_find_consensus(run));
        return ct_run_leads(run) ? ct_run_save_consensus(run, world, path) : CT_OK;
    }
    CT_TRY(find_own(run, world, agent, &row));
    return ct_run_save_agent(run, row, path);
}

ct_status ct_run_save(ct_run *run, int world, int agent, const char *path, ct_error *error) {
    const ct_hooks *before = ct_run_listen(run);
    return ct_run_unlisten(before, CT_CATCH(error, save(run, world, agent, path)));
}
