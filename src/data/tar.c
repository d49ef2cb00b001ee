/* The format is libarchive's to read; it is fed by zlib, which compares a gzip file's own checksum
 * (libarchive's filter does not) and lets us stop at the bytes allowed. */
#include "data/tar.h"

#include "ct_config.h"
#include "util/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CHUNK (1 << 16)

#if CT_WITH_ARCHIVE

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

struct ct_tar {
    ct_path path;
    gzFile file;
    struct archive *archive;
    uint64_t max_bytes, n_bytes; /* allowed, and read so far */
    uint64_t n_unpacked;         /* of the members so far: those with holes are larger than read */
    bool in_member;              /* it is skipped before the next one */
    uint8_t chunk[CHUNK];
};

static ct_status too_much(const ct_tar *tar) {
    return ct_fail(CT_IO, "%s: refused: more than the %llu bytes allowed once unpacked",
                   tar->path.text, (unsigned long long)tar->max_bytes);
}

/* The next piece of the file; 0 at its end, -1 with a reason. */
static int read_chunk(ct_tar *tar) {
    int got = gzread(tar->file, tar->chunk, CHUNK), code = Z_OK;
    const char *words = got < CHUNK ? gzerror(tar->file, &code) : "";
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
        ct_fail(CT_IO, "%s: damaged or cut short (%s)", tar->path.text,
                code == Z_ERRNO ? strerror(errno) : words);
        return -1;
    }
    tar->n_bytes += (uint64_t)got;
    if (tar->n_bytes <= tar->max_bytes) return got;
    too_much(tar);
    return -1;
}

static la_ssize_t feed(struct archive *archive, void *context, const void **bytes) {
    ct_tar *tar = context;
    int got = read_chunk(tar);
    *bytes = tar->chunk;
    if (got < 0) archive_set_error(archive, EIO, "unreadable");
    return got;
}

/* What libarchive says, unless a reason of ours came first. */
static ct_status damaged(const ct_tar *tar) {
    const char *words = archive_error_string(tar->archive);
    if (archive_errno(tar->archive) == ENOMEM) return ct_no_memory(tar->path.text);
    return ct_fail(CT_IO, "%s: not a tar archive, or a damaged one (%s)", tar->path.text,
                   words != NULL ? words : "unreadable");
}

ct_status ct_tar_open(const char *path, uint64_t max_bytes, ct_tar **out) {
    CT_SCOPED_BY(ct_tar_close, ct_tar *) tar = NULL;
    CT_TRY(ct_make(&tar, 1, path));
    tar->max_bytes = max_bytes;
    tar->path = ct_path_in("", path);
    tar->archive = archive_read_new();
    CT_SCOPED_BY(ct_fd_close, int) fd = -1;
    uint64_t n_packed;
    CT_TRY(ct_file_open(path, &fd, &n_packed));
    /* a member's size is what its header says: memory is taken for no more than the file can hold */
    if (tar->max_bytes > ct_most_unpacked(n_packed)) tar->max_bytes = ct_most_unpacked(n_packed);
    if (tar->archive != NULL) tar->file = gzdopen(fd, "rb");
    if (tar->file == NULL) return ct_no_memory(path);
    fd = -1; /* zlib closes it */
    if (gzbuffer(tar->file, CHUNK) != 0 ||
        archive_read_support_format_tar(tar->archive) != ARCHIVE_OK ||
        archive_read_open(tar->archive, tar, NULL, feed, NULL) != ARCHIVE_OK)
        return damaged(tar);
    ct_move(out, &tar);
    return CT_OK;
}

void ct_tar_close(ct_tar **tar) {
    if (*tar == NULL) return;
    if ((*tar)->archive != NULL) archive_read_free((*tar)->archive);
    if ((*tar)->file != NULL) gzclose((*tar)->file);
    ct_free(*tar);
    *tar = NULL;
}

ct_status ct_tar_read(ct_tar *tar, void *bytes, size_t n) {
    for (size_t done = 0; done < n;) {
        la_ssize_t got = archive_read_data(tar->archive, (uint8_t *)bytes + done, n - done);
        if (got < 0) return damaged(tar);
        if (got == 0)
            return ct_fail(CT_IO, "%s: a member is shorter than expected", tar->path.text);
        done += (size_t)got;
    }
    return CT_OK;
}

/* Takes leading "./" and slashes at the end away; false for a name that leads out of the folder. */
static bool clean_name(char *name) {
    while (name[0] == '.' && name[1] == '/') memmove(name, name + 2, strlen(name + 2) + 1);
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/') name[--n] = '\0';
    if (name[0] == '/') return false;
    for (const char *part = name; part != NULL;) {
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0')) return false;
        part = strchr(part, '/');
        if (part != NULL) part++;
    }
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c < 32 || *c == '\\') return false;
    return true;
}

