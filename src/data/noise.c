/* Random pixels and labels in the shapes of CIFAR-10 and CIFAR-100: nothing to learn, made for
 * measuring speed where no real data is at hand. */
#include "data/dataset_internal.h"

#include <string.h>

enum { CHANNELS = 3, SIDE = 32 };

static void draw(ct_rng *rng, int label, uint8_t *pixels) {
    (void)label;
    for (int p = 0; p < CHANNELS * SIDE * SIDE; p++) pixels[p] = (uint8_t)ct_rng_u32(rng);
}

/* Of ten classes, or as many as the set is named after. */
ct_status ct_dataset_open_noise(const ct_dataset_options *options, ct_dataset *out) {
    const int n_classes = strcmp(out->name, "noise100") == 0 ? 100 : 10;
    return ct_made_up_open(&(ct_made_up){1, CHANNELS, SIDE, n_classes, 4096, 512, draw}, options,
                           out);
}
