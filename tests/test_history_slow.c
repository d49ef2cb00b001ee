/* Many random histories (history.h). */
#include "history.h"

int main(void) {
    return test_histories((many){100, 1000, 12}, (many){20, 2000, 8});
}
