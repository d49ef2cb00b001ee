#include "backend/backend.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/log.h"
#include "util/memory.h"
#include "util/registry.h"

typedef ct_status (*create_function)(const ct_backend_options *options, ct_backend **out);

#define BACKEND(id, name, text)                                                                    \
    ct_status ct_backend_##id##_create(const ct_backend_options *options, ct_backend **out);
#include "backend/backend_list.h"
#undef BACKEND

static const struct {
    const char *name, *text;
    create_function create;
} backends[] = {
#define BACKEND(id, name, text) {name, text, ct_backend_##id##_create},
#include "backend/backend_list.h"
#undef BACKEND
};
enum { N_BACKENDS = sizeof backends / sizeof *backends };

void ct_backend_each(ct_name_visit each, void *context) {
    for (int i = 0; i < N_BACKENDS; i++) each(context, backends[i].name, backends[i].text);
}

static const char *const precisions[] = {"auto", "fp32", "tf32", "bf16"};

const char *ct_precision_name(ct_precision precision) {
    return precisions[precision];
}

ct_status ct_precision_parse(const char *name, ct_precision *out) {
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, precisions[i]) != 0) continue;
        *out = (ct_precision)i;
        return CT_OK;
    }
    return ct_fail(CT_INVAL, "no precision '%s'; known: auto, fp32, tf32, bf16", name);
}

static ct_status check_precision(const char *name, ct_precision precision) {
    if (precision <= CT_PRECISION_FP32 || strcmp(name, "cuda") == 0) return CT_OK;
    return ct_refuse("device", "@device %s computes in fp32; tf32 and bf16 need @device cuda",
                     name);
}

/* The first entry of the list that works; the last one tried says why nothing does. */
static ct_status choose_auto(ct_precision precision, const char **out, ct_device_note *why) {
    ct_error error;
    ct_backend *backend = NULL;
    ct_backend_options options = {.precision = precision, .n_threads = 1};
    ct_status status = CT_CATCH(&error, backends[0].create(&options, &backend));
    ct_backend_free(&backend);
    if (status != CT_OK && precision > CT_PRECISION_FP32) return ct_fail_again(&error);
    *out = backends[status == CT_OK ? 0 : 1].name;
    if (status == CT_OK) snprintf(why->text, sizeof why->text, "@device auto: %s", *out);
    if (status != CT_OK && status != CT_NOTBUILT)
        snprintf(why->text, sizeof why->text, "@device auto: %s, as %.400s", *out, error.text);
    return CT_OK;
}

ct_status ct_backend_choose(const char *name, ct_precision precision, const char **out,
                            ct_device_note *why) {
    *why = (ct_device_note){""};
    if (strcmp(name, "auto") == 0) return choose_auto(precision, out, why);
    for (int i = 0; i < N_BACKENDS; i++) {
        if (strcmp(name, backends[i].name) != 0) continue;
        *out = backends[i].name;
        return check_precision(name, precision);
    }
    return ct_unknown_name("device", name, "auto", ct_backend_each);
}

ct_status ct_backend_create(const char *name, const ct_backend_options *options, ct_backend **out) {
    ct_device_note why;
    CT_TRY(ct_backend_choose(name, options->precision, &name, &why));
    if (why.text[0] != '\0') ct_note("%s", why.text);
    int i = 0;
    while (strcmp(name, backends[i].name) != 0) i++;
    return backends[i].create(options, out);
}

void ct_backend_free(ct_backend **backend) {
    if (*backend != NULL) (*backend)->ops->free(*backend);
    *backend = NULL;
}

ct_status ct_bank_create(ct_backend *backend, int n_own, int n_halo, size_t n, ct_bank *out) {
    ct_bank bank = {.backend = backend, .n_rows = n_own + n_halo, .n_own = n_own, .n = n};
    bank.stride = (n + CT_ROW_ALIGN - 1) / CT_ROW_ALIGN * CT_ROW_ALIGN;
    CT_TRY(backend->ops->bank_alloc(&bank));
    *out = bank;
    return CT_OK;
}

void ct_bank_free(ct_bank *bank) {
    if (bank->backend != NULL && bank->data != NULL) bank->backend->ops->bank_free(bank);
    memset(bank, 0, sizeof *bank);
}

static void assert_inside(const ct_bank *bank, int row, size_t first, size_t n) {
    (void)bank, (void)row, (void)first, (void)n;
    assert(row >= 0 && row < bank->n_rows && first + n <= bank->n);
}

ct_status ct_bank_write(ct_bank *bank, int row, size_t first, size_t n, const float *values) {
    assert_inside(bank, row, first, n);
    bank->fresh = false;
    return bank->backend->ops->bank_write(bank, row, first, n, values);
}

ct_status ct_bank_read(const ct_bank *bank, int row, size_t first, size_t n, float *values) {
    assert_inside(bank, row, first, n);
    return bank->backend->ops->bank_read(bank, row, first, n, values);
}

bool ct_backend_has_device(const ct_backend *backend) {
    return backend->ops->stage_create != NULL;
}

ct_status ct_stage_create(ct_backend *backend, size_t n, bool on_device, float **out) {
    if (backend->ops->stage_create != NULL)
        return backend->ops->stage_create(backend, n, on_device, out);
    *out = ct_new(float, n);
    return *out != NULL ? CT_OK : ct_fail(CT_NOMEM, "no memory for messages of %zu numbers", n);
}

void ct_stage_free(ct_backend *backend, bool on_device, float *stage) {
    if (stage == NULL) return;
    if (backend->ops->stage_free != NULL)
        backend->ops->stage_free(backend, on_device, stage);
    else
        ct_free(stage);
}

