/* A contact sheet: the first pictures of every class. */
#ifndef CT_DATA_SHEET_H
#define CT_DATA_SHEET_H

#include "data/dataset.h"

/* One row a class (at most 40), ten training pictures each, as a PNG file. */
ct_status ct_sheet_write(const ct_dataset *dataset, const char *path);

#endif
