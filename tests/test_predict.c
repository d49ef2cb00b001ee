/* crosstalk predict and eval: pictures in, classes out; the model's own normalisation and classes. */
#include "ct_config.h"
#include "data/png_write.h"
#include "models.h"
#include "program.h"

#define NEEDS_PNG                                                                                  \
    if (!CT_WITH_PNG) SKIP("built without libpng")
#define LEARN                                                                                      \
    "train --quiet --dataset folder --data-dir pictures --image-size 8 --model mlp:8 --agents 2 "  \
    "--batch-size 4 --partition iid --epochs 1 --lr 0.003 --augment off --threads 1 --workers 1 "  \
    "--out run"

enum { WIDTH = 12, HEIGHT = 8 };

/* Class k has its own colour, more or less, and `light` is added everywhere. */
static void put_picture(const char *dir, const char *class_name, int k, int number, int light) {
    uint8_t pixels[HEIGHT * WIDTH * 3];
    char path[128];
    ct_rng rng;
    ct_rng_init(&rng, 7, CT_RNG_SYNTHETIC, (uint32_t)number, (uint32_t)k, 0);
    snprintf(path, sizeof path, "%s/%s", dir, class_name);
    CHECK_OK(ct_dir_create(path));
    for (int i = 0; i < HEIGHT * WIDTH * 3; i++)
        pixels[i] = (uint8_t)((i % 3 == k ? 70 : 40) + light + (int)ct_rng_below(&rng, 60));
    snprintf(path, sizeof path, "%s/%s/%d.png", dir, class_name, number);
    CHECK_OK(ct_png_write(path, WIDTH, HEIGHT, pixels));
}

static const char *const class_names[] = {"apple", "leaf", "sky"};

/* n pictures of every class in dir/<class>. */
static void put_classes(const char *dir, int first, int n, int light) {
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < n; i++) put_picture(dir, class_names[k], k, first + i, light);
}

static void make_set(void) {
    put_classes("pictures/train", 0, 12, 0);
    put_classes("pictures/val", 100, 5, 0);
    succeeds(LEARN);
}

static void remove_set(void) {
    remove_tree("pictures");
    remove_tree("run");
}

/* What eval prints behind the name of the model, up to the data's name. */
static const char *scores_of(const char *words) {
    static char scores[4][128];
    static int next;
    char *to = scores[next++ % 4];
    succeeds(words);
    const char *from = strstr(said.out, "accuracy");
    snprintf(to, 128, "%.*s", from != NULL ? (int)strcspn(from, "\n") : 0,
             from != NULL ? from : "");
    return to;
}

/* ---- predict ---- */

static void pictures_get_a_class_and_a_probability(void) {
    NEEDS_PNG;
    float p[3];
    ct_model *m = NULL;
    make_set();
    succeeds("predict run pictures/val");
    CHECK(n_lines(said.out) == 16);
    CHECK(strncmp(said.out, "file,class,probability\npictures/val/apple/100.png,", 50) == 0);
    CHECK(strstr(said.err, "15 pictures in folders named after a class") != NULL);
    REQUIRE_OK(ct_model_load("run", NULL, &m));
    REQUIRE_OK(
        ct_model_run_files(m, &(const char *){"pictures/val/sky/104.png"}, 1, p, NULL, NULL));
    int best = p[1] > p[0] ? (p[2] > p[1] ? 2 : 1) : p[2] > p[0] ? 2 : 0;
    char line[128];
    snprintf(line, sizeof line, "\npictures/val/sky/104.png,%s,%.7g\n", class_names[best],
             (double)p[best]);
    CHECK(strstr(said.out, line) != NULL);
    ct_model_free(&m);
    /* the same words about accuracy from eval, in which 5 of a class count the same */
    char accuracy[32];
    const char *from = strstr(said.err, "accuracy");
    snprintf(accuracy, sizeof accuracy, "%.15s", from != NULL ? from : "none");
    const char *scores = scores_of("eval run --quiet");
    CHECK(strstr(scores, accuracy) != NULL);
    CHECK(strstr(scores, "accuracy 1") == NULL); /* a few are wrong: it is no matter of course */
    remove_set();
}

