#include "actors/executor_port.hpp"

#include <fmt/format.h>

namespace gristmill {

device_report executor_port::report_of(device_state state, uint64_t token) const {
  device_report what;
  what.gpu = gpu_;
  what.state = state;
  what.token = token;
  what.model = model_;
  what.boot = comebacks_ == 0 ? boot_ : fmt::format("{}+{}", boot_, comebacks_);
  return what;
}

void executor_port::report(device_report what) {
  if (broker_)
    report_(broker_, std::move(what), [](const lease_ack&) {});
}

void executor_port::up() {
  report(report_of(device_state::up, 0));
}

void executor_port::up_again() {
  ++comebacks_;
  up();
}

void executor_port::active(uint64_t token) {
  report(report_of(device_state::active, token));
}

void executor_port::ended(uint64_t token, std::string reason) {
  auto what = report_of(device_state::ended, token);
  what.reason = std::move(reason);
  report(std::move(what));
}

void executor_port::verified(uint64_t token, probe_report found) {
  auto what = report_of(device_state::verified, token);
  what.probe = std::move(found);
  report(std::move(what));
}

void executor_port::down(std::string reason) {
  auto what = report_of(device_state::down, 0);
  what.reason = std::move(reason);
  report(std::move(what));
}

void executor_port::probed(probe_report found) {
  auto what = report_of(device_state::probed, 0);
  what.probe = std::move(found);
  report(std::move(what));
}

void executor_port::renew(uint64_t token, std::chrono::nanoseconds idle, answered then) {
  if (!broker_) {
    then(gone());
    return;
  }
  lease_command what;
  what.verb = lease_verb::renew;
  what.gpu = gpu_;
  what.token = token;
  what.idle = idle;
  command_(broker_, std::move(what), std::move(then));
}

executor_port::release_mark executor_port::release(
  uint64_t token, std::string reason, lease_outcome outcome) {
  auto released = std::make_shared<bool>(false);
  if (!broker_)
    return released;
  lease_command what;
  what.verb = lease_verb::release;
  what.gpu = gpu_;
  what.token = token;
  what.reason = std::move(reason);
  what.outcome = outcome;
  command_(broker_, std::move(what), [released](const lease_ack& ack) { *released = ack.applied; });
  return released;
}

void executor_port::verified(
  uint64_t token, probe_report found, release_mark released, finished then) {
  if (!broker_) {
    then(false);
    return;
  }
  auto passed = found.outcome != probe_outcome::failed;
  auto what = report_of(device_state::verified, token);
  what.probe = std::move(found);
  // The broker answers in the order of the questions, so the release has been answered before.
  report_(broker_, std::move(what),
    [released = std::move(released), passed, then = std::move(then)](
      const lease_ack&) { then(*released && passed); });
}

void executor_port::finish(
  uint64_t token, std::string reason, lease_outcome outcome, finished then) {
  verified(token, {}, release(token, std::move(reason), outcome), std::move(then));
}

void executor_port::close() {
  broker_ = nullptr;
  report_ = nullptr;
  command_ = nullptr;
}

} // namespace gristmill
