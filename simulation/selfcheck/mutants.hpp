#pragma once

#include "gpu/lease/policy.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A mistake that a scheduler could have, put under the engine to see that the checks find it.
enum class mutant_kind : uint8_t {
  none = 0,
  /// The newest request first.
  lifo,
  /// Every eighth time that a free GPU could go to somebody nobody is named: the GPU stays free
  /// until the next event.
  lost_wakeup,
  /// The last free GPU is never used. Where GPUs are alike that is the same as never using GPU 0,
  /// which a policy cannot do by itself: the table offers the first of those that are alike, and
  /// asks no further when the answer is nobody.
  ignore_free_gpu,
};

/// "lifo", "lost-wakeup", "ignore-free-gpu".
std::string to_string(mutant_kind what);
/// Errors: `invalid_input` naming the nearest.
result<mutant_kind> mutant_from_text(std::string_view text);
const std::vector<mutant_kind>& mutants();

/// `right` with the mistake; `right` itself for `none`. `gpus`: how many there are.
std::unique_ptr<lease_policy> with_mutant(
  mutant_kind what, std::unique_ptr<lease_policy> right, uint32_t gpus);

} // namespace gristmill
