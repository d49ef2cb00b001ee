/* Frames. Each is one message of libzmq, encrypted by it: a header of 64 bytes, lowest byte first,
 * and at most CT_WIRE_PIECE bytes behind it.
 *
 *    0  u32  "CTM1"
 *    4  u16  protocol
 *    6  u8   type                 GREETING  REFUSAL  HEARTBEAT       PIECE         GOODBYE
 *    7  u8   flags                0         0        1: with status  0             0
 *    8  u16  kind                 0         0        0               letter's      0
 *   10  u16  tag                  0         0        0               letter's      0
 *   12  u32  bytes that follow    greeting  reason   status          piece         0
 *   16  u64  sequence number      from 0 on, one more each, in each direction
 *   24  u64  frames received so far
 *   32  u64  letters that the caller has taken so far
 *   40  u64  iteration            0         0        own clock, us   letter's      0
 *   48  u64  total length         0         0        your clock      letter's      0
 *   56  u64  offset               0         0        heard us ago    of the piece  0
 *
 * The first eight bytes stay what they are in every later protocol, so that two sites can tell each
 * other which one they speak. A greeting is: session u64, federation [32], longest letter u64, name
 * [64], program [128], both texts padded with zeros.
 *
 * Flow: letters that were sent and not taken yet are at most CT_WIRE_LETTERS, and twice the
 * receiver's longest letter in bytes; a sender waits, and one that does not breaks a rule. */
#include "site/mesh_wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void put(uint8_t *at, uint64_t value, int n) {
    for (int k = 0; k < n; k++) at[k] = (uint8_t)(value >> (8 * k));
}

static uint64_t get(const uint8_t *at, int n) {
    uint64_t value = 0;
    for (int k = 0; k < n; k++) value |= (uint64_t)at[k] << (8 * k);
    return value;
}

void ct_wire_write(const ct_frame *f, uint8_t header[CT_WIRE_HEADER]) {
    put(header, CT_WIRE_MAGIC, 4);
    put(header + 4, CT_WIRE_PROTOCOL, 2);
    header[6] = f->type;
    header[7] = f->flags;
    put(header + 8, f->kind, 2);
    put(header + 10, f->tag, 2);
    put(header + 12, f->n, 4);
    put(header + 16, f->sequence, 8);
    put(header + 24, f->n_seen, 8);
    put(header + 32, f->n_taken, 8);
    put(header + 40, f->iteration, 8);
    put(header + 48, f->total, 8);
    put(header + 56, f->offset, 8);
}

/* ---- greetings and reasons ---- */

enum { AT_FEDERATION = 8, AT_LONGEST = 40, AT_NAME = 48, AT_PROGRAM = AT_NAME + CT_MESH_NAME };

void ct_wire_write_greeting(const ct_greeting *g, uint8_t bytes[CT_WIRE_GREETING_BYTES]) {
    put(bytes, g->session, 8);
    memcpy(bytes + AT_FEDERATION, g->federation, sizeof g->federation);
    put(bytes + AT_LONGEST, g->max_letter_bytes, 8);
    memcpy(bytes + AT_NAME, g->name, sizeof g->name);
    memcpy(bytes + AT_PROGRAM, g->program, sizeof g->program);
}

void ct_wire_read_greeting(const ct_frame *f, ct_greeting *out) {
    out->session = get(f->bytes, 8);
    memcpy(out->federation, f->bytes + AT_FEDERATION, sizeof out->federation);
    out->max_letter_bytes = get(f->bytes + AT_LONGEST, 8);
    memcpy(out->name, f->bytes + AT_NAME, sizeof out->name);
    memcpy(out->program, f->bytes + AT_PROGRAM, sizeof out->program);
}

void ct_wire_read_reason(const ct_frame *f, char out[CT_WIRE_REASON + 1]) {
    memcpy(out, f->bytes, f->n);
    out[f->n] = '\0';
}

/* A text of printable ASCII that ends within its room, with nothing but zeros behind it. */
static bool is_text(const uint8_t *text, size_t room) {
    size_t n = 0;
    while (n < room && text[n] >= ' ' && text[n] < 127) n++;
    for (size_t k = n; k < room; k++)
        if (text[k] != 0) return false;
    return n > 0;
}

