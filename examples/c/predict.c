/* What a trained model takes pictures for.
 *
 *     ./predict RUN PICTURE...        RUN: a run directory, or a .safetensors file */
#include <crosstalk/crosstalk.h>

#include <stdio.h>

enum { MAX_PICTURES = 256, MAX_CLASSES = 1000 };

static float probabilities[MAX_PICTURES * MAX_CLASSES];
static bool readable[MAX_PICTURES];

static void tell(const ct_model *model, const char *path, const float *p) {
    int best = 0;
    for (int k = 1; k < ct_model_n_classes(model); k++)
        if (p[k] > p[best]) best = k;
    const char *name = ct_model_class_name(model, best);
    printf("%s: class %d %s, probability %.3f\n", path, best, name, (double)p[best]);
}

int main(int n_args, char **args) {
    ct_error error;
    ct_model *model = NULL;
    int n = n_args - 2;
    if (n < 1 || n > MAX_PICTURES) {
        fprintf(stderr, "usage: predict RUN PICTURE... (at most %d)\n", MAX_PICTURES);
        return 2;
    }
    ct_status status = ct_model_open(args[1], "auto", &model, &error);
    int n_classes = status == CT_OK ? ct_model_n_classes(model) : 0;
    if (n_classes > MAX_CLASSES) {
        fprintf(stderr, "predict: %d classes, this program has room for %d\n", n_classes,
                MAX_CLASSES);
        ct_model_free(&model);
        return 1;
    }
    if (status == CT_OK)
        status = ct_model_predict_files(model, (const char *const *)args + 2, (size_t)n,
                                        probabilities, readable, &error);
    for (int i = 0; i < n && status == CT_OK; i++) {
        if (readable[i])
            tell(model, args[i + 2], probabilities + i * n_classes);
        else
            fprintf(stderr, "predict: %s cannot be read\n", args[i + 2]);
    }
    if (status != CT_OK) fprintf(stderr, "predict: %s\n", error.text);
    ct_model_free(&model);
    return status == CT_OK ? 0 : 1;
}
