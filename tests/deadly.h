/* A process that is told to dies at the nth of its file operations, before the system has done
 * anything: the program's own calls come here. */
#ifndef CT_TESTS_DEADLY_H
#define CT_TESTS_DEADLY_H

#include "resume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>

static int deadly_call; /* 0: none */

static inline void count_call(void) {
    if (deadly_call > 0 && --deadly_call == 0) kill(getpid(), SIGKILL);
}

int fsync(int fd) {
    count_call();
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to) {
    count_call();
    return (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

int mkdir(const char *path, mode_t mode) {
    count_call();
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int rmdir(const char *path) {
    count_call();
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

int remove(const char *path) {
    count_call();
    if (syscall(SYS_unlinkat, AT_FDCWD, path, 0) == 0) return 0;
    return errno == EISDIR ? (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR) : -1;
}

ssize_t write(int fd, const void *bytes, size_t n) {
    count_call();
    return (ssize_t)syscall(SYS_write, fd, bytes, n);
}

/* Trains in another process, which dies at its nth file operation; false: it had fewer. */
static inline bool dies_at(int n, const char *words) {
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        deadly_call = n;
        _exit((int)train(words));
    }
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status);
}

#endif
