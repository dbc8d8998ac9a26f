#pragma once

#include "actors/interfaces.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace gristmill {

/// What an executor says to the broker, in order. Every gpu actor has one, whatever runs behind it.
class executor_port {
public:
  /// `still_valid` is false when the lease had been taken back, or the broker is gone.
  using finished = std::function<void(bool still_valid)>;

  template <class Self>
  executor_port(Self* self, gpu_lease_actor broker, uint32_t gpu, std::string model)
    : broker_(std::move(broker)), gpu_(gpu), model_(std::move(model)),
      // The answers must be taken, even where nobody reads them.
      report_([self](const gpu_lease_actor& to, device_report what, finished done) {
        seam::ask(self, to, std::move(what))
          .then([done](const lease_ack& ack) { done(ack.applied); },
            [done](caf::error&) { done(false); });
      }),
      command_([self](const gpu_lease_actor& to, lease_command what, finished done) {
        seam::ask(self, to, std::move(what))
          .then([done](const lease_ack& ack) { done(ack.applied); },
            [done](caf::error&) { done(false); });
      }) {}

  executor_port(const executor_port&) = delete;
  executor_port& operator=(const executor_port&) = delete;

  void up();
  void active(uint64_t token);
  void verified(uint64_t token);
  void down(std::string reason);
  /// Gives the lease back and says that nothing of it runs any more; `then` follows when both have
  /// been answered.
  void finish(uint64_t token, std::string reason, finished then);

  /// To be called from `on_exit`: drops all handles.
  void close();

private:
  void report(device_state state, uint64_t token, std::string reason, finished then);

  gpu_lease_actor broker_;
  uint32_t gpu_;
  std::string model_;
  std::function<void(const gpu_lease_actor&, device_report, finished)> report_;
  std::function<void(const gpu_lease_actor&, lease_command, finished)> command_;
};

} // namespace gristmill
