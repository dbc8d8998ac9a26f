#pragma once

#include "actors/event_port.hpp"
#include "actors/executor_port.hpp"
#include "actors/interfaces.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace gristmill {

/// What a measurement is made of, apart from the actor: plain functions, `runner_steps` in
/// production.
struct measure_steps {
  /// Makes the job and its folder. The deadline is that of the lease.
  std::function<result<child_request>(const measure_request&, std::chrono::nanoseconds deadline)>
    begin;
  /// Reads what the child has left behind. Every end of a child gives a measurement; the folder
  /// stays only as long as outputs in it are to be judged.
  std::function<measurement(const measure_request&, const child_request&, const child_result&)> end;
};

struct gpu_mock_config {
  uint32_t gpu = 0;
  /// In events, such as "mock:h200#0".
  std::string name;
  std::string model;
  gpu_lease_actor broker;
  child_front_actor child_front;
  event_port events;
  measure_steps steps;
  /// How long after the term of a lease its child must have ended; then the device counts as down.
  std::chrono::nanoseconds end_grace = std::chrono::seconds{10};
};

/// Executor of one mock GPU: one runner child a lease.
///
/// Only a token newer than every one that was seen or revoked may start anything. When the child is
/// gone, with its whole process group, the lease is given back and the device reported as verified;
/// the asker is answered after the broker has taken both, so that it finds the GPU free when it
/// asks again.
class gpu_mock final : public gpu_actor::base {
public:
  gpu_mock(caf::actor_config& config, gpu_mock_config settings);

  const char* name() const override { return "gpu-mock"; }
  behavior_type make_behavior() override;
  void on_exit() override;

private:
  using promise = caf::typed_response_promise<measurement>;

  struct session {
    measure_request request;
    child_request child;
    promise reply;
    caf::actor_clock::time_point began;
    /// Why the lease was taken back; empty while it holds.
    std::string revoked;
    /// The asker has been given up on; only the end of the child is waited for.
    bool stuck = false;
  };

  caf::result<measurement> on_measure(const measure_request& what);
  void on_revoke(const lease_revoke& what);
  void on_child(uint64_t token, const child_result& ended);
  void on_child_lost(uint64_t token, const caf::error& why);
  void on_deadline();
  void finish(session over, measurement measured, const std::string& reason);
  void answer(const session& over, measurement measured, bool still_valid);
  void arm(std::chrono::nanoseconds delay);

  gpu_mock_config settings_;
  executor_port broker_;
  /// Highest token seen in a request or a revocation.
  uint64_t fence_ = 0;
  std::optional<session> running_;
  /// Released, and waiting for the broker to say so.
  std::map<uint64_t, promise> finishing_;
  uint64_t generation_ = 0;
  /// The term is over and the child was told to end.
  bool term_over_ = false;
};

} // namespace gristmill
