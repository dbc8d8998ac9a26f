#include "kernels/lowering/linker.hpp"

#include "kernels/lowering/plan_linker.hpp"
#include "protocol/plan.hpp"

#include <fmt/format.h>

namespace gristmill {

result<generated_kernel> link(
  const program_graph& program, const std::vector<program_code>& programs) {
  if (programs.empty() || programs.size() > plan_limits::variants)
    return fail(errc::invalid_input,
      fmt::format("{} programs for one candidate; 1 to {} are possible", programs.size(),
        plan_limits::variants));
  auto linked = plan_linker(program, programs).run();
  if (!linked)
    return pass(linked);
  if (linked->plan.size() > plan_limits::text_bytes)
    return fail(errc::refused,
      fmt::format("the launch plan of the linked program has {} bytes; at most {} are possible",
        linked->plan.size(), plan_limits::text_bytes));
  // Number of steps, scratch tensors, names: the reader of plans knows all limits.
  if (const auto parsed = parse_plan(linked->plan); !parsed)
    return fail(errc::refused, fmt::format("the linked program: {}", parsed.error().what));
  return linked;
}

} // namespace gristmill
