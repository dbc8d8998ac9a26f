#pragma once

#include "messages/evidence.hpp"

#include <string>
#include <string_view>

/// The rules that look at numbers themselves, for `examine` alone.
namespace gristmill::rules {

struct said {
  bool fired = false;
  /// What was looked at, in words and numbers; or why nothing could be seen.
  std::string text;
};

/// One workload of the evidence. Measurement and evaluation are null where there is none.
struct looked_at {
  const evidence& of;
  const workload_yardstick& bounds;
  const workload_measurement* measured;
  const workload_evaluation* judged;
};

/// The rule of that name on one workload; a name without such a rule says that nothing was looked
/// at.
said apply(std::string_view rule, const looked_at& at);

said specialised(const evidence& of);

} // namespace gristmill::rules
