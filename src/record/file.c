#include "record/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned roles;
    const char *text;
} files[CT_N_FILES] = {
#define RECORD_FILE(id, name, roles, text) [CT_FILE_##id] = {name, roles, text},
#include "record/file_list.h"
#undef RECORD_FILE
};

const char *ct_record_name(ct_record_file file) {
    return files[file].name;
}

const char *ct_record_text(ct_record_file file) {
    return files[file].text;
}

bool ct_record_is(ct_record_file file, ct_file_role role) {
    return (files[file].roles & role) != 0;
}

ct_path ct_record_path(const char *dir, ct_record_file file) {
    return ct_path_in(dir, files[file].name);
}

bool ct_record_has(const char *dir, ct_record_file file) {
    return ct_dir_has(dir, files[file].name);
}

ct_status ct_record_remove(const char *dir, ct_record_file file) {
    ct_path path = ct_record_path(dir, file);
    if (remove(path.text) == 0 || errno == ENOENT) return CT_OK;
    return ct_fail(CT_IO, "%s: %s", path.text, strerror(errno));
}

ct_status ct_record_write(const char *dir, ct_record_file file, const ct_text *text) {
    CT_TRY(ct_text_status(text));
    return ct_file_write(ct_record_path(dir, file).text, text->chars, text->n);
}
