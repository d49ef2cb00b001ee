/* crosstalk data: get, verify, info, import, split. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "data/fetch.h"
#include "data/pack.h"
#include "data/part.h"
#include "data/pictures.h"
#include "data/sheet.h"
#include "run/run.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"
#include "util/sha256.h"

void ct_cli_data_help(FILE *out) {
    fputs("usage: crosstalk data get NAME [--data-dir DIR] [--url URL] [--checksum HEX]\n"
          "       crosstalk data info DIR [--sheet FILE.png] [--option value ...]\n"
          "       crosstalk data verify DIR [--option value ...]\n"
          "       crosstalk data import DIR FILE.ctpack [--image-size N] [--option value ...]\n"
          "       crosstalk data split --ranks R --out DIR [--option value ...]\n\n"
          "get      downloads the official files of a set into DIR (default: data/NAME), resuming\n"
          "         what was cut, checks them and unpacks them. --url names another server's\n"
          "         folder, --checksum (SHA-256 or MD5) another file of the same kind.\n"
          "info     samples of every class and part, shape, mean and deviation of the channels;\n"
          "         --sheet draws ten pictures of every class.\n"
          "verify   reads and decodes everything, lists what cannot be read, and compares\n"
          "         archives with their published checksums. Exit 1 if something is wrong.\n"
          "import   decodes a folder of pictures into one file, which opens without decoding:\n"
          "         --data-dir FILE.ctpack. Other formats are read as fast as they are.\n"
          "split    writes, for a training over R ranks with these options, each rank's part of\n"
          "         the data to a file of its own in DIR (its agents' samples and the test part),\n"
          "         and the split to DIR/partition.csv. A rank needs no other data:\n"
          "           mpirun -n R crosstalk train --data-dir DIR/rank-%r.ctpart \\\n"
          "               --partition-file DIR/partition.csv ...\n\n"
          "What DIR holds is recognised; --dataset NAME says it. Options are those of train.\n",
          out);
}

/* Own options beside those of train. */
typedef struct data_args {
    ct_config config;
    const char *words[3]; /* sub-command and its two words */
    int n_words;
    const char *url, *checksum, *sheet, *ranks;
} data_args;

static ct_status parse(int n_args, char **args, data_args *out) {
    static const char *const names[] = {"url", "checksum", "sheet", "ranks"};
    const char **values[] = {&out->url, &out->checksum, &out->sheet, &out->ranks};
    char **rest = NULL;
    int n_rest = 0;
    CT_TRY(ct_make(&rest, (size_t)n_args + 1, "the options"));
    ct_status status = CT_OK;
    for (int at = 0; at < n_args && status == CT_OK; at++) {
        const char *value = NULL;
        for (int k = 0; k < 4 && value == NULL && status == CT_OK; k++) {
            status = ct_cli_own_option(n_args, args, &at, names[k], &value);
            if (value != NULL) *values[k] = value;
        }
        if (value == NULL) rest[n_rest++] = args[at];
    }
    ct_config_init(&out->config);
    snprintf(out->config.dataset, sizeof out->config.dataset, "auto");
    if (status == CT_OK)
        status = ct_cli_options(n_rest, rest, &out->config, out->words, 3, &out->n_words);
    ct_free(rest);
    ct_cli_quiet(out->config.quiet);
    return status;
}

static ct_status need_words(const data_args *a, int n, const char *words) {
    if (a->n_words == n) return CT_OK;
    return ct_fail(CT_INVAL, "crosstalk data %s needs %s (crosstalk help data)", a->words[0],
                   words);
}

static ct_status get(const data_args *a) {
    char dir[CT_CONFIG_TEXT];
    CT_TRY(need_words(a, 2, "the name of a set"));
    snprintf(dir, sizeof dir, "%s", a->config.data_dir);
    if (dir[0] == '\0') snprintf(dir, sizeof dir, "data/%.400s", a->words[1]);
    if (a->checksum != NULL && strlen(a->checksum) != 64 && strlen(a->checksum) != 32)
        return ct_fail(CT_INVAL,
                       "--checksum: '%s' has neither the 64 digits of a SHA-256 sum nor "
                       "the 32 of an MD5 sum",
                       a->checksum);
    ct_get_options options = {.url = a->url,
                              .digest = a->checksum,
                              .progress = !a->config.quiet && isatty(STDERR_FILENO) == 1,
                              .pause_s = 2};
    CT_TRY(ct_get(a->words[1], dir, &options));
    printf("%s: use it with --dataset %s --data-dir %s\n", a->words[1], a->words[1], dir);
    return CT_OK;
}

