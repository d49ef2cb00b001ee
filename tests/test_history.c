/* A few random histories (history.h); test_history_slow.c has many. */
#include "history.h"

int main(void) {
    return test_histories((many){10, 1, 6}, (many){2, 1, 3});
}
