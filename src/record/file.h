/* The files of a run directory: their names, and what each is there for. Nobody outside this folder
 * spells a name (file_list.h); tools/check looks for it. */
#ifndef CT_RECORD_FILE_H
#define CT_RECORD_FILE_H

#include <stdbool.h>

#include "util/file.h"
#include "util/text.h"

typedef enum ct_file_role {
    CT_FILE_IS_MARK = 1,   /* there as soon as a run has begun */
    CT_FILE_IS_RESULT = 2, /* says how the run ended: a resumed run forgets it */
    CT_FILE_IS_HEAVY = 4,  /* left out of light runs (light.c) */
    CT_FILE_IS_SIDE = 8,   /* kept by them as long as it is small */
    CT_FILE_IS_TEXT = 16,  /* names paths of the machine, which light runs do not */
    CT_FILE_IS_FOLDER = 32,
    CT_FILE_IS_KEPT = 64, /* by bundles (bundle.h): what pages are made of */
} ct_file_role;

typedef enum ct_record_file {
#define RECORD_FILE(id, name, roles, text) CT_FILE_##id,
#include "record/file_list.h"
#undef RECORD_FILE
    CT_N_FILES,
} ct_record_file;

const char *ct_record_name(ct_record_file file);
/* What it is, for help texts; options as @name. */
const char *ct_record_text(ct_record_file file);
bool ct_record_is(ct_record_file file, ct_file_role role);

ct_path ct_record_path(const char *dir, ct_record_file file);
bool ct_record_has(const char *dir, ct_record_file file);
/* A file that may be missing. */
ct_status ct_record_remove(const char *dir, ct_record_file file);
/* Writes a file of the directory, whole or not at all. */
ct_status ct_record_write(const char *dir, ct_record_file file, const ct_text *text);

#endif
