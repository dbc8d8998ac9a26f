#pragma once

#include "messages/result.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Refuses what would read files of the host: an include of anything but the device headers, a
/// computed include, `__has_include` and `__has_embed` (which probe for paths), `#embed`, `#line`
/// and `#import`. The message says "kernel.cu:LINE". A line inside of a raw string literal counts
/// as code.
result<void> check_source(std::string_view source);

/// Refuses define names and values that are more than a name and a literal or type, and entry
/// expressions that are more than a (template) name: both become part of the compiler's input.
result<void> check_unit(const compile_unit& unit);

/// Compiler flags for the options, from an allow-list. Fails with `invalid_input`, or with
/// `unsupported` for header collections that this toolchain does not have.
result<std::vector<std::string>> option_flags(const plan_options& options);

/// What clang-19 compiles for when a GPU of architecture `arch` is asked for: the same, but
/// "sm_90a" for the newer ones that it does not know. Fails with `invalid_input` for anything else.
result<std::string> clang_architecture(std::string_view arch);

} // namespace gristmill
