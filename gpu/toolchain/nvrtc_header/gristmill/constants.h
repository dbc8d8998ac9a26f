// Infinities and NaNs of <math.h>, as constants that NVRTC folds; it has the functions itself.
#pragma once
#include "math_numbers.h"

#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#define NAN __builtin_bit_cast(float, 0x7fc00000)
#define HUGE_VAL __builtin_bit_cast(double, 0x7ff0000000000000)
#define HUGE_VALF INFINITY
