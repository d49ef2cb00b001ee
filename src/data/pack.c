/* The file: magic, the pictures' bytes, the table (entries as they are in memory), class names, and
 * a tail of fixed length that says where the table is. Little-endian machines only: the magic is
 * written as a number, so that another machine refuses the file. */
#include "data/pack.h"

#include "data/dataset_internal.h"
#include "data/decode_internal.h"
#include "data/listing.h"
#include "util/file.h"
#include "util/memory.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x0a314b4341505443) /* "CTPACK1\n" */

typedef struct tail {
    ct_pack_facts facts;
    uint64_t table_at, names_bytes;
    uint32_t table_crc; /* of table and names */
    uint32_t tail_crc;  /* of all fields before */
    uint64_t magic;
} tail;

struct ct_pack {
    int fd;
    tail tail;
    ct_pack_entry *entries;
    char *names;
};

struct ct_pack_writer {
    ct_writer *file;
    uint64_t at; /* bytes written */
    ct_pack_entry *entries;
    size_t n;
    uint8_t *row;
    size_t row_capacity;
};

static uint32_t tail_crc(const tail *t) {
    return ct_crc32(0, t, offsetof(tail, tail_crc));
}

static bool read_at(int fd, void *bytes, size_t n, uint64_t at) {
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(fd, (char *)bytes + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

static ct_status damaged(const char *path) {
    return ct_fail(CT_IO, "%s: not a file of packed pictures, or a damaged one", path);
}

static ct_status check_facts(const char *path, const tail *t) {
    const ct_pack_facts *f = &t->facts;
    double n = (double)f->n;
    const ct_field fields[] = {
        {"the number of pictures", n, 1, UINT32_MAX},
        {"the number of test pictures", (double)f->n_test, 0, n},
        {"the number of classes", f->n_classes, 1, CT_LISTING_MAX_CLASSES},
        {"the shorter side", f->side, 1, CT_MAX_PACK_SIDE},
        {"the size", f->size, 1, f->side},
        {"the whole", f->n_whole, f->n_whole == 0 ? 0 : n - (double)f->n_test, UINT32_MAX},
        {"the length of the names", (double)t->names_bytes, 0, CT_MAX_NAMES_BYTES},
        {"a mean", (double)f->mean[0], 0, 1},
        {"a mean", (double)f->mean[1], 0, 1},
        {"a mean", (double)f->mean[2], 0, 1},
        {"a deviation", (double)f->std[0], 0, 1}, /* 0: of a cache, which has none */
        {"a deviation", (double)f->std[1], 0, 1},
        {"a deviation", (double)f->std[2], 0, 1}};
    return ct_fields_check(path, fields, sizeof fields / sizeof *fields);
}

/* The tail, against its checksum, its ranges and the length of the file. */
static ct_status read_tail(const char *path, int fd, uint64_t length, tail *out) {
    uint64_t magic = 0;
    if (length < sizeof *out + sizeof magic || !read_at(fd, &magic, sizeof magic, 0) ||
        magic != MAGIC || !read_at(fd, out, sizeof *out, length - sizeof *out) ||
        out->magic != MAGIC || out->tail_crc != tail_crc(out))
        return damaged(path);
    CT_TRY(check_facts(path, out));
    if (out->table_at > length ||
        out->table_at + out->facts.n * sizeof(ct_pack_entry) + out->names_bytes + sizeof *out !=
            length)
        return damaged(path);
    out->facts.name[sizeof out->facts.name - 1] = '\0';
    return CT_OK;
}

/* Pictures lie within the data, and labels among the classes. */
static bool entries_are_right(const ct_pack *p) {
    for (uint64_t i = 0; i < p->tail.facts.n; i++) {
        const ct_pack_entry *e = &p->entries[i];
        uint64_t n = (uint64_t)e->width * e->height * 3;
        if (n == 0 || e->at < sizeof(uint64_t) || e->at > p->tail.table_at ||
            n > p->tail.table_at - e->at || e->label < 0 ||
            (uint32_t)e->label >= p->tail.facts.n_classes)
            return false;
    }
    return true;
}

static ct_status read_table(const char *path, ct_pack *p) {
    size_t n_table = (size_t)p->tail.facts.n * sizeof *p->entries;
    size_t n_names = (size_t)p->tail.names_bytes;
    CT_TRY(ct_make(&p->entries, (size_t)p->tail.facts.n, path));
    CT_TRY(ct_make(&p->names, n_names + 1, path));
    if (!read_at(p->fd, p->entries, n_table, p->tail.table_at) ||
        !read_at(p->fd, p->names, n_names, p->tail.table_at + n_table) ||
        ct_crc32(ct_crc32(0, p->entries, n_table), p->names, n_names) != p->tail.table_crc ||
        !entries_are_right(p) || !ct_names_are_right(p->names, n_names, p->tail.facts.n_classes))
        return damaged(path);
    return CT_OK;
}

ct_status ct_pack_open(const char *path, ct_pack **out) {
    CT_SCOPED_BY(ct_pack_close, ct_pack *) p = NULL;
    uint64_t length;
    CT_TRY(ct_make(&p, 1, path));
    p->fd = -1;
    CT_TRY(ct_file_open(path, &p->fd, &length));
    CT_TRY(read_tail(path, p->fd, length, &p->tail));
    CT_TRY(read_table(path, p));
    ct_move(out, &p);
    return CT_OK;
}

void ct_pack_close(ct_pack **pack) {
    if (*pack == NULL) return;
    ct_fd_close(&(*pack)->fd);
    ct_free((*pack)->names);
    ct_free((*pack)->entries);
    ct_free(*pack);
    *pack = NULL;
}

const ct_pack_facts *ct_pack_facts_of(const ct_pack *pack) {
    return &pack->tail.facts;
}

const ct_pack_entry *ct_pack_entries(const ct_pack *pack) {
    return pack->entries;
}

const char *ct_pack_class_names(const ct_pack *pack) {
    return pack->tail.names_bytes > 0 ? pack->names : NULL;
}

bool ct_pack_looks_right(const char *path) {
    return ct_file_begins(path, &(uint64_t){MAGIC}, sizeof(uint64_t));
}

ct_status ct_pack_read(const ct_pack *p, size_t i, ct_decoder *d, ct_picture *out) {
    const ct_pack_entry *e = &p->entries[i];
    size_t n = (size_t)e->width * e->height;
    /* The stored bytes go behind the room of the picture, which is then filled from them. */
    uint8_t *pixels = ct_decoder_buffer(d, &d->out, n * (CT_PIXEL + 3));
    if (pixels == NULL) return CT_NOMEM;
    uint8_t *stored = pixels + n * CT_PIXEL;
    if (!read_at(p->fd, stored, n * 3, e->at) || ct_crc32(0, stored, n * 3) != e->crc) {
        ct_decoder_refuse(d, "damaged in the packed file");
        return CT_IO;
    }
    for (size_t k = 0; k < n; k++) memcpy(pixels + k * CT_PIXEL, stored + k * 3, 3);
    *out = (ct_picture){.width = e->width, .height = e->height, .pixels = pixels};
    return CT_OK;
}

/* ---- writing ---- */

static ct_status add_bytes(ct_pack_writer *w, const void *bytes, size_t n) {
    CT_TRY(ct_writer_add(w->file, bytes, n));
    w->at += n;
    return CT_OK;
}

ct_status ct_pack_writer_open(const char *path, ct_pack_writer **out) {
    static const uint64_t magic = MAGIC;
    CT_SCOPED_BY(ct_pack_writer_abandon, ct_pack_writer *) w = NULL;
    CT_TRY(ct_make(&w, 1, path));
    CT_TRY(ct_writer_open(path, &w->file));
    CT_TRY(add_bytes(w, &magic, sizeof magic));
    ct_move(out, &w);
    return CT_OK;
}

ct_status ct_pack_writer_add(ct_pack_writer *w, const ct_picture *p, uint32_t source,
                             int32_t label) {
    size_t n = (size_t)p->width * (size_t)p->height;
    if (p->width > UINT16_MAX || p->height > UINT16_MAX)
        return ct_fail(CT_INVAL, "a picture of %dx%d is too large to pack", p->width, p->height);
    CT_TRY(ct_extend(&w->entries, w->n, "packed pictures"));
    CT_TRY(ct_reserve(&w->row, &w->row_capacity, n * 3, "packed pictures"));
    for (size_t k = 0; k < n; k++) memcpy(w->row + 3 * k, p->pixels + CT_PIXEL * k, 3);
    ct_pack_entry *e = &w->entries[w->n++];
    memset(e, 0, sizeof *e);
    e->at = w->at;
    e->source = source;
    e->label = label;
    e->width = (uint16_t)p->width;
    e->height = (uint16_t)p->height;
    e->crc = ct_crc32(0, w->row, n * 3);
    return add_bytes(w, w->row, n * 3);
}

size_t ct_pack_writer_count(const ct_pack_writer *writer) {
    return writer->n;
}

ct_status ct_pack_writer_commit(ct_pack_writer **writer, const ct_pack_facts *facts,
                                const char *class_names) {
    CT_SCOPED_BY(ct_pack_writer_abandon, ct_pack_writer *) w = ct_take(writer);
    tail t;
    size_t n_table = w->n * sizeof *w->entries;
    size_t n_names = ct_names_bytes(class_names, (int)facts->n_classes);
    memset(&t, 0, sizeof t); /* gaps between fields too: they are part of the checksum */
    t.facts = *facts;
    t.facts.n = w->n;
    t.table_at = w->at;
    t.names_bytes = n_names;
    t.table_crc = ct_crc32(ct_crc32(0, w->entries, n_table), class_names, n_names);
    t.magic = MAGIC;
    t.tail_crc = tail_crc(&t);
    CT_TRY(add_bytes(w, w->entries, n_table));
    CT_TRY(add_bytes(w, class_names, n_names));
    CT_TRY(add_bytes(w, &t, sizeof t));
    return ct_writer_commit(&w->file);
}

void ct_pack_writer_abandon(ct_pack_writer **writer) {
    if (*writer == NULL) return;
    ct_writer_abandon(&(*writer)->file);
    ct_free((*writer)->row);
    ct_free((*writer)->entries);
    ct_free(*writer);
    *writer = NULL;
}
