/* Updates as data, seen from C and from CUDA: programs and their scripts. update.cu runs any program,
 * update_rounds.cu one that has a script. */
#ifndef CT_BACKEND_CUDA_UPDATE_H
#define CT_BACKEND_CUDA_UPDATE_H

#include "backend/cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_MAX_ASSIGNS   24
#define CUDA_MAX_TERMS     6
#define CUDA_MAX_SLOTS     20
#define CUDA_PROGRAM_BYTES 4096 /* with small matrices; a block copies it in one go */

/* A bank or a temporary of a program. Its rows have numbers in shared memory from `first` on,
 * banks' and temporaries' counted apart. */
typedef struct cuda_slot {
    float *data; /* NULL: a temporary */
    size_t stride;
    int first, n_rows;
    int n_load;    /* rows that are read before they are written */
    int n_written; /* so far, while the program is put together */
} cuda_slot;

typedef struct cuda_term {
    int slot;
    int matrix; /* byte offset of a cuda_sparse from the program, or -1 */
    float coef;
} cuda_term;

typedef struct cuda_assign {
    int slot, n_rows, n_terms;
    cuda_term terms[CUDA_MAX_TERMS];
} cuda_assign;

/* A program's *script*, rounds of orders: a thread carries out all orders of a round on one row after
 * the other; between two rounds the block waits. What stands under a matrix, and temporaries that a
 * later round reads, have rows in shared memory. All else is a thread's own: it has *places* for values
 * of the row that it is at. A round begins with copies from the device's memory into places. */
#define CUDA_MAX_PLACES 8
#define CUDA_MAX_ROUNDS 8
#define CUDA_MAX_ORDERS 112

typedef enum cuda_order_kind {
    CUDA_ADD,        /* sum += coef * place `at` */
    CUDA_ADD_SHARED, /* sum += coef * shared row `at` and so many on */
    CUDA_SET, /* place `at`, row of `slot`, row `shared` and so many on (-1: none) = sum; sum = 0 */
    CUDA_MIX, /* sum += coef * (matrix * shared rows `at` ..) */
    CUDA_LOAD /* place `at` = row of `slot` */
} cuda_order_kind;

typedef struct cuda_order {
    int kind, at;
    union {
        int matrix, slot;
    };
    union {
        float coef;
        int shared;
    };
} cuda_order;

typedef struct cuda_script {
    int n;                      /* rounds; 0: there is no script */
    int n_shared, n_places;     /* rows; of a thread */
    int shared[CUDA_MAX_SLOTS]; /* a slot's first row in shared memory, or -1 */
    int loaded[CUDA_MAX_ROUNDS],
        end[CUDA_MAX_ROUNDS]; /* behind its copies; behind all its orders */
    int reserved;
    cuda_order orders[CUDA_MAX_ORDERS];
} cuda_script;

typedef struct cuda_program {
    size_t n_quads; /* columns / 4, rounded up */
    int n_assigns, n_slots, n_temp_rows, n_bank_rows;
    int n_tail; /* ints of the tail in use */
    int n_rows; /* of a temporary */
    cuda_slot slots[CUDA_MAX_SLOTS];
    cuda_assign assigns[CUDA_MAX_ASSIGNS];
    int tail[352];      /* matrices; up to here CUDA_PROGRAM_BYTES */
    cuda_script script; /* the same once more */
} cuda_program;

/* begin [n_rows + 1], column [entries], value [entries] (floats) follow. */
typedef struct cuda_sparse {
    int n_rows, n_entries;
} cuda_sparse;

typedef struct cuda_update {
    const cuda_program *program_dev;
    size_t n_quads, shared_limit, n_scratch;
    int n_rows, n_temp_rows, n_bank_rows; /* of a temporary, of all of them, of banks */
    int n_rounds, n_shared, n_places;     /* 0 rounds: none */
    uint32_t *scratch_dev;                /* [n_scratch] */
    cudaStream_t stream;
} cuda_update;

/* The scratch that an update wants; 0 where shared memory has room for its temporaries. */
size_t ct_cuda_update_words(int n_temp_rows, size_t shared_limit);
ct_status ct_cuda_launch_update(const cuda_update *update);
/* update_rounds.cu */
/* Whether shared memory has room. */
bool ct_cuda_rounds_fit(const cuda_script *script, size_t shared_limit);
ct_status ct_cuda_launch_rounds(const cuda_update *update);

#ifdef __cplusplus
}
#endif
#endif
