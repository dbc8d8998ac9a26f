#pragma once

#include "messages/blob.hpp"
#include "messages/result.hpp"
#include "protocol/problem_files.hpp"
#include "protocol/run_rules.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// What all machines of a run agree on, so that each of them makes the same inputs, compiles with
/// the same options and judges by the same rules. What differs from machine to machine (folders,
/// interpreters, devices) is not in it.
struct run_terms : run_rules {
  /// Name of the run, the same over all its starts.
  std::string run;
  /// Sleep devices and the sleep proposer: no kernel runs anywhere.
  bool rehearsal = false;
  /// The table of `--bounds` in schema "gristmill.bounds/1" (protocol/bounds.hpp); empty for none.
  blob_ref bounds;

  /// As `--proposer` has it (protocol/proposer_text.hpp); which worker has which follows from it.
  std::string proposer = "template";
  /// What a worker tells the broker before it knows better.
  std::chrono::nanoseconds estimated_hold{0};
  /// When the wall budget of the run ends, from its start; 0: none.
  std::chrono::nanoseconds run_end{0};

  std::vector<problem_listing> problems;

  friend bool operator==(const run_terms&, const run_terms&) = default;
};

inline constexpr size_t run_terms_problems_max = 4096;

/// JSON of schema "gristmill.run-terms/1". Equal terms give equal bytes.
std::string to_json(const run_terms& terms);

/// Reads what another process wrote: every field has to be there, none besides. `invalid_input`
/// names the field.
result<run_terms> run_terms_from_json(std::string_view text);

} // namespace gristmill
