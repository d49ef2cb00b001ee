/* Pictures of one part of a data set, each decoded and made small when it is asked for. */
#ifndef CT_DATA_PICTURES_H
#define CT_DATA_PICTURES_H

#include "data/dataset.h"

void ct_pictures_free(ct_pictures **pictures);

#endif
