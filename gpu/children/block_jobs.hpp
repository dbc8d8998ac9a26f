#pragma once

#include "messages/measure.hpp"
#include "protocol/child_answers.hpp"
#include "protocol/job.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// The jobs of the processes of a comparison, made from the job of both sides. File names become
/// absolute, since each process has a folder of its own.
class block_jobs {
public:
  /// `path` makes a file name of the job absolute.
  block_jobs(const job& of, std::function<std::string(const std::string&)> path);

  /// All cases of the candidate, whose outputs go where the job says; no clock.
  job check() const;
  /// One block: the clock, and on a real device the cases that it is timed on, checked once more
  /// with their outputs in the folder of the block. `number` counts all blocks from 0. Of a
  /// workload without `wanted` nothing is run.
  job block(uint32_t number, bool rival, const std::vector<bool>& wanted) const;

  /// Of a block's own outputs: the file's name in its folder.
  static std::string output_name(size_t workload, size_t check, size_t buffer);
  /// What the whole job calls a call of a block, each of which counts from 0: "timed 17" of the
  /// third block is "timed 3000017", and its checks, where they gave something else than the first
  /// ones, are "timed 3999999".
  static std::string call_in_block(uint32_t number, std::string_view call);
  /// The number that a block's case has in the whole job.
  uint32_t case_of(size_t workload, uint32_t check_in_block) const;

private:
  job part(const run_job& side, uint32_t number) const;
  run_pass absolute(run_pass pass) const;

  const job& of_;
  std::function<std::string(const std::string&)> path_;
  bool is_modelled_;
};

/// What the blocks of a comparison have said so far about one workload of the candidate.
class block_sums {
public:
  /// Adds what a block of that side measured. It must have passed, with samples.
  void add(bool rival, const workload_measurement& measured);

  bool has_time() const { return !samples_ns_.empty(); }
  /// Puts times, blocks and the record of the candidate's blocks into `into`.
  void finish(workload_measurement& into) const;

private:
  std::vector<uint64_t> samples_ns_;
  std::vector<comparison_block> blocks_;
  timing_record record_;
  std::vector<time_term> terms_;
  std::string bound_;
  std::vector<std::string> remarks_;
};

} // namespace gristmill
