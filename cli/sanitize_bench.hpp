#pragma once

#include "actors/run_history.hpp"
#include "cli/candidate_bench.hpp"
#include "cli/sanitizer_process.hpp"
#include "journal/blob_store.hpp"
#include "messages/evidence.hpp"
#include "messages/sanitizer.hpp"
#include "protocol/run_settings.hpp"

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace gristmill {

/// A candidate whose calls are ready to be made.
struct sanitize_target {
  sanitized_job what;
  /// Byte for byte the code that the run measured.
  bool same_code = false;
  std::vector<std::string> workloads;
};

/// Makes single calls of a finished run's candidates: code compiled anew by the run's toolchain,
/// and inputs of its own, drawn as the run's, without references. Works in a folder of its own and
/// changes nothing in the run.
class sanitize_bench {
public:
  /// `gpus` is one mock or one GPU of the model that the run was on. `folder` must not exist.
  /// Errors: `refused` where problem files are not what they were; those of a run that cannot
  /// start.
  static result<std::unique_ptr<sanitize_bench>> open(const run_settings& of_run,
    const run_beginning& beginning, const blob_store& run_blobs, const std::string& gpus,
    const std::filesystem::path& folder);
  sanitize_bench(const sanitize_bench&) = delete;
  sanitize_bench& operator=(const sanitize_bench&) = delete;

  /// Compiles, draws and writes the job. Errors tell why this candidate cannot be called here.
  result<sanitize_target> prepare(const evidence& of);

  /// "mock:h200" or "cuda:0".
  const std::string& device() const { return bench_->device(); }
  /// "mock:h200" or "NVIDIA H200".
  const std::string& device_title() const { return title_; }
  bool is_real() const { return context().measured; }

private:
  explicit sanitize_bench(const blob_store& run_blobs) : run_blobs_(run_blobs) {}

  result<void> prepare_inputs(const std::string& problem_name);
  result<void> take_blobs(const candidate_ref& of);
  result<compiled_candidate> compile(const std::string& problem_name, const candidate_ref& of);
  const run_context& context() const { return bench_->context(); }

  const blob_store& run_blobs_;
  std::unique_ptr<candidate_bench> bench_;
  std::string title_;
  /// Problems whose inputs are there.
  std::set<std::string> drawn_;
  uint64_t token_ = 0;
};

} // namespace gristmill
