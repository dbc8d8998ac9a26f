// Everything; included before the first line of a kernel, as a CUDA compiler does.
#pragma once
#include "types.h"
#include "threads.h"
#include "memory.h"
#include "pipeline.h"
#include "integer.h"
#include "math.h"
#include "half.h"
#include "bfloat16.h"
#include "float8.h"
#include "traits.h"
#include "std_math.h"
#include "signature.h"
