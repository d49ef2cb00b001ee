/* Key pairs of libzmq's CURVE. A key file is three lines: a comment, "public" and 64 digits, "secret"
 * and 64 digits. */
#include "site/keys.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ct_config.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/text.h"

#if CT_WITH_ZMQ
#include <zmq.h>
#endif

#define MAX_FILE_BYTES 4096

void ct_key_print(const uint8_t key[CT_KEY_BYTES], char text[CT_KEY_TEXT]) {
    for (int k = 0; k < CT_KEY_BYTES; k++) snprintf(text + 2 * k, 3, "%02x", key[k]);
}

static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool ct_key_parse(const char *text, uint8_t key[CT_KEY_BYTES]) {
    uint8_t parsed[CT_KEY_BYTES];
    if (strlen(text) != CT_KEY_TEXT - 1) return false;
    for (int k = 0; k < CT_KEY_BYTES; k++) {
        int high = digit(text[2 * k]), low = digit(text[2 * k + 1]);
        if (high < 0 || low < 0) return false;
        parsed[k] = (uint8_t)(16 * high + low);
    }
    memcpy(key, parsed, sizeof parsed);
    explicit_bzero(parsed, sizeof parsed);
    return true;
}

bool ct_keys_equal(const uint8_t a[CT_KEY_BYTES], const uint8_t b[CT_KEY_BYTES]) {
    volatile uint8_t difference = 0;
    for (int k = 0; k < CT_KEY_BYTES; k++) difference = (uint8_t)(difference | (a[k] ^ b[k]));
    return difference == 0;
}

/* ---- files ---- */

static ct_status write_all(int fd, const char *text, const char *path) {
    for (size_t n = strlen(text); n > 0;) {
        ssize_t written = write(fd, text, n);
        if (written <= 0) return ct_file_failed(path);
        text += written;
        n -= (size_t)written;
    }
    return fsync(fd) == 0 ? CT_OK : ct_file_failed(path);
}

ct_status ct_keys_write(const ct_key_pair *pair, const char *path) {
    char public_text[CT_KEY_TEXT], secret_text[CT_KEY_TEXT], text[512];
    if (access(path, F_OK) == 0)
        return ct_fail(CT_IO, "%s exists: a key is never overwritten; move it away first", path);
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    CT_SCOPED_BY(ct_fd_close, int) fd = open(path, flags, 0600);
    if (fd < 0) return ct_file_failed(path);
    ct_key_print(pair->public_key, public_text);
    ct_key_print(pair->secret_key, secret_text);
    snprintf(text, sizeof text,
             "# key of a crosstalk site: the secret half is nobody else's\n"
             "public %s\nsecret %s\n",
             public_text, secret_text);
    ct_status status = write_all(fd, text, path);
    explicit_bzero(text, sizeof text);
    explicit_bzero(secret_text, sizeof secret_text);
    if (status != CT_OK) unlink(path);
    return status;
}

#if CT_WITH_ZMQ

/* As libzmq writes keys: Z85. */
#define Z85_TEXT 41

ct_status ct_keys_make(ct_key_pair *out) {
    char public_text[Z85_TEXT], secret_text[Z85_TEXT];
    if (zmq_curve_keypair(public_text, secret_text) != 0)
        return ct_fail(CT_NOTBUILT,
                       "this libzmq has no CURVE: install one that is built with libsodium");
    zmq_z85_decode(out->public_key, public_text);
    zmq_z85_decode(out->secret_key, secret_text);
    explicit_bzero(secret_text, sizeof secret_text);
    return CT_OK;
}

static ct_status parse(ct_lines *lines, const char *path, ct_key_pair *out) {
    bool has_public = false, has_secret = false;
    for (char *line; (line = ct_lines_next(lines)) != NULL;) {
        line = ct_trim(line);
        bool is_public = strncmp(line, "public ", 7) == 0,
             is_secret = strncmp(line, "secret ", 7) == 0;
        if (line[0] == '#' || line[0] == '\0') continue;
        if ((!is_public && !is_secret) || (is_public ? has_public : has_secret) ||
            !ct_key_parse(line + 7, is_public ? out->public_key : out->secret_key))
            return ct_fail(CT_IO, "%s:%u: neither a comment nor a key of 64 hexadecimal digits",
                           path, lines->number);
        has_public = has_public || is_public;
        has_secret = has_secret || is_secret;
    }
    if (!has_public || !has_secret)
        return ct_fail(CT_IO, "%s: no %s key in it", path, has_public ? "secret" : "public");
    return CT_OK;
}

/* The public half must be the secret one's. */
static ct_status check_halves(const ct_key_pair *pair, const char *path) {
    char secret_text[Z85_TEXT], public_text[Z85_TEXT];
    uint8_t derived[CT_KEY_BYTES];
    zmq_z85_encode(secret_text, pair->secret_key, CT_KEY_BYTES);
    int rc = zmq_curve_public(public_text, secret_text);
    explicit_bzero(secret_text, sizeof secret_text);
    if (rc != 0)
        return ct_fail(CT_NOTBUILT,
                       "this libzmq has no CURVE: install one that is built with libsodium");
    zmq_z85_decode(derived, public_text);
    if (!ct_keys_equal(derived, pair->public_key))
        return ct_fail(CT_IO, "%s: damaged: its public key is not the secret one's", path);
    return CT_OK;
}

static ct_status read_file(int fd, const char *path, ct_key_pair *out) {
    struct stat info;
    ct_blob blob = {0};
    if (fstat(fd, &info) != 0) return ct_file_failed(path);
    if ((info.st_mode & 077) != 0)
        return ct_fail(CT_IO,
                       "%s: others can read this secret key (mode %03o): chmod 600 it, or make a "
                       "new one",
                       path, (unsigned)(info.st_mode & 0777));
    CT_TRY(ct_file_read_open(fd, path, MAX_FILE_BYTES, &blob));
    ct_lines lines = ct_blob_lines(&blob);
    ct_status status = parse(&lines, path, out);
    explicit_bzero(blob.bytes, blob.n);
    ct_blob_free(&blob);
    CT_TRY(status);
    return check_halves(out, path);
}

ct_status ct_keys_read(const char *path, ct_key_pair *out) {
    CT_SCOPED_BY(ct_fd_close, int) fd = -1;
    uint64_t size;
    ct_key_pair pair;
    CT_TRY(ct_file_open(path, &fd, &size));
    ct_status status = read_file(fd, path, &pair);
    if (status == CT_OK) *out = pair;
    explicit_bzero(&pair, sizeof pair);
    return status;
}

#else

static ct_status not_built(void) {
    return ct_fail(CT_NOTBUILT,
                   "this build has no keys of sites: install libzmq (libzmq3-dev) and build "
                   "again with -DCT_WITH_ZMQ=ON");
}

ct_status ct_keys_make(ct_key_pair *out) {
    (void)out;
    return not_built();
}

ct_status ct_keys_read(const char *path, ct_key_pair *out) {
    (void)path, (void)out;
    return not_built();
}
#endif