static ct_status check_greeting(const ct_frame *f) {
    if (f->n != CT_WIRE_GREETING_BYTES)
        return ct_fail(CT_IO, "a greeting of %zu bytes instead of %d", f->n,
                       CT_WIRE_GREETING_BYTES);
    const uint8_t *name = f->bytes + AT_NAME, *program = f->bytes + AT_PROGRAM;
    if (!is_text(name, CT_MESH_NAME) || name[CT_MESH_NAME - 1] != 0 ||
        !is_text(program, CT_WIRE_PROGRAM) || program[CT_WIRE_PROGRAM - 1] != 0)
        return ct_fail(CT_IO, "a greeting whose name or program is no text");
    if (get(f->bytes + AT_LONGEST, 8) == 0)
        return ct_fail(CT_IO, "a greeting that allows no letters");
    return CT_OK;
}

static ct_status differs(const ct_greeting *ours, const ct_greeting *theirs, const char *name) {
    char hex[2][9];
    for (int k = 0; k < 4; k++) {
        snprintf(hex[0] + 2 * k, 3, "%02x", theirs->federation[k]);
        snprintf(hex[1] + 2 * k, 3, "%02x", ours->federation[k]);
    }
    return ct_fail(CT_DIFFERS, "%s holds another federation file (%s.., ours is %s..)", name,
                   hex[0], hex[1]);
}

ct_status ct_greeting_check(const ct_greeting *ours, const ct_greeting *theirs, const char *name) {
    if (strcmp(theirs->name, name) != 0)
        return ct_fail(CT_INVAL, "a site that calls itself %s has the key of %s", theirs->name,
                       name);
    if (memcmp(ours->federation, theirs->federation, sizeof ours->federation) != 0)
        return differs(ours, theirs, name);
    if (strcmp(ours->program, theirs->program) != 0)
        return ct_fail(CT_DIFFERS, "%s runs %s, we run %s", name, theirs->program, ours->program);
    return CT_OK;
}

/* ---- a frame by itself ---- */

static const char *const type_names[] = {
    [CT_WIRE_GREETING] = "greeting",   [CT_WIRE_REFUSAL] = "refusal",
    [CT_WIRE_HEARTBEAT] = "heartbeat", [CT_WIRE_PIECE_OF] = "piece",
    [CT_WIRE_GOODBYE] = "goodbye",
};

static ct_status check_piece(const ct_frame *f) {
    if (f->offset > f->total)
        return ct_fail(CT_IO, "a piece at %" PRIu64 " of a letter of %" PRIu64 " bytes", f->offset,
                       f->total);
    uint64_t rest = f->total - f->offset;
    if (f->n != (rest < CT_WIRE_PIECE ? rest : CT_WIRE_PIECE) || (rest == 0 && f->total > 0))
        return ct_fail(CT_IO,
                       "a piece of %zu bytes at %" PRIu64 " of a letter of %" PRIu64 " bytes", f->n,
                       f->offset, f->total);
    return CT_OK;
}

static ct_status check_fields(const ct_frame *f) {
    const char *type = type_names[f->type];
    bool is_piece = f->type == CT_WIRE_PIECE_OF, is_beat = f->type == CT_WIRE_HEARTBEAT;
    if ((!is_piece && (f->kind != 0 || f->tag != 0)) ||
        (!is_piece && !is_beat && (f->iteration != 0 || f->total != 0 || f->offset != 0)))
        return ct_fail(CT_IO, "a %s with fields of a letter", type);
    if (f->flags != 0 && !(is_beat && f->flags == CT_WIRE_HAS_STATUS))
        return ct_fail(CT_IO, "a %s with unknown flags %d", type, f->flags);
    if (is_beat && (f->n > CT_MESH_STATUS || (f->flags == 0 && f->n > 0)))
        return ct_fail(CT_IO, "a heartbeat with %zu bytes behind it", f->n);
    if (f->type == CT_WIRE_GOODBYE && f->n > 0)
        return ct_fail(CT_IO, "a goodbye with %zu bytes behind it", f->n);
    if (f->type == CT_WIRE_REFUSAL && (f->n > CT_WIRE_REASON || !is_text(f->bytes, f->n)))
        return ct_fail(CT_IO, "a refusal whose reason is no text");
    return CT_OK;
}

