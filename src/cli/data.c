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
#include "data/table.h"
#include "run/run.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"
#include "util/sha256.h"

const ct_help ct_cli_data_help = {
    .usage = "data get NAME [--data-dir DIR]\n"
             "data info DIR [--sheet FILE.png]\n"
             "data verify DIR\n"
             "data import DIR FILE.ctpack [--image-size N]\n"
             "data split --ranks R --out DIR [--option value ...]",
    .text = "Gets, checks, imports and splits data sets. What a directory holds is recognised; "
            "--dataset NAME says it.\n\n"
            "Own pictures need no import: put them into <class>/ folders, or train/<class>/ "
            "and val/<class>/, and train with --dataset folder --data-dir DIR.",
    .takes = "dataset, data-dir, image-size, test-fraction, label, strict, force, quiet",
    .examples = CT_HELP_PAIRS(
        {"Download Fashion-MNIST into data/fashion-mnist.", "crosstalk data get fashion-mnist"},
        {"What a folder of pictures has.", "crosstalk data info my-pictures"}),
    .also = "train, partition, docs/DATA.md"};

const ct_help ct_cli_data_get_help = {
    .usage = "data get NAME [--data-dir DIR] [--url URL] [--checksum HEX] [--force]",
    .text = "Downloads the official files of a data set, resumes what was cut off, checks "
            "their SHA-256 sums and unpacks them. Known: cifar10, cifar100, imagenette, "
            "fashion-mnist, mnist. Files that are there already are checked too; one that is "
            "not as published is replaced only with --force.",
    .own = "url, checksum",
    .takes = "data-dir, force, quiet",
    .files = CT_HELP_PAIRS({"data/NAME/", "the files, unpacked; --data-dir names another place"}),
    .examples = CT_HELP_PAIRS({"Fashion-MNIST, 30 MB.", "crosstalk data get fashion-mnist"},
                              {"From a folder of this machine, where there is no network.",
                               "crosstalk data get cifar10 --url file:///mnt/downloads"}),
    .also = "data verify, data info, train"};

const ct_help ct_cli_data_info_help = {
    .usage = "data info DIR [--sheet FILE.png] [--option value ...]",
    .text = "Shows the samples of every class and part, the shape, and mean and deviation of "
            "the channels. --sheet draws ten pictures of every class into one PNG file.",
    .own = "sheet",
    .takes = "dataset, image-size, test-fraction, label, force",
    .examples =
        CT_HELP_PAIRS({"Classes and counts.", "crosstalk data info data/fashion-mnist"},
                      {"And look at them.", "crosstalk data info my-pictures --sheet sheet.png"}),
    .also = "data verify, partition"};

const ct_help ct_cli_data_verify_help = {
    .usage = "data verify DIR [--option value ...]",
    .text = "Reads and decodes everything, lists what cannot be read, and compares files with "
            "their published checksums.",
    .own = "-",
    .takes = "dataset, image-size, test-fraction, label",
    .exits = CT_HELP_PAIRS({"0", "nothing is wrong"},
                           {"1", "something cannot be read, or is not as published"}),
    .examples = CT_HELP_PAIRS({"A download.", "crosstalk data verify data/fashion-mnist"},
                              {"Own pictures.", "crosstalk data verify my-pictures"}),
    .also = "data info, data get"};

const ct_help ct_cli_data_import_help = {
    .usage = "data import DIR FILE.ctpack [--image-size N] [--option value ...]",
    .text = "Decodes a folder of pictures into one file, which opens without decoding. "
            "Training on it gives the same numbers. Other formats need no import: they are "
            "read as fast as they are.",
    .own = "-",
    .takes = "dataset, image-size, test-fraction, strict, workers, force, quiet",
    .files = CT_HELP_PAIRS({"FILE.ctpack", "all pictures; use it with --data-dir FILE.ctpack"}),
    .examples =
        CT_HELP_PAIRS({"Pictures of 32 pixels, in one file, and a training on it.",
                       "crosstalk data import my-pictures my-pictures.ctpack --image-size 32\n"
                       "crosstalk train --data-dir my-pictures.ctpack --dataset auto --agents 4"},
                      {"A fifth of every class for testing, where there is no test part.",
                       "crosstalk data import my-pictures my-pictures.ctpack --test-fraction 0.2"}),
    .also = "train, data info"};

