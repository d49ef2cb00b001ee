/* What a site tells of itself and its neighbours (site.json), and what has left it (sent.jsonl). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "record/record_internal.h"
#include "util/budget.h"
#include "util/memory.h"

static ct_status wrong(const char *where, const char *key) {
    return ct_fail(CT_IO, "%s: \"%s\" is not what a site writes", where, key);
}

static ct_status read_word(const char *where, const ct_json *object, const char *key, char **out) {
    const ct_json *value = ct_json_get(object, key);
    if (value == NULL || value->kind != CT_JSON_STRING) return wrong(where, key);
    return ct_make_text(out, value->string);
}

/* ---- site.json ---- */

static ct_status read_neighbour(const char *path, const ct_json *object, ct_record_neighbour *out) {
    out->iteration = ct_json_number(object, "iteration");
    out->for_s = ct_json_number(object, "for_s");
    out->n_lost = ct_json_number(object, "losses");
    out->bytes_sent = ct_json_number(object, "bytes_sent");
    out->bytes_received = ct_json_number(object, "bytes_received");
    out->rtt_ms = ct_json_number(object, "rtt_ms");
    CT_TRY(read_word(path, object, "name", &out->name));
    CT_TRY(read_word(path, object, "phase", &out->phase));
    return read_word(path, object, "note", &out->note);
}

ct_status ct_record_read_site(const char *path, const ct_blob *blob, ct_record *run) {
    ct_record_site *site = &run->site;
    CT_SCOPED_HANDLE(ct_json) object = NULL;
    CT_TRY(ct_json_parse((const char *)blob->bytes, blob->n, path, &object));
    const ct_json *list = ct_json_get(object, "neighbours");
    if (list == NULL || list->kind != CT_JSON_ARRAY || list->n_children > CT_MAX_RECORD_SENT)
        return wrong(path, "neighbours");
    CT_TRY(ct_make(&site->neighbours, list->n_children, path));
    for (const ct_json *at = list->child; at != NULL; at = at->next)
        CT_TRY(read_neighbour(path, at, &site->neighbours[site->n_neighbours++]));
    site->iteration = ct_json_number(object, "iteration");
    site->n_iterations = ct_json_number(object, "n_iterations");
    site->time_s = ct_json_number(object, "time");
    site->heartbeat_s = ct_json_number(object, "heartbeat_s");
    site->n_strangers = ct_json_number(object, "refused_strangers");
    CT_TRY(read_word(path, object, "federation", &site->federation));
    CT_TRY(read_word(path, object, "phase", &site->phase));
    return read_word(path, object, "site", &site->name);
}

/* ---- sent.jsonl ---- */

/* Lines come in the same order again and again: the one looked for is mostly the next. */
static ct_record_sent *find_sent(const ct_record_site *site, int from, const char *to,
                                 const char *kind) {
    for (int k = 0; k < site->n_sent; k++) {
        ct_record_sent *sent = &site->sent[(from + k) % site->n_sent];
        if (strcmp(sent->kind, kind) == 0 && strcmp(sent->to, to) == 0) return sent;
    }
    return NULL;
}

static ct_status add_sent(const char *where, ct_record_site *site, const ct_record_sent *line,
                          int *next) {
    ct_record_sent *sent = find_sent(site, *next, line->to, line->kind);
    if (sent == NULL) {
        if (site->n_sent == CT_MAX_RECORD_SENT)
            return ct_fail(CT_IO, "%s: more than %d neighbours and kinds", where,
                           CT_MAX_RECORD_SENT);
        CT_TRY(ct_extend(&site->sent, (size_t)site->n_sent, where));
        sent = &site->sent[site->n_sent++];
        *sent = (ct_record_sent){0};
        CT_TRY(ct_make_text(&sent->to, line->to));
        CT_TRY(ct_make_text(&sent->kind, line->kind));
    }
    sent->n_letters += line->n_letters;
    sent->n_bytes += line->n_bytes;
    *next = (int)(sent - site->sent) + 1;
    return CT_OK;
}

static ct_status read_line(const char *where, const char *text, ct_record_site *site, int *next) {
    CT_SCOPED_HANDLE(ct_json) json = NULL;
    CT_TRY(ct_json_parse(text, strlen(text), where, &json));
    const ct_json *to = ct_json_get(json, "to"), *kind = ct_json_get(json, "kind");
    if (to == NULL || to->kind != CT_JSON_STRING) return wrong(where, "to");
    if (kind == NULL || kind->kind != CT_JSON_STRING) return wrong(where, "kind");
    ct_record_sent line = {.to = to->string,
                           .kind = kind->string,
                           .n_letters = ct_json_number(json, "letters"),
                           .n_bytes = ct_json_number(json, "bytes")};
    if (!(line.n_letters >= 0)) return wrong(where, "letters");
    if (!(line.n_bytes >= 0)) return wrong(where, "bytes");
    return add_sent(where, site, &line, next);
}

/* The last line may be on its way: without its end it counts only if it is whole. */
ct_status ct_record_read_sent(const char *path, const ct_blob *blob, ct_record *run) {
    int next = 0;
    if (strlen((char *)blob->bytes) != blob->n) return ct_fail(CT_IO, "%s: this is not text", path);
    ct_lines lines = ct_blob_lines(blob);
    for (char *line; (line = ct_lines_next(&lines)) != NULL;) {
        char where[640];
        ct_error error;
        if (line[0] == '\0') continue;
        snprintf(where, sizeof where, "%.600s:%u", path, lines.number);
        ct_status status = CT_CATCH(&error, read_line(where, line, &run->site, &next));
        if (status == CT_IO && lines.rest == NULL) return CT_OK;
        if (status != CT_OK) return ct_fail_again(&error);
    }
    return CT_OK;
}

void ct_record_free_site(ct_record_site *site) {
    for (int k = 0; k < site->n_neighbours; k++) {
        ct_free(site->neighbours[k].name);
        ct_free(site->neighbours[k].phase);
        ct_free(site->neighbours[k].note);
    }
    for (int k = 0; k < site->n_sent; k++) {
        ct_free(site->sent[k].to);
        ct_free(site->sent[k].kind);
    }
    ct_free(site->neighbours);
    ct_free(site->sent);
    ct_free(site->federation);
    ct_free(site->phase);
    ct_free(site->name);
    *site = (ct_record_site){0};
}
