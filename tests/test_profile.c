/* What agents with data of their own agree on: profiles merge to the same bits in any order, what
 * cannot be agreed on is refused with both sides' values, and labels mean the same afterwards. */
#include "test.h"

#include "data/dataset_internal.h"
#include "data/pictures.h"
#include "data/profile.h"
#include "util/memory.h"
#include "util/rng.h"

/* A set of n pictures of 3x4x4 with the classes of a list with blanks ("": two without names). */
static void make_set(const char *classes, size_t n, uint8_t level, ct_dataset *out) {
    *out = (ct_dataset){.n_classes = 2, .is_measured = true};
    REQUIRE_OK(ct_images_create(n, 3, 4, 4, &out->train));
    REQUIRE_OK(ct_images_create(3, 3, 4, 4, &out->test));
    for (size_t k = 0; k < n * 48; k++) out->train.pixels[k] = (uint8_t)(level + k % 7);
    ct_images_measure(&out->train, out->mean, out->std);
    if (classes[0] != '\0') {
        REQUIRE_OK(ct_make_text(&out->class_names, classes));
        out->n_classes = 0;
        for (char *c = out->class_names; *c != '\0'; c++) {
            if (*c != ' ') continue;
            *c = '\0';
            out->n_classes++;
        }
    }
    for (size_t i = 0; i < n; i++) out->train.labels[i] = (int32_t)(i % (size_t)out->n_classes);
    for (size_t i = 0; i < 3; i++) out->test.labels[i] = (int32_t)(i % (size_t)out->n_classes);
}

static ct_profile profile_of(const ct_dataset *d, int agent, const char *name) {
    ct_profile p = {0};
    CHECK_OK(ct_profile_of(d, agent, name, &p));
    return p;
}

enum { N_AGENTS = 9 };

/* As texts, by hand: each merge goes through JSON, as it does between processes. */
static void merge_any_way(ct_rng *rng, const ct_text *says, ct_text *out) {
    ct_text left[N_AGENTS] = {{0}};
    for (int k = 0; k < N_AGENTS; k++) ct_text_add(&left[k], "%s", says[k].chars);
    for (uint32_t n = N_AGENTS; n > 1; n--) {
        uint32_t a = ct_rng_below(rng, n), b = ct_rng_below(rng, n - 1);
        if (b >= a) b++;
        CHECK_OK(ct_profile_merge_text(NULL, left[a].chars, left[a].n, &left[b]));
        ct_text_free(&left[a]);
        left[a] = left[n - 1];
        left[n - 1] = (ct_text){0};
    }
    *out = left[0];
}

static void profiles_merge_to_the_same_text_along_any_tree(void) {
    static const char *const classes[] = {"cat dog ", "ant ", "dog zebra bird ", "cat "};
    ct_text says[N_AGENTS] = {{0}}, first = {0};
    for (int k = 0; k < N_AGENTS; k++) {
        char name[16];
        CT_SCOPED(ct_dataset) d = {0};
        make_set(classes[k % 4], (size_t)(10 + 7 * k % 5), (uint8_t)(20 * k), &d);
        snprintf(name, sizeof name, "site-%d", k);
        ct_profile p = profile_of(&d, k, name);
        ct_profile_print(&p, &says[k]);
        ct_profile_free(&p);
    }
    for (uint64_t seed = 1; seed <= 30; seed++) {
        ct_rng rng;
        ct_text merged = {0};
        ct_rng_init(&rng, seed, CT_RNG_SHUFFLE, 0, 0, 0);
        merge_any_way(&rng, says, &merged);
        if (first.n == 0) ct_text_add(&first, "%s", merged.chars);
        CHECK(strcmp(first.chars, merged.chars) == 0);
        ct_text_free(&merged);
    }
    CHECK(strstr(first.chars, "\"agents\": 9, \"first\": [0, \"site-0\"]") != NULL);
    CHECK(strstr(first.chars, "[\"ant\", \"bird\", \"cat\", \"dog\", \"zebra\"]") != NULL);
    CHECK(strstr(first.chars, "\"most\": [14, 2, \"site-2\"]") != NULL);
    CHECK(strstr(first.chars, "\"least\": [10, 0, \"site-0\"]") != NULL);
    CHECK(strstr(first.chars, "\"test\": 27}") != NULL);
    for (int k = 0; k < N_AGENTS; k++) ct_text_free(&says[k]);
    ct_text_free(&first);
}

static void who_says_nothing_changes_nothing(void) {
    static const char nothing[] = "{\"agents\": 0}";
    CT_SCOPED(ct_dataset) d = {0};
    CT_SCOPED(ct_text) says = {0};
    CT_SCOPED(ct_text) merged = {0};
    make_set("cat dog ", 5, 0, &d);
    ct_profile p = profile_of(&d, 3, "east");
    ct_profile_print(&p, &says);
    ct_profile_free(&p);
    ct_text_add(&merged, "%s", nothing);
    CHECK_OK(ct_profile_merge_text(NULL, nothing, sizeof nothing - 1, &merged));
    CHECK(strcmp(merged.chars, nothing) == 0);
    CHECK_OK(ct_profile_merge_text(NULL, says.chars, says.n, &merged));
    CHECK(strcmp(merged.chars, says.chars) == 0);
    CHECK_OK(ct_profile_merge_text(NULL, nothing, sizeof nothing - 1, &merged));
    CHECK(strcmp(merged.chars, says.chars) == 0);
}

