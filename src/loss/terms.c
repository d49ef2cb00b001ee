#include "loss/loss.h"

const ct_loss_term ct_loss_terms[CT_N_TERMS] = {
#define TERM(id, name, axis, digits) {name, axis, digits},
#include "loss/term_list.h"
#undef TERM
};