static void json_has_the_most_probable_classes_in_order(void) {
    NEEDS_PNG;
    make_set();
    succeeds("predict run pictures/val --format json --top 9 --out p.json --quiet");
    CHECK(said.out[0] == '\0' && said.err[0] == '\0');
    ct_json *json = read_json("p.json", -1);
    REQUIRE(json != NULL && json->kind == CT_JSON_ARRAY && json->n_children == 15);
    for (const ct_json *row = json->child; row != NULL; row = row->next) {
        const ct_json *top = ct_json_get(row, "top");
        double sum = 0, before = 1;
        CHECK(ct_json_get(row, "file") != NULL && top != NULL && top->n_children == 3);
        for (const ct_json *c = top->child; c != NULL; c = c->next) {
            double now = number_of(c, "probability");
            CHECK(now <= before && strcmp(ct_json_get(c, "class")->string,
                                          class_names[(int)number_of(c, "label")]) == 0);
            sum += before = now;
        }
        CHECK_NEAR(sum, 1, 1e-6);
    }
    ct_json_free(&json);
    REFUSES(1, "predict run pictures/val --out p.json", "p.json is there already", "--force");
    succeeds("predict run pictures/val/sky/100.png --top 2 --out p.json --force");
    CHECK(run("predict run pictures/val/sky/100.png --top 2") == 0);
    CHECK(strstr(said.out, "file,class,probability,class_2,probability_2\n") == said.out);
    ct_blob file = {0};
    CHECK_OK(ct_file_read("p.json", 1 << 20, &file));
    CHECK(strcmp((char *)file.bytes, said.out) == 0);
    ct_blob_free(&file);
    unlink("p.json");
    remove_set();
}

static void files_that_cannot_be_read_are_named_and_left_out(void) {
    NEEDS_PNG;
    make_set();
    CHECK(rename("pictures/val/sky/100.png", "pictures/val/sky/a,\"b.png") == 0);
    put("pictures/val/sky/words.txt", "no picture");
    put("pictures/val/empty.png", "");
    CHECK_OK(ct_dir_create("empty"));
    succeeds("predict run pictures/val nowhere.jpg");
    CHECK(n_lines(said.out) == 16 && strstr(said.out, "\"pictures/val/sky/a,\"\"b.png\",") != NULL);
    CHECK(strstr(said.err, "note: pictures/val/sky/words.txt: neither JPEG nor PNG\n") != NULL);
    CHECK(strstr(said.err, "note: pictures/val/empty.png: empty file\n") != NULL);
    CHECK(strstr(said.err, "note: nowhere.jpg: No such file") != NULL);
    CHECK(strstr(said.err, "note: 3 of 18 files cannot be read and are left out\n") != NULL);
    REFUSES(1, "predict run pictures/val --strict --quiet --out p.csv", "empty.png", "--strict");
    REFUSES(1, "predict run nowhere.jpg pictures/val/empty.png --quiet", "none of 2 files",
            "nowhere.jpg");
    REFUSES(1, "predict run empty", "empty: no files");
    REFUSES(1, "predict nowhere pictures/val", "nowhere");
    REFUSES(2, "predict run", "pictures");
    REFUSES(2, "predict run pictures/val --top 0", "--top");
    REFUSES(2, "predict run pictures/val --format xml", "--format", "json");
    REFUSES(2, "predict run pictures/val --device gpu", "gpu");
    REFUSES(2, "predict run pictures/val --image-size 9", "--image-size 9", "says 8");
    CHECK(!ct_file_exists("p.csv"));
    rmdir("empty");
    remove_set();
}

/* ---- models of older versions ---- */

static void make_old(void) {
    CT_SCOPED(ct_tensors) t = {0};
    REQUIRE_OK(ct_tensors_read("run/consensus.safetensors", &t));
    REQUIRE_OK(ct_tensors_write("run/consensus.safetensors", t.items, t.n));
}

