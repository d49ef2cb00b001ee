/* Frames of one connection between two sites, one after the other: each begins with its length (two
 * bytes, lowest first). 65535 stands for a header whose whole piece, the same bytes always, is left
 * out. What gets through must fit what was promised. */
#include "site/mesh_wire.h"
#include "util/memory.h"

#include "fuzz.h"

enum { LONGEST = 200000, MOST_FRAMES = 400, WHOLE_PIECE = 65535 };

/* What the parser let through is used as the mesh uses it. */
static void use(const ct_frame *f, uint8_t *letter) {
    ct_greeting theirs, ours = {.name = "north", .program = "crosstalk 1", .max_letter_bytes = 1};
    char reason[CT_WIRE_REASON + 1];
    static uint8_t status[CT_MESH_STATUS];
    switch ((ct_wire_type)f->type) {
    case CT_WIRE_GREETING:
        ct_wire_read_greeting(f, &theirs);
        ct_greeting_check(&ours, &theirs, "south");
        break;
    case CT_WIRE_REFUSAL: ct_wire_read_reason(f, reason); break;
    case CT_WIRE_HEARTBEAT: memcpy(status, f->bytes, f->n); break;
    case CT_WIRE_PIECE_OF: memcpy(letter + f->offset, f->bytes, f->n); break;
    case CT_WIRE_GOODBYE: break;
    }
}

/* The next frame, alone in its block, so that a sanitizer sees every byte that is read behind it. */
static uint8_t *next(const uint8_t *data, size_t n, size_t *at, size_t *length) {
    if (n - *at < 2) return NULL;
    size_t given = data[*at] | (size_t)data[*at + 1] << 8;
    bool is_whole = given == WHOLE_PIECE;
    if (is_whole) given = CT_WIRE_HEADER;
    if (given > n - *at - 2) return NULL;
    *length = given + (is_whole ? CT_WIRE_PIECE : 0);
    uint8_t *frame = ct_alloc(1, *length);
    if (frame != NULL) memcpy(frame, data + *at + 2, given);
    *at += 2 + given;
    return frame;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static uint8_t letter[LONGEST];
    ct_wire_session session = {.max_letter_bytes = LONGEST, .n_sent = 10, .n_begun = 5};
    size_t at = 0, length;
    int n_frames = 0;
    ct_status status = CT_OK;
    for (uint8_t *frame;
         status == CT_OK && n_frames < MOST_FRAMES && (frame = next(data, n, &at, &length)) != NULL;
         n_frames++) {
        ct_frame f;
        status = ct_wire_parse(frame, length, &f);
        if (status == CT_OK) status = ct_wire_accept(&session, &f);
        if (status == CT_OK) use(&f, letter);
        ct_free(frame);
        if (session.n_waiting > CT_WIRE_LETTERS || session.n_bytes > 2 * LONGEST) abort();
    }
    if (status == CT_OK && n_frames > 0 && at == n) fuzz_n_accepted++;
    return 0;
}

static void put(uint8_t *at, uint64_t value, int n) {
    for (int k = 0; k < n; k++) at[k] = (uint8_t)(value >> (8 * k));
}

/* Numbers in a row and lengths that are true: what is mutated gets past them. */
void fuzz_repair(uint8_t *data, size_t n) {
    uint64_t number = 0;
    for (size_t at = 0; n - at >= 2; number++) {
        size_t length = data[at] | (size_t)data[at + 1] << 8;
        uint64_t rest = length == WHOLE_PIECE ? CT_WIRE_PIECE : length - CT_WIRE_HEADER;
        if (length == WHOLE_PIECE) length = CT_WIRE_HEADER;
        at += 2;
        if (length > n - at) return;
        if (length >= CT_WIRE_HEADER) {
            put(data + at + 12, rest, 4);
            put(data + at + 16, number, 8);
        }
        at += length;
    }
}
