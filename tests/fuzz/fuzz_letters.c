/* What a neighbour sends to a site from its beginning to its end: letters one after the other, each
 * with kind (two bytes, lowest first; 65535: its state instead), tag (2), iteration (8) and length (2)
 * before its bytes. The mesh is one of this file: it hands them out and remembers whom it is told to
 * cut off. */
#include "ct_config.h"

#include "site/site.h"
#include "util/log.h"
#include "util/memory.h"

#include "fuzz.h"

#if CT_WITH_ZMQ
enum { HEAD = 14, STATE = 65535, N_NUMBERS = 4, N_EXCHANGES = 3, N_ITERATIONS = 3, MOST_WAITS = 5 };

/* ---- a mesh whose only peer is the input ---- */

struct ct_mesh {
    bool is_up, was_told_up, was_told_down, was_refused;
    uint8_t *letter; /* the one that is there, alone in its block; NULL: none */
    ct_letter head;
    uint8_t state[CT_MESH_STATUS];
    size_t n_state;
    uint64_t n_states;
    int n_waits;
};

static struct {
    const uint8_t *bytes;
    size_t n, at;
} input;
static ct_mesh mesh;

static uint64_t little(const uint8_t *at, int n) {
    uint64_t value = 0;
    for (int k = 0; k < n; k++) value |= (uint64_t)at[k] << (8 * k);
    return value;
}

static bool is_over(void) {
    return input.n - input.at < HEAD;
}

/* The next letter or state, cut where the input ends. */
static void arrive(void) {
    const uint8_t *h = input.bytes + input.at;
    if (is_over() || mesh.letter != NULL) return;
    size_t n = (size_t)little(h + 12, 2), rest = input.n - input.at - HEAD;
    if (n > rest) n = rest;
    input.at += HEAD + n;
    if (little(h, 2) == STATE) {
        memcpy(mesh.state, h + HEAD, n);
        mesh.n_state = n;
        mesh.n_states++;
        return;
    }
    mesh.letter = malloc(n > 0 ? n : 1);
    if (mesh.letter == NULL) return;
    memcpy(mesh.letter, h + HEAD, n);
    mesh.head = (ct_letter){.kind = (uint16_t)little(h, 2),
                            .tag = (uint16_t)little(h + 2, 2),
                            .iteration = little(h + 4, 8),
                            .bytes = mesh.letter,
                            .n = n};
}

ct_status ct_mesh_open(const ct_mesh_options *options, ct_mesh **out) {
    (void)options;
    mesh = (ct_mesh){.is_up = true};
    *out = &mesh;
    return CT_OK;
}

void ct_mesh_close(ct_mesh **m) {
    free(mesh.letter);
    mesh.letter = NULL;
    *m = NULL;
}

ct_status ct_mesh_send(ct_mesh *m, int peer, const ct_letter *letter) {
    (void)peer;
    if (letter->n > 0 && letter->bytes == NULL) abort();
    return m->is_up ? CT_OK : ct_fail(CT_IO, "it is gone");
}

bool ct_mesh_peek(ct_mesh *m, int peer, ct_letter *out) {
    (void)peer;
    if (m->letter == NULL) return false;
    *out = m->head;
    return true;
}

void ct_mesh_drop(ct_mesh *m, int peer) {
    (void)peer;
    free(m->letter);
    m->letter = NULL;
}

void ct_mesh_refuse(ct_mesh *m, int peer, const char *reason) {
    (void)peer;
    if (reason[0] == '\0') abort();
    m->was_refused = true;
}

bool ct_mesh_next_event(ct_mesh *m, ct_mesh_event *out) {
    *out = (ct_mesh_event){.kind = CT_MESH_UP};
    if (!m->was_told_up) return m->was_told_up = true;
    *out = (ct_mesh_event){.kind = CT_MESH_DOWN, .text = "connection lost"};
    if (m->is_up || m->was_told_down) return false;
    ct_mesh_drop(m, 0);
    return m->was_told_down = true;
}

/* Who was cut off, or has nothing more to say, is gone. */
void ct_mesh_wait(ct_mesh *m, double seconds) {
    (void)seconds;
    /* who waits behind a letter that nobody takes has waited for long enough */
    m->n_waits = m->letter != NULL ? m->n_waits + 1 : 0;
    if (m->was_refused || m->n_waits > MOST_WAITS) input.at = input.n;
    if (is_over()) m->is_up = false;
    if (m->is_up) arrive();
}

ct_status ct_mesh_set_status(ct_mesh *m, const void *bytes, size_t n) {
    (void)m;
    if (n > CT_MESH_STATUS || bytes == NULL) abort();
    return CT_OK;
}

void ct_mesh_status_of(ct_mesh *m, int peer, void *bytes, size_t *n) {
    (void)peer;
    memcpy(bytes, m->state, m->n_state);
    *n = m->n_state;
}

uint64_t ct_mesh_status_number(ct_mesh *m, int peer) {
    (void)peer;
    return m->n_states;
}

void ct_mesh_limit(ct_mesh *m, size_t bytes) {
    (void)m, (void)bytes;
}

ct_mesh_traffic ct_mesh_traffic_of(ct_mesh *m, int peer) {
    (void)m, (void)peer;
    return (ct_mesh_traffic){0};
}