/* Where all pixels lie in one set, its scale is what the agents agree on. */
static void the_scale_is_that_of_all_pixels(void) {
    CT_SCOPED(ct_dataset) a = {0};
    CT_SCOPED(ct_dataset) b = {0};
    CT_SCOPED(ct_images) both = {0};
    float mean[3], std[3];
    make_set("cat dog ", 30, 0, &a);
    make_set("cat dog ", 11, 200, &b);
    REQUIRE_OK(ct_images_create(41, 3, 4, 4, &both));
    memcpy(both.pixels, a.train.pixels, 30 * 48);
    memcpy(both.pixels + 30 * 48, b.train.pixels, 11 * 48);
    ct_images_measure(&both, mean, std);
    ct_profile p = profile_of(&a, 0, "0"), q = profile_of(&b, 1, "1");
    CHECK_OK(ct_profile_merge(&q, &p));
    CHECK(p.has_sums && !p.has_scale);
    CHECK_OK(ct_dataset_conform(&a, &p));
    CHECK_OK(ct_dataset_conform(&b, &p));
    for (int c = 0; c < 3; c++) {
        CHECK_NEAR(a.mean[c], mean[c], 1e-7);
        CHECK_NEAR(a.std[c], std[c], 1e-7);
    }
    CHECK(memcmp(a.mean, b.mean, sizeof a.mean) == 0 && memcmp(a.std, b.std, sizeof a.std) == 0);
    ct_profile_free(&p);
    ct_profile_free(&q);
}

