#pragma once

#include "cli/candidate_bench.hpp"
#include "cli/integrity_catalogue.hpp"
#include "messages/evidence.hpp"
#include "scoring/verdict.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace gristmill {

/// What became of a candidate of the corpus.
struct bench_outcome {
  /// Anything that is not the candidate's: a child that broke, a device that is gone.
  std::string trouble;
  /// The compiler refused it, and why.
  std::string refused;
  /// One for each measurement: on the pool's sets, and on what a promotion draws.
  std::vector<evidence> seen;
};

/// Puts candidates of the corpus through the program's own steps on one device, without a run
/// around them: compile, check, time, judge. The same children and jobs as a run's, in its own
/// folder, which goes with this object.
class integrity_bench {
public:
  /// Makes inputs and references of the corpus's problems. `gpus` as of `gristmill run`. Errors as
  /// those of a run that cannot start.
  static result<std::unique_ptr<integrity_bench>> open(const hack_catalogue& catalogue,
    const std::string& gpus, const std::string& toolchain, const std::filesystem::path& folder);
  integrity_bench(const integrity_bench&) = delete;
  integrity_bench& operator=(const integrity_bench&) = delete;
  ~integrity_bench();

  /// May be called from several threads.
  bench_outcome run(const corpus_candidate& what);

  /// "mock:h200, clang-19.1.7".
  std::string circumstances() const;

private:
  integrity_bench() = default;

  result<void> prepare();
  result<void> prepare(const std::string& problem_name);
  /// The draw that candidates of this domain share; made by the first.
  result<std::string> draw_for(const candidate_ref& candidate, const std::string& problem_name);
  result<compiled_candidate> compile(const std::string& problem_name, const candidate_ref& of);
  result<evidence> measure(const attempt_id& attempt, const candidate_ref& of,
    const compiled_candidate& compiled, const std::string& draw);
  const run_context& context() const { return bench_->context(); }

  std::filesystem::path folder_;
  std::unique_ptr<candidate_bench> bench_;
  /// Floors of the workloads, by problem.
  std::map<std::string, std::vector<workload_yardstick>> yardsticks_;
  std::map<std::string, uint32_t> ordinals_;
  std::map<std::string, std::string> draws_;
  std::mutex drawing_;
  /// A real device runs one at a time; a modelled one cares not.
  std::mutex device_in_use_;
  uint64_t token_ = 0;
};

} // namespace gristmill
