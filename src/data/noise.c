/* Random pixels and labels in the shapes of CIFAR-10 and CIFAR-100: nothing to learn, made for
 * measuring speed where no real data is at hand. */
#include "data/dataset_internal.h"

enum { CHANNELS = 3, SIDE = 32 };

static void draw(ct_rng *rng, int label, uint8_t *pixels) {
    (void)label;
    for (int p = 0; p < CHANNELS * SIDE * SIDE; p++) pixels[p] = (uint8_t)ct_rng_u32(rng);
}

static ct_status open_noise(const ct_dataset_options *options, int n_classes, ct_dataset *out) {
    ct_made_up set = {1, CHANNELS, SIDE, n_classes, 4096, 512, draw};
    return ct_made_up_open(&set, options, out);
}

ct_status ct_dataset_open_noise(const ct_dataset_options *options, ct_dataset *out) {
    return open_noise(options, 10, out);
}

ct_status ct_dataset_open_noise100(const ct_dataset_options *options, ct_dataset *out) {
    return open_noise(options, 100, out);
}
