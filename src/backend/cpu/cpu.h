/* The fast CPU backend: agents over the cores, one job a core, vector kernels. Activations are kept
 * in lanes, [blocks of 16 samples][channels][height][width][16]: a vector is one pixel of 16
 * samples, weights are broadcast. The instruction set is chosen when the backend is made; the
 * environment variable CROSSTALK_ISA (avx512, avx2, portable; on 64-bit ARM neon, portable) overrides the choice. Results do not
 * depend on the number of threads. */
#ifndef CT_BACKEND_CPU_CPU_H
#define CT_BACKEND_CPU_CPU_H

#include "backend/backend.h"

ct_status ct_backend_cpu_create(const ct_backend_options *options, ct_backend **out);

#endif
