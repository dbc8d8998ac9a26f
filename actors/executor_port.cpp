#include "actors/executor_port.hpp"

#include <memory>

namespace gristmill {

void executor_port::up() {
  report(device_state::up, 0, {}, nullptr);
}

void executor_port::active(uint64_t token) {
  report(device_state::active, token, {}, nullptr);
}

void executor_port::verified(uint64_t token) {
  report(device_state::verified, token, {}, nullptr);
}

void executor_port::down(std::string reason) {
  report(device_state::down, 0, std::move(reason), nullptr);
}

void executor_port::finish(uint64_t token, std::string reason, finished then) {
  if (!broker_) {
    then(false);
    return;
  }
  lease_command release;
  release.verb = lease_verb::release;
  release.gpu = gpu_;
  release.token = token;
  release.reason = std::move(reason);
  // The broker answers in the order of the questions: the second answer is the last one.
  auto valid = std::make_shared<bool>(false);
  command_(broker_, std::move(release), [valid](bool applied) { *valid = applied; });
  report(
    device_state::verified, token, {}, [valid, then = std::move(then)](bool) { then(*valid); });
}

void executor_port::close() {
  broker_ = nullptr;
  report_ = nullptr;
  command_ = nullptr;
}

void executor_port::report(device_state state, uint64_t token, std::string reason, finished then) {
  if (!broker_)
    return;
  device_report what{gpu_, state, token, model_, std::move(reason)};
  if (!then)
    then = [](bool) {};
  report_(broker_, std::move(what), std::move(then));
}

} // namespace gristmill
