#include "site/mesh_internal.h"

#if CT_WITH_ZMQ
ct_status ct_parcel_create(const ct_letter *letter, ct_parcel **out) {
    ct_parcel *parcel = NULL;
    if (letter->n > SIZE_MAX - sizeof *parcel) return ct_no_memory("a letter");
    CT_TRY(ct_make_block(&parcel, 1, sizeof *parcel + letter->n, "a letter"));
    parcel->letter = *letter;
    parcel->letter.bytes = parcel->bytes;
    if (letter->bytes != NULL && letter->n > 0) memcpy(parcel->bytes, letter->bytes, letter->n);
    *out = parcel;
    return CT_OK;
}

void ct_parcels_push(ct_parcels *list, ct_parcel *parcel) {
    parcel->next = NULL;
    if (list->last != NULL) list->last->next = parcel;
    if (list->first == NULL) list->first = parcel;
    list->last = parcel;
    list->n++;
    list->n_bytes += parcel->letter.n;
}

ct_parcel *ct_parcels_pop(ct_parcels *list) {
    ct_parcel *parcel = list->first;
    if (parcel == NULL) return NULL;
    list->first = parcel->next;
    if (list->first == NULL) list->last = NULL;
    list->n--;
    list->n_bytes -= parcel->letter.n;
    return parcel;
}

void ct_parcels_free(ct_parcels *list) {
    while (list->first != NULL) ct_free(ct_parcels_pop(list));
}
#endif
