/* Runs of the program over several ranks. Where there is no mpirun, or the build has no MPI, such
 * tests are skipped. */
#ifndef CT_TESTS_RANKS_H
#define CT_TESTS_RANKS_H

#include "resume.h"

#include "ct_config.h"

static char said[1 << 14];

static inline bool has_mpi(void) {
    return CT_WITH_MPI && system("command -v mpirun >/dev/null 2>&1") == 0;
}

#define NEEDS_MPI()                                                                                \
    if (!has_mpi()) SKIP("no mpirun, or built without MPI")

static char sessions[] = "/tmp/crosstalk-mpi-XXXXXX";

static inline void remove_sessions(void) {
    remove_tree(sessions);
}

/* Lets mpirun start more ranks than there are cores, as any user. Its session files lie apart from
 * those of other programs' mpirun, which may be removing them just then. */
static inline void prepare_ranks(void) {
    if (mkdtemp(sessions) != NULL && atexit(remove_sessions) == 0)
        setenv("OMPI_MCA_orte_tmpdir_base", sessions, 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 0); /* the library's own */
}

/* Runs a shell command; its words go to `said`, its exit code is returned. */
static inline int shell(const char *format, const char *a, const char *b) {
    char command[2048];
    snprintf(command, sizeof command, format, a, b);
    FILE *out = popen(command, "r");
    size_t n = out != NULL ? fread(said, 1, sizeof said - 1, out) : 0;
    said[n] = '\0';
    int status = out != NULL ? pclose(out) : -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
