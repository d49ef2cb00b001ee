#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "util/memory.h"
#include "util/text.h"

#define CHUNK_BYTES ((size_t)1 << 16)

static ct_status no_memory(const char *path) {
    return ct_fail(CT_NOMEM, "%s: no memory", path);
}

static ct_status system_failure(const char *path) {
    return ct_fail(CT_IO, "%s: %s", path, strerror(errno));
}

/* Bytes with room to grow; `capacity` counts the 0 byte behind the last one. */
typedef struct buffer {
    ct_blob blob;
    size_t capacity;
    size_t max_bytes;
    const char *path;
} buffer;

/* Room for at least one more byte than there are, and the 0 byte. */
static ct_status make_room(buffer *b, size_t hint) {
    if (b->capacity - b->blob.n > 1) return CT_OK;
    if (b->blob.n >= b->max_bytes)
        return ct_fail(CT_IO, "%s: more than the %zu bytes allowed here", b->path, b->max_bytes);
    size_t n = b->blob.n < CHUNK_BYTES ? CHUNK_BYTES : b->blob.n;
    n = n > SIZE_MAX / 4 ? n : n * 2;
    if (n < hint) n = hint;
    if (n > b->max_bytes) n = b->max_bytes;
    if (n > SIZE_MAX - 2) return no_memory(b->path);
    uint8_t *bytes = ct_grow(b->blob.bytes, b->blob.n, n + 1, 1);
    if (bytes == NULL) return no_memory(b->path);
    b->blob.bytes = bytes;
    b->capacity = n + 1;
    return CT_OK;
}

/* Reads up to n bytes; *n_read is 0 at the end of the file. */
static ct_status read_some(int fd, const char *path, uint8_t *bytes, size_t n, size_t *n_read) {
    ssize_t got = 0;
    do {
        got = read(fd, bytes, n);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return system_failure(path);
    *n_read = (size_t)got;
    return CT_OK;
}

static ct_status read_plain(int fd, size_t n_expected, buffer *b) {
    for (;;) {
        if (b->blob.n >= b->max_bytes) { /* full: one byte more would be too many */
            uint8_t extra;
            size_t n_extra = 0;
            CT_TRY(read_some(fd, b->path, &extra, 1, &n_extra));
            return n_extra == 0 ? CT_OK : make_room(b, 0);
        }
        CT_TRY(make_room(b, n_expected));
        size_t n_read = 0, n_free = b->capacity - 1 - b->blob.n;
        if (n_free > SSIZE_MAX / 2) n_free = SSIZE_MAX / 2;
        CT_TRY(read_some(fd, b->path, b->blob.bytes + b->blob.n, n_free, &n_read));
        if (n_read == 0) return CT_OK;
        b->blob.n += n_read;
    }
}

/* Unpacks what `z` holds as input until it needs more or a member ends (*ended). */
static ct_status inflate_some(z_stream *z, buffer *b, bool *ended) {
    *ended = false;
    while (!*ended) {
        /* At the limit a single byte of room lets zlib reach the trailer, or show that it is too
         * much. */
        uint8_t extra = 0;
        bool full = b->blob.n >= b->max_bytes;
        if (!full) CT_TRY(make_room(b, 0));
        size_t room = full ? 1 : b->capacity - 1 - b->blob.n;
        if (room > UINT32_MAX) room = UINT32_MAX;
        z->next_out = full ? &extra : b->blob.bytes + b->blob.n;
        z->avail_out = (uInt)room;
        int code = inflate(z, Z_NO_FLUSH);
        size_t n_made = room - z->avail_out;
        if (full && n_made > 0) return make_room(b, 0);
        b->blob.n += n_made;
        if (code == Z_MEM_ERROR) return no_memory(b->path);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return ct_fail(CT_IO, "%s: damaged gzip data (%s)", b->path,
                           z->msg != NULL ? z->msg : "unreadable");
        *ended = code == Z_STREAM_END;
        if (!*ended && z->avail_out > 0) return CT_OK;
    }
    return CT_OK;
}

/* One or more gzip members one after another; nothing else may follow. */
static ct_status inflate_members(int fd, z_stream *z, uint8_t *chunk, buffer *b) {
    bool between_members = false;
    for (;;) {
        if (z->avail_in == 0) {
            size_t n_read = 0;
            CT_TRY(read_some(fd, b->path, chunk, CHUNK_BYTES, &n_read));
            if (n_read == 0 && between_members) return CT_OK;
            if (n_read == 0)
                return ct_fail(CT_IO, "%s: gzip data ends too early (cut download?)", b->path);
            z->next_in = chunk;
            z->avail_in = (uInt)n_read;
        }
        if (between_members && inflateReset(z) != Z_OK) return no_memory(b->path);
        CT_TRY(inflate_some(z, b, &between_members));
    }
}

static ct_status read_gzip(int fd, buffer *b) {
    uint8_t *chunk = ct_alloc(CHUNK_BYTES, 1);
    if (chunk == NULL) return no_memory(b->path);
    z_stream z = {0};
    ct_status status = CT_OK;
    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) {
        status = no_memory(b->path);
    } else {
        status = inflate_members(fd, &z, chunk, b);
        inflateEnd(&z);
    }
    ct_free(chunk);
    return status;
}

