#pragma once

#include "gpu/children/child_loop.hpp"
#include "gpu/children/job_directory.hpp"
#include "messages/child.hpp"
#include "protocol/child_channel.hpp"
#include "protocol/job.hpp"

#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gristmill {

/// A loop and a folder for jobs, both gone with the test.
class child_fixture {
public:
  child_fixture();
  ~child_fixture();

  static constexpr const char* nonce = "0123456789abcdef";
  /// Nothing that these tests wait for takes that long; past it the test fails instead of hanging.
  static constexpr std::chrono::seconds patience{60};

  /// A fresh job directory.
  job_directory& new_job();
  /// A request for the fake child in a fresh job directory.
  child_request fake(const std::string& mode);
  /// Submits and waits.
  child_result run(child_request request);
  std::future<child_result> start(child_request request);
  child_result answer_of(std::future<child_result>& answer);

  /// Runs one of our programs on a job, in that folder.
  child_result run_job(
    child_profile profile, const std::string& program, const job& what, job_directory& in);

  /// The lines of that kind, parsed.
  static std::vector<ordered_json> lines_of(const child_result& answer, child_line_kind kind);

  std::string jobs_folder;
  child_loop loop;

private:
  uint64_t next_id_ = 1;
  std::vector<std::unique_ptr<job_directory>> jobs_;
};

/// Where the programs are.
std::string program_folder();
std::string fake_child_program();

/// Processes of this machine with that text among their arguments.
std::vector<int> processes_with(const std::string& argument);

/// True when the process is gone or only its entry is left.
bool is_dead(int pid);
/// Waits for that, bounded by the time.
bool dies_within(int pid, std::chrono::milliseconds time);

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

} // namespace gristmill
