/* A member is a header block of 512 bytes and its content, filled up to whole blocks; two blocks of
 * zeros end the archive. Fields of the header: name 0..99, size 124..135 (octal, or binary with the
 * first bit set), checksum 148..155, type 156, prefix of the name 345..499. */
#include "data/tar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "util/memory.h"

#define BLOCK         512
#define MAX_EXTENSION (1 << 16) /* bytes of a pax header or a long name */
#define CHUNK         (1 << 18)

struct ct_tar {
    char *path;
    gzFile file;
    uint64_t max_bytes, n_bytes; /* allowed, and read so far */
    uint64_t left, padding;      /* of the current member */
    char long_name[CT_TAR_NAME]; /* for the next member; "" = none */
    uint64_t long_size;
    bool has_long_size;
};

ct_status ct_tar_open(const char *path, uint64_t max_bytes, ct_tar **out) {
    ct_tar *tar = ct_new(ct_tar, 1);
    if (tar == NULL) return ct_fail(CT_NOMEM, "%s: no memory", path);
    tar->max_bytes = max_bytes;
    tar->path = ct_strdup(path);
    errno = 0;
    if (tar->path != NULL) tar->file = gzopen(path, "rb");
    if (tar->file == NULL) {
        ct_tar_close(&tar);
        return ct_fail(CT_IO, "%s: %s", path, errno != 0 ? strerror(errno) : "no memory");
    }
    gzbuffer(tar->file, CHUNK);
    *out = tar;
    return CT_OK;
}

void ct_tar_close(ct_tar **tar) {
    if (*tar == NULL) return;
    if ((*tar)->file != NULL) gzclose((*tar)->file);
    ct_free((*tar)->path);
    ct_free(*tar);
    *tar = NULL;
}

/* Up to n bytes, less only at the end of the file. */
static ct_status read_some(ct_tar *tar, void *bytes, size_t n, size_t *n_read) {
    *n_read = 0;
    if (n > tar->max_bytes - tar->n_bytes)
        return ct_fail(CT_IO, "%s: more than the %llu bytes allowed once unpacked", tar->path,
                       (unsigned long long)tar->max_bytes);
    while (*n_read < n) {
        size_t piece = n - *n_read < (1u << 30) ? n - *n_read : 1u << 30;
        int got = gzread(tar->file, (uint8_t *)bytes + *n_read, (unsigned)piece);
        int code = Z_OK;
        const char *words = got < (int)piece ? gzerror(tar->file, &code) : "";
        if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
            return ct_fail(CT_IO, "%s: damaged or cut short (%s)", tar->path,
                           code == Z_ERRNO ? strerror(errno) : words);
        if (got == 0) break;
        *n_read += (size_t)got;
    }
    tar->n_bytes += *n_read;
    return CT_OK;
}

static ct_status read_all(ct_tar *tar, void *bytes, size_t n) {
    size_t n_read = 0;
    CT_TRY(read_some(tar, bytes, n, &n_read));
    if (n_read < n) return ct_fail(CT_IO, "%s: ends in the middle of a member", tar->path);
    return CT_OK;
}

static ct_status skip(ct_tar *tar, uint64_t n) {
    uint8_t block[BLOCK];
    while (n > 0) {
        size_t piece = n < BLOCK ? (size_t)n : BLOCK;
        CT_TRY(read_all(tar, block, piece));
        n -= piece;
    }
    return CT_OK;
}

ct_status ct_tar_read(ct_tar *tar, void *bytes, size_t n) {
    if (n > tar->left) return ct_fail(CT_IO, "%s: a member is shorter than expected", tar->path);
    CT_TRY(read_all(tar, bytes, n));
    tar->left -= n;
    return CT_OK;
}

ct_status ct_tar_blob(ct_tar *tar, const ct_tar_entry *entry, size_t max_bytes, ct_blob *out) {
    if (entry->size > max_bytes)
        return ct_fail(CT_IO, "%s: %s has %llu bytes; at most %zu are allowed here", tar->path,
                       entry->name, (unsigned long long)entry->size, max_bytes);
    ct_blob blob = {.n = (size_t)entry->size};
    blob.bytes = ct_alloc(blob.n + 1, 1);
    if (blob.bytes == NULL) return ct_fail(CT_NOMEM, "%s: no memory", tar->path);
    ct_status status = ct_tar_read(tar, blob.bytes, blob.n);
    if (status != CT_OK) ct_blob_free(&blob);
    if (status == CT_OK) *out = blob;
    return status;
}

