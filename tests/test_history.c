/* A few random histories (history.h); with CT_TEST_LONG=1, many. */
#include "history.h"

int main(void) {
    if (getenv("CT_TEST_LONG") != NULL)
        return test_histories((many){100, 1000, 12}, (many){20, 2000, 8});
    return test_histories((many){10, 1, 6}, (many){2, 1, 3});
}