/* ---- a site's life ---- */

static int signal_seen(void) {
    return is_over() && mesh.letter == NULL;
}

static ct_status merge(void *context, const char *theirs, size_t n, ct_text *mine) {
    (void)context;
    if (memchr(theirs, '\0', n) != NULL) abort();
    return n < 100 ? ct_text_status(mine) : ct_fail(CT_INVAL, "they say too much");
}

static ct_status read_model(void *context, float *row) {
    (void)context;
    for (int k = 0; k < N_NUMBERS; k++) row[k] = (float)k;
    return CT_OK;
}

/* Packed: a number that is added to every value, and how often. */
static bool unpack(const void *context, const void *packed, float *values) {
    float by;
    uint32_t n;
    memcpy(&by, packed, sizeof by);
    memcpy(&n, (const char *)packed + sizeof by, sizeof n);
    if (context == NULL || n > 100) return false;
    for (int k = 0; k < N_NUMBERS; k++) values[k] += by * (float)n;
    return true;
}

/* Of the first exchange of an iteration changes, of the second packed rows, of the third plain ones. */
static ct_status exchange(ct_site *site, int e) {
    float values[N_NUMBERS] = {1};
    bool is_changes = e == 0, is_packed = e < 2, is_sent, has_arrived;
    bool is_first = is_changes && !ct_site_takes_changes(site, 1);
    size_t n_packed = 2 * sizeof(float), n_whole = sizeof values;
    ct_site_parcel parcel = {"rows", values, is_packed && !is_first ? n_packed : n_whole, is_first};
    ct_site_row row = {.values = values,
                       .n = N_NUMBERS,
                       .n_packed = is_packed ? n_packed : 0,
                       .are_changes = is_changes,
                       .unpack = unpack,
                       .context = site};
    CT_TRY(ct_site_send(site, 1, e, &parcel, &is_sent));
    CT_TRY(ct_site_receive(site, 1, e, &row, &has_arrived));
    for (int i = 0; i < N_NUMBERS && has_arrived; i++)
        if (!(values[i] - values[i] == 0)) abort(); /* not finite */
    return CT_OK;
}

static ct_status iterate(ct_site *site, long first) {
    for (long k = first; k < N_ITERATIONS; k++) {
        bool has_changed;
        CT_TRY(ct_site_begin(site, k, &has_changed));
        for (int e = 0; e < N_EXCHANGES; e++) CT_TRY(exchange(site, e));
    }
    return CT_OK;
}

static ct_status live(ct_site *site, bool is_new) {
    CT_SCOPED(ct_text) text = {0}, status = {0};
    float mean[N_NUMBERS] = {0};
    ct_fixed sums[N_NUMBERS] = {0};
    long first = 0;
    int n_mean = 0, n_sites = 0;
    ct_site_training training = {.n_parameters = N_NUMBERS,
                                 .n_mean = N_NUMBERS,
                                 .n_largest_row = N_NUMBERS,
                                 .n_iterations = N_ITERATIONS,
                                 .model = read_model};
    ct_text_add(&text, "mine");
    CT_TRY(ct_site_agree(site, merge, NULL, &text));
    CT_TRY(ct_site_enter(site, &training, is_new, &first, is_new ? NULL : mean, &n_mean));
    if (first < 0 || first > N_ITERATIONS || n_mean > 1) abort();
    CT_TRY(iterate(site, first));
    read_model(NULL, mean);
    CT_TRY(ct_fixed_add(mean, N_NUMBERS, sums));
    CT_TRY(ct_site_mean(site, sums, mean, &n_sites));
    if (n_sites < 1 || n_sites > 2) abort();
    ct_site_linger(site);
    ct_site_print_status(site, &status);
    ct_site_print_sent(site, &status);
    return ct_text_status(&status);
}

static const ct_federation *two_sites(ct_key_pair *key) {
    static ct_federation f;
    static const char text[] =
        "federation two\n"
        "site north 0000000000000000000000000000000000000000000000000000000000000001 a:1\n"
        "site south 0000000000000000000000000000000000000000000000000000000000000002\n"
        "edge north south\nheartbeat 0.05\n";
    if (f.n_sites == 0 &&
        ct_federation_read(fuzz_file("two.conf", (const uint8_t *)text, sizeof text - 1), &f) !=
            CT_OK)
        abort();
    memcpy(key->public_key, f.sites[0].key, CT_KEY_BYTES);
    return &f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    CT_SCOPED_BY(ct_site_close, ct_site *) site = NULL;
    ct_key_pair key = {0};
    ct_site_options options = {
        .key = &key, .program = "crosstalk", .timeout_s = 1e9, .signal = signal_seen};
    if (n < 1) return 0;
    options.federation = two_sites(&key);
    input.bytes = data;
    input.n = n;
    input.at = 1;
    if (ct_site_open(&options, &site) != CT_OK) abort();
    ct_error error;
    ct_status status = CT_CATCH(&error, live(site, (data[0] & 1) != 0));
    if (status != CT_OK && status != CT_STOPPED && status != CT_INVAL) abort();
    if (status == CT_OK && !mesh.was_refused) fuzz_n_accepted++;
    return 0;
}
#else
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (data != NULL && n > 0) fuzz_n_accepted++; /* without a mesh there are no letters */
    return 0;
}
#endif