ct_status ct_wire_parse(const void *bytes, size_t n, ct_frame *out) {
    const uint8_t *h = bytes;
    if (n < 8 || get(h, 4) != CT_WIRE_MAGIC)
        return ct_fail(CT_IO, "%zu bytes that are no frame", n);
    if (get(h + 4, 2) != CT_WIRE_PROTOCOL)
        return ct_fail(CT_DIFFERS, "protocol %d, ours is %d", (int)get(h + 4, 2), CT_WIRE_PROTOCOL);
    if (n < CT_WIRE_HEADER || n - CT_WIRE_HEADER != get(h + 12, 4) ||
        n - CT_WIRE_HEADER > CT_WIRE_PIECE)
        return ct_fail(CT_IO, "a frame of %zu bytes whose length is wrong", n);
    ct_frame f = {.type = h[6],
                  .flags = h[7],
                  .kind = (uint16_t)get(h + 8, 2),
                  .tag = (uint16_t)get(h + 10, 2),
                  .sequence = get(h + 16, 8),
                  .n_seen = get(h + 24, 8),
                  .n_taken = get(h + 32, 8),
                  .iteration = get(h + 40, 8),
                  .total = get(h + 48, 8),
                  .offset = get(h + 56, 8),
                  .bytes = h + CT_WIRE_HEADER,
                  .n = n - CT_WIRE_HEADER};
    if (f.type < CT_WIRE_GREETING || f.type > CT_WIRE_GOODBYE)
        return ct_fail(CT_IO, "a frame of unknown type %d", f.type);
    CT_TRY(check_fields(&f));
    if (f.type == CT_WIRE_PIECE_OF) CT_TRY(check_piece(&f));
    if (f.type == CT_WIRE_GREETING) CT_TRY(check_greeting(&f));
    *out = f;
    return CT_OK;
}

/* ---- frames in a row ---- */

static ct_status begin_letter(ct_wire_session *s, const ct_frame *f) {
    if (f->offset != 0)
        return ct_fail(CT_IO, "a piece at %" PRIu64 " of a letter that has not begun", f->offset);
    if (f->total > s->max_letter_bytes)
        return ct_fail(CT_IO, "a letter of %" PRIu64 " bytes; at most %zu are taken", f->total,
                       s->max_letter_bytes);
    if (s->n_waiting >= CT_WIRE_LETTERS || s->n_bytes + f->total > 2 * s->max_letter_bytes)
        return ct_fail(CT_IO, "a letter of %" PRIu64 " bytes while %zu with %zu bytes are waiting",
                       f->total, s->n_waiting, s->n_bytes);
    s->is_in_letter = true;
    s->kind = f->kind;
    s->tag = f->tag;
    s->iteration = f->iteration;
    s->total = f->total;
    s->n_got = 0;
    return CT_OK;
}

static ct_status accept_piece(ct_wire_session *s, const ct_frame *f) {
    if (!s->is_in_letter) CT_TRY(begin_letter(s, f));
    if (f->kind != s->kind || f->tag != s->tag || f->iteration != s->iteration ||
        f->total != s->total || f->offset != s->n_got)
        return ct_fail(CT_IO,
                       "a piece at %" PRIu64 " of another letter, where one at %" PRIu64 " was due",
                       f->offset, s->n_got);
    s->n_got += f->n;
    if (s->n_got < s->total) return CT_OK;
    s->is_in_letter = false;
    s->n_waiting++;
    s->n_bytes += (size_t)s->total;
    return CT_OK;
}

ct_status ct_wire_accept(ct_wire_session *s, const ct_frame *f) {
    if (f->sequence != s->n_received)
        return ct_fail(CT_IO, "frame %" PRIu64 " where %" PRIu64 " was due: %s", f->sequence,
                       s->n_received,
                       f->sequence < s->n_received ? "it is replayed" : "some are lost");
    if (!s->is_greeted && f->type != CT_WIRE_GREETING && f->type != CT_WIRE_REFUSAL)
        return ct_fail(CT_IO, "a %s before a greeting", type_names[f->type]);
    if (s->is_greeted && f->type == CT_WIRE_GREETING) return ct_fail(CT_IO, "a second greeting");
    if (f->n_seen < s->n_seen || f->n_seen > s->n_sent || f->n_taken < s->n_taken ||
        f->n_taken > s->n_begun)
        return ct_fail(CT_IO, "a %s that has seen what was not sent", type_names[f->type]);
    if (f->type == CT_WIRE_PIECE_OF) CT_TRY(accept_piece(s, f));
    s->is_greeted = s->is_greeted || f->type == CT_WIRE_GREETING;
    s->n_received++;
    s->n_seen = f->n_seen;
    s->n_taken = f->n_taken;
    return CT_OK;
}