static void old_models_take_what_is_missing_from_their_run_and_its_data(void) {
    NEEDS_PNG;
    static char before[SAID];
    make_set();
    succeeds("predict run pictures/val --quiet");
    snprintf(before, sizeof before, "%s", said.out);
    const char *scores = scores_of("eval run");
    make_old();
    succeeds("predict run pictures/val");
    CHECK(strcmp(said.out, before) == 0 && strstr(said.err, "does not describe itself") != NULL);
    CHECK(strcmp(scores_of("eval run"), scores) == 0);
    CHECK_OK(ct_dir_create("away"));
    CHECK(rename("run/consensus.safetensors", "away/m.safetensors") == 0);
    REFUSES(2, "predict away/m.safetensors pictures/val", "--model, --norm, --channels");
    succeeds("predict away/m.safetensors pictures/val/sky --quiet --model mlp:8 --norm evonorm "
             "--channels 3 --image-size 8 --mean 0.3,0.3,0.3 --deviation 0.1,0.1,0.1");
    CHECK(n_lines(said.out) == 6);
    REFUSES(2, "predict away/m.safetensors pictures/val --channels 3 --mean 0.5", "--mean 0.5");
    remove_tree("away");
    remove_set();
}

/* ---- eval ---- */

/* The same 15 pictures, whatever lies beside them: the training part of another folder is dark, a
 * third folder has none, a fourth has nothing but classes. */
static void eval_normalises_as_in_training_wherever_the_pictures_lie(void) {
    NEEDS_PNG;
    make_set();
    const char *scores = scores_of("eval run");
    put_classes("other/train", 200, 4, 90);
    put_classes("other/val", 100, 5, 0);
    put_classes("alone/val", 100, 5, 0);
    put_classes("bare", 100, 5, 0);
    CHECK(strcmp(scores_of("eval run --data-dir other"), scores) == 0);
    CHECK(strcmp(scores_of("eval run --data-dir alone"), scores) == 0);
    CHECK(strcmp(scores_of("eval run --data-dir bare"), scores) == 0);
    CHECK(strcmp(scores_of("eval run/consensus.safetensors --data-dir bare"), scores) == 0);
    CHECK(strcmp(scores_of("eval run --data-dir bare --test-fraction 0.4"), scores) != 0);
    remove_tree("other");
    remove_tree("alone");
    remove_tree("bare");
    remove_set();
}

static void eval_goes_by_the_names_of_classes(void) {
    NEEDS_PNG;
    make_set();
    /* without apples, the others have other numbers */
    for (int i = 0; i < 5; i++) put_picture("some", "leaf", 1, 100 + i, 0);
    for (int i = 0; i < 5; i++) put_picture("some", "sky", 2, 100 + i, 0);
    succeeds("predict run some");
    char accuracy[32];
    const char *from = strstr(said.err, "accuracy");
    snprintf(accuracy, sizeof accuracy, "%.15s", from != NULL ? from : "none");
    CHECK(strstr(scores_of("eval run --data-dir some"), accuracy) != NULL);
    CHECK(strstr(said.out, "10 test samples of folder") != NULL);
    put_picture("some", "zebra", 1, 1, 0);
    REFUSES(2, "eval run --data-dir some", "zebra", "some");
    REFUSES(2, "eval run --image-size 9", "--image-size 9", "8 pixels");
    REFUSES(2, "eval run --dataset shapes", "1x28x28", "3x8x8");
    REFUSES(1, "eval run --data-dir nowhere", "nowhere");
    remove_tree("some");
    remove_set();
}

/* 1 MiB holds few of them: they are decoded piece by piece. */
static void pictures_that_do_not_fit_into_memory_are_streamed(void) {
    NEEDS_PNG;
    put_classes("pictures/train", 0, 2, 0);
    put_classes("pictures/val", 100, 3, 0);
    succeeds("train --quiet --dataset folder --data-dir pictures --image-size 256 --model mlp:2 "
             "--agents 2 --batch-size 2 --partition iid --epochs 1 --augment off --threads 1 "
             "--workers 1 --out run");
    CHECK(strcmp(scores_of("eval run"), scores_of("eval run --memory 1")) == 0);
    remove_set();
}

int main(void) {
    if (!enter_folder()) return 1;
    TEST(pictures_get_a_class_and_a_probability);
    TEST(json_has_the_most_probable_classes_in_order);
    TEST(files_that_cannot_be_read_are_named_and_left_out);
    TEST(old_models_take_what_is_missing_from_their_run_and_its_data);
    TEST(eval_normalises_as_in_training_wherever_the_pictures_lie);
    TEST(eval_goes_by_the_names_of_classes);
    TEST(pictures_that_do_not_fit_into_memory_are_streamed);
    leave_folder();
    return test_report();
}
