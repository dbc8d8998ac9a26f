#pragma once

#include "llm/traffic/gateway_core.hpp"
#include "messages/event.hpp"
#include "messages/result.hpp"

#include <span>
#include <string>
#include <vector>

namespace gristmill {

// The events about money, and how they are read again.

/// Before a try is sent: what it may cost at most.
event sent_event(const try_record& record);
/// A try has ended: what was counted. No text of a prompt or an answer.
event call_event(const try_record& record);

/// The money that a log knows of.
struct restored_spending {
  /// One entry for each problem and agent: for `gateway_config::spent_before`.
  std::vector<spending> spent;
  /// Tries that were sent and never ended: to be appended to the log, as `llm_call` events that
  /// hold the worst case. Already counted in `spent`.
  std::vector<event> closing;
};

/// Nothing is counted twice: a try that has several events of one kind counts once. `invalid_input`
/// for an event that is broken, with its number.
result<restored_spending> restore_spending(std::span<const event> events);

} // namespace gristmill
