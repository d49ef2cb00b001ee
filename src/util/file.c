#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syncfs */
#endif
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

ssize_t ct_fd_read(int fd, void *bytes, size_t n) {
    size_t done = 0;
    while (done < n) {
        ssize_t got = read(fd, (char *)bytes + done, n - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* What an open file holds, as long as it was when it was opened, or shorter by now. */
static ct_status read_plain(int fd, const char *path, size_t size, ct_blob *out) {
    CT_TRY(ct_make(&out->bytes, size + 1, path));
    ssize_t got = ct_fd_read(fd, out->bytes, size);
    if (got < 0) return ct_file_failed(path);
    out->n = (size_t)got;
    return CT_OK;
}

/* Room for at least one byte more, and for one more than is allowed, which shows that it is too
 * much; the block has another one for the 0 at the end. */
static ct_status make_room(const char *path, size_t max_bytes, size_t *capacity, ct_blob *blob) {
    if (blob->n < *capacity) return CT_OK;
    size_t wanted = *capacity < CHUNK_BYTES ? CHUNK_BYTES : 2 * *capacity;
    if (wanted > max_bytes) wanted = max_bytes + 1;
    uint8_t *bytes = ct_grow(blob->bytes, blob->n, wanted + 1, 1);
    if (bytes == NULL) return ct_no_memory(path);
    blob->bytes = bytes;
    *capacity = wanted;
    return CT_OK;
}

static void end_inflate(z_stream *z) {
    inflateEnd(z);
}

size_t ct_most_unpacked(uint64_t packed) {
    if (packed <= CT_FREE_EXPANSION / CT_MAX_EXPANSION) return CT_FREE_EXPANSION;
    return packed < SIZE_MAX / 4 / CT_MAX_EXPANSION ? (size_t)packed * CT_MAX_EXPANSION
                                                    : SIZE_MAX / 4;
}

static ct_status check_unpacked(const char *path, size_t packed, size_t max_bytes, size_t n) {
    if (n > max_bytes)
        return ct_fail(CT_IO, "%s: more than the %zu bytes allowed here, once unpacked", path,
                       max_bytes);
    if (n <= ct_most_unpacked(packed)) return CT_OK;
    return ct_fail(
        CT_IO,
        "%s: its %zu bytes unpack to more than %zu, which is more than %d times as many; "
        "if that is right, unpack it first",
        path, packed, ct_most_unpacked(packed), CT_MAX_EXPANSION);
}

/* One call of inflate into the room that there is. */
static ct_status inflate_some(const char *path, z_stream *z, size_t room, ct_blob *out, int *code) {
    uInt n_out = room < (1u << 30) ? (uInt)room : 1u << 30; /* zlib counts in 32 bits */
    z->next_out = out->bytes + out->n;
    z->avail_out = n_out;
    *code = inflate(z, Z_NO_FLUSH);
    out->n += n_out - z->avail_out;
    if (*code == Z_MEM_ERROR) return ct_no_memory(path);
    if (*code == Z_BUF_ERROR)
        return ct_fail(CT_IO, "%s: gzip data ends too early (cut download?)", path);
    if (*code != Z_OK && *code != Z_STREAM_END)
        return ct_fail(CT_IO, "%s: damaged gzip data (%s)", path,
                       z->msg != NULL ? z->msg : "unreadable");
    return CT_OK;
}

/* Gzip members one after another; nothing else may follow. */
static ct_status read_packed(int fd, const char *path, size_t size, size_t max_bytes,
                             ct_blob *out) {
    uint8_t packed[CHUNK_BYTES];
    size_t capacity = 0,
           most = ct_most_unpacked(size) < max_bytes ? ct_most_unpacked(size) : max_bytes;
    int code = Z_OK;
    CT_SCOPED_BY(end_inflate, z_stream) z = {0};
    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) return ct_no_memory(path);
    for (;;) {
        if (z.avail_in == 0) {
            ssize_t got = ct_fd_read(fd, packed, sizeof packed);
            if (got < 0) return ct_file_failed(path);
            z.next_in = packed;
            z.avail_in = (uInt)got;
        }
        if (code == Z_STREAM_END && z.avail_in == 0) return CT_OK;
        if (code == Z_STREAM_END && inflateReset(&z) != Z_OK) return ct_no_memory(path);
        CT_TRY(make_room(path, most, &capacity, out));
        CT_TRY(inflate_some(path, &z, capacity - out->n, out, &code));
        CT_TRY(check_unpacked(path, size, max_bytes, out->n));
    }
}

static ct_status check_plain(int fd, const char *path, uint64_t *size) {
    struct stat info;
    if (fstat(fd, &info) != 0) return ct_file_failed(path);
    if (!S_ISREG(info.st_mode)) return ct_fail(CT_IO, "%s: not a plain file", path);
    *size = (uint64_t)info.st_size;
    return CT_OK;
}

ct_status ct_file_open(const char *path, int *fd, uint64_t *size) {
    /* a pipe must not make us wait */
    CT_SCOPED_BY(ct_fd_close, int) opened = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (opened < 0) return ct_file_failed(path);
    CT_TRY(check_plain(opened, path, size));
    *fd = opened;
    opened = -1;
    return CT_OK;
}

static ct_status read_open_file(int fd, const char *path, uint64_t size, size_t max_bytes,
                                ct_blob *out) {
    uint8_t magic[2];
    ssize_t n_magic = pread(fd, magic, sizeof magic, 0);
    if (n_magic < 0) return ct_file_failed(path);
    bool is_packed = n_magic == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
    /* What does not pack becomes a little longer. */
    if (size > max_bytes + (is_packed ? max_bytes / 64 + CHUNK_BYTES : 0))
        return ct_fail(CT_IO, "%s: %ju bytes, more than the %zu allowed here", path,
                       (uintmax_t)size, max_bytes);
    return is_packed ? read_packed(fd, path, (size_t)size, max_bytes, out)
                     : read_plain(fd, path, (size_t)size, out);
}

ct_status ct_file_read(const char *path, size_t max_bytes, ct_blob *out) {
    CT_SCOPED_BY(ct_fd_close, int) fd = -1;
    uint64_t size;
    CT_TRY(ct_file_open(path, &fd, &size));
    return ct_file_read_open(fd, path, max_bytes, out);
}

ct_status ct_file_read_open(int fd, const char *path, size_t max_bytes, ct_blob *out) {
    CT_SCOPED(ct_blob) blob = {0};
    uint64_t size;
    CT_TRY(check_plain(fd, path, &size));
    CT_TRY(read_open_file(fd, path, size, max_bytes, &blob));
    ct_move(out, &blob);
    return CT_OK;
}

void ct_blob_free(ct_blob *blob) {
    ct_free(blob->bytes);
    *blob = (ct_blob){0};
}

ct_lines ct_blob_lines(const ct_blob *blob) {
    return (ct_lines){.rest = (char *)blob->bytes, .end = (char *)blob->bytes + blob->n};
}

struct ct_writer {
    FILE *file;
    ct_path path;
    ct_path part;    /* the temporary name; "" while there is no such file */
    bool is_passing; /* need not outlive a crash of the machine: nobody waits for the disk */
};

/* Creates a file beside `path` that nobody else has. */
static ct_status open_part(ct_writer *writer) {
    const char *path = writer->path.text;
    if (strlen(path) > 4060) return ct_fail(CT_IO, "%s: cannot write: the name is too long", path);
    for (int attempt = 0; attempt < 1000; attempt++) {
        ct_path part;
        snprintf(part.text, sizeof part.text, "%.4060s.part-%ld-%d", path, (long)getpid(), attempt);
        int fd = open(part.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno == EEXIST) continue;
        if (fd < 0) return ct_fail(CT_IO, "%s: cannot write: %s", path, strerror(errno));
        writer->part = part;
        writer->file = fdopen(fd, "wb");
        if (writer->file != NULL) return CT_OK;
        close(fd);
        return ct_no_memory(path);
    }
    return ct_fail(CT_IO, "%s: too many unfinished %s.part-* files; remove them", path, path);
}

ct_status ct_writer_open(const char *path, ct_writer **out) {
    CT_SCOPED_BY(ct_writer_abandon, ct_writer *) writer = NULL;
    CT_TRY(ct_make(&writer, 1, path));
    writer->path = ct_path_in("", path);
    CT_TRY(open_part(writer));
    ct_move(out, &writer);
    return CT_OK;
}

ct_status ct_writer_add(ct_writer *writer, const void *bytes, size_t n) {
    if (n == 0 || fwrite(bytes, 1, n, writer->file) == n) return CT_OK;
    return ct_file_failed(writer->path.text);
}

/* A rename is durable once its directory is; a file system that cannot sync one has no say here. */
static void sync_directory(const char *path) {
    ct_path dir = ct_path_in("", path);
    char *slash = strrchr(dir.text, '/');
    if (slash == dir.text) slash++;
    if (slash != NULL) *slash = '\0';
    CT_SCOPED_BY(ct_fd_close, int)
    fd = open(slash != NULL ? dir.text : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) fsync(fd);
}

/* Closes the writer whatever happens; after a failure nothing is left of it. */
ct_status ct_writer_add_floats(ct_writer *writer, const float *values, size_t n) {
    uint8_t chunk[32768];
    const size_t n_chunk = sizeof chunk / sizeof *values;
    for (size_t i = 0; i < n; i += n_chunk) {
        size_t n_now = n - i < n_chunk ? n - i : n_chunk;
        for (size_t k = 0; k < n_now; k++) {
            uint32_t bits;
            memcpy(&bits, &values[i + k], sizeof bits);
            for (int b = 0; b < 4; b++) chunk[4 * k + (size_t)b] = (uint8_t)(bits >> (8 * b));
        }
        CT_TRY(ct_writer_add(writer, chunk, n_now * sizeof *values));
    }
    return CT_OK;
}

ct_status ct_writer_commit(ct_writer **writer) {
    CT_SCOPED_BY(ct_writer_abandon, ct_writer *) w = ct_take(writer);
    const char *path = w->path.text;
    if (ferror(w->file)) return ct_fail(CT_IO, "%s: an earlier write failed", path);
    if (fflush(w->file) != 0 || (!w->is_passing && fsync(fileno(w->file)) != 0))
        return ct_file_failed(path);
    if (fclose(ct_take(&w->file)) != 0 || rename(w->part.text, path) != 0)
        return ct_file_failed(path);
    w->part.text[0] = '\0';
    if (!w->is_passing) sync_directory(path);
    return CT_OK;
}

ct_status ct_writer_commit_early(ct_writer **writer) {
    (*writer)->is_passing = true;
    return ct_writer_commit(writer);
}

ct_status ct_dir_settle(const char *path) {
    CT_SCOPED_BY(ct_fd_close, int) fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && syncfs(fd) == 0 ? CT_OK : ct_file_failed(path);
}

void ct_writer_abandon(ct_writer **writer) {
    ct_writer *w = *writer;
    if (w == NULL) return;
    if (w->file != NULL) fclose(w->file);
    if (w->part.text[0] != '\0') remove(w->part.text);
    ct_free(w);
    *writer = NULL;
}

static ct_status write_whole(const char *path, const void *bytes, size_t n, bool is_passing) {
    CT_SCOPED_BY(ct_writer_abandon, ct_writer *) writer = NULL;
    CT_TRY(ct_writer_open(path, &writer));
    writer->is_passing = is_passing;
    CT_TRY(ct_writer_add(writer, bytes, n));
    return ct_writer_commit(&writer);
}

ct_status ct_file_write(const char *path, const void *bytes, size_t n) {
    return write_whole(path, bytes, n, false);
}

static void end_deflate(z_stream *z) {
    deflateEnd(z);
}

ct_status ct_file_write_packed(const char *path, const void *bytes, size_t n) {
    CT_SCOPED(ct_blob) packed = {0};
    CT_SCOPED_BY(end_deflate, z_stream) z = {0};
    if (n >= 1u << 30) return ct_file_write(path, bytes, n); /* zlib counts in 32 bits */
    if (deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return ct_no_memory(path);
    size_t most = deflateBound(&z, (uLong)n);
    CT_TRY(ct_make(&packed.bytes, most, path));
    z.next_in = (Bytef *)bytes;
    z.avail_in = (uInt)n;
    z.next_out = packed.bytes;
    z.avail_out = (uInt)most;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END) return ct_no_memory(path);
    packed.n = most - z.avail_out;
    bool is_believed = n <= ct_most_unpacked(packed.n);
    return is_believed ? ct_file_write(path, packed.bytes, packed.n)
                       : ct_file_write(path, bytes, n);
}

ct_status ct_file_replace(const char *path, const void *bytes, size_t n) {
    return write_whole(path, bytes, n, true);
}

/* One write, unless the system takes a part alone: then the next one says why. */
static bool write_all(int fd, const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno != EINTR) return false;
        if (done <= 0) continue;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

ct_status ct_file_append(const char *path, const void *bytes, size_t n) {
    struct stat before;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0 || fstat(fd, &before) != 0) {
        ct_fd_close(&fd);
        return ct_file_failed(path);
    }
    bool ok = write_all(fd, bytes, n);
    int reason = errno;
    bool is_back = ok || ftruncate(fd, before.st_size) == 0;
    if (close(fd) != 0 && ok) return ct_file_failed(path);
    if (ok) return CT_OK;
    return ct_fail(CT_IO, "%s: %s%s", path, strerror(reason), is_back ? "" : "; its end is torn");
}

size_t ct_file_head(const char *path, void *bytes, size_t n) {
    CT_SCOPED_BY(ct_fd_close, int) fd = -1;
    uint64_t size;
    if (CT_CATCH(NULL, ct_file_open(path, &fd, &size)) != CT_OK) return 0;
    ssize_t got = ct_fd_read(fd, bytes, n);
    return got > 0 ? (size_t)got : 0;
}

bool ct_file_begins(const char *path, const void *bytes, size_t n) {
    uint8_t head[16];
    return n <= sizeof head && ct_file_head(path, head, n) == n && memcmp(head, bytes, n) == 0;
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
    ct_path path = ct_path_in(dir, name);
    return ct_file_exists(path.text);
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
    ct_path prefix = ct_path_in("", path);
    for (char *at = prefix.text; *at != '\0'; at++) {
        if (*at != '/' || at == prefix.text) continue;
        *at = '\0';
        CT_TRY(create_one_dir(prefix.text));
        *at = '/';
    }
    return create_one_dir(prefix.text);
}

bool ct_dir_lock(const char *path, int *lock) {
    *lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0 || flock(*lock, LOCK_EX | LOCK_NB) == 0) return true;
    bool is_taken = errno == EWOULDBLOCK;
    ct_dir_unlock(lock);
    return !is_taken;
}

void ct_dir_unlock(int *lock) {
    ct_fd_close(lock);
}

ct_status ct_file_failed(const char *path) {
    return ct_fail(errno == ENOMEM ? CT_NOMEM : CT_IO, "%s: %s", path, strerror(errno));
}

void ct_fd_close(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

void ct_stream_close(FILE **stream) {
    if (*stream != NULL) fclose(*stream);
    *stream = NULL;
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

ct_path ct_path_dir(const char *path) {
    ct_path dir = ct_path_in("", path);
    char *slash = strrchr(dir.text, '/');
    if (slash == NULL) return ct_path_in("", ".");
    slash[slash == dir.text] = '\0'; /* of the root, its slash stays */
    return dir;
}
