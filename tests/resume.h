/* What the tests of checkpoints share: trainings from words, in a folder of their own, and a look
 * at what they leave behind. */
#ifndef CT_TESTS_RESUME_H
#define CT_TESTS_RESUME_H

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run/checkpoint.h"
#include "test.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"

/* 7 iterations an epoch, 3 epochs. */
#define SMALL                                                                                      \
    "dataset=shapes model=mlp:4 agents=6 batch-size=16 train-samples=600 test-samples=50 "         \
    "epochs=3 lr=0.02 threads=1 save-agents=on quiet=on "

static char folder[64];

/* In memory where there is such a place: checkpoints sync every file. */
static inline bool enter_folder(void) {
    snprintf(folder, sizeof folder, "%s/crosstalk-resume-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    return mkdtemp(folder) != NULL && chdir(folder) == 0;
}

/* A directory with all that is in it. */
static inline void remove_tree(const char *path) {
    DIR *d = opendir(path);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char inside[512];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(inside, sizeof inside, "%.200s/%.200s", path, e->d_name);
        if (remove(inside) != 0) remove_tree(inside);
    }
    if (d != NULL) closedir(d);
    remove(path);
}

/* `name=value` words into a config. */
static inline ct_status configure(const char *words, ct_config *config) {
    ct_config_init(config);
    char text[1024], *save = NULL;
    snprintf(text, sizeof text, "%s", words);
    for (char *w = strtok_r(text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(w, '=');
        *equals = '\0';
        CT_TRY(ct_config_put(config, w, equals + 1));
    }
    return CT_OK;
}

static inline ct_status train(const char *words) {
    static ct_config config;
    CT_TRY(configure(words, &config));
    return ct_train(&config);
}

/* Two words' lists as one. */
static inline const char *with(const char *a, const char *b) {
    static char text[4][2048];
    static int at;
    at = (at + 1) % 4;
    char *out = text[at], *end = out + sizeof text[at] - 2;
    while (*a != '\0' && out < end) *out++ = *a++;
    *out++ = ' ';
    while (*b != '\0' && out < end) *out++ = *b++;
    *out = '\0';
    return text[at];
}

/* A file's content, without what a clock has written. */
static inline ct_blob content(const char *dir, const char *name) {
    ct_blob blob = {0};
    if (ct_file_read(ct_path_in(dir, name).text, 1 << 28, &blob) != CT_OK) return (ct_blob){0};
    for (char *at = strstr((char *)blob.bytes, "\"seconds\""); at != NULL;
         at = strstr(at + 1, "\"seconds\"")) {
        size_t n = strcspn(at, ",}");
        if (at > (char *)blob.bytes + 1 && at[-2] == ',') { /* with the comma before it */
            at -= 2;
            n += 2;
        }
        memmove(at, at + n, blob.n - (size_t)(at + n - (char *)blob.bytes) + 1);
        blob.n -= n;
    }
    return blob;
}

static inline bool same_file(const char *a, const char *b, const char *name) {
    ct_blob x = content(a, name), y = content(b, name);
    bool same = x.n > 0 && x.n == y.n && memcmp(x.bytes, y.bytes, x.n) == 0;
    if (!same) printf("    %s of %s and %s differ (%zu, %zu bytes)\n", name, a, b, x.n, y.n);
    ct_blob_free(&x);
    ct_blob_free(&y);
    return same;
}

static inline bool same_results(const char *a, const char *b) {
    return same_file(a, b, "metrics.jsonl") && same_file(a, b, "evaluation.json") &&
           same_file(a, b, "consensus.safetensors") && same_file(a, b, "agents.safetensors");
}

static inline bool is_finished(const char *dir) {
    bool finished = false;
    return CT_CATCH(NULL, ct_record_is_finished(dir, &finished)) == CT_OK && finished;
}

/* Of this process, and those it starts. */
static inline void limit_file_size(rlim_t n) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = n;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static inline void sleep_ms(double ms) {
    struct timespec t = {.tv_sec = (time_t)(ms / 1e3)};
    t.tv_nsec = (long)(1e6 * (ms - 1e3 * (double)t.tv_sec));
    nanosleep(&t, NULL);
}

#endif
