/* What the files of the training loop share. */
#ifndef CT_RUN_TRAINING_INTERNAL_H
#define CT_RUN_TRAINING_INTERNAL_H

#include "run/training.h"
#include "schema/interval.h"

typedef struct ct_progress {
    double started; /* when this call began */
    double shown;
    double before;     /* seconds of the calls, and of the parts of this run, that came before */
    long first;        /* iteration that this call began with */
    long n_iterations; /* of the whole run */
} ct_progress;

struct ct_training {
    ct_run *run;
    ct_training_signal *signal;
    ct_progress progress;
    ct_position at;
    ct_epoch *epochs; /* [n_worlds] the last one finished */
    ct_evaluation *evaluations;
    long next;       /* first iteration whose losses are not read yet */
    long poll_every; /* iterations between looks at the losses, and at what other ranks wish */
    float *own_losses, *all_losses; /* [own rows], [rows][poll_every * CT_LOSS_FIELDS + 1] */
    int wish;                       /* what anyone wanted at the last look */
    bool is_unwanted;               /* the progress hook said so */
    ct_interval schedule;
    double saved_s;  /* when the last checkpoint was written */
    int stopped_by;  /* the signal that ended the loop, or CT_STOPPED_BY_HOOK; 0 = none */
    int lock;        /* of the run directory; -1 = none */
    bool has_begun;  /* the run directory is ours */
    bool is_running; /* a call lasts: this one comes from a hook */
    bool is_done;
    ct_error ended; /* why it cannot go on; CT_OK: it can */
    long ended_at;  /* the iteration, from 1, and the row that diverged; 0, -1 = none */
    int ended_row;
};

#define CT_STOPPED_BY_HOOK 128 /* no signal has this number */

/* After `done` iterations: 0 = to go on, 1 = a checkpoint, 1 + signal = the end. */
int ct_training_wish(const ct_training *t, long done);

/* ---- losses.c ---- */
/* Everyone's losses up to an iteration, at most poll_every of them, and what everyone wishes then:
 * one talk among the ranks for both. CT_DIVERGED: NaN or Inf among them. */
ct_status ct_training_read_until(ct_training *t, long iteration);

/* ---- joining.c: a site among its neighbours ---- */
/* Joins them, and goes on where they are. has_state: from a checkpoint. */
ct_status ct_training_join(ct_training *t, bool has_state);

/* ---- progress.c ---- */
/* Which of several worlds: "seed 1", "lambdas 0.1:0.01", both, or "" for a run of one. */
void ct_name_world(const ct_run *run, int world, const char *before, char *out, size_t size);
/* "ce 0.4, mv 0.01, dv 0.002", or the terms from `first` on with other words before each. */
void ct_name_terms(const double *terms, int first, const char *before, char *out, size_t size);
void ct_training_introduce(const ct_run *run);
void ct_training_show(ct_progress *p, const ct_run *run, long iteration, const double *mean);
void ct_training_show_epoch(const ct_run *run, int world, const ct_epoch *e);

#endif
