/* What the files of a site share. */
#ifndef CT_SITE_INTERNAL_H
#define CT_SITE_INTERNAL_H

#include "site/site.h"

/* Kinds of letters: LETTER(id, what it is called in sent.jsonl). */
#define CT_LETTERS(LETTER)                                                                         \
    LETTER(SAYS, "what the site says of itself")                                                   \
    LETTER(AGREED, "what was agreed")                                                              \
    LETTER(KNOCK, "control")                                                                       \
    LETTER(START, "control")                                                                       \
    LETTER(MODEL, "parameters")                                                                    \
    LETTER(ROW, "rows")                                                                            \
    LETTER(SUM, "sum of a subtree")                                                                \
    LETTER(RESULT, "consensus model")

typedef enum ct_letter_kind {
    CT_LETTER_NONE,
#define LETTER(id, text) CT_LETTER_##id,
    CT_LETTERS(LETTER)
#undef LETTER
        CT_N_LETTERS,
} ct_letter_kind;

typedef enum ct_phase_of_site {
    CT_SITE_ENTERS,   /* is not in training yet, or not again */
    CT_SITE_TRAINS,   /* */
    CT_SITE_ENDED,    /* its last iteration is done */
    CT_SITE_FINISHED, /* it has the consensus model, on disk */
} ct_phase_of_site;

#define CT_NEVER    (-1L)
#define CT_MAX_SENT 12 /* kinds that sent.jsonl tells apart */

/* What was sent to a neighbour since the last lines of sent.jsonl. */
typedef struct ct_sent_tally {
    const char *what;
    uint64_t letters, bytes;
} ct_sent_tally;

/* A letter kept for later. */
typedef struct ct_kept {
    uint8_t *bytes;
    size_t n;
} ct_kept;

/* A row that came before it was waited for. */
typedef struct ct_early {
    ct_kept row;
    uint64_t iteration;
    uint16_t exchange;
} ct_early;

typedef struct ct_neighbour {
    int agent;
    bool is_up;
    uint64_t connection; /* the one that we know of */
    bool is_with;        /* in the iteration that was begun */
    bool has_knocked;    /* it waits for our answer, or has it and we wait for its own */
    bool was_asked;      /* we have knocked */
    long my_start;       /* the edge carries rows from the later of the two on; CT_NEVER: unknown */
    long their_start;
    long first_start;            /* the earliest it has said on this connection */
    long told, heard;            /* start of the edge for which it, and we, had the first row */
    bool wants_model;            /* we have asked for its model */
    bool owes_model;             /* it was promised, and has not come yet */
    bool is_wanted;              /* it has asked for our model */
    ct_kept model;               /* of a neighbour, for one who was away */
    ct_kept says[CT_MAX_ROUNDS]; /* of the subtree behind it */
    ct_kept sum;                 /* the last one, with its head */
    ct_early early;              /* came while we entered */
    ct_sent_tally sent[CT_MAX_SENT];
    uint64_t state_number; /* of the state that was read last */
    double since;          /* when it came or went */
    long n_losses;         /* how often it went */
    char note[160];        /* the last thing that was refused of it, or why it went */
} ct_neighbour;

/* What is known about any site, from neighbour to neighbour: the newest counts. */
typedef struct ct_site_record {
    uint64_t version; /* 0: nothing is known */
    ct_phase_of_site phase;
    long iteration;
    int *links; /* [n_links] sites that it hears */
    int n_links;
} ct_site_record;

struct ct_site {
    ct_site_options options;
    const ct_federation *federation;
    ct_mesh *mesh;
    ct_neighbour *neighbours; /* [n]; neighbour k is peer k of the mesh */
    int n;
    ct_site_record *records; /* [n_sites] */
    ct_phase_of_site phase;
    ct_site_training training;
    bool is_training_known;
    long iteration; /* in progress; while entering, the one to go on with */
    int round;      /* of agreement: the next */
    ct_kept mine[CT_MAX_ROUNDS], agreed[CT_MAX_ROUNDS];
    int parent;      /* neighbour towards site 0 in the tree of agreement; -1: this is site 0 */
    bool *is_child;  /* [n] */
    ct_kept result;  /* the consensus model */
    double status_s; /* when neighbours were last told */
    double ended_s;  /* when the last iteration was done */
    uint64_t n_strangers; /* that were refused */
    uint64_t n_meetings;  /* neighbours that came, counted again each time */
};

/* ---- site.c ---- */
/* Takes note of what has happened and answers what can be answered at once. */
ct_status ct_site_attend(ct_site *site);
/* Waits for something to happen, for a moment at most, and attends to it: within an iteration, which
 * is not left half done; and elsewhere, where a signal ends it with CT_STOPPED. */
ct_status ct_site_pause(ct_site *site);
ct_status ct_site_wait(ct_site *site);
ct_status ct_site_post(ct_site *site, int k, ct_letter_kind kind, int tag, long iteration,
                       const char *what, const void *bytes, size_t n);
/* The same; whether it was sent, or the neighbour has gone. */
ct_status ct_site_try_post(ct_site *site, int k, ct_letter_kind kind, int tag, long iteration,
                           const char *what, const void *bytes, size_t n, bool *is_sent);
ct_status ct_kept_set(ct_kept *kept, const void *bytes, size_t n);
void ct_kept_free(ct_kept *kept);
int ct_site_neighbour(const ct_site *site, int agent);
const char *ct_site_name(const ct_site *site, int k);
/* A neighbour's next letter; of a connection whose beginning was not heard yet there is none, for
 * that beginning would make us forget what the letter said. */
bool ct_site_peek(ct_site *site, int k, ct_letter *letter);
/* The neighbour broke the rules: it is cut off. */
void ct_site_cut(ct_site *site, int k, const char *format, ...) CT_PRINTF(3, 4);

/* ---- agreement.c ---- */
ct_status ct_site_init_tree(ct_site *site);
ct_status ct_site_meet(ct_site *site, int k); /* a neighbour has come: it gets what it needs */
/* Now and then, who is waited for. */
void ct_site_note_missing(const ct_site *site, double *noted);
ct_status ct_site_hear_says(ct_site *site, int k, const ct_letter *letter);
ct_status ct_site_hear_agreed(ct_site *site, int k, const ct_letter *letter);

/* ---- edges.c ---- */
ct_status ct_site_hear_knock(ct_site *site, int k, const ct_letter *letter);
ct_status ct_site_hear_start(ct_site *site, int k, const ct_letter *letter);
ct_status ct_site_hear_model(ct_site *site, int k, const ct_letter *letter);
/* For the consensus model, those who have it. */
ct_status ct_site_ask_finished(ct_site *site);
void ct_site_forget_edge(ct_neighbour *neighbour);
bool ct_site_is_with_in(const ct_neighbour *neighbour, long iteration);

/* ---- rows.c ---- */
/* What a neighbour sent is a row of n numbers; otherwise it is cut off. */
bool ct_site_is_row(ct_site *site, int k, const ct_letter *letter, size_t n);
ct_status ct_site_keep_early(ct_site *site, int k, const ct_letter *letter);

/* ---- consensus.c ---- */
#define CT_SUM_HEAD 16 /* bytes before the sums: which tree, how many sites */
ct_status ct_site_hear_sum(ct_site *site, int k, const ct_letter *letter);
ct_status ct_site_hear_result(ct_site *site, int k, const ct_letter *letter);

/* ---- states.c ---- */
/* Our own record anew, and all neighbours told of what we know. */
ct_status ct_site_tell_states(ct_site *site);

#endif
