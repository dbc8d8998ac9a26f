#pragma once

#include <string>
#include <string_view>

namespace gristmill {

/// Takes unoptimised intermediate code and gives memory accesses the alignment of their type.
///
/// `*reinterpret_cast<float4*>(&tile[i])` is how kernels ask for a wide access. clang believes the
/// declared alignment of `tile` instead and splits the access into four; CUDA's compilers believe
/// the cast, and a GPU (and the interpreter) faults where it was wrong. Only plain accesses and
/// copies of aggregates are changed, not calls of memcpy; code with packed structures stays as it
/// is.
std::string trust_alignment(std::string_view ir);

} // namespace gristmill
