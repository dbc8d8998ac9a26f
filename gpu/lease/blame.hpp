#pragma once

#include "messages/lease.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace gristmill {

struct blame_config {
  /// Candidates remembered; beyond it the one with the oldest failure goes, poison last.
  uint32_t candidates_max = 4096;
  /// A candidate that failed on so many GPUs is poison.
  uint32_t poison_gpus = 2;
  /// A GPU on which so many different candidates failed within `window` is suspect.
  uint32_t suspect_candidates = 2;
  std::chrono::nanoseconds window = std::chrono::hours{1};
};

/// One cell of the matrix: this candidate failed on this GPU (the newest time counts).
struct blame_failure {
  uint32_t gpu = 0;
  lease_outcome how = lease_outcome::fault;
  std::chrono::nanoseconds at{0};
  /// For messages and the re-run.
  std::string gpu_name;
  std::string problem;
  std::string attempt;
};

/// A candidate whose only failures were on a GPU that turned out to be bad.
struct blame_victim {
  std::string candidate;
  blame_failure failure;
};

/// Who is to blame when something fails on a GPU: the candidate or the GPU? Failures of one
/// candidate on several GPUs speak against the candidate, failures of several candidates on one GPU
/// against the GPU. What the house broke counts for nothing. Bounded: it forgets the oldest.
class blame_matrix {
public:
  enum class standing : uint8_t {
    clean = 0,
    /// Failed on one GPU: may be tried again, on another one only.
    retry_elsewhere,
    /// Failed on several GPUs: is not run again.
    poison,
  };

  struct effect {
    /// This failure has made the candidate poison.
    bool poisoned = false;
    /// The failures on this GPU speak against it.
    bool gpu_suspect = false;
  };

  explicit blame_matrix(blame_config config = {}) : config_(config) {}

  /// `fine` and `infrastructure` change nothing, nor does an empty candidate.
  effect on_failure(const std::string& candidate, const blame_failure& failure);

  standing of(const std::string& candidate) const;
  /// In the order of GPUs; empty for a clean one.
  std::vector<blame_failure> failures(const std::string& candidate) const;

  /// What has been seen on this GPU so far no longer counts against the GPU: it has passed a probe.
  void absolve_gpu(uint32_t gpu, std::chrono::nanoseconds now);
  /// The GPU is bad: its failures no longer count against the candidates. Returns those that have
  /// none left, sorted.
  std::vector<blame_victim> condemn_gpu(uint32_t gpu);

  size_t size() const { return candidates_.size(); }

private:
  struct record {
    std::map<uint32_t, blame_failure> failures;
    std::chrono::nanoseconds newest{0};
  };
  using age_key = std::tuple<bool, std::chrono::nanoseconds, std::string>;

  bool is_poison(const record& r) const { return r.failures.size() >= config_.poison_gpus; }
  age_key key_of(const std::string& candidate, const record& r) const {
    return {is_poison(r), r.newest, candidate};
  }
  void forget(const std::string& candidate);

  blame_config config_;
  std::map<std::string, record> candidates_;
  /// The next to forget first.
  std::set<age_key> by_age_;
  /// Candidates with a failure on each GPU.
  std::map<uint32_t, std::set<std::string>> on_gpu_;
  std::map<uint32_t, std::chrono::nanoseconds> absolved_;
};

} // namespace gristmill
