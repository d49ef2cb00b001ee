/* What sites know about each other: every one tells its neighbours, with its heartbeats, what it
 * knows of all sites; of each, the newest counts. So everyone learns who is there, without a word
 * from anyone but its neighbours.
 *   {"sites": [{"site": 2, "version": 7, "phase": 1, "iteration": 40, "links": [0, 3]}, ...]} */
#include "site/site_internal.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "util/json.h"
#include "util/memory.h"

#define SAFE_VERSION 9007199254740992.0    /* 2^53: numbers of JSON are doubles */
#define FUTURE_MS    UINT64_C(31557600000) /* a year */

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Later than any version that this site has told before, even in another life. */
static uint64_t new_version(const ct_site_record *record) {
    uint64_t ms = now_ms();
    return ms > record->version ? ms : record->version + 1;
}

/* Our links are those neighbours that are there, in their order. */
static bool are_same_links(const ct_site *site, const ct_site_record *own) {
    int n = 0;
    for (int k = 0; k < site->n; k++) {
        if (!site->neighbours[k].is_up) continue;
        if (n >= own->n_links || own->links[n] != site->neighbours[k].agent) return false;
        n++;
    }
    return n == own->n_links;
}

static ct_status renew_own(ct_site *site, bool *has_changed) {
    ct_site_record *own = &site->records[site->options.me];
    own->iteration = site->iteration;
    *has_changed = own->version == 0 || own->phase != site->phase || !are_same_links(site, own);
    if (!*has_changed) return CT_OK;
    if (own->links == NULL) CT_TRY(ct_make(&own->links, (size_t)site->n, "the links of a site"));
    own->n_links = 0;
    for (int k = 0; k < site->n; k++)
        if (site->neighbours[k].is_up) own->links[own->n_links++] = site->neighbours[k].agent;
    own->phase = site->phase;
    own->version = new_version(own);
    return CT_OK;
}

static ct_status print_states(const ct_site *site, ct_text *out) {
    ct_text_add(out, "{\"sites\": [");
    for (int i = 0, n = 0; i < site->federation->n_sites; i++) {
        const ct_site_record *r = &site->records[i];
        if (r->version == 0) continue;
        ct_text_add(out,
                    "%s\n{\"site\": %d, \"version\": %" PRIu64
                    ", \"phase\": %d, \"iteration\": %ld, \"links\": [",
                    n++ > 0 ? "," : "", i, r->version, (int)r->phase, r->iteration);
        for (int e = 0; e < r->n_links; e++)
            ct_text_add(out, "%s%d", e > 0 ? "," : "", r->links[e]);
        ct_text_add(out, "]}");
    }
    ct_text_add(out, "]}");
    return ct_text_status(out);
}

/* ---- what a neighbour tells ---- */

static bool whole(const ct_json *object, const char *key, double highest, double *out) {
    const ct_json *value = ct_json_get(object, key);
    if (value == NULL || value->kind != CT_JSON_NUMBER) return false;
    *out = value->number;
    return *out >= 0 && *out <= highest && *out == (double)(uint64_t)*out;
}

static ct_status take_links(const ct_site *site, const ct_json *list, ct_site_record *out) {
    int n_sites = site->federation->n_sites;
    if (list == NULL || list->kind != CT_JSON_ARRAY || list->n_children > (size_t)n_sites)
        return ct_fail(CT_IO, "no links");
    CT_TRY(ct_make(&out->links, list->n_children, "the links of a site"));
    for (const ct_json *at = list->child; at != NULL; at = at->next) {
        bool fits = at->kind == CT_JSON_NUMBER && at->number >= 0 && at->number < n_sites;
        if (!fits) return ct_fail(CT_IO, "no link");
        out->links[out->n_links++] = (int)at->number;
    }
    return CT_OK;
}

/* One site's, if it is newer than what is known. Of ourselves, nobody knows better. */
static ct_status take_state(ct_site *site, const ct_json *state, bool *has_changed) {
    double i, version, phase, iteration;
    if (state->kind != CT_JSON_OBJECT || !whole(state, "site", site->federation->n_sites - 1, &i) ||
        !whole(state, "version", SAFE_VERSION, &version) ||
        !whole(state, "phase", CT_SITE_FINISHED, &phase) ||
        !whole(state, "iteration", SAFE_VERSION, &iteration))
        return ct_fail(CT_IO, "no state");
    ct_site_record *known = &site->records[(int)i];
    ct_site_record heard = {.version = (uint64_t)version,
                            .phase = (ct_phase_of_site)phase,
                            .iteration = (long)iteration};
    if (heard.version > now_ms() + FUTURE_MS) return CT_OK; /* no clock is that far ahead */
    if ((int)i == site->options.me) {
        /* of a life before, by a clock that was ahead */
        if (heard.version > known->version) known->version = heard.version + 1;
        return CT_OK;
    }
    if (heard.version < known->version) return CT_OK;
    if (heard.version == known->version) {
        if (heard.iteration > known->iteration) known->iteration = heard.iteration;
        return CT_OK;
    }
    ct_status status = take_links(site, ct_json_get(state, "links"), &heard);
    if (status != CT_OK) {
        ct_free(heard.links);
        return status;
    }
    ct_free(known->links);
    *known = heard;
    *has_changed = true;
    return CT_OK;
}

static ct_status take_states(ct_site *site, const char *text, size_t n, bool *has_changed) {
    CT_SCOPED_HANDLE(ct_json) json = NULL;
    CT_TRY(ct_json_parse(text, n, "what a site tells", &json));
    const ct_json *list = ct_json_get(json, "sites");
    if (list == NULL || list->kind != CT_JSON_ARRAY) return ct_fail(CT_IO, "no states");
    for (const ct_json *at = list->child; at != NULL; at = at->next)
        CT_TRY(take_state(site, at, has_changed));
    return CT_OK;
}

static ct_status read_state(ct_site *site, int k, bool *has_changed) {
    CT_SCOPED_BLOCK(char) text = NULL;
    ct_error error;
    size_t n = 0;
    CT_TRY(ct_make(&text, CT_MESH_STATUS + 1, "what a site tells"));
    ct_mesh_status_of(site->mesh, k, text, &n);
    if (n == 0) return CT_OK;
    ct_status status = CT_CATCH(&error, take_states(site, text, n, has_changed));
    if (status == CT_NOMEM) return ct_fail_again(&error);
    if (status != CT_OK) ct_site_cut(site, k, "told a state that is none");
    return CT_OK;
}

static ct_status read_states(ct_site *site, bool *has_changed) {
    for (int k = 0; k < site->n; k++) {
        uint64_t number = ct_mesh_status_number(site->mesh, k);
        if (number == site->neighbours[k].state_number) continue;
        site->neighbours[k].state_number = number;
        CT_TRY(read_state(site, k, has_changed));
    }
    return CT_OK;
}

/* At once when anything but an iteration's number has changed; otherwise once a heartbeat. */
ct_status ct_site_tell_states(ct_site *site) {
    CT_SCOPED(ct_text) text = {0};
    bool has_changed = false, is_own_new = false;
    CT_TRY(read_states(site, &has_changed));
    CT_TRY(renew_own(site, &is_own_new));
    double now = ct_seconds();
    bool is_due = now - site->status_s >= site->federation->heartbeat_s;
    if (!has_changed && !is_own_new && !is_due) return CT_OK;
    if (is_due && site->options.tell != NULL) site->options.tell(site->options.context, site);
    if (is_due) site->status_s = now;
    CT_TRY(print_states(site, &text));
    return ct_mesh_set_status(site->mesh, text.chars, text.n);
}
