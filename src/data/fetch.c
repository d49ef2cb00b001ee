/* Downloads by libcurl: path.part grows, is checked, and becomes path. */
#include "data/fetch.h"

#include "ct_config.h"

#if CT_WITH_CURL

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"
#include "util/text.h"

typedef struct transfer {
    CURL *curl;
    const char *url;
    const char *part;
    const ct_fetch_options *options;
    FILE *file;
    curl_off_t begin; /* bytes that were there before */
    curl_off_t n;     /* bytes there are now */
    int write_error;  /* errno */
    bool too_much;
    time_t shown;
} transfer;

static size_t receive(char *bytes, size_t size, size_t n, void *context) {
    transfer *t = context;
    t->n += (curl_off_t)(size * n);
    t->too_much = t->n > t->options->max_bytes;
    if (t->too_much) return 0;
    errno = 0;
    size_t written = fwrite(bytes, 1, size * n, t->file);
    if (written != size * n) t->write_error = errno != 0 ? errno : EIO;
    return written;
}

static int show(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total,
                curl_off_t up) {
    transfer *t = context;
    (void)up_total, (void)up;
    time_t second = time(NULL);
    if (!t->options->progress || second == t->shown || now == 0) return 0;
    t->shown = second;
    double done = (double)(t->begin + now) / 1e6, all = (double)(t->begin + total) / 1e6;
    ct_log(CT_LOG_PASSING, "%s: %.1f of %.1f MB", t->url, done, total > 0 ? all : done);
    return 0;
}

/* What comes over http can be read and changed by everybody on the way, and file:// leads to no
 * other machine; neither may be where a server leads us on to. */
static void allow_protocols(CURL *c) {
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https,file");
    curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, "https");
#else
    curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTPS | CURLPROTO_FILE));
    curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS, (long)CURLPROTO_HTTPS);
#endif
    curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    const char *certificates = getenv("SSL_CERT_FILE"); /* libcurl itself does not look there */
    if (certificates != NULL && certificates[0] != '\0')
        curl_easy_setopt(c, CURLOPT_CAINFO, certificates);
}

static void prepare(transfer *t) {
    CURL *c = t->curl;
    int stall_s = t->options->stall_s > 0 ? t->options->stall_s : 60;
    curl_easy_setopt(c, CURLOPT_URL, t->url);
    allow_protocols(c);
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c, CURLOPT_MAXREDIRS, 10L);
    curl_easy_setopt(c, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 30L);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1000L); /* bytes a second */
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)stall_s);
    curl_easy_setopt(c, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)t->options->max_bytes - t->begin);
    curl_easy_setopt(c, CURLOPT_RESUME_FROM_LARGE, t->begin);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, (void *)t);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, show);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, (void *)t);
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, t->options->progress ? 0L : 1L);
}

/* Opens path.part, a plain file of ours, and finds where to go on. */
static ct_status open_part(transfer *t) {
    struct stat info;
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    CT_SCOPED_BY(ct_fd_close, int) fd = open(t->part, flags, 0666);
    if (fd < 0 || fstat(fd, &info) != 0) return ct_file_failed(t->part);
    if (!S_ISREG(info.st_mode)) return ct_fail(CT_IO, "%s: not a plain file", t->part);
    if (info.st_size > t->options->max_bytes) {
        if (ftruncate(fd, 0) != 0) return ct_file_failed(t->part);
        info.st_size = 0;
    }
    t->n = t->begin = (curl_off_t)info.st_size;
    t->file = fdopen(fd, "ab");
    if (t->file == NULL) return ct_file_failed(t->part);
    fd = -1; /* the stream's now */
    return CT_OK;
}

static void close_part(transfer *t) {
    if (t->write_error == 0 && (fflush(t->file) != 0 || fsync(fileno(t->file)) != 0))
        t->write_error = errno;
    if (fclose(t->file) != 0 && t->write_error == 0) t->write_error = errno;
}

static bool is_worth_trying_again(CURLcode code) {
    return code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING ||
           code == CURLE_OPERATION_TIMEDOUT || code == CURLE_COULDNT_CONNECT ||
           code == CURLE_SEND_ERROR;
}

static ct_status explain(const transfer *t, CURLcode code) {
    long http = 0;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &http);
    if (code == CURLE_UNSUPPORTED_PROTOCOL)
        return ct_fail(CT_IO, "%s leads on to an address that is not https", t->url);
    if (http == 0) return ct_fail(CT_IO, "%s: %s", t->url, curl_easy_strerror(code));
    return ct_fail(CT_IO, "%s: %s (HTTP %ld)", t->url, curl_easy_strerror(code), http);
}

