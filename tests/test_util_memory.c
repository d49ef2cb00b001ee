/* What util/hash.h and util/memory.h promise. */
#include "test.h"

#include "util/hash.h"
#include "util/memory.h"

/* What is written into files stays as it is: the published values of FNV-1a, and a sum that old
 * checkpoints carry, spelled out. */
static void hashes_are_what_old_files_have(void) {
    CHECK(ct_hash(CT_HASH_START, "", 0) == UINT64_C(0xcbf29ce484222325));
    CHECK(ct_hash(CT_HASH_START, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    CHECK(ct_hash(CT_HASH_START, "foobar", 6) == UINT64_C(0x85944171f73967e8));
    CHECK(ct_hash_number(CT_HASH_START, 0x0807060504030201) ==
          ct_hash(CT_HASH_START, "\1\2\3\4\5\6\7\10", 8));
    uint64_t sum = CT_HASH_START, word = UINT64_C(0x6867666564636261); /* "abcdefgh" */
    sum = (sum ^ word) * UINT64_C(0x100000001b3);
    sum ^= sum >> 29;
    CHECK(ct_checksum(CT_HASH_START, "abcdefgh", 8) == sum);
    sum = (sum ^ 'i') * UINT64_C(0x100000001b3);
    sum ^= sum >> 29;
    CHECK(ct_checksum(CT_HASH_START, "abcdefghi", 9) == sum);
    CHECK(ct_checksum(ct_checksum(CT_HASH_START, "abcdefgh", 8), "i", 1) == sum);
}

static void a_changed_bit_changes_a_checksum(void) {
    uint8_t bytes[101];
    for (size_t k = 0; k < sizeof bytes; k++) bytes[k] = (uint8_t)(37 * k);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        uint64_t sum = ct_checksum_wide(CT_HASH_START, bytes, n);
        for (size_t bit = 0; bit < 8 * n; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            CHECK(ct_checksum_wide(CT_HASH_START, bytes, n) != sum);
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        if (n > 0) CHECK(ct_checksum_wide(CT_HASH_START, bytes, n - 1) != sum);
    }
}

static void memory_comes_with_a_status(void) {
    int *list = NULL;
    double *room = NULL;
    size_t capacity = 0;
    char *copy = NULL;
    for (size_t n = 0; n < 1000; n++) {
        REQUIRE_OK(ct_extend(&list, n, "a list"));
        list[n] = (int)n;
    }
    for (int n = 0; n < 1000; n++) CHECK(list[n] == n);
    REQUIRE_OK(ct_reserve(&room, &capacity, 10, "room"));
    const double *before = room;
    CHECK(capacity == 10);
    REQUIRE_OK(ct_reserve(&room, &capacity, 5, "room"));
    CHECK(capacity == 10 && room == before);
    REQUIRE_OK(ct_make_text(&copy, "copied"));
    CHECK(strcmp(copy, "copied") == 0);
    ct_free(copy);
    CHECK_FAILS(ct_make(&copy, SIZE_MAX, "everything"), CT_NOMEM, "no memory for everything");
    CHECK(copy == NULL);
    CHECK_FAILS(ct_reserve(&room, &capacity, SIZE_MAX, "everything"), CT_NOMEM, "no memory");
    CHECK(capacity == 0 && room == NULL);
    ct_free(list);
}

int main(void) {
    TEST(hashes_are_what_old_files_have);
    TEST(a_changed_bit_changes_a_checksum);
    TEST(memory_comes_with_a_status);
    return test_report();
}
