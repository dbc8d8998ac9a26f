#pragma once

#include "actors/interfaces.hpp"
#include "gpu/children/child_loop.hpp"
#include "messages/child.hpp"
#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>

namespace gristmill {

/// Starts children; `child_loop` behind it in production.
class child_starter {
public:
  virtual ~child_starter() = default;

  /// As `child_loop::submit`: an error means that there will be no callback. The callback comes
  /// from any thread.
  virtual result<void> submit(child_request request, std::function<void(child_result)> answer) = 0;
  virtual void cancel(uint64_t id) = 0;
  virtual void terminate(uint64_t id) = 0;
};

/// The real thing. Owned by the runtime, which stops it after the front and before the actor
/// system.
class loop_starter final : public child_starter {
public:
  explicit loop_starter(child_loop_limits limits) : loop_(std::move(limits)) {}

  result<void> submit(child_request request, std::function<void(child_result)> answer) override {
    return loop_.submit(std::move(request), std::move(answer));
  }
  void cancel(uint64_t id) override { loop_.cancel(id); }
  void terminate(uint64_t id) override { loop_.terminate(id); }
  void stop() { loop_.stop(); }

private:
  child_loop loop_;
};

struct child_front_config {
  /// Outlives the actor.
  child_starter* starter = nullptr;
  /// More open requests are refused with `queue_full`.
  size_t open_max = 1024;
};

/// Holds the promises of those who wait for a child. At its end every child is cancelled and
/// everybody who waits is answered `shutting_down`.
class child_front final : public child_front_actor::base {
public:
  child_front(caf::actor_config& config, child_front_config settings);

  const char* name() const override { return "child-front"; }
  behavior_type make_behavior() override;
  void on_exit() override;

private:
  struct open_child {
    caf::typed_response_promise<child_result> reply;
    std::string device;
  };

  caf::result<child_result> start(child_request request);
  caf::result<device_quiet> on_quiet(const device_quiet_query& what);
  bool quiet(const std::string& device) const;

  child_front_config settings_;
  std::map<uint64_t, open_child> open_;
  /// Who waits for a device without children.
  std::multimap<std::string, caf::typed_response_promise<device_quiet>> waiting_;
  /// Processes on it could not be killed: never quiet again.
  std::set<std::string> stuck_;
};

} // namespace gristmill
