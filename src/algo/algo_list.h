/* ALGO(id): the entry ct_algo_<id> of the file that implements it.
 * ALIAS(name, algorithm, loss, text): another name for an algorithm with a loss.
 * No include guard on purpose; what is not defined is left out. */
#ifndef ALGO
#define ALGO(id)
#endif
#ifndef ALIAS
#define ALIAS(name, algorithm, loss, text)
#endif
ALGO(dsgd)
ALGO(dsgdm)
ALGO(dfedavgm)
ALGO(defkt)
ALGO(qgm)
ALGO(relaysgd)
ALGO(gt)
ALGO(mt)
ALGO(motef)
ALGO(d2)
ALGO(edm)
ALGO(gut)
ALGO(sgp)
ALGO(cga)
ALGO(ngc)
ALGO(allreduce)
ALGO(local)
ALGO(adpsgd)
ALGO(swift)
ALIAS("ccl", "qg-dsgdm", "ccl", "the paper's method: qg-dsgdm with the CCL loss")
#undef ALGO
#undef ALIAS