static ct_status read_open_file(int fd, buffer *b) {
    struct stat info;
    if (fstat(fd, &info) != 0) return system_failure(b->path);
    if (!S_ISREG(info.st_mode)) return ct_fail(CT_IO, "%s: not a plain file", b->path);
    uint8_t magic[2];
    ssize_t n_magic = pread(fd, magic, sizeof magic, 0);
    if (n_magic < 0) return system_failure(b->path);
    if (n_magic == 2 && magic[0] == 0x1f && magic[1] == 0x8b) return read_gzip(fd, b);
    if ((uintmax_t)info.st_size > b->max_bytes)
        return ct_fail(CT_IO, "%s: %jd bytes, more than the %zu allowed here", b->path,
                       (intmax_t)info.st_size, b->max_bytes);
    return read_plain(fd, (size_t)info.st_size + 1, b);
}

ct_status ct_file_read(const char *path, size_t max_bytes, ct_blob *out) {
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe must not make us wait */
    if (fd < 0) return system_failure(path);
    buffer b = {.max_bytes = max_bytes, .path = path};
    ct_status status = read_open_file(fd, &b);
    close(fd);
    if (status == CT_OK && b.blob.bytes == NULL) { /* an empty file, or max_bytes 0 */
        b.blob.bytes = ct_alloc(1, 1);
        if (b.blob.bytes == NULL) status = no_memory(path);
    }
    if (status != CT_OK) {
        ct_free(b.blob.bytes);
        return status;
    }
    b.blob.bytes[b.blob.n] = 0;
    *out = b.blob;
    return CT_OK;
}

void ct_blob_free(ct_blob *blob) {
    ct_free(blob->bytes);
    *blob = (ct_blob){0};
}

struct ct_writer {
    FILE *file;
    char *path;
    char *part;      /* the temporary name; NULL while there is no such file */
    bool is_passing; /* need not outlive a crash of the machine: nobody waits for the disk */
};

/* Creates a file beside `path` that nobody else has. */
static ct_status open_part(ct_writer *writer) {
    for (int attempt = 0; attempt < 1000; attempt++) {
        ct_text name = {0};
        ct_text_add(&name, "%s.part-%ld-%d", writer->path, (long)getpid(), attempt);
        if (name.failed) return no_memory(writer->path);
        int fd = open(name.chars, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0) {
            int reason = errno;
            ct_text_free(&name);
            if (reason == EEXIST) continue;
            return ct_fail(CT_IO, "%s: cannot write: %s", writer->path, strerror(reason));
        }
        writer->part = name.chars;
        writer->file = fdopen(fd, "wb");
        if (writer->file != NULL) return CT_OK;
        close(fd);
        return no_memory(writer->path);
    }
    return ct_fail(CT_IO, "%s: too many unfinished %s.part-* files; remove them", writer->path,
                   writer->path);
}

ct_status ct_writer_open(const char *path, ct_writer **out) {
    ct_writer *writer = ct_new(ct_writer, 1);
    if (writer == NULL) return no_memory(path);
    writer->path = ct_strdup(path);
    ct_status status = writer->path == NULL ? no_memory(path) : open_part(writer);
    if (status != CT_OK) {
        ct_writer_abandon(&writer);
        return status;
    }
    *out = writer;
    return CT_OK;
}

ct_status ct_writer_add(ct_writer *writer, const void *bytes, size_t n) {
    if (n == 0 || fwrite(bytes, 1, n, writer->file) == n) return CT_OK;
    return system_failure(writer->path);
}

