// Kernels: the inner loops of the instruction set this translation unit is compiled for.
#pragma once

#if OUTPACE_ISA_LEVEL == 3
#include "avx512.hpp"
#elif OUTPACE_ISA_LEVEL == 2
#include "avx2.hpp"
#elif OUTPACE_ISA_LEVEL == 1
#include "neon.hpp"
#else
#include "scalar.hpp"
#endif
