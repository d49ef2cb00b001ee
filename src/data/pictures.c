#include "data/pictures.h"

void ct_pictures_free(ct_pictures **pictures) {
    *pictures = NULL;
}
