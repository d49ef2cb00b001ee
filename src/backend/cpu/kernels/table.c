/* The table of one instruction set. */
#include "backend/cpu/kernels/kernels.h"

#define CT_TEXT_(word) #word
#define CT_TEXT(word)  CT_TEXT_(word)

const ct_kernels KERNEL(kernels) = {
    .isa = CT_TEXT(CT_ISA),
#define KERNEL_FN(result, name, arguments) .name = KERNEL(name),
#include "backend/cpu/kernels/kernel_list.h"
#undef KERNEL_FN
};