/* What lies in the directory of the second word. */
static ct_status name_set(data_args *a) {
    snprintf(a->config.data_dir, sizeof a->config.data_dir, "%s", a->words[1]);
    return ct_run_name_data(&a->config);
}

static void print_shape(const ct_dataset *d) {
    const ct_images *i = &d->train;
    printf("%s: %s\n%zu training and %zu test samples, %d classes, %dx%dx%d\n", d->source, d->name,
           d->train.n, d->test.n, d->n_classes, i->channels, i->height, i->width);
    if (d->train_numbers != NULL) printf("a part: the whole has %zu to train on\n", d->n_whole);
    printf("mean");
    for (int c = 0; c < i->channels; c++) printf(" %.4f", (double)d->mean[c]);
    printf(", deviation");
    for (int c = 0; c < i->channels; c++) printf(" %.4f", (double)d->std[c]);
    printf("\nfingerprint %016llx\n", (unsigned long long)ct_dataset_fingerprint(d));
}

static ct_status print_counts(const ct_dataset *d) {
    size_t n = (size_t)d->n_classes;
    size_t *count = NULL;
    CT_TRY(ct_make(&count, 2 * n, "the counts"));
    for (size_t i = 0; i < d->train.n; i++) count[d->train.labels[i]]++;
    for (size_t i = 0; i < d->test.n; i++) count[n + (size_t)d->test.labels[i]]++;
    printf("class    train     test  name\n");
    for (size_t k = 0; k < n; k++)
        printf("%5zu %8zu %8zu  %s\n", k, count[k], count[n + k], ct_dataset_class_name(d, (int)k));
    ct_free(count);
    return CT_OK;
}

static ct_status info(data_args *a) {
    ct_dataset d = {0};
    CT_TRY(need_words(a, 2, "a directory"));
    CT_TRY(ct_cli_may_write(a->sheet, a->config.force));
    a->config.augment = false; /* whole pictures */
    CT_TRY(name_set(a));
    CT_TRY(ct_run_open_data(&a->config, 0, &d));
    print_shape(&d);
    ct_status status = print_counts(&d);
    if (status == CT_OK && a->sheet != NULL) status = ct_sheet_write(&d, a->sheet);
    if (status == CT_OK && a->sheet != NULL) printf("contact sheet: %s\n", a->sheet);
    ct_dataset_free(&d);
    return status;
}

/* "a,b": 2; "": 1, what there is without a list. */
static int count_items(const char *list) {
    int n = 1;
    for (; *list != '\0'; list++) n += *list == ',';
    return n;
}

/* Files of the set whose digests are published: those in the directory `asked`, or the archive that
 * it is itself. */
static ct_status check_digests(const ct_dataset *d, const char *asked, int *n_wrong) {
#define ARCHIVE(set, file, folder, url, digest) {set, file, folder},
    static const char *const files[][3] = {
#include "data/archive_list.h"
    };
#undef ARCHIVE
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        char got[CT_DIGEST_TEXT];
        if (strcmp(files[k][0], d->name) != 0) continue;
        bool is_archive = ct_file_exists(asked) && files[k][2] != NULL;
        ct_path path = is_archive ? ct_path_in("", asked) : ct_path_in(asked, files[k][1]);
        const char *digest = ct_known_digest(d->name, files[k][1]);
        if (!ct_file_exists(path.text)) continue;
        CT_TRY(ct_digest_file(path.text, strlen(digest) == 64 ? CT_SHA256 : CT_MD5, got));
        bool is_right = strcmp(got, digest) == 0;
        /* Single .gz files are often packed anew by distributions; their content was read. */
        bool may_differ = files[k][2] == NULL;
        printf("%s: %s\n", files[k][1],
               is_right     ? "as published"
               : may_differ ? "readable, but packed differently than published"
                            : "not as published");
        *n_wrong += !is_right && !may_differ;
    }
    return CT_OK;
}

