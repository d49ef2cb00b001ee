#include <stdio.h>
#include <string.h>

#include "cli/models.h"
#include "util/log.h"
#include "util/memory.h"

const ct_help ct_cli_export_help = {
    .usage = "export MODEL FILE.onnx [--option value ...]",
    .text = "Writes a trained model as ONNX (opset 13) for other runtimes. MODEL is a run "
            "directory or a .safetensors file. The input is images "
            "[n][channels][height][width], normalised; the output is the probabilities of the "
            "classes, [n][classes].",
    .files =
        CT_HELP_PAIRS({"FILE.onnx", "the model, with its classes and normalisation as metadata"}),
    .examples = CT_HELP_PAIRS(
        {"The consensus model of a run.",
         "crosstalk export runs/shapes-lenet5-qg-dsgdm-ring4-a0.1-s1 shapes.onnx"},
        {"A model that takes bytes as a camera gives them.",
         "crosstalk export runs/shapes-lenet5-qg-dsgdm-ring4-a0.1-s1 bytes.onnx --preprocess"}),
    .also = "predict, eval, docs/MODELS.md"};

static bool ends_in(const char *text, const char *end) {
    size_t n = strlen(text), n_end = strlen(end);
    return n > n_end && strcmp(text + n - n_end, end) == 0;
}

static ct_status export_model(const char *from, const char *to, const ct_own *own,
                              const ct_own *about) {
    CT_SCOPED_HANDLE(ct_model) model = NULL;
    ct_onnx_options options = CT_ONNX_OPTIONS;
    options.logits = ct_own_is_given(own, "logits");
    options.preprocess = ct_own_is_given(own, "preprocess");
    if (!ends_in(to, ".onnx")) return ct_fail(CT_INVAL, "%s: files of this kind end in .onnx", to);
    CT_TRY(ct_cli_may_write(to, ct_own_is_given(own, "force")));
    CT_TRY(ct_cli_open_model(from, about, &model));
    CT_TRY(ct_model_export_onnx(model, to, &options));
    const ct_model_facts *f = ct_model_facts_of(model);
    ct_log(CT_LOG_LINE, "%s: %s, %d classes, %s images of %dx%dx%d", to, f->network, f->n_classes,
           options.preprocess ? "byte" : "normalised", f->channels, f->height, f->width);
    ct_log(CT_LOG_LINE, "next: load it with any ONNX runtime (docs/MODELS.md)");
    return CT_OK;
}

ct_status ct_cli_export(int n_args, char **args) {
    ct_own own, about;
    CT_TRY(ct_own_take("export", &n_args, args, &own));
    CT_TRY(ct_own_take("model", &n_args, args, &about));
    CT_TRY(ct_own_check_words(&own, n_args, args));
    ct_cli_quiet(ct_own_is_given(&own, "quiet"));
    if (n_args != 2)
        return ct_fail(CT_INVAL, "name a model (a run directory or .safetensors file) and the file "
                                 "to write, FILE.onnx");
    return export_model(args[0], args[1], &own, &about);
}
