#pragma once

#include "messages/attempt.hpp"
#include "messages/blob.hpp"
#include "messages/verdict.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// Make device code for every unit (variant and define values) that the problem's workloads need.
struct compile_request {
  attempt_id attempt;
  candidate_ref candidate;
  std::string device_model;
};

/// An entry point of a compiled unit.
struct compiled_entry {
  /// As the launch plan writes it, such as "rmsnorm<T, WIDTH>".
  std::string expression;
  /// As the device code calls it.
  std::string symbol;
};

struct compiled_unit {
  /// `compile_unit::key` of the resolved plan.
  std::string key;
  blob_ref code;
  std::vector<compiled_entry> entries;
};

/// Answer of the compiler. A candidate that does not compile is an answer, not an error.
struct compiled_candidate {
  std::string candidate;
  /// passed, compile_error (source, types, entries) or reward_hack (an entry smuggled in).
  verdict_status status = verdict_status::compile_error;
  std::vector<compiled_unit> units;
  /// First lines of what the compiler said, without host paths.
  std::string log;
  /// Not forbidden by itself, but worth a look, such as the use of a clock register.
  std::vector<finding> findings;
  /// Name and version, such as "clang-19.1.7".
  std::string toolchain;
  bool cached = false;
};

} // namespace gristmill
