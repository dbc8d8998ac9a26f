#pragma once

#include "actors/child_job.hpp"
#include "actors/compile_jobs.hpp"
#include "actors/event_port.hpp"
#include "actors/interfaces.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace gristmill {

struct compiler_config {
  run_context_ptr context;
  device_compiler device_code;
  child_front_actor child_front;
  event_port events;
  /// Compilers that run at the same time; further requests wait here, one a worker at most.
  uint32_t slots = 2;
  uint32_t waiting_max = 4096;
  std::chrono::nanoseconds deadline = std::chrono::minutes{2};
};

/// Makes PTX from candidates by jailed compiler children. A unit that was compiled once in this run
/// is not compiled again, whoever asks for it.
class compiler final : public compiler_actor::base {
public:
  compiler(caf::actor_config& actor, compiler_config config);

  const char* name() const override { return "compiler"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  struct open_request {
    compile_request request;
    caf::typed_response_promise<compiled_candidate> reply;
  };

  void serve();
  void begin(open_request work);
  /// Compiled before, and its code is still there.
  bool has(const keyed_unit& unit) const;
  void compile(
    open_request work, const resolved_candidate& candidate, std::vector<keyed_unit> units);
  void on_child(uint64_t child, const std::vector<keyed_unit>& units, const child_result& ended,
    const std::string& nonce, const std::string& folder);
  open_request take(uint64_t child);
  void answer(open_request& work, const std::vector<keyed_unit>& units, bool all_cached);
  void refuse(open_request& work, const failure& why);
  void tell(open_request& work, compiled_candidate compiled);
  void fail_request(open_request& work, const caf::error& why);

  compiler_config config_;
  std::deque<open_request> waiting_;
  std::map<std::string, cached_unit> cache_;
  /// By the number of the child.
  std::map<uint64_t, open_request> running_;
};

} // namespace gristmill
