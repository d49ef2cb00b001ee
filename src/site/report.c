/* What a site tells its own people. */
#include "site/site_internal.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "util/json.h"
#include "util/memory.h"

static const char *phase_name(ct_phase_of_site phase) {
    static const char *const names[] = {"entering", "training", "ended", "finished"};
    return names[phase];
}

static void add_traffic(const ct_mesh_traffic *t, ct_text *out) {
    ct_text_add(out,
                ", \"letters_sent\": %" PRIu64 ", \"letters_received\": %" PRIu64
                ", \"bytes_sent\": %" PRIu64 ", \"bytes_received\": %" PRIu64,
                t->letters_sent, t->letters_received, t->bytes_sent, t->bytes_received);
    ct_text_add(out, ", \"framed_sent\": %" PRIu64 ", \"framed_received\": %" PRIu64,
                t->framed_sent, t->framed_received);
    ct_text_add(out, ", \"rtt_ms\": %.3f", 1e3 * t->rtt_s);
}

static void add_neighbour(ct_site *site, int k, ct_text *out) {
    const ct_neighbour *neighbour = &site->neighbours[k];
    const ct_site_record *record = &site->records[neighbour->agent];
    ct_mesh_traffic traffic = ct_mesh_traffic_of(site->mesh, k);
    ct_text_add(out, "%s\n{\"name\": ", k > 0 ? "," : "");
    ct_json_add_string(out, ct_site_name(site, k));
    ct_text_add(out, ", \"is_connected\": %s, \"is_in_training\": %s, \"phase\": \"%s\"",
                neighbour->is_up ? "true" : "false", neighbour->is_with ? "true" : "false",
                neighbour->is_up ? phase_name(record->phase) : "gone");
    ct_text_add(out, ", \"iteration\": %ld, \"for_s\": %.1f, \"losses\": %ld", record->iteration,
                ct_seconds() - neighbour->since, neighbour->n_losses);
    add_traffic(&traffic, out);
    ct_text_add(out, ", \"note\": ");
    ct_json_add_string(out, neighbour->note);
    ct_text_add(out, "}");
}

void ct_site_print_status(ct_site *site, ct_text *out) {
    const ct_federation *f = site->federation;
    char fingerprint[CT_FINGERPRINT];
    ct_federation_fingerprint(f, fingerprint);
    ct_text_add(out,
                "{\"federation\": \"%s\", \"file\": \"%s\", \"site\": \"%s\", \"phase\": \"%s\"",
                f->name, fingerprint, f->sites[site->options.me].name,
                phase_name(site->result.n > 0 ? CT_SITE_FINISHED : site->phase));
    ct_text_add(out, ", \"iteration\": %ld, \"n_iterations\": %ld, \"time\": %lld", site->iteration,
                site->training.n_iterations, (long long)time(NULL));
    ct_text_add(out, ", \"heartbeat_s\": %g, \"refused_strangers\": %" PRIu64, f->heartbeat_s,
                site->n_strangers);
    ct_text_add(out, ", \"neighbours\": [");
    for (int k = 0; k < site->n; k++) add_neighbour(site, k, out);
    ct_text_add(out, "]}\n");
}

void ct_site_print_sent(ct_site *site, ct_text *out) {
    for (int k = 0; k < site->n; k++) {
        for (int s = 0; s < CT_MAX_SENT; s++) {
            ct_sent_tally *sent = &site->neighbours[k].sent[s];
            if (sent->letters == 0) continue;
            ct_text_add(out,
                        "{\"time\": %lld, \"iteration\": %ld, \"to\": \"%s\", \"kind\": \"%s\"",
                        (long long)time(NULL), site->iteration, ct_site_name(site, k), sent->what);
            ct_text_add(out, ", \"letters\": %" PRIu64 ", \"bytes\": %" PRIu64 "}\n", sent->letters,
                        sent->bytes);
            *sent = (ct_sent_tally){0};
        }
    }
}
