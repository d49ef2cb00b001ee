/* One agent's rows of every bank: header, section table, values, checksum of all before it.
 *   u64 magic, row, iteration, n_sections; per section: char name[24], u64 n_rows, n_columns
 *   float values[n_rows][n_columns] of one section after the other, filled up to 8 bytes at the end
 *   u64 checksum */
#include <stdio.h>
#include <string.h>

#include "run/checkpoint_internal.h"
#include "util/file.h"
#include "util/memory.h"

#define MAGIC        UINT64_C(0x31304b4843525443) /* "CTRCHK01"; reads otherwise on other machines */
#define MAX_SECTIONS (2 * CT_MAX_BUFFERS + 7)

typedef struct header {
    uint64_t magic, row, iteration, n_sections;
} header;

typedef struct section {
    char name[24];
    uint64_t n_rows, n_columns;
} section;

/* Where a section's rows are in this run. */
typedef struct place {
    ct_bank *bank;
    int first;
} place;

static void add_section(section *s, place *p, int *n, const char *name, ct_bank *bank, int first,
                        int n_rows) {
    memset(&s[*n], 0, sizeof *s);
    snprintf(s[*n].name, sizeof s->name, "%s", name);
    s[*n].n_rows = (uint64_t)n_rows;
    s[*n].n_columns = bank->n;
    p[(*n)++] = (place){bank, first};
}

/* An agent's rows in a bank with one row a message. */
static void find_messages(const ct_routes *r, int row, int *first, int *n_rows) {
    *first = *n_rows = 0;
    for (int e = 0; e < r->own.n; e++) {
        if (r->from[r->own.first + e] != row) continue;
        if ((*n_rows)++ == 0) *first = e;
    }
}

/* Where things fail, what an agent received last is its own too. */
static void add_mail(const ct_run *run, int own_row, const ct_routes *r, const char *name,
                     ct_bank *bank, section *s, place *p, int *n) {
    char title[24];
    int first = 0, n_rows = 0;
    const ct_faults *faults = run->agents.faults;
    if (faults == NULL || faults->is_there != NULL || bank->n == 0) return;
    for (int k = 0; k < r->n; k++) {
        if (r->to[k] != run->agents.first + own_row) continue;
        if (n_rows++ == 0 || r->mail[k] < first) first = r->mail[k];
    }
    snprintf(title, sizeof title, "%.16s.mail", name);
    add_section(s, p, n, title, bank, first, n_rows);
}

/* The sections of one agent's file. */
static int list_sections(ct_run *run, int own_row, section *s, place *p) {
    ct_agents *a = &run->agents;
    int n = 0;
    add_section(s, p, &n, "x", &a->x, own_row, 1);
    add_mail(run, own_row, &a->links.models, "x", &a->x, s, p, &n);
    add_mail(run, own_row, &a->links.neighbours, "sums", &a->ccl.edge_sums, s, p, &n);
    if (a->running.n > 0) add_section(s, p, &n, "running", &a->running, own_row, 1);
    for (int b = 0; b < a->n_buffers; b++) {
        ct_buffer *buffer = &a->buffers[b];
        const ct_routes *r = buffer->routes;
        int first = own_row, n_rows = 1;
        if (r != NULL) find_messages(r, a->first + own_row, &first, &n_rows);
        add_section(s, p, &n, buffer->name, &buffer->bank, first, n_rows);
        add_mail(run, own_row, r != NULL ? r : &a->links.models, buffer->name, &buffer->bank, s, p,
                 &n);
    }
    ct_average *average = &run->average;
    if (average->x.n > 0) add_section(s, p, &n, "average", &average->x, own_row, 1);
    if (run->public.labels.n > 0)
        add_section(s, p, &n, "public labels", &run->public.labels, own_row, 1);
    if (average->running.n > 0)
        add_section(s, p, &n, "average running", &average->running, own_row, 1);
    return n;
}

ct_path ct_agent_file_path(const char *folder, int row) {
    char name[40];
    snprintf(name, sizeof name, "agent-%d.ckpt", row);
    return ct_path_in(folder, name);
}

/* Pieces of a file being written, and their checksum. */
typedef struct output {
    ct_writer *writer;
    ct_agent_file sum;
} output;

static ct_status add(output *out, const void *bytes, size_t n) {
    out->sum.checksum = ct_checksum(out->sum.checksum, bytes, n);
    out->sum.bytes += n;
    return ct_writer_add(out->writer, bytes, n);
}

static size_t padded(uint64_t n_columns) {
    return ((size_t)n_columns * sizeof(float) + 7) / 8 * 8;
}

static ct_status write_sections(output *out, const section *s, const place *p, int n,
                                float *values) {
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < (int)s[k].n_rows; i++) {
            CT_TRY(ct_bank_read(p[k].bank, p[k].first + i, 0, p[k].bank->n, values));
            memset((char *)values + p[k].bank->n * sizeof(float), 0,
                   padded(p[k].bank->n) - p[k].bank->n * sizeof(float));
            CT_TRY(add(out, values, padded(p[k].bank->n)));
        }
    }
    uint64_t checksum = out->sum.checksum;
    out->sum.bytes += sizeof checksum;
    return ct_writer_add(out->writer, &checksum, sizeof checksum);
}

