/* Plain connections to a server on this machine. Whoever waits longer than a minute has failed. */
#ifndef CT_TEST_SOCKETS_H
#define CT_TEST_SOCKETS_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* A connection over which these bytes were sent; -1 without one. */
static inline int send_to(int port, const char *bytes) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct timeval patience = {.tv_sec = 60};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    size_t n = strlen(bytes);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
        connect(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
        send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n)
        return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* Reads until the server closes, as much as there is room for, and closes; *fd may be -1. */
static inline size_t drain(int *fd, char *text, size_t size) {
    size_t n = 0;
    for (ssize_t got; *fd >= 0 && (got = read(*fd, text + n, size - 1 - n)) > 0;) n += (size_t)got;
    if (*fd >= 0) close(*fd);
    *fd = -1;
    text[n] = '\0';
    return n;
}

#endif
