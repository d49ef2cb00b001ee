/* What travels between two sites, as bytes: frames, and the rules that a sequence of them must keep.
 * No sockets here: what a peer sends is input like any other, and this is where it is checked. */
#ifndef CT_SITE_MESH_WIRE_H
#define CT_SITE_MESH_WIRE_H

#include "site/mesh.h"

#define CT_WIRE_MAGIC    UINT32_C(0x314d5443) /* "CTM1" */
#define CT_WIRE_PROTOCOL 1
#define CT_WIRE_HEADER   64
#define CT_WIRE_PIECE                                                                              \
    ((size_t)64 << 10)      /* most bytes behind a header; every piece but a letter's last */
#define CT_WIRE_LETTERS 128 /* letters that may wait for the other side's caller */
#define CT_WIRE_REASON  200 /* most bytes of a refusal's text */
#define CT_WIRE_PROGRAM 128

typedef enum ct_wire_type {
    CT_WIRE_GREETING = 1,
    CT_WIRE_REFUSAL,
    CT_WIRE_HEARTBEAT,
    CT_WIRE_PIECE_OF,
    CT_WIRE_GOODBYE,
} ct_wire_type;

#define CT_WIRE_HAS_STATUS 1 /* flag of a heartbeat: a status follows, maybe an empty one */

typedef struct ct_frame {
    uint8_t type, flags;
    uint16_t kind, tag; /* of the letter */
    uint64_t sequence;  /* 0, 1, 2, ... in each direction of a connection */
    uint64_t n_seen;    /* frames that the sender has received */
    uint64_t n_taken;   /* letters that its caller has taken */
    /* of a piece: of the letter; of a heartbeat: the sender's clock, the receiver's as it was last
     * heard, and how long ago that was, in microseconds */
    uint64_t iteration, total, offset;
    const uint8_t *bytes; /* [n] what follows the header; not owned */
    size_t n;
} ct_frame;

typedef struct ct_greeting {
    uint64_t session; /* a random number */
    uint8_t federation[32];
    uint64_t max_letter_bytes; /* that the sender takes */
    char name[CT_MESH_NAME];
    char program[CT_WIRE_PROGRAM];
} ct_greeting;
#define CT_WIRE_GREETING_BYTES (8 + 32 + 8 + CT_MESH_NAME + CT_WIRE_PROGRAM)

/* A frame by itself is in order; its bytes stay where they are. CT_IO says what is wrong with it. */
ct_status ct_wire_parse(const void *bytes, size_t n, ct_frame *out);
void ct_wire_write(const ct_frame *frame, uint8_t header[CT_WIRE_HEADER]);

/* What a frame of that type says; parsing has checked it. */
void ct_wire_read_greeting(const ct_frame *frame, ct_greeting *out);
void ct_wire_write_greeting(const ct_greeting *greeting, uint8_t bytes[CT_WIRE_GREETING_BYTES]);
void ct_wire_read_reason(const ct_frame *frame, char out[CT_WIRE_REASON + 1]);

/* The site `name` may be talked to. CT_DIFFERS says with both values why not, as the other side would
 * find too; CT_INVAL what it does not see by itself. */
ct_status ct_greeting_check(const ct_greeting *ours, const ct_greeting *theirs, const char *name);

/* One connection as its receiving end sees it; begins zeroed but for the limit. */
typedef struct ct_wire_session {
    size_t max_letter_bytes; /* twice that may wait, with what is on its way */
    bool is_greeted;
    uint64_t n_received;      /* frames; the next one has this number */
    uint64_t n_sent, n_begun; /* frames and letters of ours: no more can be seen and taken */
    uint64_t n_seen, n_taken; /* of those, by the other side */
    size_t n_waiting,
        n_bytes;       /* letters that have come and wait for the caller, with their bytes */
    bool is_in_letter; /* the next piece belongs to: */
    uint16_t kind, tag;
    uint64_t iteration, total, n_got;
} ct_wire_session;

/* The frame may come now, and has come; before anything is done with it. CT_IO says which rule it
 * breaks: the session is at its end. A letter is whole when !is_in_letter after a piece. */
ct_status ct_wire_accept(ct_wire_session *session, const ct_frame *frame);

#endif