/* Every picture decoded, and those listed that cannot be. */
static ct_status verify_pictures(const ct_dataset *d, size_t *n_broken) {
    *n_broken = d->n_left_out;
    if (d->train_pictures != NULL) CT_TRY(ct_pictures_verify(d->train_pictures, n_broken));
    if (d->test_pictures != NULL) CT_TRY(ct_pictures_verify(d->test_pictures, n_broken));
    return CT_OK;
}

static ct_status verify(data_args *a) {
    ct_dataset d = {0};
    int n_wrong = 0;
    size_t n_broken = 0;
    CT_TRY(need_words(a, 2, "a directory"));
    CT_TRY(name_set(a));
    ct_dataset_options options = ct_run_data_options(&a->config);
    options.augment = false;
    options.memory_bytes = 1; /* pictures are decoded below, not kept */
    options.list_all = true;
    CT_TRY(ct_dataset_open(a->config.dataset, &options, &d));
    print_shape(&d);
    ct_status status = check_digests(&d, a->words[1], &n_wrong);
    if (status == CT_OK) status = verify_pictures(&d, &n_broken);
    ct_dataset_free(&d);
    if (status != CT_OK) return status;
    if (n_broken > 0 || n_wrong > 0)
        return ct_fail(CT_IO, "%s: %zu pictures cannot be read, %d files are not as published",
                       a->words[1], n_broken, n_wrong);
    printf("nothing wrong\n");
    return CT_OK;
}

static ct_status pack_parts(const ct_dataset *d, const char *path) {
    ct_pack_writer *writer = NULL;
    const ct_pictures_spec *spec = ct_pictures_spec_of(d->train_pictures);
    ct_pack_facts facts = {.n_test = ct_pictures_count(d->test_pictures),
                           .n_classes = (uint32_t)d->n_classes,
                           .side = (uint32_t)spec->side,
                           .size = (uint32_t)spec->size};
    snprintf(facts.name, sizeof facts.name, "%.31s", d->name);
    memcpy(facts.mean, d->mean, sizeof facts.mean);
    memcpy(facts.std, d->std, sizeof facts.std);
    CT_TRY(ct_pack_writer_open(path, &writer));
    ct_status status = ct_pictures_pack(d->train_pictures, writer);
    size_t n_train = ct_pack_writer_count(writer);
    if (status == CT_OK) status = ct_pictures_pack(d->test_pictures, writer);
    facts.n_test = ct_pack_writer_count(writer) - n_train;
    if (status == CT_OK) status = ct_pack_writer_commit(&writer, &facts, d->class_names);
    ct_pack_writer_abandon(&writer);
    if (status == CT_OK)
        printf("%s: %zu pictures to train on and %zu to test, %u pixels; use it with --dataset "
               "pack --data-dir %s\n",
               path, n_train, (size_t)facts.n_test, facts.side, path);
    return status;
}

static ct_status import(data_args *a) {
    ct_dataset d = {0};
    CT_TRY(need_words(a, 3, "a directory and a file to write"));
    CT_TRY(ct_cli_may_write(a->words[2], a->config.force));
    CT_TRY(name_set(a));
    ct_dataset_options options = ct_run_data_options(&a->config);
    options.augment = false;
    options.memory_bytes = 1; /* pictures go from file to file */
    CT_TRY(ct_dataset_open(a->config.dataset, &options, &d));
    ct_status status = CT_OK;
    if (d.train_pictures != NULL && d.test_pictures != NULL)
        status = pack_parts(&d, a->words[2]);
    else
        status = ct_fail(CT_INVAL, "%s is not a folder of pictures: it is read as fast as it is",
                         a->words[1]);
    ct_dataset_free(&d);
    return status;
}

/* ---- split ---- */

/* The training samples of one rank's agents, of every seed and pair of lambdas of the training. */
static void choose_samples(const ct_partition *p, ct_span rows, bool *keep, size_t n) {
    memset(keep, 0, n * sizeof *keep);
    for (int row = rows.first; row < rows.first + rows.n; row++) {
        int agent = row % p->n_agents;
        for (size_t k = p->begin[agent]; k < p->begin[agent + 1]; k++) keep[p->index[k]] = true;
    }
}

