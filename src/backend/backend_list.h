/* BACKEND(id, "name", "one line of help"): ct_backend_<id>_create() in its folder. The first one
 * is what --device auto takes. */
BACKEND(cpu, "cpu", "all agents over the cores, vector kernels chosen at run time")
BACKEND(ref, "ref", "plain loops with double sums: slow, the oracle for every other backend")
