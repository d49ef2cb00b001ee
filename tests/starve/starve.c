/* LD_PRELOAD library: lets one allocation of the program fail, or all from one on.
 *   CT_STARVE_AT=k      the k-th (from 1) fails; unset or 0: none
 *   CT_STARVE_ON=1      and so do all after it
 *   CT_STARVE_LIST=f    a line for each in the file f: which call stack it comes from
 *   CT_STARVE_ORDERS=i,o  runs as often as it is told to: see starve.h
 * What counts are the program's own requests: its blocks (aligned_alloc, util/memory.c), the calls of
 * libc that take memory for it, and what the decoders of files and downloads allocate. Libraries that
 * end the process when they lack memory (MPI, glib, libarchive) are left alone, and so are processes
 * it starts. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "starve.h"

/* The next definitions, without dlsym, which itself allocates: AddressSanitizer's, or libc's. */
#define ALLOCATOR(name, result, parameters)                                                        \
    extern result __interceptor_##name parameters __attribute__((weak));                           \
    extern result __libc_##name parameters;
ALLOCATOR(malloc, void *, (size_t))
ALLOCATOR(calloc, void *, (size_t, size_t))
ALLOCATOR(realloc, void *, (void *, size_t))
extern void *__interceptor_aligned_alloc(size_t, size_t) __attribute__((weak));
extern void *__libc_memalign(size_t, size_t);
#define NEXT(name) (__interceptor_##name != NULL ? __interceptor_##name : __libc_##name)

typedef struct range {
    uintptr_t begin, end;
} range;

static range program, decoders[8];
static int n_decoders;
static atomic_ulong n_asked;
static unsigned long fails_at;
static bool fails_on, is_ready;
static int list_fd = -1;

static int find_ranges(struct dl_phdr_info *info, size_t size, void *context) {
    static const char *const names[] = {"libz.so", "libpng16.so", "libjpeg.so", "libcurl.so"};
    range all = {.begin = UINTPTR_MAX};
    (void)size, (void)context;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
        if (part->p_type != PT_LOAD) continue;
        if (begin < all.begin) all.begin = begin;
        if (end > all.end) all.end = end;
    }
    if (info->dlpi_name[0] == '\0' && program.end == 0) program = all; /* comes first */
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strstr(info->dlpi_name, names[k]) != NULL && n_decoders < 8)
            decoders[n_decoders++] = all;
    return 0;
}

/* Starts the program once for every order, from here: what the loader does, most of a short run, is
 * done once. Returns in those processes only. */
static void take_orders(const char *fds) {
    char *end;
    int in = (int)strtol(fds, &end, 10), out = (int)strtol(end + 1, NULL, 10);
    starve_order order;
    while (read(in, &order, sizeof order) == (ssize_t)sizeof order) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0) {
            close(in);
            close(out);
            fails_at = order.at;
            fails_on = order.goes_on;
            for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
                if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0) _exit(96);
            alarm(order.limit_s);
            return;
        }
        if (waitpid(pid, &status, 0) != pid || write(out, &status, sizeof status) < 0) break;
    }
    _exit(0);
}

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("CT_STARVE_AT"), *on = getenv("CT_STARVE_ON");
    const char *path = getenv("CT_STARVE_LIST"), *orders = getenv("CT_STARVE_ORDERS");
    void *here[1];
    fails_at = at != NULL ? strtoul(at, NULL, 10) : 0;
    fails_on = on != NULL && on[0] == '1';
    dl_iterate_phdr(find_ranges, NULL);
    unsetenv("LD_PRELOAD");
    (void)backtrace(here, 1); /* loads a library when first called */
    list_fd = path != NULL ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (orders != NULL) take_orders(orders);
    is_ready = true;
}

static bool is_in(range r, const void *address) {
    return (uintptr_t)address >= r.begin && (uintptr_t)address < r.end;
}

/* The callers within the program, as a number that does not depend on where it is loaded. */
static void list_stack(void) {
    void *frames[64];
    uint64_t hash = 0;
    char line[32];
    for (int n = backtrace(frames, 64), k = 0; k < n; k++)
        if (is_in(program, frames[k]))
            hash = (hash ^ ((uintptr_t)frames[k] - program.begin)) * UINT64_C(0x9e3779b97f4a7c15);
    int n = snprintf(line, sizeof line, "%016" PRIx64 "\n", hash);
    if (write(list_fd, line, (size_t)n) != n) _exit(96);
}

/* A place to stop at in a debugger. */
__attribute__((noinline)) static void starved(void) {
    errno = ENOMEM;
}

/* Counts a request; true if it is to fail. */
static bool starves(bool counts) {
    if (!is_ready || !counts) return false;
    if (list_fd >= 0) list_stack();
    unsigned long k = atomic_fetch_add(&n_asked, 1) + 1;
    if (fails_at == 0 || (fails_on ? k < fails_at : k != fails_at)) return false;
    starved();
    return true;
}

static bool is_decoders(const void *caller) {
    for (int i = 0; i < n_decoders; i++)
        if (is_in(decoders[i], caller)) return true;
    return false;
}

#define BY_PROGRAM is_in(program, __builtin_return_address(0))
#define BY_DECODER is_decoders(__builtin_return_address(0))

void *aligned_alloc(size_t alignment, size_t n) {
    if (starves(BY_PROGRAM)) return NULL;
    return (__interceptor_aligned_alloc != NULL ? __interceptor_aligned_alloc
                                                : __libc_memalign)(alignment, n);
}

void *malloc(size_t n) {
    return starves(BY_DECODER) ? NULL : NEXT(malloc)(n);
}

void *calloc(size_t n, size_t size) {
    return starves(BY_DECODER) ? NULL : NEXT(calloc)(n, size);
}

void *realloc(void *block, size_t n) {
    return starves(BY_DECODER) ? NULL : NEXT(realloc)(block, n);
}

/* The same function of the next library. */
#define FORWARD(name, ...)                                                                         \
    do {                                                                                           \
        __typeof__(&(name)) next = NULL;                                                           \
        *(void **)&next = dlsym(RTLD_NEXT, #name);                                                 \
        return next(__VA_ARGS__);                                                                  \
    } while (0)

FILE *fopen(const char *path, const char *mode) {
    if (starves(BY_PROGRAM)) return NULL;
    FORWARD(fopen, path, mode);
}

FILE *fdopen(int fd, const char *mode) {
    if (starves(BY_PROGRAM)) return NULL;
    FORWARD(fdopen, fd, mode);
}

/* It finds out first that there is no such directory. */
DIR *opendir(const char *path) {
    struct stat info;
    bool is_there = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    if (starves(is_there && BY_PROGRAM)) return NULL;
    FORWARD(opendir, path);
}

DIR *fdopendir(int fd) {
    if (starves(BY_PROGRAM)) return NULL;
    FORWARD(fdopendir, fd);
}

FTS *fts_open(char *const *paths, int options, int (*compare)(const FTSENT **, const FTSENT **)) {
    if (starves(BY_PROGRAM)) return NULL;
    FORWARD(fts_open, paths, options, compare);
}
