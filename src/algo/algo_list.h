/* ALGO(id): the entry ct_algo_<id> of the file that implements it. */
ALGO(dsgd)
ALGO(dsgdm)
ALGO(qgm)
ALGO(relaysgd)
