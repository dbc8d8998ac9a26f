#pragma once

#include "actors/interfaces.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace gristmill {

/// What an executor says to the broker, in order. Every gpu actor has one, whatever runs behind it.
class executor_port {
public:
  /// The broker's answer; not applied when the lease had been taken back, or the broker is gone.
  using answered = std::function<void(const lease_ack&)>;
  /// `still_valid` is false when the lease had been taken back, or the broker is gone.
  using finished = std::function<void(bool still_valid)>;
  using release_mark = std::shared_ptr<bool>;

  /// `boot` names this start of the executor: a device that was lost comes back only under another
  /// one.
  template <class Self>
  executor_port(
    Self* self, gpu_lease_actor broker, uint32_t gpu, std::string model, std::string boot)
    : broker_(std::move(broker)), gpu_(gpu), model_(std::move(model)), boot_(std::move(boot)),
      // The answers must be taken, even where nobody reads them.
      report_([self](const gpu_lease_actor& to, device_report what, answered done) {
        seam::ask(self, to, std::move(what))
          .then([done](const lease_ack& ack) { done(ack); }, [done](caf::error&) { done(gone()); });
      }),
      command_([self](const gpu_lease_actor& to, lease_command what, answered done) {
        seam::ask(self, to, std::move(what))
          .then([done](const lease_ack& ack) { done(ack); }, [done](caf::error&) { done(gone()); });
      }) {}

  executor_port(const executor_port&) = delete;
  executor_port& operator=(const executor_port&) = delete;

  void up();
  /// `up` once more, after `down`: under an identity that the broker has not seen.
  void up_again();
  void active(uint64_t token);
  /// The work is being ended; `finish` or `verified` follows.
  void ended(uint64_t token, std::string reason);
  void verified(uint64_t token, probe_report found = {});
  void down(std::string reason);
  /// Answers a `probe_order`.
  void probed(probe_report found);
  /// The work goes on; `idle` tells how long no GPU work has been going on.
  void renew(uint64_t token, std::chrono::nanoseconds idle, answered then);
  /// Gives the lease back. What it answers tells whether that was applied, once a later question
  /// has been answered; `verified` reads it.
  release_mark release(uint64_t token, std::string reason, lease_outcome outcome);
  /// Says that nothing of a released lease runs any more; `then` follows when both have been
  /// answered. A lease whose device has failed its probe is not valid.
  void verified(uint64_t token, probe_report found, release_mark released, finished then);
  /// Both at once, for a device at which there is nothing to look.
  void finish(uint64_t token, std::string reason, lease_outcome outcome, finished then);

  /// To be called from `on_exit`: drops all handles.
  void close();

private:
  static lease_ack gone() { return {false, "the broker is gone"}; }
  device_report report_of(device_state state, uint64_t token) const;
  void report(device_report what);

  gpu_lease_actor broker_;
  uint32_t gpu_;
  std::string model_;
  std::string boot_;
  uint32_t comebacks_ = 0;
  std::function<void(const gpu_lease_actor&, device_report, answered)> report_;
  std::function<void(const gpu_lease_actor&, lease_command, answered)> command_;
};

} // namespace gristmill