static ct_status describe(ct_tar *tar, struct archive_entry *from, ct_tar_entry *out) {
    const char *name = archive_entry_pathname(from);
    if (name == NULL || name[0] == '\0' || strlen(name) >= sizeof out->name)
        return ct_fail(CT_IO, "%s: a name is missing or too long", tar->path.text);
    snprintf(out->name, sizeof out->name, "%s", name);
    if (!clean_name(out->name))
        return ct_fail(CT_IO, "%s: refused: a member's name leads out of the folder or is odd",
                       tar->path.text);
    if (out->name[0] == '\0') out->name[0] = '.'; /* the folder that the archive was made in */
    bool is_file = archive_entry_filetype(from) == AE_IFREG && archive_entry_hardlink(from) == NULL;
    out->is_dir = archive_entry_filetype(from) == AE_IFDIR;
    if (!is_file && !out->is_dir)
        return ct_fail(CT_IO, "%s: refused: %s is neither a file nor a folder (a link?)",
                       tar->path.text, out->name);
    la_int64_t size = is_file ? archive_entry_size(from) : 0;
    if (size < 0) return damaged(tar);
    out->size = (uint64_t)size;
    if (out->size > tar->max_bytes - tar->n_unpacked) return too_much(tar);
    tar->n_unpacked += out->size;
    return CT_OK;
}

/* Behind the last member an end mark must have been read, and the rest of the file can be. */
static ct_status finish(ct_tar *tar, la_int64_t end_of_members) {
    if (archive_filter_bytes(tar->archive, 0) == end_of_members)
        return ct_fail(CT_IO, "%s: cut short: it has no end mark", tar->path.text);
    int got = 0;
    do got = read_chunk(tar);
    while (got > 0);
    return got == 0 ? CT_OK : CT_IO;
}

ct_status ct_tar_next(ct_tar *tar, ct_tar_entry *out, bool *more) {
    struct archive_entry *found = NULL;
    ct_tar_entry entry = {0};
    if (tar->in_member && archive_read_data_skip(tar->archive) != ARCHIVE_OK) return damaged(tar);
    tar->in_member = false;
    la_int64_t at = archive_filter_bytes(tar->archive, 0);
    int code = archive_read_next_header(tar->archive, &found);
    *more = code != ARCHIVE_EOF;
    if (!*more) return finish(tar, at);
    /* One warning is fine: a name that the locale has no characters for is left as it is. */
    bool is_name = code == ARCHIVE_WARN && archive_errno(tar->archive) == EILSEQ;
    if (code != ARCHIVE_OK && !is_name) return damaged(tar);
    tar->in_member = true;
    CT_TRY(describe(tar, found, &entry));
    *out = entry;
    return CT_OK;
}

#else

ct_status ct_tar_open(const char *path, uint64_t max_bytes, ct_tar **out) {
    (void)max_bytes, (void)out;
    return ct_fail(CT_NOTBUILT,
                   "%s cannot be unpacked: built without libarchive; install libarchive-dev and "
                   "configure again, or unpack it yourself with tar",
                   path);
}

void ct_tar_close(ct_tar **tar) {
    (void)tar; /* none is ever open */
}

ct_status ct_tar_next(ct_tar *tar, ct_tar_entry *out, bool *more) {
    (void)tar, (void)out, (void)more;
    return CT_NOTBUILT;
}

ct_status ct_tar_read(ct_tar *tar, void *bytes, size_t n) {
    (void)tar, (void)bytes, (void)n;
    return CT_NOTBUILT;
}

#endif

ct_status ct_tar_blob(ct_tar *tar, const ct_tar_entry *entry, size_t max_bytes, ct_blob *out) {
    if (entry->size > max_bytes)
        return ct_fail(CT_IO, "%s has %llu bytes; at most %zu are allowed here", entry->name,
                       (unsigned long long)entry->size, max_bytes);
    CT_SCOPED(ct_blob) blob = {.n = (size_t)entry->size};
    CT_TRY(ct_make(&blob.bytes, blob.n + 1, entry->name));
    CT_TRY(ct_tar_read(tar, blob.bytes, blob.n));
    ct_move(out, &blob);
    return CT_OK;
}

/* Writes the current member to `path`, whose folder is created. */
static ct_status unpack_file(ct_tar *tar, const ct_tar_entry *entry, char *path, uint8_t *chunk) {
    char *slash = strrchr(path, '/');
    *slash = '\0';
    CT_TRY(ct_dir_create(path));
    *slash = '/';
    CT_SCOPED_BY(ct_stream_close, FILE *) f = fopen(path, "wbx");
    if (f == NULL) return ct_file_failed(path);
    for (uint64_t left = entry->size; left > 0;) {
        size_t piece = left < CHUNK ? (size_t)left : CHUNK;
        CT_TRY(ct_tar_read(tar, chunk, piece));
        if (fwrite(chunk, 1, piece, f) != piece) return ct_file_failed(path);
        left -= piece;
    }
    return fclose(ct_take(&f)) == 0 ? CT_OK : ct_file_failed(path);
}

ct_status ct_tar_unpack(const char *path, const char *dir, uint64_t max_bytes) {
    CT_SCOPED_BY(ct_tar_close, ct_tar *) tar = NULL;
    CT_SCOPED_BLOCK(uint8_t) chunk = NULL;
    CT_TRY(ct_tar_open(path, max_bytes, &tar));
    CT_TRY(ct_make(&chunk, CHUNK, path));
    CT_TRY(ct_dir_create(dir));
    for (;;) {
        ct_tar_entry entry;
        bool more;
        CT_TRY(ct_tar_next(tar, &entry, &more));
        if (!more) return CT_OK;
        ct_path target = ct_path_in(dir, entry.name);
        CT_TRY(entry.is_dir ? ct_dir_create(target.text)
                            : unpack_file(tar, &entry, target.text, chunk));
    }
}
