/* Partitions as CSV: header `index,agent`, then one line a sample. */
#include "data/partition_internal.h"

#include "util/file.h"
#include "util/memory.h"
#include "util/text.h"

#include <string.h>

#define HEADER         "index,agent"
#define MAX_LINE_BYTES 64 /* on average; a line that we write has at most 22 */
#define MORE_BYTES     ((size_t)1 << 26)

typedef struct reader {
    const char *path;
    int n_agents;
    size_t n_samples;
    ct_lines lines;
    uint32_t *index;    /* [n_samples] samples in the order of the file */
    int32_t *agent;     /* [n_samples] who holds a sample */
    uint32_t *found_in; /* [n_samples] line of each sample; 0: not seen */
    size_t n;
} reader;

/* A piece of the file that can be printed: short, and without control characters. */
typedef struct shown {
    char chars[41];
} shown;

static shown show(const char *text) {
    shown s = {0};
    size_t k = 0;
    for (; text[k] != '\0' && k < sizeof s.chars - 1; k++)
        s.chars[k] = text[k] >= 32 && text[k] < 127 ? text[k] : '?';
    return s;
}

static ct_status read_header(reader *r) {
    char *line = ct_lines_next(&r->lines);
    if (line == NULL) return ct_fail(CT_IO, "%s: empty; the first line must be " HEADER, r->path);
    if (strcmp(line, HEADER) != 0)
        return ct_fail(CT_IO, "%s: line 1: '%s' is not the header " HEADER, r->path,
                       show(line).chars);
    return CT_OK;
}

/* The two numbers of a line, each in its range. */
static ct_status parse_line(const reader *r, char *line, uint32_t *index, int32_t *agent) {
    int64_t i, a;
    shown whole = show(line);
    char *comma = strchr(line, ',');
    if (comma == NULL)
        return ct_fail(CT_IO, "%s: line %u: '%s' is not index,agent", r->path, r->lines.number,
                       whole.chars);
    *comma = '\0';
    if (!ct_parse_i64(line, &i) || !ct_parse_i64(comma + 1, &a))
        return ct_fail(CT_IO, "%s: line %u: '%s' is not two whole numbers", r->path,
                       r->lines.number, whole.chars);
    if (i < 0 || (uint64_t)i >= r->n_samples)
        return ct_fail(CT_IO, "%s: line %u: sample %lld is not one of 0..%zu", r->path,
                       r->lines.number, (long long)i, r->n_samples - 1);
    if (a < 0 || a >= r->n_agents)
        return ct_fail(CT_IO, "%s: line %u: agent %lld is not one of 0..%d", r->path,
                       r->lines.number, (long long)a, r->n_agents - 1);
    *index = (uint32_t)i;
    *agent = (int32_t)a;
    return CT_OK;
}

static ct_status read_lines(reader *r) {
    CT_TRY(read_header(r));
    for (char *line = ct_lines_next(&r->lines); line != NULL; line = ct_lines_next(&r->lines)) {
        uint32_t index = 0;
        int32_t agent = 0;
        CT_TRY(parse_line(r, line, &index, &agent));
        if (r->found_in[index] != 0)
            return ct_fail(CT_IO, "%s: line %u: sample %u appears twice, first in line %u", r->path,
                           r->lines.number, (unsigned)index, (unsigned)r->found_in[index]);
        r->found_in[index] = r->lines.number;
        r->index[r->n++] = index; /* none appears twice, so there is room */
        r->agent[index] = agent;
    }
    return CT_OK;
}

static void reader_free(reader *r) {
    ct_free(r->found_in);
    ct_free(r->agent);
    ct_free(r->index);
}

ct_status ct_partition_read(const char *path, int n_agents, size_t n_samples, ct_partition *out) {
    if (n_agents < 1 || n_samples < 1 || n_samples > UINT32_MAX)
        return ct_fail(CT_INVAL, "%d agents and %zu samples cannot be a partition", n_agents,
                       n_samples);
    CT_SCOPED(reader) r = {.path = path, .n_agents = n_agents, .n_samples = n_samples};
    CT_SCOPED(ct_blob) file = {0};
    /* with room for a partition of more samples: the line of one that is not there says more */
    CT_TRY(ct_file_read(path, (n_samples + 2) * MAX_LINE_BYTES + MORE_BYTES, &file));
    r.lines = ct_blob_lines(&file);
    CT_TRY(ct_make(&r.index, n_samples, "a partition"));
    CT_TRY(ct_make(&r.agent, n_samples, "a partition"));
    CT_TRY(ct_make(&r.found_in, n_samples, "a partition"));
    CT_TRY(read_lines(&r));
    return ct_partition_collect(CT_IO, path, r.agent, n_samples, r.index, r.n, n_agents, out);
}

ct_status ct_partition_write(const ct_partition *partition, const char *path) {
    CT_SCOPED(ct_text) text = {0};
    ct_text_add(&text, HEADER "\n");
    for (int a = 0; a < partition->n_agents; a++)
        for (size_t i = partition->begin[a]; i < partition->begin[a + 1]; i++)
            ct_text_add(&text, "%u,%d\n", (unsigned)partition->index[i], a);
    CT_TRY(ct_text_status(&text));
    return ct_file_write(path, text.chars, text.n);
}