/* A number of a header: octal digits between blanks, or big-endian behind a set first bit. */
static bool parse_number(const uint8_t *field, size_t n, uint64_t *out) {
    uint64_t value = 0;
    if (field[0] & 0x80) {
        for (size_t k = 0; k < n; k++) {
            if (value >> 55 != 0) return false;
            value = value << 8 | (k == 0 ? field[k] & 0x7fu : field[k]);
        }
        *out = value;
        return true;
    }
    size_t k = 0;
    while (k < n && field[k] == ' ') k++;
    for (; k < n && field[k] >= '0' && field[k] <= '7'; k++) value = value << 3 | (field[k] - '0');
    if (k < n && field[k] != ' ' && field[k] != '\0') return false;
    *out = value;
    return true;
}

static bool checksum_is_right(const uint8_t *block) {
    uint64_t stored = 0, sum = 0;
    for (int k = 0; k < BLOCK; k++) sum += k >= 148 && k < 156 ? ' ' : block[k];
    return parse_number(block + 148, 8, &stored) && stored == sum;
}

/* The name of a header: prefix/name. */
static void short_name(const uint8_t *block, char *out) {
    bool is_ustar = memcmp(block + 257, "ustar", 5) == 0;
    if (is_ustar && block[345] != '\0')
        snprintf(out, CT_TAR_NAME, "%.155s/%.100s", (const char *)block + 345, (const char *)block);
    else
        snprintf(out, CT_TAR_NAME, "%.100s", (const char *)block);
}

/* Takes leading "./" and slashes at the end away; false for a name that leads out of the folder. */
static bool clean_name(char *name) {
    while (name[0] == '.' && name[1] == '/') memmove(name, name + 2, strlen(name + 2) + 1);
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/') name[--n] = '\0';
    if (name[0] == '/' || name[0] == '\0') return false;
    for (const char *part = name; part != NULL;) {
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0')) return false;
        part = strchr(part, '/');
        if (part != NULL) part++;
    }
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c < 32 || *c == '\\') return false;
    return true;
}

/* One "length key=value\n" record of a pax header: its path and size are kept for the member. */
static ct_status keep_record(ct_tar *tar, const char *record, size_t n) {
    if (n > 5 && strncmp(record, "path=", 5) == 0) {
        if (n - 5 >= CT_TAR_NAME) return ct_fail(CT_IO, "%s: a name is too long", tar->path);
        memcpy(tar->long_name, record + 5, n - 5);
        tar->long_name[n - 5] = '\0';
    }
    if (n > 5 && strncmp(record, "size=", 5) == 0) {
        uint64_t size = 0;
        for (size_t k = 5; k < n; k++) {
            if (record[k] < '0' || record[k] > '9' || size > UINT64_MAX / 16)
                return ct_fail(CT_IO, "%s: damaged pax header", tar->path);
            size = size * 10 + (uint64_t)(record[k] - '0');
        }
        tar->long_size = size;
        tar->has_long_size = true;
    }
    return CT_OK;
}

static ct_status parse_pax(ct_tar *tar, const char *text, size_t n) {
    for (size_t at = 0; at < n && text[at] != '\0';) {
        size_t length = 0, k = at;
        for (; k < n && text[k] >= '0' && text[k] <= '9' && length < n; k++)
            length = length * 10 + (size_t)(text[k] - '0');
        if (k >= n || text[k] != ' ' || length > n - at || length < k + 2 - at ||
            text[at + length - 1] != '\n')
            return ct_fail(CT_IO, "%s: damaged pax header", tar->path);
        CT_TRY(keep_record(tar, text + k + 1, at + length - 1 - (k + 1)));
        at += length;
    }
    return CT_OK;
}

/* A member that only describes the next one: pax records (x; g is for all and not needed) or a GNU
 * long name (L). */
static ct_status read_extension(ct_tar *tar, char type, uint64_t size) {
    if (size > MAX_EXTENSION) return ct_fail(CT_IO, "%s: a header is too long", tar->path);
    char *text = ct_alloc((size_t)size + 1, 1);
    if (text == NULL) return ct_fail(CT_NOMEM, "%s: no memory", tar->path);
    ct_status status = read_all(tar, text, (size_t)size);
    if (status == CT_OK) status = skip(tar, (BLOCK - size % BLOCK) % BLOCK);
    if (status == CT_OK && type == 'x') status = parse_pax(tar, text, (size_t)size);
    if (status == CT_OK && type == 'L') {
        if (strlen(text) >= CT_TAR_NAME)
            status = ct_fail(CT_IO, "%s: a name is too long", tar->path);
        else
            memcpy(tar->long_name, text, strlen(text) + 1);
    }
    ct_free(text);
    return status;
}

/* What follows the end mark is read too, so that a gzip file's own checksum is compared. */
static ct_status drain(ct_tar *tar) {
    uint8_t rest[BLOCK];
    size_t n_read = 0;
    do CT_TRY(read_some(tar, rest, sizeof rest, &n_read));
    while (n_read > 0);
    return CT_OK;
}