/* One try: more bytes behind those of path.part. *again: it was cut, and may go on. */
static ct_status try_once(transfer *t, bool *again) {
    *again = false;
    CT_TRY(open_part(t));
    prepare(t);
    CURLcode code = CURLE_OK; /* all of it may be there, and was not checked yet */
    if (t->begin < t->options->max_bytes) code = curl_easy_perform(t->curl);
    long http = 0;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &http);
    close_part(t);
    if (t->write_error != 0)
        return ct_fail(CT_IO, "%s: %s; what there is of it is kept, try again later", t->part,
                       strerror(t->write_error));
    if (t->too_much || code == CURLE_FILESIZE_EXCEEDED) {
        remove(t->part);
        return ct_fail(CT_IO, "%s: refused: more than the %" PRId64 " bytes that it may have",
                       t->url, t->options->max_bytes);
    }
    if (code == CURLE_OK) return CT_OK;
    if (http == 416) return CT_OK; /* nothing behind what we have: the digest will tell */
    bool is_of_no_use = code == CURLE_RANGE_ERROR || code == CURLE_BAD_DOWNLOAD_RESUME;
    if (is_of_no_use) remove(t->part); /* it can only send all of it */
    *again = is_of_no_use || is_worth_trying_again(code);
    return *again ? CT_IO : explain(t, code);
}

static ct_status download(transfer *t) {
    int n_tries = t->options->n_tries > 0 ? t->options->n_tries : 5;
    bool again = true;
    ct_status status = CT_OK;
    for (int k = 0; k < n_tries && again; k++) {
        if (k > 0) {
            ct_note("%s: the connection was cut; going on (try %d of %d)", t->url, k + 1, n_tries);
            sleep((unsigned)t->options->pause_s);
        }
        status = try_once(t, &again);
    }
    if (again)
        return ct_fail(CT_IO,
                       "%s: the connection was cut %d times; what there is of it is kept, "
                       "try again later",
                       t->url, n_tries);
    return status;
}

/* Downloads and compares; what is wrong goes. *old: it went on from bytes of an earlier call. */
static ct_status download_right(transfer *t, bool *old) {
    char got[CT_DIGEST_TEXT];
    struct stat info;
    *old = stat(t->part, &info) == 0 && info.st_size > 0;
    CT_TRY(download(t));
    CT_TRY(ct_digest_file(t->part, got));
    if (strcmp(got, t->options->digest) == 0) return CT_OK;
    remove(t->part);
    return ct_fail(CT_IO, "%s: wrong checksum %s, not %s: damaged on the way, or another file",
                   t->url, got, t->options->digest);
}

static void transfer_free(transfer *t) {
    if (t->curl != NULL) curl_easy_cleanup(t->curl);
}

ct_status ct_fetch(const char *url, const char *path, const ct_fetch_options *options) {
    CT_SCOPED(ct_text) part = {0};
    ct_error error;
    bool old;
    if (strncasecmp(url, "https://", 8) != 0 && strncasecmp(url, "file://", 7) != 0)
        return ct_fail(CT_INVAL,
                       "%s: must begin with https:// or, for a folder of this machine, file://",
                       url);
    ct_text_add(&part, "%s.part", path);
    CT_TRY(ct_text_status(&part));
    CT_SCOPED(transfer) t = {.url = url, .part = part.chars, .options = options};
    t.curl = curl_easy_init();
    if (t.curl == NULL) return ct_no_memory("a download");
    ct_status status = CT_CATCH(&error, download_right(&t, &old));
    if (status != CT_OK && old && !ct_file_exists(part.chars)) {
        ct_note("%s: what was there of it belongs to another file; beginning anew", url);
        t.too_much = false;
        status = CT_CATCH(&error, download_right(&t, &old));
    }
    if (status != CT_OK) return ct_fail_again(&error);
    return rename(part.chars, path) == 0 ? CT_OK : ct_file_failed(path);
}

#else

ct_status ct_fetch(const char *url, const char *path, const ct_fetch_options *options) {
    (void)path, (void)options;
    return ct_fail(CT_NOTBUILT,
                   "%s cannot be downloaded: built without libcurl; install libcurl4-openssl-dev "
                   "and configure again, or download it yourself",
                   url);
}

#endif
