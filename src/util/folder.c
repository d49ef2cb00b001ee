#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_PATH */
#endif
#include "util/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "util/memory.h"

/* To go through, not to list. */
#define ENTER (O_PATH | O_DIRECTORY | O_CLOEXEC)

const char *ct_folder_name(const ct_folder *folder, const char *path) {
    size_t n = strlen(folder->path);
    while (n > 0 && folder->path[n - 1] == '/') n--;
    if (strncmp(path, folder->path, n) != 0 || (path[n] != '/' && path[n] != '\0')) return NULL;
    path += n;
    path += strspn(path, "/");
    return *path != '\0' ? path : ".";
}

/* Goes down a name by name. No link is followed: `..` is refused, and so nothing leads up. */
static int walk(int from, const char *names) {
    int fd = openat(from, ".", ENTER);
    for (const char *at = names; *at != '\0' && fd >= 0; at += strspn(at, "/")) {
        char name[NAME_MAX + 1];
        size_t n = strcspn(at, "/");
        bool is_name = n < sizeof name && !(n == 2 && strncmp(at, "..", 2) == 0);
        snprintf(name, sizeof name, "%.*s", is_name ? (int)n : 0, at);
        int next = is_name ? openat(fd, name, ENTER | O_NOFOLLOW) : -1;
        if (!is_name) errno = ENOENT;
        int reason = errno;
        close(fd);
        errno = reason;
        fd = next;
        at += n;
    }
    return fd;
}

ct_status ct_folder_open(const ct_folder *root, const char *path, ct_folder *out) {
    const char *below = root != NULL ? ct_folder_name(root, path) : path;
    *out = (ct_folder){.fd = -1, .is_sealed = root != NULL && root->is_sealed, .path = path};
    if (below == NULL) return CT_OK;
    CT_SCOPED_BY(ct_fd_close, int)
    fd = out->is_sealed ? walk(root->fd, below) : open(path, ENTER);
    if (fd >= 0) out->fd = openat(fd, ".", ENTER); /* only who may enter can do that */
    if (out->fd >= 0 || errno == ENOENT || errno == ENOTDIR) return CT_OK;
    return ct_file_failed(path);
}

void ct_folder_close(ct_folder *folder) {
    ct_fd_close(&folder->fd);
}

bool ct_folder_stat(const ct_folder *folder, const char *name, struct stat *out) {
    return folder->fd >= 0 &&
           fstatat(folder->fd, name, out, folder->is_sealed ? AT_SYMLINK_NOFOLLOW : 0) == 0;
}

ct_status ct_folder_read(const ct_folder *folder, const char *name, size_t max_bytes,
                         ct_blob *out) {
    ct_path path = ct_path_in(folder->path, name);
    int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | (folder->is_sealed ? O_NOFOLLOW : 0);
    errno = ENOENT;
    CT_SCOPED_BY(ct_fd_close, int)
    fd = folder->fd >= 0 ? openat(folder->fd, name, flags) : -1;
    if (fd < 0 && errno == ELOOP && folder->is_sealed)
        return ct_fail(CT_IO, "%s: " CT_LINK_REFUSED, path.text);
    if (fd < 0) return ct_file_failed(path.text);
    return ct_file_read_open(fd, path.text, max_bytes, out);
}

ct_status ct_folder_list(const ct_folder *folder,
                         ct_status (*each)(void *context, const char *name), void *context) {
    int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        ct_status failed = ct_file_failed(folder->path);
        ct_fd_close(&fd);
        return failed;
    }
    ct_status status = CT_OK;
    for (struct dirent *e; status == CT_OK && (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.') status = each(context, e->d_name);
    closedir(dir);
    return status;
}
