#pragma once

#include "actors/event_port.hpp"
#include "actors/interfaces.hpp"
#include "llm/dialects/dialect.hpp"
#include "llm/traffic/call_reader.hpp"
#include "llm/traffic/gateway_core.hpp"
#include "llm/transport/http_port.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

struct llm_gateway_config {
  /// Models, budgets, policy, seed, and what the log says was spent (`restore_spending` of
  /// actors/llm_history.hpp).
  gateway_config core;
  /// Makes the transport, a recorder in front of it, or a cassette. Called once, when
  /// the actor starts; the port dies with the actor.
  std::function<std::unique_ptr<http_port>(http_sink)> make_port;
  event_port events;
  /// For instants in the headers of servers; the real clock in production.
  std::function<std::chrono::sys_seconds()> utc;
  /// Called once when nothing can be sent any more (`provider_refused`: exit code 6), and once when
  /// the run's budget did not hold a call (`budget_exhausted`). From the actor; must not wait.
  std::function<void(const failure&)> on_stop;
  /// Whose wire formats are known; `find_dialect` in production.
  std::function<result<const dialect*>(std::string_view)> find = find_dialect;
};

/// Checks what a configuration can be refused for: prices, dialects, extra bodies. `invalid_input`
/// says which deployment. To be called before the actor is made, which asserts that it holds.
result<void> check_gateway(const llm_gateway_config& config);

/// Sends the calls of all agents. Decides nothing: `gateway_core` does. The port's thread fills a
/// bounded inbox and wakes the actor with one `tick` at a time.
///
/// A try is written to the log (`llm_sent`, barrier) before it is sent and again when it has ended
/// (`llm_call`, barrier), so that a process that is killed loses no cent: what was sent and never
/// ended is held in its worst case by the next one. Texts of prompts and answers are in no event.
class llm_gateway final : public llm_gateway_actor::base {
public:
  llm_gateway(caf::actor_config& actor, llm_gateway_config config);

  const char* name() const override { return "llm-gateway"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  class inbox;
  /// A try whose end has not been read yet.
  struct transfer {
    std::unique_ptr<call_reader> reader;
    gateway_command order;
    bool started = false;
    bool cancelled = false;
    std::chrono::nanoseconds sent_at{0};
  };
  using commands = std::vector<gateway_command>;

  std::chrono::nanoseconds now();
  void carry_out(commands todo);
  void send(gateway_command order);
  void start(uint64_t id);
  void never_sent(uint64_t id, trouble why);
  void cancel(uint64_t id);
  void read_inbox();
  void take(http_report report);
  void wake_up();

  llm_gateway_config config_;
  gateway_core core_;
  /// Of each deployment.
  std::vector<const dialect*> dialects_;
  std::vector<dialect_options> options_;
  std::shared_ptr<inbox> inbox_;
  std::unique_ptr<http_port> port_;
  std::deque<gateway_command> todo_;
  bool busy_ = false;
  std::map<uint64_t, transfer> transfers_;
  std::map<uint64_t, caf::typed_response_promise<llm_reply>> askers_;
  uint64_t next_asker_ = 1;
  uint64_t generation_ = 0;
  /// The earliest deadline that a tick is on its way for; -1 for none.
  std::chrono::nanoseconds woken_for_{-1};
};

} // namespace gristmill
