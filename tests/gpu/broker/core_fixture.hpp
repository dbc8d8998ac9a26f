#pragma once

#include "gpu/broker/broker_core.hpp"

#include <algorithm>
#include <deque>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gristmill::test {

/// The world outside a `broker_core`, written down instead of done. Time stands still until a test
/// moves it.
class fake_outside : public broker_outside {
public:
  void send(connection_id to, const broker_line& line) override { said[to].push_back(line); }
  void close(connection_id which) override { closed.insert(which); }
  result<void> save(const broker_memory& memory, bool durable) override {
    if (disk_full)
      return fail(errc::io_failed, "no room");
    kept = memory;
    durable_saves += durable ? 1 : 0;
    return {};
  }
  void save_lease(const lease_record& record) override { records[record.gpu] = record; }
  void forget_lease(const std::string& gpu) override { records.erase(gpu); }
  void note(event entry) override { journal.push_back(std::move(entry)); }
  void clean(uint32_t gpu, const lease_record& record, bool holder_too) override {
    cleaning.push_back({gpu, record.token, holder_too});
  }
  void probe(uint32_t gpu, const lease_record*) override { probing.push_back(gpu); }
  std::string fresh_lease_name() override { return fmt::format("lease-{}", ++names); }
  bool keeper_lives(const lease_record&) override { return keepers_live; }
  uint64_t session_start(pid_t session, const broker_peer& peer) override {
    return session == peer.pid + 1 ? 77 : 0;
  }

  struct clean_order {
    uint32_t gpu;
    uint64_t token;
    bool holder_too;
  };

  std::map<connection_id, std::deque<broker_line>> said;
  std::set<connection_id> closed;
  broker_memory kept;
  std::map<std::string, lease_record> records;
  std::vector<event> journal;
  std::vector<clean_order> cleaning;
  std::vector<uint32_t> probing;
  int durable_saves = 0;
  int names = 0;
  bool disk_full = false;
  bool keepers_live = true;
};

inline broker_settings settings_of(uint32_t gpus) {
  broker_settings s;
  for (uint32_t n = 0; n < gpus; ++n)
    s.devices.push_back({fmt::format("sleep#{}", n), "sleep", fmt::format("{}", n), false, 0, ""});
  s.policy = make_stride_policy();
  s.policy_text = "stride";
  s.boot = "boot-1";
  return s;
}

/// A broker with its fake outside, and shorthand for what clients do.
class broker_fixture {
public:
  explicit broker_fixture(broker_settings settings) : core(std::move(settings), outside) {
    REQUIRE(core.start(now).has_value());
  }

  connection_id connect(const std::string& as = "", bool trusted = true, uid_t user = 1000) {
    auto id = ++last;
    core.on_connect(
      id, {user, static_cast<pid_t>(1000 + 10 * id), 5, fmt::format("user{}", user), trusted}, now);
    client_line hello;
    hello.as = as;
    say(id, hello);
    return id;
  }
  void say(connection_id from, const client_line& line) {
    core.on_line(from, write_client_line(line), now);
    settle();
  }
  void request(connection_id from, bool guarded = true, std::chrono::nanoseconds patience = {},
    uint64_t number = 1) {
    client_line line;
    line.verb = client_verb::request;
    line.request = number;
    line.guarded = guarded;
    line.patience = patience;
    line.estimate = std::chrono::seconds{1};
    say(from, line);
  }
  static client_line of(const broker_line& granted, client_verb verb) {
    client_line line;
    line.verb = verb;
    line.request = granted.request;
    line.gpu = granted.gpu;
    line.token = granted.token;
    line.lease = granted.lease;
    return line;
  }
  void started(connection_id from, const broker_line& granted) {
    auto line = of(granted, client_verb::started);
    line.session = static_cast<int64_t>(1000 + 10 * from + 1);
    say(from, line);
  }
  /// The next line of that kind to the client; nothing when there is none.
  std::optional<broker_line> heard(connection_id by, broker_say what) {
    auto& lines = outside.said[by];
    auto at = std::find_if(
      lines.begin(), lines.end(), [&](const broker_line& line) { return line.say == what; });
    if (at == lines.end())
      return std::nullopt;
    auto line = *at;
    lines.erase(at);
    return line;
  }
  broker_line granted(connection_id to) {
    auto line = heard(to, broker_say::granted);
    REQUIRE(line.has_value());
    return *line;
  }
  bool waits(connection_id who) { return !heard(who, broker_say::granted); }

  /// Answers the orders that are out, unless a test holds them back.
  void settle() {
    while (!hold_probes && !outside.probing.empty()) {
      auto gpu = outside.probing.front();
      outside.probing.erase(outside.probing.begin());
      core.on_probed(gpu, found, now);
    }
  }
  void cleaned(const probe_report& how = {}) {
    REQUIRE_FALSE(outside.cleaning.empty());
    auto order = outside.cleaning.front();
    outside.cleaning.erase(outside.cleaning.begin());
    core.on_cleaned(order.gpu, order.token, how, 1, now);
    settle();
  }
  void wait(std::chrono::nanoseconds time) {
    // In steps, as the loop would: every deadline in its turn.
    const auto end = now + time;
    for (int n = 0; n < 10000 && now < end; ++n) {
      auto due = core.next_deadline();
      now = due ? std::clamp(*due, now + std::chrono::nanoseconds{1}, end) : end;
      core.on_tick(now);
      settle();
    }
  }
  void gone(connection_id who) {
    core.on_gone(who, now);
    settle();
  }
  std::string phase(uint32_t gpu = 0) {
    return core.status(0, now)["gpus"][gpu]["phase"].get<std::string>();
  }

  std::chrono::nanoseconds now = std::chrono::hours{5};
  fake_outside outside;
  probe_report found;
  bool hold_probes = false;
  connection_id last = 0;
  broker_core core;
};

} // namespace gristmill::test
