#pragma once

#include "messages/blob.hpp"
#include "messages/result.hpp"
#include "protocol/problem_files.hpp"
#include "protocol/resolve.hpp"
#include "tensors/mac_class.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// What all machines of a run agree on, so that each of them makes the same inputs, compiles with
/// the same options and judges by the same rules. What differs from machine to machine (folders,
/// interpreters, devices) is not in it. Everything here is as in `run_context`, where it says what
/// it means.
struct run_terms {
  /// Name of the run, the same over all its starts.
  std::string run;
  /// Keys the inputs: whoever has it can tell them in advance. It travels over TLS or loopback
  /// only.
  std::array<uint8_t, 32> secret{};
  uint64_t seed = 0;
  std::string program;
  /// Sleep devices and the sleep proposer: no kernel runs anywhere.
  bool rehearsal = false;

  std::string device_model;
  std::string device_label;
  std::string device_title;
  bool measured = false;
  device_facts facts;
  uint64_t floor_bytes_per_second = 0;
  uint64_t floor_flops_per_second = 0;
  mac_counts floor_macs_per_second{};
  uint64_t shortest_kernel_ns = 0;
  uint64_t write_bytes_per_second = 0;
  std::string arch;
  std::string toolchain;
  /// The table of `--bounds` as `to_json` writes it; empty for none.
  blob_ref bounds;

  std::string oracle = "auto";
  uint64_t check_elements_max = 0;
  uint32_t rounds = 1;
  uint64_t sets_bytes_max = 0;
  uint64_t sets_macs_max = 0;
  bool promote = false;
  uint32_t samples = 1;
  std::string flush = "official";
  uint64_t instruction_limit = 0;

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