/* Parts of an earlier split for more ranks. */
static void remove_parts_from(const char *dir, int rank, const char *kind) {
    char path[CT_CONFIG_TEXT + 64];
    do snprintf(path, sizeof path, "%s/rank-%d.%s", dir, rank++, kind);
    while (remove(path) == 0);
}

static ct_status write_parts(const data_args *a, const ct_dataset *d, const ct_partition *p,
                             int n_ranks) {
    const ct_config *c = &a->config;
    bool *keep = NULL;
    char path[CT_CONFIG_TEXT + 64];
    int n_worlds = count_items(c->seeds) * count_items(c->lambdas);
    CT_TRY(ct_make(&keep, d->train.n, "a list of samples"));
    const char *kind = strcmp(d->name, "pack") == 0 ? "ctpack" : "ctpart";
    ct_dataset_options options = ct_run_data_options(c);
    ct_status status = ct_dir_create(c->out);
    for (int rank = 0; rank < n_ranks && status == CT_OK; rank++) {
        choose_samples(p, ct_rank_rows(n_worlds * p->n_agents, n_ranks, rank), keep, d->train.n);
        snprintf(path, sizeof path, "%s/rank-%d.%s", c->out, rank, kind);
        status = ct_part_write(d, &options, keep, path);
    }
    if (status == CT_OK) remove_parts_from(c->out, n_ranks, kind);
    snprintf(path, sizeof path, "%s/partition.csv", c->out);
    if (status == CT_OK) status = ct_partition_write(p, path);
    ct_free(keep);
    if (status == CT_OK)
        printf("%s: %d parts; use them with mpirun -n %d crosstalk train --dataset %s --data-dir "
               "%s/rank-%%r.%s --partition-file %s\n",
               c->out, n_ranks, n_ranks, d->name, c->out, kind, path);
    return status;
}

static ct_status open_whole(const data_args *a, ct_dataset *out) {
    ct_dataset_options options = ct_run_data_options(&a->config);
    options.augment = false;
    options.memory_bytes = 1; /* pictures go from file to file */
    CT_TRY(ct_run_open_data_as(&a->config, &options, out));
    return ct_part_check(out);
}

static ct_status split(data_args *a) {
    ct_dataset d = {0};
    ct_partition p = {0};
    ct_config *c = &a->config;
    int64_t n_ranks = 0;
    CT_TRY(need_words(a, 1, "no other words"));
    if (a->ranks == NULL || c->out[0] == '\0')
        return ct_fail(CT_INVAL, "crosstalk data split needs --ranks R and --out DIR");
    if (!ct_parse_i64(a->ranks, &n_ranks) || n_ranks < 1 || n_ranks > c->agents)
        return ct_fail(CT_INVAL, "--ranks: '%s' is not a number from 1 to the %lld of --agents",
                       a->ranks, (long long)c->agents);
    if (ct_dir_exists(c->out) && !c->force)
        return ct_fail(CT_IO, "%s is there already; write into it with --force", c->out);
    CT_TRY(ct_run_name_data(c));
    ct_status status = open_whole(a, &d);
    if (status == CT_OK) status = ct_run_partition(c, &d, (uint64_t)c->seed, &p);
    if (status == CT_OK) status = write_parts(a, &d, &p, (int)n_ranks);
    ct_partition_free(&p);
    ct_dataset_free(&d);
    return status;
}

ct_status ct_cli_data(int n_args, char **args) {
    data_args a = {0};
    CT_TRY(parse(n_args, args, &a));
    if (a.n_words == 0)
        return ct_fail(CT_INVAL,
                       "say what: get, info, verify, import or split (crosstalk help data)");
    if (strcmp(a.words[0], "get") == 0) return get(&a);
    if (strcmp(a.words[0], "info") == 0) return info(&a);
    if (strcmp(a.words[0], "verify") == 0) return verify(&a);
    if (strcmp(a.words[0], "import") == 0) return import(&a);
    if (strcmp(a.words[0], "split") == 0) return split(&a);
    return ct_fail(CT_INVAL, "no 'data %s'; known: get, info, verify, import, split", a.words[0]);
}