const ct_help ct_cli_data_split_help = {
    .usage = "data split --ranks R --out DIR [--option value ...]",
    .text = "Writes, for a training over R ranks with these options, each rank's part of the "
            "data to a file of its own: its agents' samples and the test part. A rank then "
            "needs no other data. Give train the same options.",
    .own = "ranks",
    .takes = "dataset, data-dir, agents, partition, alpha, seed, out, force",
    .files = CT_HELP_PAIRS({"DIR/rank-N.ctpart", "the data of rank N"},
                           {"partition.csv in DIR", "the split"}),
    .examples = CT_HELP_PAIRS(
        {"Shapes for two ranks, and the training.",
         "crosstalk data split --dataset shapes --agents 4 --ranks 2 --out parts\n"
         "mpirun -n 2 crosstalk train --dataset shapes --agents 4 --epochs 8 --partition-file "
         "parts/partition.csv --data-dir parts/rank-%r.ctpart"},
        {"Each rank's part on the disk of its own machine: copy rank-N.ctpart there.",
         "crosstalk data split --data-dir data/fashion-mnist --dataset fashion-mnist --ranks "
         "4 --out /scratch/parts"}),
    .also = "train, partition, docs/RANKS.md"};

/* Options of train, and own ones. */
typedef struct data_args {
    ct_config config;
    ct_own own;
    const char *words[3]; /* sub-command and its two words; NULL: there is none */
} data_args;

static ct_status get(data_args *a) {
    char dir[CT_CONFIG_TEXT];
    const char *checksum = ct_own_text(&a->own, "checksum");
    snprintf(dir, sizeof dir, "%s", a->config.data_dir);
    if (dir[0] == '\0') snprintf(dir, sizeof dir, "data/%.400s", a->words[1]);
    if (checksum != NULL && (strlen(checksum) != 64 || strspn(checksum, "0123456789abcdef") != 64))
        return ct_fail(CT_INVAL, "--checksum: '%s' is not a SHA-256 sum: 64 digits 0..9, a..f",
                       checksum);
    ct_get_options options = {.url = ct_own_text(&a->own, "url"),
                              .digest = checksum,
                              .replace = a->config.force,
                              .progress = !a->config.quiet && isatty(STDERR_FILENO) == 1,
                              .pause_s = 2};
    CT_TRY(ct_get(a->words[1], dir, &options));
    ct_show(stdout, "%s: use it with --dataset %s --data-dir %s\n", a->words[1], a->words[1], dir);
    return CT_OK;
}

/* What lies in the directory of the second word. */
static ct_status name_set(data_args *a) {
    snprintf(a->config.data_dir, sizeof a->config.data_dir, "%s", a->words[1]);
    return ct_run_name_data(&a->config);
}

static void print_shape(const ct_dataset *d) {
    const ct_images *i = &d->train;
    ct_show(stdout, "%s: %s\n%zu training and %zu test samples, %d classes, %dx%dx%d\n", d->source,
            d->name, d->train.n, d->test.n, d->n_classes, i->channels, i->height, i->width);
    if (d->train_numbers != NULL)
        ct_show(stdout, "a part: the whole has %zu to train on\n", d->n_whole);
    ct_show(stdout, "mean");
    for (int c = 0; c < i->channels; c++) ct_show(stdout, " %.4f", (double)d->mean[c]);
    ct_show(stdout, ", deviation");
    for (int c = 0; c < i->channels; c++) ct_show(stdout, " %.4f", (double)d->std[c]);
    ct_show(stdout, "\nfingerprint %016llx\n", (unsigned long long)ct_dataset_fingerprint(d));
}

