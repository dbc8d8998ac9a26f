#pragma once

#include "gpu/lease/policy.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gristmill {

// The lines of docs/lease-policy-protocol.md as pure functions: what we write to a policy process,
// and what we accept from it. Each is one JSON object without its line feed.

inline constexpr int external_version = 1;
/// A longer line of the process breaks the protocol.
inline constexpr size_t external_line_bytes_max = size_t{1} << 20;

std::string external_hello();
std::string external_request(const waiter& w);
std::string external_cancel(uint64_t ticket);
std::string external_grant(uint64_t ticket, uint32_t gpu, std::chrono::nanoseconds now);
std::string external_release(
  const lease_usage& usage, std::string_view reason, std::chrono::nanoseconds now);
std::string external_load(std::string_view state);
std::string external_pick(uint64_t id, const gpu_offer& offer, std::chrono::nanoseconds now);
std::string external_save(uint64_t id);

/// What a process answers: to `pick` with `ticket`, to `save` with `state`.
struct external_answer {
  uint64_t id = 0;
  /// Nothing: `null` or not given.
  std::optional<uint64_t> ticket;
  std::optional<std::string> state;

  friend bool operator==(const external_answer&, const external_answer&) = default;
};

/// Reads one line: a JSON object whose keys are id (needed), ticket and state, each once, with a
/// whole number, a whole number or null, and a string. `number_key` stands in place of ticket, for
/// other protocols. Errors: `invalid_input`.
result<external_answer> parse_external_answer(
  std::string_view line, std::string_view number_key = "ticket");

/// A JSON string, with its quotes; bytes that are no UTF-8 become U+FFFD.
std::string json_quoted(std::string_view text);

} // namespace gristmill
