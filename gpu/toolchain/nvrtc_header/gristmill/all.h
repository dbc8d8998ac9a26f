// Everything that device code may use without an include, as behind clang; included before the
// first line of a kernel.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <math_constants.h>
#include "types.h"
#include "constants.h"
#include "pipeline.h"
#include "traits.h"
#include "std_math.h"
#include "signature.h"

#undef __is_const
#undef __is_pointer
#undef __is_floating_point
#undef __is_integral
#undef __is_signed
#undef __is_unsigned
#undef __builtin_inff
#undef __builtin_nanf