static size_t widest(const section *s, int n) {
    size_t most = 0;
    for (int k = 0; k < n; k++)
        if (s[k].n_columns > most) most = s[k].n_columns;
    return most;
}

ct_status ct_agent_file_write(ct_run *run, int own_row, const char *folder, long iteration,
                              ct_agent_file *result) {
    section sections[MAX_SECTIONS];
    place places[MAX_SECTIONS];
    int n = list_sections(run, own_row, sections, places);
    header head = {MAGIC, (uint64_t)(run->agents.first + own_row), (uint64_t)iteration,
                   (uint64_t)n};
    output out = {.sum.checksum = CT_HASH_START};
    CT_SCOPED_BLOCK(float) values = NULL;
    CT_TRY(ct_make(&values, widest(sections, n) + 2, "a checkpoint"));
    CT_TRY(
        ct_writer_open(ct_agent_file_path(folder, run->agents.first + own_row).text, &out.writer));
    ct_status status = add(&out, &head, sizeof head);
    if (status == CT_OK) status = add(&out, sections, (size_t)n * sizeof *sections);
    if (status == CT_OK) status = write_sections(&out, sections, places, n, values);
    bool is_early = run->agents.n > CT_SETTLED_AT_ONCE;
    if (status == CT_OK)
        status = is_early ? ct_writer_commit_early(&out.writer) : ct_writer_commit(&out.writer);
    if (out.writer != NULL) ct_writer_abandon(&out.writer);
    if (status == CT_OK) *result = out.sum;
    return status;
}

/* ---- reading ---- */

static ct_status check_bytes(const char *path, const ct_blob *blob, int row, long iteration,
                             const ct_agent_file *expected) {
    header head;
    uint64_t checksum;
    if (expected != NULL && blob->n != expected->bytes)
        return ct_fail(CT_IO, "%s: %zu bytes, but the manifest says %llu", path, blob->n,
                       (unsigned long long)expected->bytes);
    if (blob->n < sizeof head + sizeof checksum)
        return ct_fail(CT_IO, "%s: too short for a checkpoint", path);
    size_t body = blob->n - sizeof checksum;
    memcpy(&head, blob->bytes, sizeof head);
    memcpy(&checksum, blob->bytes + body, sizeof checksum);
    if (head.magic != MAGIC) return ct_fail(CT_IO, "%s: not an agent's checkpoint", path);
    if (checksum != ct_checksum(CT_HASH_START, blob->bytes, body))
        return ct_fail(CT_IO, "%s: damaged: the checksum does not fit", path);
    if (expected != NULL && checksum != expected->checksum)
        return ct_fail(CT_IO, "%s: not the file that the manifest means", path);
    if (head.row != (uint64_t)row || head.iteration != (uint64_t)iteration)
        return ct_fail(CT_IO, "%s: of agent %llu at iteration %llu", path,
                       (unsigned long long)head.row, (unsigned long long)head.iteration);
    return CT_OK;
}

ct_status ct_agent_file_check(const char *folder, int row, long iteration,
                              const ct_agent_file *expected) {
    CT_SCOPED(ct_blob) blob = {0};
    ct_path path = ct_agent_file_path(folder, row);
    CT_TRY(ct_file_read(path.text, CT_MAX_MODEL_BYTES, &blob));
    return check_bytes(path.text, &blob, row, iteration, expected);
}

/* The table in the file is the one this run would write. */
static ct_status check_sections(const char *path, const ct_blob *blob, const section *s, int n) {
    header head;
    memcpy(&head, blob->bytes, sizeof head);
    size_t size = sizeof head + (size_t)n * sizeof *s + sizeof(uint64_t);
    for (int k = 0; k < n; k++) size += (size_t)s[k].n_rows * padded(s[k].n_columns);
    if (head.n_sections != (uint64_t)n || blob->n != size ||
        memcmp(blob->bytes + sizeof head, s, (size_t)n * sizeof *s) != 0)
        return ct_fail(CT_IO, "%s: of another model, graph or algorithm", path);
    return CT_OK;
}

static ct_status read_sections(const ct_blob *blob, const section *s, const place *p, int n) {
    const uint8_t *at = blob->bytes + sizeof(header) + (size_t)n * sizeof *s;
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < (int)s[k].n_rows; i++) {
            CT_TRY(ct_bank_write(p[k].bank, p[k].first + i, 0, p[k].bank->n,
                                 (const float *)(const void *)at));
            at += padded(s[k].n_columns);
        }
    }
    return CT_OK;
}

ct_status ct_agent_file_read(ct_run *run, int own_row, const char *folder, long iteration) {
    section sections[MAX_SECTIONS];
    place places[MAX_SECTIONS];
    int n = list_sections(run, own_row, sections, places), row = run->agents.first + own_row;
    CT_SCOPED(ct_blob) blob = {0};
    ct_path path = ct_agent_file_path(folder, row);
    CT_TRY(ct_file_read(path.text, CT_MAX_MODEL_BYTES, &blob));
    CT_TRY(check_bytes(path.text, &blob, row, iteration, NULL));
    CT_TRY(check_sections(path.text, &blob, sections, n));
    return read_sections(&blob, sections, places, n);
}
