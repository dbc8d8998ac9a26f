#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gristmill::cuda {

/// Names of the variables of a PTX module that kernels can write and that keep their value from one
/// launch to the next. Empty for what does not parse: the driver says what is wrong with it.
std::vector<std::string> writable_globals(std::string_view ptx);

} // namespace gristmill::cuda
