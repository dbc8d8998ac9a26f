#pragma once

#include "messages/result.hpp"
#include "messages/sanitizer.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// No record is larger.
inline constexpr size_t sanitizer_record_bytes_max = size_t{1} << 20;

/// The text, schema "gristmill.sanitizer/1": one line of strict JSON, keys in a fixed order.
std::string to_json(const sanitizer_record& what);

/// The reverse. Strict: an unknown or a missing key, a wrong type, another schema is
/// `invalid_input` that names the field.
result<sanitizer_record> sanitizer_record_from_json(std::string_view text);

/// What a runner that was started by `--sanitized` writes beside its job, for its caller alone: how
/// the call of each workload went, and on a mock what the interpreter's checks found.
struct sanitized_calls {
  struct call {
    std::string uuid;
    /// Empty when the call was made to its end.
    std::string failed;
    std::vector<sanitizer_finding> findings;
    uint64_t left_out = 0;
    /// On a mock: what its checks could not look at.
    std::vector<std::string> not_seen;
  };
  std::vector<call> calls;
};

inline constexpr const char* sanitized_calls_file = "calls.json";

std::string to_json(const sanitized_calls& what);
result<sanitized_calls> sanitized_calls_from_json(std::string_view text);

} // namespace gristmill
