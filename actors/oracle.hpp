#pragma once

#include "actors/child_job.hpp"
#include "actors/interfaces.hpp"
#include "actors/run_context.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace gristmill {

struct oracle_config {
  run_context_ptr context;
  child_front_actor child_front;
  std::chrono::nanoseconds deadline = std::chrono::minutes{10};
};

/// Has inputs, references and operator graphs made by a `gristmill-oracle` child, and for
/// promotions the cases of a draw, whose files it removes when the draw is over.
class oracle final : public oracle_actor::base {
public:
  oracle(caf::actor_config& actor, oracle_config config);

  const char* name() const override { return "oracle"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  using promise = caf::typed_response_promise<prepared_problem>;

  caf::result<prepared_problem> prepare(const prepare_request& request);
  void on_child(const prepare_request& request, const problem& target, uint64_t child,
    const child_result& ended, const std::string& nonce, const std::string& folder);
  void end_draw(const std::string& draw);
  struct waiting {
    promise reply;
    /// What the child makes; empty for the pool's.
    std::string draw;
    /// Nobody wants it any more.
    bool over = false;
  };
  /// Who waits for that child; the front answers once for each.
  waiting take(uint64_t child);

  oracle_config config_;
  /// By the number of the child.
  std::map<uint64_t, waiting> open_;
};

} // namespace gristmill
