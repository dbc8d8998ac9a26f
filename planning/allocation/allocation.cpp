#include "planning/allocation/allocation.hpp"

#include "planning/allocation/equal_share.hpp"
#include "planning/allocation/rebalance.hpp"

#include <fmt/format.h>

namespace gristmill {

std::string to_string(const allocation_reason& reason) {
  auto share = fmt::format("{} in flight, {} attempts given", reason.in_flight, reason.given);
  if (reason.gpu_ns != 0)
    share += fmt::format(", {:.3f} GPU-s", static_cast<double>(reason.gpu_ns) * 1e-9);
  auto gated =
    reason.gated == 0 ? std::string{} : fmt::format("; {} near their floor left out", reason.gated);
  switch (reason.rule) { // no default: the compiler reports a missing case
  case allocation_rule::equal_share:
    return "equal share: " + share;
  case allocation_rule::floor_share:
    return "equal floor: " + share + gated;
  case allocation_rule::rising:
    if (reason.given == 0)
      return "rising: not tried yet" + gated;
    return fmt::format("rising: gained {:.4f} (log) over its last {} attempts, {} in flight{}",
      reason.gain, reason.window, reason.in_flight, gated);
  case allocation_rule::all_gated:
    return "all are near their floor: " + share;
  }
  return "unknown";
}

std::unique_ptr<allocation> make_allocation(
  const allocation_settings& settings, uint32_t problems) {
  if (settings.kind == allocation_kind::rebalance)
    return std::make_unique<rebalance>(settings, problems);
  return std::make_unique<equal_share>(problems, settings.by_attempts);
}

} // namespace gristmill
