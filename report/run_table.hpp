#pragma once

#include "messages/event.hpp"
#include "messages/result.hpp"
#include "messages/verdict.hpp"
#include "scoring/score.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gristmill {

/// One candidate that was given by file, and what became of it.
struct planted_row {
  std::string problem;
  std::string key;
  /// Upper-case status, or how the attempt ended without one.
  std::string status;
  std::string reason;
};

/// One problem of a run, as its log tells it. Times in nanoseconds, geometric means over the
/// problem's workloads; 0 = none.
struct problem_row {
  std::string name;
  /// "PASSED", "no candidate" (a baseline only), "INVALID_REFERENCE", "not prepared", …
  std::string status;
  uint64_t baseline_ns = 0;
  uint64_t best_ns = 0;
  double speedup = 0;
  /// Share of the floor that the best candidate reaches, T_SOL / T, on the problem's largest
  /// workload.
  double floor_share = 0;
  double sol_score = 0;
  uint32_t attempts = 0;
  uint64_t gpu_ns = 0;
  /// What limits the best candidate, such as "dram 2/3, launch 1/3".
  std::string limited_by;
  /// Why the problem's search ended.
  std::string reason;
  std::string best_candidate;
  std::string best_key;
};

/// A problem that the run went on without, because it could not be loaded.
struct skipped_row {
  /// As it was given.
  std::string problem;
  std::string reason;
};

/// What language models did for a run. Retries count as calls.
struct model_use {
  uint64_t calls = 0;
  uint64_t input_tokens = 0;
  uint64_t output_tokens = 0;
  /// Known to be spent, in 10^-9 USD.
  uint64_t nano_usd = 0;
  /// Worst case of calls whose usage nobody knows.
  uint64_t held_nano_usd = 0;
  uint64_t calls_unknown = 0;
  /// Of models without a price: their tokens are counted, their money is not.
  uint64_t calls_unpriced = 0;
};

/// What a run came to, from its log alone.
struct run_table {
  /// From the first line of the log.
  std::string gpus;
  std::string toolchain;
  /// Such as "MODELLED by mock-clock/1 uncalibrated for h200".
  std::string time_note;
  std::string baseline_note;
  uint64_t seed = 0;
  /// The user gave the seed, so the inputs are known to whoever knows it.
  bool seed_given = false;
  std::vector<problem_row> problems;
  std::vector<planted_row> planted;
  std::vector<skipped_row> skipped;
  suite_summary summary;
  uint64_t attempts = 0;
  /// Of these, those that came to no candidate.
  uint64_t unproposed = 0;
  uint64_t gpu_ns = 0;
  /// From the run's beginning to its last event; time between a kill and `resume` does not count.
  uint64_t wall_ns = 0;
  /// GPUs that reported.
  uint64_t gpu_count = 0;
  model_use models;
  /// Empty while the run goes on or when it was killed.
  std::string end_reason;
  bool ended = false;
  bool clean = false;
  /// SHA-256 of what happened, whenever it happened; filled by who has read the log.
  std::string digest;
};

/// Errors: `invalid_input` for a log without its first line or with data that is not what the kind
/// promises; kinds that this build does not know are passed over.
result<run_table> make_run_table(std::span<const event> events);

/// "12 calls of models: 3400 tokens read, 900 written, 0.0123 USD; …", unknowns named. Empty where
/// no model was asked.
std::string to_text(const model_use& use);

/// Adds an `llm_call` event; others change nothing.
void count_model_call(model_use& use, const event& e);

/// For a terminal: at most 110 columns wide; longer notes are wrapped.
std::string to_text(const run_table& table);

/// For programs; one JSON object.
std::string to_json(const run_table& table);

} // namespace gristmill
