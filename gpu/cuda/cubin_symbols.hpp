#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gristmill::cuda {

/// Names in the symbol tables of a cubin, which is an ELF file of 64 bits. Empty for what is none;
/// damaged tables give what can be read of them.
std::vector<std::string> symbols_of(std::string_view cubin);

} // namespace gristmill::cuda
