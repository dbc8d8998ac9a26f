#pragma once

#include "gpu/mock/ptx/ptx.hpp"
#include "gpu/toolchain/device_ir.hpp"
#include "messages/result.hpp"
#include "messages/verdict.hpp"
#include "protocol/resolve.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// What our checks of finished PTX say.
struct ptx_judgement {
  /// passed, compile_error or reward_hack.
  verdict_status status = verdict_status::passed;
  /// Why not passed.
  std::string reason;
  std::vector<finding> findings;
};

/// Compares the module with what clang knows and what the plan passes: every entry is a kernel of
/// the source (another one was opened by inline PTX: reward_hack), every directive is on the
/// allow-list, the parameters of the plan's entries have the sizes that the plan passes. Clock and
/// counter registers and writable module globals are findings. With `line_info` there are sections
/// of names as well, which hold no code.
ptx_judgement judge_ptx(
  const ptx::module& module, const device_ir& ir, const compile_unit& unit, bool line_info = false);

/// An entry by the words of the text.
struct entry_name {
  std::string name;
  size_t line = 0;
};

/// Every `.entry NAME` outside of comments, in order.
std::vector<entry_name> entry_names(std::string_view text);

/// The functions that the text declares and does not define: `.extern .func … NAME`.
std::vector<std::string> external_functions(std::string_view text);

/// The same as `judge_ptx` for the entries alone, by the words of the text.
ptx_judgement judge_entry_names(std::string_view text, const device_ir& ir);

/// Before code is generated: device memory allocation, assembly outside of functions, entries that
/// are no kernels.
ptx_judgement judge_ir(const device_ir& ir, const compile_unit& unit);

} // namespace gristmill
