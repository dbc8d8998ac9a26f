#include "planning/allocation/allocation.hpp"

#include <fmt/format.h>

namespace gristmill {

std::string to_string(const allocation_reason& reason) {
  auto share = fmt::format("{} in flight, {} attempts given", reason.in_flight, reason.given);
  if (reason.gpu_ns != 0)
    share += fmt::format(", {:.3f} GPU-s", static_cast<double>(reason.gpu_ns) * 1e-9);
  const auto gated =
    reason.gated == 0 ? std::string{} : fmt::format("; {} near their floor left out", reason.gated);
  // What the gain is for: reasons of runs that share by attempts have no time.
  const std::string_view unit = reason.gpu_ns != 0 ? "GPU-s" : "attempt";
  switch (reason.rule) { // no default: the compiler reports a missing case
  case allocation_rule::equal_share:
    return "equal share: " + share + gated;
  case allocation_rule::floor_share:
    return "equal floor: " + share + gated;
  case allocation_rule::rising:
    if (reason.given == 0)
      return "rising: not tried yet" + gated;
    return fmt::format("rising: gained {:.4f} (log) over its last {} attempts, {} in flight{}",
      reason.gain, reason.window, reason.in_flight, gated);
  case allocation_rule::all_gated:
    return "all are near their floor: " + share;
  case allocation_rule::round_robin:
    return "round robin: " + share + gated;
  case allocation_rule::greedy:
    if (reason.given == 0)
      return "greedy: not tried yet" + gated;
    return fmt::format(
      "greedy: gained {:.3g} (log) per {} lately; {}{}", reason.gain, unit, share, gated);
  case allocation_rule::ucb:
    if (reason.given == 0)
      return "ucb: not tried yet" + gated;
    return fmt::format("ucb: gained {:.3g} (log) per {}, bound {:.3g} above; {}{}", reason.gain,
      unit, reason.bonus, share, gated);
  case allocation_rule::asha:
    if (reason.rung == 0)
      return fmt::format("asha: round {}, first rung; {}{}", reason.round + 1, share, gated);
    return fmt::format(
      "asha: round {}, rung {}, promoted for gaining {:.4f} (log) over {} attempts; {}{}",
      reason.round + 1, reason.rung + 1, reason.gain, reason.window, share, gated);
  case allocation_rule::asha_waits:
    return fmt::format(
      "asha: round {} waits for results, equal share: {}{}", reason.round + 1, share, gated);
  case allocation_rule::oracle:
    return fmt::format("oracle: would gain {:.3g} (log); {}{}", reason.gain, share, gated);
  case allocation_rule::own:
    return fmt::format("{}: score {:.4g}; {}{}", reason.label, reason.gain, share, gated);
  case allocation_rule::own_failed:
    return fmt::format(
      "{} named nobody who can use an attempt, equal share: {}{}", reason.label, share, gated);
  }
  return "unknown";
}

} // namespace gristmill
