/* Which ranks have the same --out before them. Every rank leaves a mark beside the others' in the
 * nearest folder that exists already, looks which ones it sees, and takes it away again. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "run/output.h"
#include "run/together.h"
#include "util/file.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/memory.h"

#define PATIENCE_S 2.0 /* for a network's file system that shows a new file late */

static ct_path nearest_folder(const char *out) {
    ct_path at = ct_path_in("", out);
    while (!ct_dir_exists(at.text)) {
        ct_path above = ct_path_dir(at.text);
        if (strcmp(above.text, at.text) == 0) break;
        at = above;
    }
    return at;
}

/* Below the same folder, different names of --out are different folders. nonce: of this start. */
static ct_path mark_of(const char *out, int nonce, int rank) {
    char name[80];
    snprintf(name, sizeof name, CT_RANK_MARK "%d-%08x-%016" PRIx64, rank, (unsigned)nonce,
             ct_hash(CT_HASH_START, out, strlen(out)));
    return ct_path_in(nearest_folder(out).text, name);
}

/* The first rank whose mark is here, among those before this one. */
static int first_seen(const ct_run *run, int nonce) {
    int rank = ct_transport_rank(run->transport);
    for (int r = 0; r < rank; r++)
        if (ct_file_exists(mark_of(run->config.out, nonce, r).text)) return r;
    return rank;
}

/* Waits a while for rank 0's. */
static int look_for_marks(const ct_run *run, int nonce, bool is_one_machine) {
    double patience = fmin(PATIENCE_S, run->config.timeout / 2), began = ct_seconds();
    int home = first_seen(run, nonce);
    while (home != 0 && !is_one_machine && ct_seconds() - began < patience) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        home = first_seen(run, nonce);
    }
    return home;
}

static ct_status choose_nonce(ct_run *run, int *out) {
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t mix = ct_hash_number(CT_HASH_START, (uint64_t)now.tv_nsec);
    mix = ct_hash_number(ct_hash_number(mix, (uint64_t)now.tv_sec), (uint64_t)getpid());
    return ct_together_hear(run->transport, 0, (int)(mix >> 33), out);
}

/* On one machine everybody sees a new file at once. */
static ct_status are_on_one_machine(ct_run *run, bool *out) {
    char name[256] = "";
    int mine, least, most;
    if (gethostname(name, sizeof name - 1) != 0) name[0] = '\0';
    mine = (int)(ct_hash(CT_HASH_START, name, strlen(name)) >> 33);
    CT_TRY(ct_together_least(run->transport, mine, &least));
    CT_TRY(ct_transport_vote(run->transport, mine, &most));
    *out = least == most;
    return CT_OK;
}

static ct_status find_home(ct_run *run, int *home) {
    bool is_one_machine;
    int nonce, ignored;
    CT_TRY(choose_nonce(run, &nonce));
    CT_TRY(are_on_one_machine(run, &is_one_machine));
    ct_path mine = mark_of(run->config.out, nonce, ct_transport_rank(run->transport));
    int fd = open(mine.text, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd >= 0) close(fd); /* who cannot write here may still see the others' */
    ct_status status = ct_transport_vote(run->transport, 0, &ignored); /* all are there */
    if (status == CT_OK) *home = look_for_marks(run, nonce, is_one_machine);
    if (status == CT_OK) status = ct_transport_vote(run->transport, 0, &ignored); /* and seen */
    if (fd >= 0) remove(mine.text);
    return status;
}

static void tell(const ct_run *run) {
    int n = ct_transport_n_ranks(run->transport), n_apart = 0, last = 0;
    for (int r = 0; r < n; r++) {
        if (ct_run_home(run, ct_transport_rows(run->transport, r).first) == 0) continue;
        n_apart++;
        last = r;
    }
    if (n_apart == 1)
        ct_note("rank %d does not see the @out of rank 0: it keeps its checkpoints on its own disk",
                last);
    else
        ct_note("%d of %d ranks do not see the @out of rank 0: they keep their checkpoints on "
                "their own disks",
                n_apart, n);
}

ct_status ct_output_find_homes(ct_run *run) {
    ct_transport *t = run->transport;
    int n = ct_transport_n_ranks(t), home = 0, most = 0;
    CT_SCOPED_BLOCK(int) of_rank = NULL;
    if (n == 1 || run->homes != NULL || ct_run_writes_nothing(run) || run->config.site != NULL)
        return CT_OK;
    CT_TRY(find_home(run, &home));
    CT_TRY(ct_transport_vote(t, home, &most));
    if (most == 0) return CT_OK;
    CT_TRY(ct_make(&of_rank, (size_t)n, "the folders of ranks"));
    CT_TRY(ct_make(&run->homes, (size_t)run->agents.n_rows, "the folders of ranks"));
    for (int r = 0; r < n; r++) {
        ct_span rows = ct_transport_rows(t, r);
        CT_TRY(ct_together_hear(t, r, home, &of_rank[r]));
        of_rank[r] = of_rank[of_rank[r]]; /* what the first one sees, all of its folder do */
        for (int i = rows.first; i < rows.first + rows.n; i++) run->homes[i] = of_rank[r];
    }
    tell(run);
    return CT_OK;
}
