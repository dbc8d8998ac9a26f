#pragma once

#include "actors/run_context.hpp"
#include "messages/child.hpp"
#include "messages/verdict.hpp"
#include "tests/journal/temporary_folder.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill::test {

/// What a run shares, with a small softmax under each of the given names: two workloads, a graph, a
/// native reference. Its folder goes with this object.
struct small_run {
  explicit small_run(const std::vector<std::string>& problems = {"softmax"});

  temporary_folder folder;
  run_context_ptr context;
};

/// How the children of `child_lines` behave.
struct child_manner {
  verdict_status compile = verdict_status::passed;
  verdict_status run = verdict_status::passed;
  verdict_status judge = verdict_status::passed;
  verdict_status prepare = verdict_status::passed;
  /// Time that the runner tells for each workload.
  uint64_t time_ns = 50'000;
  /// The same for the incumbent that a promotion is compared with.
  uint64_t rival_ns = 60'000;
};

/// Does a child's work as its job.json says, with content that means nothing, and answers with the
/// lines that the child would write.
std::vector<std::string> child_lines(const child_request& request, const child_manner& manner = {});

/// A line as a child writes it: "done", or "sample" with a body that is a JSON object.
std::string child_line_text(
  const std::string& nonce, const std::string& kind, const std::string& body = "{}");

} // namespace gristmill::test
