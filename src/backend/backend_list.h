/* BACKEND(id, "name", "one line of help"): ct_backend_<id>_create() in its folder. --device auto
 * takes the first one, or the second where the first does not work. */
BACKEND(cuda, "cuda", "all agents in one launch on an NVIDIA GPU (compute capability 8.0 or newer)")
BACKEND(cpu, "cpu", "all agents over the cores, vector kernels chosen at run time")
BACKEND(ref, "ref", "plain loops with double sums: slow, the oracle for every other backend")