static ct_status print_counts(const ct_dataset *d) {
    size_t n = (size_t)d->n_classes;
    CT_SCOPED_BLOCK(size_t) count = NULL;
    CT_TRY(ct_make(&count, 2 * n, "the counts"));
    for (size_t i = 0; i < d->train.n; i++) count[d->train.labels[i]]++;
    for (size_t i = 0; i < d->test.n; i++) count[n + (size_t)d->test.labels[i]]++;
    ct_show(stdout, "class    train     test  name\n");
    const char *name = d->class_names != NULL ? d->class_names : "";
    for (size_t k = 0; k < n; k++) {
        ct_show(stdout, "%5zu %8zu %8zu  %s\n", k, count[k], count[n + k], name);
        if (d->class_names != NULL) name += strlen(name) + 1;
    }
    return CT_OK;
}

#define MOST_SHOWN 8 /* categories */

/* What the columns of a table are. Categories are what other sites will hear of (docs/SITES.md). */
static void print_columns(const ct_columns *columns) {
    ct_show(stdout, "columns, beside %s:\n", columns->label);
    for (size_t k = 0; k < columns->n; k++) {
        const ct_column *c = &columns->columns[k];
        ct_show(stdout, "  %-20s ", c->name);
        if (c->is_number)
            ct_show(stdout, "numbers, mean %g, deviation %g", c->mean, c->deviation);
        else
            ct_show(stdout, "%zu categories:", c->categories.n);
        for (size_t w = 0; !c->is_number && w < c->categories.n && w < MOST_SHOWN; w++)
            ct_show(stdout, " %s", c->categories.words[w]);
        if (!c->is_number && c->categories.n > MOST_SHOWN) ct_show(stdout, " ...");
        if (c->n_missing > 0)
            ct_show(stdout, "; missing in %llu rows", (unsigned long long)c->n_missing);
        ct_show(stdout, "\n");
    }
}

/* A folder that has nothing to test on can be looked at as well. */
static ct_status open_to_look(const data_args *a, ct_dataset *out) {
    const ct_config *c = &a->config;
    ct_error error;
    ct_status status = CT_CATCH(&error, ct_run_open_data(c, 0, out));
    if (status == CT_OK) return CT_OK;
    bool is_table = strcmp(c->dataset, "csv") == 0;
    bool may_lack_test = is_table || strcmp(c->dataset, "folder") == 0;
    if (status != CT_INVAL || !may_lack_test || c->test_fraction > 0) return ct_fail_again(&error);
    ct_dataset_options options = ct_run_data_options(c);
    options.is_agents = !is_table;
    if (is_table) options.test_fraction = 0.2;
    CT_TRY(ct_run_open_data_as(c, &options, out));
    if (is_table)
        ct_note("no test part; this is with @test-fraction 0.2, as to train with");
    else
        ct_note("no test part; train with @test-fraction 0.2 to hold one out");
    return CT_OK;
}

static ct_status info(data_args *a) {
    CT_SCOPED(ct_dataset) d = {0};
    const char *sheet = ct_own_text(&a->own, "sheet");
    CT_TRY(ct_cli_may_write(sheet, a->config.force));
    a->config.augment = false; /* whole pictures */
    CT_TRY(name_set(a));
    CT_TRY(open_to_look(a, &d));
    print_shape(&d);
    if (d.columns != NULL) print_columns(d.columns);
    CT_TRY(print_counts(&d));
    if (sheet == NULL) return CT_OK;
    CT_TRY(ct_sheet_write(&d, sheet));
    ct_show(stdout, "contact sheet: %s\n", sheet);
    return CT_OK;
}

/* Files of the set whose digests are published: those in the directory `asked`, or the archive that
 * it is itself. */
