#include "util/status.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static pthread_mutex_t message_lock = PTHREAD_MUTEX_INITIALIZER;
static char message[1024];

ct_status ct_fail(ct_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&message_lock);
    if (message[0] == '\0') vsnprintf(message, sizeof message, format, args);
    pthread_mutex_unlock(&message_lock);
    va_end(args);
    return status;
}

const char *ct_message(void) {
    return message;
}

void ct_clear_message(void) {
    pthread_mutex_lock(&message_lock);
    message[0] = '\0';
    pthread_mutex_unlock(&message_lock);
}

int ct_exit_code(ct_status status) {
    switch (status) {
    case CT_OK: return 0;
    case CT_INVAL:
    case CT_NOTBUILT: return 2;
    case CT_STOPPED: return 130;
    default: return 1;
    }
}
