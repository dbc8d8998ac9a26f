#pragma once

#include "actors/candidate.hpp"
#include "actors/run_context.hpp"
#include "cli/run_setup.hpp"
#include "gpu/children/child_loop.hpp"
#include "gpu/toolchain/device_compiler.hpp"
#include "messages/measure.hpp"
#include "messages/runtime.hpp"
#include "protocol/job.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace gristmill {

/// What any child of a bench may take.
inline constexpr std::chrono::minutes bench_child_deadline{5};

/// The steps of a run for single candidates, one call after the other and without actors: the same
/// children and jobs, in a run directory of its own. May be used by several threads.
class candidate_bench {
public:
  /// Makes the run directory of `setup`, whose first device is the one to be used; `gpus` is its
  /// name where it is a real one. `parallel` as of `child_loop_limits`. Errors: those of
  /// `open_run_directory`.
  static result<std::unique_ptr<candidate_bench>> open(
    run_setup setup, const std::string& gpus, std::array<uint32_t, 5> parallel = {1, 1, 1, 1, 1});
  candidate_bench(const candidate_bench&) = delete;
  candidate_bench& operator=(const candidate_bench&) = delete;
  ~candidate_bench();

  const run_context& context() const { return *context_; }
  const device_compiler& compiler() const { return compiler_; }
  /// "mock:h200" or "cuda:0".
  const std::string& device() const { return device_; }

  child_result wait_for(const child_request& request);
  /// Draws inputs, and references as far as `work` asks for them. Errors: `child_failed` also where
  /// the problem itself cannot be prepared.
  result<prepared_problem> prepare(const problem& target, prepare_job work);
  /// A candidate that does not compile is an answer.
  result<compiled_candidate> compile(
    const resolved_candidate& resolved, const std::string& candidate);
  /// To be held by whoever else writes to the blob store.
  std::unique_lock<std::mutex> lock_stores() { return std::unique_lock{stores_}; }

private:
  candidate_bench() = default;

  run_context_ptr context_;
  device_compiler compiler_;
  std::string device_;
  std::unique_ptr<child_loop> children_;
  std::mutex stores_;
};

} // namespace gristmill