/* A rename is durable once its directory is; a file system that cannot sync one has no say here. */
static void sync_directory(const char *path) {
    char *dir = ct_strdup(path);
    if (dir == NULL) return;
    char *slash = strrchr(dir, '/');
    if (slash == dir) slash++;
    if (slash != NULL) *slash = '\0';
    int fd = open(slash != NULL ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ct_free(dir);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

/* Closes the writer whatever happens; after a failure nothing is left of it. */
ct_status ct_writer_commit(ct_writer **writer) {
    ct_writer *w = *writer;
    ct_status status = CT_OK;
    if (ferror(w->file)) {
        status = ct_fail(CT_IO, "%s: an earlier write failed", w->path);
    } else if (fflush(w->file) != 0 || (!w->is_passing && fsync(fileno(w->file)) != 0)) {
        status = system_failure(w->path);
    }
    if (fclose(w->file) != 0 && status == CT_OK) status = system_failure(w->path);
    w->file = NULL;
    if (status == CT_OK && rename(w->part, w->path) != 0) status = system_failure(w->path);
    if (status == CT_OK) {
        ct_free(w->part);
        w->part = NULL;
        if (!w->is_passing) sync_directory(w->path);
    }
    ct_writer_abandon(writer);
    return status;
}

void ct_writer_abandon(ct_writer **writer) {
    ct_writer *w = *writer;
    if (w == NULL) return;
    if (w->file != NULL) fclose(w->file);
    if (w->part != NULL) remove(w->part);
    ct_free(w->part);
    ct_free(w->path);
    ct_free(w);
    *writer = NULL;
}

static ct_status write_whole(const char *path, const void *bytes, size_t n, bool is_passing) {
    ct_writer *writer = NULL;
    CT_TRY(ct_writer_open(path, &writer));
    writer->is_passing = is_passing;
    ct_status status = ct_writer_add(writer, bytes, n);
    if (status == CT_OK) return ct_writer_commit(&writer);
    ct_writer_abandon(&writer);
    return status;
}

ct_status ct_file_write(const char *path, const void *bytes, size_t n) {
    return write_whole(path, bytes, n, false);
}

ct_status ct_file_replace(const char *path, const void *bytes, size_t n) {
    return write_whole(path, bytes, n, true);
}

ct_status ct_file_append(const char *path, const void *bytes, size_t n) {
    FILE *f = fopen(path, "ab");
    if (f == NULL) return ct_fail(CT_IO, "%s: %s", path, strerror(errno));
    setvbuf(f, NULL, _IOFBF, n + 1);
    bool ok = fwrite(bytes, 1, n, f) == n && fflush(f) == 0;
    int reason = errno;
    if (fclose(f) != 0) ok = false;
    return ok ? CT_OK : ct_fail(CT_IO, "%s: %s", path, strerror(reason));
}

bool ct_file_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool ct_dir_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool ct_dir_has(const char *dir, const char *name) {
    char *path = ct_path_join(dir, name);
    bool has = path != NULL && ct_file_exists(path);
    ct_free(path);
    return has;
}

bool ct_dir_is_same(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static ct_status create_one_dir(const char *path) {
    if (mkdir(path, 0777) == 0) return CT_OK;
    int reason = errno; /* EEXIST, but also EROFS or EACCES on a parent that is there */
    if (ct_dir_exists(path)) return CT_OK;
    return ct_fail(CT_IO, "%s: cannot create the directory: %s", path, strerror(reason));
}

ct_status ct_dir_create(const char *path) {
    char *prefix = ct_strdup(path);
    if (prefix == NULL) return no_memory(path);
    ct_status status = CT_OK;
    for (char *at = prefix; *at != '\0' && status == CT_OK; at++) {
        if (*at != '/' || at == prefix) continue;
        *at = '\0';
        status = create_one_dir(prefix);
        *at = '/';
    }
    if (status == CT_OK) status = create_one_dir(prefix);
    ct_free(prefix);
    return status;
}

bool ct_dir_lock(const char *path, int *lock) {
    *lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0 || flock(*lock, LOCK_EX | LOCK_NB) == 0) return true;
    bool is_taken = errno == EWOULDBLOCK;
    ct_dir_unlock(lock);
    return !is_taken;
}

void ct_dir_unlock(int *lock) {
    if (*lock >= 0) close(*lock);
    *lock = -1;
}

char *ct_path_join(const char *dir, const char *name) {
    size_t n = strlen(dir);
    const char *slash = n == 0 || dir[n - 1] == '/' ? "" : "/";
    ct_text path = {0};
    ct_text_add(&path, "%s%s%s", dir, slash, name);
    if (!path.failed) return path.chars;
    ct_text_free(&path);
    return NULL;
}

uint32_t ct_crc32(uint32_t crc, const void *bytes, size_t n) {
    if (n == 0) return crc; /* zlib starts anew on NULL */
    return (uint32_t)crc32_z(crc, bytes, n);
}

ct_path ct_path_in(const char *dir, const char *name) {
    ct_path path;
    size_t n = strlen(dir);
    const char *slash = n == 0 || dir[n - 1] == '/' ? "" : "/";
    snprintf(path.text, sizeof path.text, "%s%s%s", dir, slash, name);
    return path;
}