/* The next header that is no extension; *more is false at the end mark. */
static ct_status read_header(ct_tar *tar, uint8_t *block, uint64_t *size, bool *more) {
    static const uint8_t zeros[BLOCK];
    tar->long_name[0] = '\0';
    tar->has_long_size = false;
    for (;;) {
        CT_TRY(read_all(tar, block, BLOCK));
        *more = memcmp(block, zeros, BLOCK) != 0;
        if (!*more) return drain(tar);
        if (!checksum_is_right(block) || !parse_number(block + 124, 12, size))
            return ct_fail(CT_IO, "%s: not a tar archive, or a damaged one", tar->path);
        char type = (char)block[156];
        if (type != 'x' && type != 'g' && type != 'L') return CT_OK;
        CT_TRY(read_extension(tar, type, *size));
    }
}

ct_status ct_tar_next(ct_tar *tar, ct_tar_entry *out, bool *more) {
    uint8_t block[BLOCK];
    ct_tar_entry entry = {0};
    CT_TRY(skip(tar, tar->left + tar->padding));
    tar->left = tar->padding = 0;
    CT_TRY(read_header(tar, block, &entry.size, more));
    if (!*more) return CT_OK;
    if (tar->has_long_size) entry.size = tar->long_size;
    if (tar->long_name[0] != '\0')
        memcpy(entry.name, tar->long_name, sizeof entry.name);
    else
        short_name(block, entry.name);
    char type = (char)block[156];
    entry.is_dir = type == '5';
    if (entry.is_dir) entry.size = 0;
    /* The folder the archive was made in: nothing to create. */
    if (strcmp(entry.name, ".") == 0 || strcmp(entry.name, "./") == 0)
        snprintf(entry.name, sizeof entry.name, "./.");
    if (!clean_name(entry.name))
        return ct_fail(CT_IO, "%s: refused: a member's name leads out of the folder or is odd",
                       tar->path);
    if (type != '0' && type != '\0' && type != '5' && type != '7')
        return ct_fail(CT_IO, "%s: refused: %s is neither a file nor a folder (a link?)", tar->path,
                       entry.name);
    if (entry.size > tar->max_bytes - tar->n_bytes)
        return ct_fail(CT_IO, "%s: refused: more than the %llu bytes allowed once unpacked",
                       tar->path, (unsigned long long)tar->max_bytes);
    tar->left = entry.size;
    tar->padding = (BLOCK - entry.size % BLOCK) % BLOCK;
    *out = entry;
    return CT_OK;
}

/* Writes the current member to `path`, whose folder is created. */
static ct_status unpack_file(ct_tar *tar, const ct_tar_entry *entry, char *path, uint8_t *chunk) {
    char *slash = strrchr(path, '/');
    *slash = '\0';
    ct_status status = ct_dir_create(path);
    *slash = '/';
    if (status != CT_OK) return status;
    FILE *f = fopen(path, "wbx");
    if (f == NULL) return ct_fail(CT_IO, "%s: %s", path, strerror(errno));
    for (uint64_t left = entry->size; left > 0 && status == CT_OK;) {
        size_t piece = left < CHUNK ? (size_t)left : CHUNK;
        status = ct_tar_read(tar, chunk, piece);
        if (status == CT_OK && fwrite(chunk, 1, piece, f) != piece)
            status = ct_fail(CT_IO, "%s: %s", path, strerror(errno));
        left -= piece;
    }
    if (fclose(f) != 0 && status == CT_OK) status = ct_fail(CT_IO, "%s: %s", path, strerror(errno));
    return status;
}

ct_status ct_tar_unpack(const char *path, const char *dir, uint64_t max_bytes) {
    ct_tar *tar = NULL;
    uint8_t *chunk = ct_alloc(CHUNK, 1);
    bool more = chunk != NULL;
    if (!more) return ct_fail(CT_NOMEM, "%s: no memory", path);
    ct_status status = ct_tar_open(path, max_bytes, &tar);
    if (status == CT_OK) status = ct_dir_create(dir);
    while (status == CT_OK) {
        ct_tar_entry entry;
        status = ct_tar_next(tar, &entry, &more);
        if (status != CT_OK || !more) break;
        char *target = ct_path_join(dir, entry.name);
        if (target == NULL)
            status = ct_fail(CT_NOMEM, "%s: no memory", path);
        else
            status = entry.is_dir ? ct_dir_create(target) : unpack_file(tar, &entry, target, chunk);
        ct_free(target);
    }
    ct_tar_close(&tar);
    ct_free(chunk);
    return status;
}