static void labels_mean_the_same_everywhere(void) {
    CT_SCOPED(ct_dataset) a = {0};
    CT_SCOPED(ct_dataset) b = {0};
    make_set("dog cat ", 4, 0, &a); /* as they came: not sorted */
    make_set("emu bee dog ", 6, 0, &b);
    ct_profile p = profile_of(&a, 0, "0"), q = profile_of(&b, 1, "1");
    CHECK_OK(ct_profile_merge(&q, &p));
    CHECK_OK(ct_dataset_conform(&a, &p));
    CHECK_OK(ct_dataset_conform(&b, &p));
    static const char *const of_a[] = {"dog", "cat"}, *const of_b[] = {"emu", "bee", "dog"};
    CHECK(a.n_classes == 4 && b.n_classes == 4);
    for (int i = 0; i < 4; i++)
        CHECK(strcmp(ct_dataset_class_name(&a, a.train.labels[i]), of_a[i % 2]) == 0);
    for (int i = 0; i < 6; i++)
        CHECK(strcmp(ct_dataset_class_name(&b, b.train.labels[i]), of_b[i % 3]) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(strcmp(ct_dataset_class_name(&b, b.test.labels[i]), of_b[i % 3]) == 0);
    ct_profile_free(&p);
    ct_profile_free(&q);
}

static void without_names_the_largest_number_counts(void) {
    CT_SCOPED(ct_dataset) a = {0};
    CT_SCOPED(ct_dataset) b = {0};
    make_set("", 4, 0, &a);
    make_set("", 4, 0, &b);
    b.n_classes = 7;
    ct_profile p = profile_of(&a, 0, "0"), q = profile_of(&b, 1, "1");
    CHECK_OK(ct_profile_merge(&q, &p));
    CHECK_OK(ct_dataset_conform(&a, &p));
    CHECK(a.n_classes == 7 && a.train.labels[1] == 1 && a.class_names == NULL);
    ct_profile_free(&p);
    ct_profile_free(&q);
}

/* Both ways round, the same line. */
static void refuse_both(const ct_dataset *a, const ct_dataset *b, const char *words) {
    ct_profile p = profile_of(a, 0, "north"), q = profile_of(b, 1, "south");
    ct_profile again = profile_of(a, 0, "north");
    CHECK_FAILS(ct_profile_merge(&q, &p), CT_INVAL, words);
    CHECK_FAILS(ct_profile_merge(&again, &q), CT_INVAL, words);
    ct_profile_free(&p);
    ct_profile_free(&q);
    ct_profile_free(&again);
}

static void what_cannot_be_agreed_on_names_both_sides(void) {
    CT_SCOPED(ct_dataset) a = {0};
    CT_SCOPED(ct_dataset) b = {0};
    make_set("cat dog ", 4, 0, &a);
    make_set("cat dog ", 4, 0, &b);
    b.train.height = b.train.width = 2;
    refuse_both(&a, &b, "agent south has pictures of 3x2x2, agent north pictures of 3x4x4: ");
    b.train.height = b.train.width = 4;
    b.resize = 9;
    refuse_both(&a, &b, "agent south has pictures resized to 9");
    b.resize = 0;
    b.flip = true;
    refuse_both(&a, &b, "cropped by 0, flipped, agent north");
    b.flip = false;
    b.mean[0] = 0.25f;
    b.is_measured = false;
    refuse_both(&a, &b, "agent south has a mean of 0.25 and a deviation of ");
    b.mean[0] = a.mean[0];
    ct_free(ct_take(&b.class_names));
    refuse_both(&a, &b,
                "agent south has 2 classes without names, agent north 2 classes with names ('cat', "
                "...): ");
}

static void names_that_are_none_are_refused(void) {
    CT_SCOPED(ct_dataset) a = {0};
    ct_profile p = {0};
    make_set("cat cat ", 4, 0, &a);
    CHECK_FAILS(ct_profile_of(&a, 0, "north", &p), CT_IO,
                "agent north has two classes of the name 'cat'");
    a.class_names[2] = '\xff';
    CHECK_FAILS(ct_profile_of(&a, 0, "north", &p), CT_IO, "is not UTF-8");
    CHECK(ct_agent_name_is_right("a.B_c-9") && !ct_agent_name_is_right("") &&
          !ct_agent_name_is_right("a b") && !ct_agent_name_is_right("a/b"));
}

/* Every field of what another process says, out of its range or of another kind. */
static void what_others_say_is_checked(void) {
    static const char good[] =
        "{\"agents\": 1, \"first\": [1, \"south\"], \"shape\": [1, 4, 4], \"values\": 0, \"cut\": "
        "[4, 0, 0], \"classes\": [\"cat\", \"dog\"], \"mean\": [0.5], \"std\": [0.25], \"pixels\": "
        "[[\"32\", \"100\", \"900\"]], \"most\": [2, 1, \"south\"], \"least\": [2, 1, \"south\"], "
        "\"test\": 3}";
    static const char *const changes[][2] = {{"\"agents\": 1", "\"agents\": -1"},
                                             {"\"agents\": 1", "\"agents\": 1.5"},
                                             {"[1, \"south\"]", "[-1, \"south\"]"},
                                             {"[1, \"south\"]", "[1, \"so th\"]"},
                                             {"[1, \"south\"]", "[1]"},
                                             {"[1, 4, 4]", "[17, 4, 4]"},
                                             {"[1, 4, 4]", "[1, 0, 4]"},
                                             {"[1, 4, 4]", "[1, 4]"},
                                             {"\"values\": 0", "\"values\": 2"},
                                             {"[4, 0, 0]", "[9000, 0, 0]"},
                                             {"[4, 0, 0]", "[4, 128, 0]"},
                                             {"[4, 0, 0]", "[4, 0, 2]"},
                                             {"[\"cat\", \"dog\"]", "[]"},
                                             {"[\"cat\", \"dog\"]", "0"},
                                             {"[\"cat\", \"dog\"]", "65537"},
                                             {"[\"cat\", \"dog\"]", "[\"dog\", \"cat\"]"},
                                             {"[\"cat\", \"dog\"]", "[\"a\", \"a\"]"},
                                             {"[\"cat\", \"dog\"]", "[\"a\", 1]"},
                                             {"[0.5]", "[1e39]"},
                                             {"[0.5]", "[0.5, 0.5]"},
                                             {"[0.5]", "null"},
                                             {"[0.25]", "[0]"},
                                             {"[0.25]", "[-1]"},
                                             {"\"32\"", "\"0\""},
                                             {"\"32\"", "\"-32\""},
                                             {"\"32\"", "32"},
                                             {"\"32\"", "\"99999999999999999999\""},
                                             {"\"100\"", "\"8161\""},
                                             {"\"900\"", "\"25501\""},
                                             {"\"900\"", "\"312\""},
                                             {"\"most\": [2,", "\"most\": [0,"},
                                             {"\"least\": [2,", "\"least\": [5e9,"},
                                             {"\"test\": 3", "\"test\": -1"},
                                             {"\"test\": 3", "\"test\": null"}};
    CT_SCOPED(ct_profile) p = {0};
    CT_SCOPED(ct_text) text = {0};
    REQUIRE_OK(ct_profile_parse(good, sizeof good - 1, &p));
    ct_profile_print(&p, &text);
    CHECK(strcmp(text.chars, good) == 0);
    for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
        char bad[1024];
        const char *at = strstr(good, changes[k][0]);
        REQUIRE(at != NULL);
        snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - good), good, changes[k][1],
                 at + strlen(changes[k][0]));
        ct_profile q = {0};
        CHECK_FAILS(ct_profile_parse(bad, strlen(bad), &q), CT_IO,
                    "what another process says of its data");
    }
    CHECK_FAILS(ct_profile_parse("[1]", 3, &p), CT_IO, "no valid 'profile'");
}

int main(void) {
    TEST(profiles_merge_to_the_same_text_along_any_tree);
    TEST(who_says_nothing_changes_nothing);
    TEST(the_scale_is_that_of_all_pixels);
    TEST(labels_mean_the_same_everywhere);
    TEST(without_names_the_largest_number_counts);
    TEST(what_cannot_be_agreed_on_names_both_sides);
    TEST(names_that_are_none_are_refused);
    TEST(what_others_say_is_checked);
    return test_report();
}
