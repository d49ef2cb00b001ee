/* libFuzzer's own mutations, after which checksums are repaired. */
#include "fuzz.h"

#pragma weak fuzz_repair
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t room, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t room, unsigned seed) {
    n = LLVMFuzzerMutate(data, n, room);
    if (fuzz_repair != NULL && seed % 8 != 0) fuzz_repair(data, n);
    return n;
}
