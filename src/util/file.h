/* Files: read whole (plain or gzip), written so that a reader sees the old or the new one, never
 * half. */
#ifndef CT_UTIL_FILE_H
#define CT_UTIL_FILE_H

#include <stdio.h>
#include <sys/types.h>

#include "util/budget.h"
#include "util/status.h"
#include "util/text.h"

/* The content of a file; `bytes` has one 0 byte more than `n`, so that text can be read as a
 * string. */
typedef struct ct_blob {
    uint8_t *bytes;
    size_t n;
} ct_blob;

/* Opens a plain file for reading; *size: its bytes now. Pipes, devices and folders are refused
 * (CT_IO), and none makes us wait. */
ct_status ct_file_open(const char *path, int *fd, uint64_t *size);
/* As many bytes as there are, at most n; -1 with errno set. */
ssize_t ct_fd_read(int fd, void *bytes, size_t n);

/* Reads a whole file; one that begins with the gzip magic is unpacked on the way (a damaged or cut
 * one is refused). Fails with CT_IO if it is missing, unreadable, no plain file, larger (unpacked)
 * than `max_bytes`, or unpacks to more than is likely (budget.h). */
ct_status ct_file_read(const char *path, size_t max_bytes, ct_blob *out);
/* The same of a file that is open (with O_NONBLOCK: a pipe must not make us wait). */
ct_status ct_file_read_open(int fd, const char *path, size_t max_bytes, ct_blob *out);
/* The most bytes that a packed file of this size is believed to hold. */
size_t ct_most_unpacked(uint64_t packed);
void ct_blob_free(ct_blob *blob);
/* Its lines, which change it. */
ct_lines ct_blob_lines(const ct_blob *blob);

/* Writes to a temporary name beside `path`, syncs and renames. On failure nothing changes at `path`
 * and the temporary file is gone. */
ct_status ct_file_write(const char *path, const void *bytes, size_t n);

/* The same, packed by gzip: equal bytes give equal files. What ct_file_read would not believe to
 * unpack so far (budget.h) is written as it is. */
ct_status ct_file_write_packed(const char *path, const void *bytes, size_t n);

/* The same without waiting for the disk, for what is soon replaced again: a reader sees the old or
 * the new file, but a crash of the machine may leave neither. */
ct_status ct_file_replace(const char *path, const void *bytes, size_t n);

/* A file written piece by piece with the same promise: open, add..., then commit or abandon. */
typedef struct ct_writer ct_writer;
ct_status ct_writer_open(const char *path, ct_writer **out);
ct_status ct_writer_add(ct_writer *writer, const void *bytes, size_t n);
/* Numbers of 32 bits, the lowest byte first, whatever the machine has. */
ct_status ct_writer_add_floats(ct_writer *writer, const float *values, size_t n);
ct_status ct_writer_commit(ct_writer **writer);
/* The same, but it may not outlive a crash of the machine before ct_dir_settle: of many files, one
 * wait for the disk instead of two for each. */
ct_status ct_writer_commit_early(ct_writer **writer);
/* Waits until everything written to the directory's file system is on the disk. */
ct_status ct_dir_settle(const char *path);
void ct_writer_abandon(ct_writer **writer); /* accepts NULL inside */

/* Adds to the end of a file, or begins it, in one write: a reader never sees half of a line. On
 * failure the file is as long as before. */
ct_status ct_file_append(const char *path, const void *bytes, size_t n);

bool ct_file_exists(const char *path);
bool ct_dir_exists(const char *path);
/* The first n bytes of a plain file, or as many as there are; 0 if it cannot be read. */
size_t ct_file_head(const char *path, void *bytes, size_t n);
/* Does it begin with these (at most 16) bytes? */
bool ct_file_begins(const char *path, const void *bytes, size_t n);
/* A file of this name is in the directory. */
bool ct_dir_has(const char *dir, const char *name);
/* Both are there and are one directory, however they are spelt. */
bool ct_dir_is_same(const char *a, const char *b);
/* Creates a directory and its parents; an existing one is fine. */
ct_status ct_dir_create(const char *path);
/* Keeps other processes from locking the directory too, until ct_dir_unlock or the end of this one,
 * whatever ends it; nothing is left in it. False: another process has it. *lock is -1 where the
 * file system knows no locks, and everybody goes ahead as if alone. */
bool ct_dir_lock(const char *path, int *lock);
void ct_dir_unlock(int *lock);
/* dir + "/" + name. One that is longer than the system allows stays so, and is refused by it. */
typedef struct ct_path {
    char text[4104];
} ct_path;
ct_path ct_path_in(const char *dir, const char *name);
/* The directory that a file lies in; "." for a bare name. */
ct_path ct_path_dir(const char *path);

/* CT_IO: "<path>: <what errno says>"; CT_NOMEM where that is what it says. */
ct_status ct_file_failed(const char *path);
/* For CT_SCOPED_BY: what was opened, if it was. */
void ct_fd_close(int *fd);
void ct_stream_close(FILE **stream);

/* CRC-32 (the zlib and PNG one), continued from `crc`; start with 0. */
uint32_t ct_crc32(uint32_t crc, const void *bytes, size_t n);

#endif