static ct_status check_digests(const ct_dataset *d, const char *asked, int *n_wrong) {
    ct_published file;
    for (int k = 0; ct_published_file(d->name, k, &file); k++) {
        char got[CT_DIGEST_TEXT];
        bool is_asked = file.kind == CT_ARCHIVE && ct_file_exists(asked);
        const char *dir = file.kind == CT_UNPACKED ? d->source : asked;
        ct_path path = is_asked ? ct_path_in("", asked) : ct_path_in(dir, file.name);
        if (!ct_file_exists(path.text)) continue;
        CT_TRY(ct_digest_file(path.text, got));
        bool is_right = strcmp(got, file.digest) == 0;
        /* Single .gz files are often packed anew by distributions; their content was read. */
        bool may_differ = file.kind == CT_PACKED;
        ct_show(stdout, "%s: %s\n", file.name,
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

/* The whole pictures of a set; they are read when they are needed, not kept. */
static ct_dataset_options whole_pictures(const data_args *a) {
    ct_dataset_options options = ct_run_data_options(&a->config);
    options.augment = false;
    options.memory_bytes = 1;
    return options;
}

static ct_status verify(data_args *a) {
    CT_SCOPED(ct_dataset) d = {0};
    int n_wrong = 0;
    size_t n_broken = 0;
    CT_TRY(name_set(a));
    ct_dataset_options options = whole_pictures(a);
    options.list_all = true;
    CT_TRY(ct_dataset_open(a->config.dataset, &options, &d));
    print_shape(&d);
    CT_TRY(check_digests(&d, a->words[1], &n_wrong));
    CT_TRY(verify_pictures(&d, &n_broken));
    if (n_broken > 0 || n_wrong > 0)
        return ct_fail(CT_IO, "%s: %zu pictures cannot be read, %d files are not as published",
                       a->words[1], n_broken, n_wrong);
    ct_show(stdout, "nothing wrong\n");
    return CT_OK;
}

static ct_status pack_parts(const ct_dataset *d, ct_pack_writer **writer, const char *path) {
    const ct_pictures_spec *spec = ct_pictures_spec_of(d->train_pictures);
    ct_pack_facts facts = {.n_classes = (uint32_t)d->n_classes,
                           .side = (uint32_t)spec->side,
                           .size = (uint32_t)spec->size};
    snprintf(facts.name, sizeof facts.name, "%.31s", d->name);
    memcpy(facts.mean, d->mean, sizeof facts.mean);
    memcpy(facts.std, d->std, sizeof facts.std);
    CT_TRY(ct_pictures_pack(d->train_pictures, *writer));
    size_t n_train = ct_pack_writer_count(*writer);
    if (d->test_pictures != NULL) CT_TRY(ct_pictures_pack(d->test_pictures, *writer));
    facts.n_test = ct_pack_writer_count(*writer) - n_train;
    CT_TRY(ct_pack_writer_commit(writer, &facts, d->class_names));
    ct_show(stdout,
            "%s: %zu pictures to train on and %zu to test, %u pixels; use it with --dataset pack "
            "--data-dir %s\n",
            path, n_train, (size_t)facts.n_test, facts.side, path);
    return CT_OK;
}

static ct_status import(data_args *a) {
    CT_SCOPED(ct_dataset) d = {0};
    ct_pack_writer *writer = NULL;
    CT_TRY(ct_cli_may_write(a->words[2], a->config.force));
    CT_TRY(name_set(a));
    ct_dataset_options options = whole_pictures(a);
    options.is_agents = strcmp(a->config.partition, CT_PARTITION_OWN) == 0;
    CT_TRY(ct_dataset_open(a->config.dataset, &options, &d));
    if (d.train_pictures == NULL || (d.test.n > 0 && d.test_pictures == NULL))
        return ct_fail(CT_INVAL, "%s is not a folder of pictures: it is read as fast as it is",
                       a->words[1]);
    CT_TRY(ct_pack_writer_open(a->words[2], &writer));
    ct_status status = pack_parts(&d, &writer, a->words[2]);
    ct_pack_writer_abandon(&writer);
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
    CT_SCOPED_BLOCK(bool) keep = NULL;
    char path[CT_CONFIG_TEXT + 64];
    int n_worlds = ct_count_parts(c->seeds, ',') * ct_count_parts(c->lambdas, ',');
    const char *kind = strcmp(d->name, "pack") == 0 ? "ctpack" : "ctpart";
    ct_dataset_options options = ct_run_data_options(c);
    CT_TRY(ct_make(&keep, d->train.n, "a list of samples"));
    CT_TRY(ct_dir_create(c->out));
    for (int rank = 0; rank < n_ranks; rank++) {
        choose_samples(p, ct_rank_rows(n_worlds * p->n_agents, n_ranks, rank), keep, d->train.n);
        snprintf(path, sizeof path, "%s/rank-%d.%s", c->out, rank, kind);
        CT_TRY(ct_part_write(d, &options, keep, path));
    }
    remove_parts_from(c->out, n_ranks, kind);
    snprintf(path, sizeof path, "%s/partition.csv", c->out);
    CT_TRY(ct_partition_write(p, path));
    ct_show(stdout,
            "%s: %d parts; use them with mpirun -n %d crosstalk train --dataset %s --agents %d "
            "--data-dir %s/rank-%%r.%s --partition-file %s\n",
            c->out, n_ranks, n_ranks, d->name, p->n_agents, c->out, kind, path);
    return CT_OK;
}

static ct_status split(data_args *a) {
    CT_SCOPED(ct_dataset) d = {0};
    CT_SCOPED(ct_partition) p = {0};
    ct_config *c = &a->config;
    int64_t n_ranks = ct_own_whole(&a->own, "ranks");
    if (n_ranks == 0 || c->out[0] == '\0')
        return ct_fail(CT_INVAL, "crosstalk data split needs --ranks R and --out DIR");
    if (n_ranks > c->agents)
        return ct_fail(CT_INVAL, "--ranks: '%s' is not a number from 1 to the %lld of --agents",
                       ct_own_text(&a->own, "ranks"), (long long)c->agents);
    if (ct_dir_exists(c->out) && !c->force)
        return ct_fail(CT_IO, "%s is there already; write into it with --force", c->out);
    CT_TRY(ct_run_name_data(c));
    ct_dataset_options options = whole_pictures(a);
    CT_TRY(ct_run_open_data_as(c, &options, &d));
    CT_TRY(ct_part_check(&d));
    CT_TRY(ct_run_partition(c, &d, (uint64_t)c->seed, &p));
    return write_parts(a, &d, &p, (int)n_ranks);
}

ct_status ct_cli_data(int n_args, char **args) {
    static const struct {
        const char *name;
        ct_status (*run)(data_args *a);
        int n_words; /* the name among them */
        const char *needs;
    } commands[] = {{"get", get, 2, "the name of a set"},
                    {"info", info, 2, "a directory"},
                    {"verify", verify, 2, "a directory"},
                    {"import", import, 3, "a directory and a file to write"},
                    {"split", split, 1, "no other words"}};
    data_args a = {.words = {NULL}};
    ct_config_init(&a.config);
    snprintf(a.config.dataset, sizeof a.config.dataset, "auto");
    CT_TRY(ct_own_take("data", &n_args, args, &a.own));
    CT_TRY(ct_cli_options(n_args, args, &a.config, a.words, 3));
    ct_cli_quiet(a.config.quiet);
    if (a.words[0] == NULL)
        return ct_fail(CT_INVAL,
                       "say what: get, info, verify, import or split (crosstalk help data)");
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++) {
        int n = commands[k].n_words;
        if (strcmp(a.words[0], commands[k].name) != 0) continue;
        if (a.words[n - 1] != NULL && (n == 3 || a.words[n] == NULL)) return commands[k].run(&a);
        return ct_fail(CT_INVAL, "crosstalk data %s needs %s (crosstalk help data %s)", a.words[0],
                       commands[k].needs, a.words[0]);
    }
    return ct_cli_no_part("data", a.words[0]);
}
