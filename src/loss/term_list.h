/* TERM(ID, name, axis, digits): every term that an agent's loss may have, in the order of the loss
 * banks (CT_LOSS_<ID>). name: in metrics, tables, progress; axis: of figures; digits: in tables. */
TERM(CE, "ce", "L_ce", 4)
TERM(MV, "mv", "L_mv", 6)
TERM(DV, "dv", "L_dv", 6)