ct_status ct_bank_pack(const ct_bank *bank, const int *rows, int n_rows, float *stage) {
    if (bank->backend->ops->bank_pack != NULL)
        return bank->backend->ops->bank_pack(bank, rows, n_rows, stage);
    for (int i = 0; i < n_rows; i++)
        CT_TRY(ct_bank_read(bank, rows[i], 0, bank->n, stage + (size_t)i * bank->n));
    return CT_OK;
}

ct_status ct_bank_unpack(ct_bank *bank, int first, int n_rows, const float *stage) {
    bank->fresh = false;
    if (bank->backend->ops->bank_unpack != NULL)
        return bank->backend->ops->bank_unpack(bank, first, n_rows, stage);
    for (int i = 0; i < n_rows; i++)
        CT_TRY(ct_bank_write(bank, first + i, 0, bank->n, stage + (size_t)i * bank->n));
    return CT_OK;
}

ct_status ct_bank_compress(const ct_packing *packing, const ct_bank *x, ct_bank *known,
                           ct_bank *packed) {
    assert(packing->first + packing->n_rows <= packed->n_rows && known->n == packing->how->n);
    known->fresh = packed->fresh = false;
    return x->backend->ops->compress(packing, x, known, packed);
}

ct_status ct_bank_decompress(const ct_packing *packing, const ct_bank *packed, ct_bank *known) {
    assert(packing->first + packing->n_rows <= packed->n_rows && known->n == packing->how->n);
    known->fresh = false;
    return known->backend->ops->decompress(packing, packed, known);
}

ct_status ct_bank_scale_steps(const ct_adaptive_steps *steps, ct_bank *v, ct_bank *r) {
    v->fresh = r->fresh = false;
    return r->backend->ops->scale_steps(steps, v, r);
}

void ct_update_add(ct_update *update, ct_bank *target, const ct_term *terms, int n_terms) {
    assert(update->n_assigns < CT_MAX_ASSIGNS && n_terms <= CT_MAX_TERMS);
    ct_assign *assign = &update->assigns[update->n_assigns++];
    assign->target = target;
    assign->n_terms = n_terms;
    for (int k = 0; k < n_terms; k++) {
        assert(terms[k].matrix == NULL || terms[k].bank != target);
        assign->terms[k] = terms[k];
    }
    target->fresh = false;
}

ct_status ct_update_run(ct_backend *backend, const ct_update *update) {
    return backend->ops->update(backend, update);
}

ct_status ct_source_create(ct_backend *backend, const ct_images *images, const float *mean,
                           const float *std, ct_source **out) {
    CT_TRY(backend->ops->source_create(backend, images, mean, std, out));
    (*out)->ops = backend->ops;
    return CT_OK;
}

void ct_source_free(ct_source **source) {
    if (*source != NULL) (*source)->ops->source_free(*source);
    *source = NULL;
}

ct_status ct_source_refresh(ct_source *source, const ct_images *images, size_t first, size_t n) {
    const ct_backend_ops *ops = source->ops;
    return ops->source_refresh != NULL ? ops->source_refresh(source, images, first, n) : CT_OK;
}

ct_status ct_plan_create(ct_backend *backend, const ct_graph *graph, int max_batch, ct_plan **out) {
    CT_TRY(backend->ops->plan_create(backend, graph, max_batch, out));
    (*out)->ops = backend->ops;
    return CT_OK;
}

void ct_plan_free(ct_plan **plan) {
    if (*plan != NULL) (*plan)->ops->plan_free(*plan);
    *plan = NULL;
}

ct_status ct_features(ct_plan *plan, const ct_work *work, ct_bank *features, ct_bank *class_sums) {
    return plan->ops->features(plan, work, features, class_sums);
}

ct_status ct_soften_jobs(ct_plan *plan, const ct_work *work, const ct_softening *how,
                         ct_bank *rows) {
    rows->fresh = false;
    return plan->ops->soften(plan, work, how, rows);
}

ct_status ct_plan_check_soft(const ct_plan *plan) {
    if (plan->ops->soften != NULL) return CT_OK;
    return ct_fail(CT_INVAL, "distillation needs to know what a model predicts, and a model of the "
                             "caller's own does not say it: take one of ours");
}

ct_status ct_gradient(ct_plan *plan, const ct_work *work, const ct_objective *objective,
                      ct_bank *gradient, ct_bank *losses, size_t column) {
    CT_TRY(plan->ops->gradient(plan, work, objective, gradient, losses, column));
    if (objective->weight_decay == 0 || plan->ops->adds_decay) return CT_OK;
    ct_update u = {.n_rows = gradient->n_own};
    SET(&u, gradient, {1, gradient}, {objective->weight_decay, work->params});
    return ct_update_run(plan->backend, &u);
}

ct_status ct_evaluate(ct_plan *plan, const ct_work *work, ct_score *scores, int *predictions) {
    return plan->ops->evaluate(plan, work, scores, predictions);
}

ct_status ct_logits(ct_plan *plan, const ct_work *work, float *logits) {
    return plan->backend->ops->logits(plan, work, logits);
}

ct_status ct_step_begin(ct_backend *backend) {
    return backend->ops->step_begin != NULL ? backend->ops->step_begin(backend) : CT_OK;
}

ct_status ct_step_end(ct_backend *backend) {
    return backend->ops->step_end != NULL ? backend->ops->step_end(backend) : CT_OK;
}

double ct_peak_gflops(ct_backend *backend) {
    return backend->ops->peak_gflops != NULL ? backend->ops->peak_gflops(backend) : 0;
}
