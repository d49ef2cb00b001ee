/* Downloads by libcurl: path.part grows, is checked, and becomes path. */
#include "data/fetch.h"

#include "ct_config.h"

#if CT_WITH_CURL

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/log.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/sha256.h"
#include "util/text.h"

typedef struct transfer {
    CURL *curl;
    const char *url;
    const char *part;
    FILE *file;
    curl_off_t begin; /* bytes that were there before */
    int write_error;  /* errno */
    bool progress;
    time_t shown;
} transfer;

static size_t receive(char *bytes, size_t size, size_t n, void *context) {
    transfer *t = context;
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
    if (!t->progress || second == t->shown || now == 0) return 0;
    t->shown = second;
    double done = (double)(t->begin + now) / 1e6, all = (double)(t->begin + total) / 1e6;
    ct_log(CT_LOG_PASSING, "%s: %.1f of %.1f MB", t->url, done, total > 0 ? all : done);
    return 0;
}

static void prepare(transfer *t) {
    CURL *c = t->curl;
    curl_easy_setopt(c, CURLOPT_URL, t->url);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c, CURLOPT_MAXREDIRS, 10L);
    curl_easy_setopt(c, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 30L);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L); /* nothing for a minute: cut */
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, 60L);
    curl_easy_setopt(c, CURLOPT_RESUME_FROM_LARGE, t->begin);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, (void *)t);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, show);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, (void *)t);
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, t->progress ? 0L : 1L);
}

static bool is_worth_trying_again(CURLcode code) {
    return code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING ||
           code == CURLE_OPERATION_TIMEDOUT || code == CURLE_COULDNT_CONNECT ||
           code == CURLE_SEND_ERROR;
}

/* One try: more bytes behind those of path.part. *again: it was cut, and may go on. */
static ct_status try_once(transfer *t, bool *again) {
    struct stat info;
    *again = false;
    t->begin = stat(t->part, &info) == 0 ? (curl_off_t)info.st_size : 0;
    t->file = fopen(t->part, "ab");
    if (t->file == NULL) return ct_file_failed(t->part);
    prepare(t);
    CURLcode code = curl_easy_perform(t->curl);
    long http = 0;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &http);
    if (fclose(t->file) != 0 && t->write_error == 0) t->write_error = errno;
    if (t->write_error != 0)
        return ct_fail(CT_IO, "%s: %s; what there is of it is kept, try again later", t->part,
                       strerror(t->write_error));
    if (code == CURLE_OK) return CT_OK;
    if (http == 416) return CT_OK; /* nothing behind what we have: the digest will tell */
    if (code == CURLE_RANGE_ERROR) remove(t->part); /* it can only send all of it */
    *again = code == CURLE_RANGE_ERROR || is_worth_trying_again(code);
    if (*again) return CT_IO;
    return ct_fail(CT_IO, "%s: %s (HTTP %ld)", t->url, curl_easy_strerror(code), http);
}

static ct_status download(transfer *t, const ct_fetch_options *options) {
    int n_tries = options->n_tries > 0 ? options->n_tries : 5;
    bool again = true;
    ct_status status = CT_OK;
    for (int k = 0; k < n_tries && again; k++) {
        if (k > 0) {
            ct_note("%s: the connection was cut; going on (try %d of %d)", t->url, k + 1, n_tries);
            sleep((unsigned)options->pause_s);
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

static ct_status check(const char *url, const char *part, const char *digest) {
    char got[CT_DIGEST_TEXT];
    CT_TRY(ct_digest_file(part, strlen(digest) == 64 ? CT_SHA256 : CT_MD5, got));
    if (strcmp(got, digest) == 0) return CT_OK;
    remove(part);
    return ct_fail(CT_IO, "%s: wrong checksum %s, not %s: damaged on the way, or another file", url,
                   got, digest);
}

static void transfer_free(transfer *t) {
    if (t->curl != NULL) curl_easy_cleanup(t->curl);
}

ct_status ct_fetch(const char *url, const char *path, const ct_fetch_options *options) {
    CT_SCOPED(ct_text) part = {0};
    ct_text_add(&part, "%s.part", path);
    CT_TRY(ct_text_status(&part));
    CT_SCOPED(transfer) t = {.url = url, .part = part.chars, .progress = options->progress};
    t.curl = curl_easy_init();
    if (t.curl == NULL) return ct_no_memory("a download");
    CT_TRY(download(&t, options));
    if (options->digest != NULL) CT_TRY(check(url, part.chars, options->digest));
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
