// The actors of the laboratory under a world that is written for the test.

#include "simulation/actors/lab_house.hpp"

#include "actors/gpu_lease.hpp"
#include "actors/system_config.hpp"
#include "actors/virtual_time.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace gristmill;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

/// Two agents who share one GPU: ask, work for a while, give back, ask again.
class tiny_world : public world {
public:
  uint32_t agents = 2;
  uint32_t gpus = 1;
  nanoseconds work = 10s;
  nanoseconds pause = 1s;
  std::string need;
  std::vector<std::string> lines;
  uint64_t granted = 0;

  uint32_t agent_count() const override { return agents; }
  uint32_t gpu_count() const override { return gpus; }
  gpu_entry gpu(uint32_t gpu) const override {
    return {.name = "gpu#" + std::to_string(gpu), .model = "b200", .node = "node"};
  }
  lab_entity entity_count() const override { return agents + gpus + 1; }

  void start(world_port& port) override {
    holder_.resize(gpus);
    token_.resize(gpus);
    done_.resize(gpus);
    next_.resize(agents);
    for (uint32_t g = 0; g < gpus; ++g)
      port.up(g, "boot-1");
    for (uint32_t a = 0; a < agents; ++a)
      port.set_timer(a, nanoseconds{a + 1});
  }
  void on_timer(lab_entity e, nanoseconds now, world_port& port) override {
    if (e < agents)
      ask(e, port);
    else if (e < agents + gpus)
      finish(e - agents, now, port);
    else
      say(now, "incident");
  }
  void on_granted(
    uint32_t agent, const lease_granted& what, nanoseconds now, world_port& port) override {
    ++granted;
    say(now, "granted " + std::to_string(agent) + " token " + std::to_string(what.granted.token));
    auto gpu = what.granted.gpu;
    holder_[gpu] = agent;
    token_[gpu] = what.granted.token;
    port.activated(gpu, what.granted.token);
    port.set_timer(agents + gpu, now + work);
  }
  void on_ended(uint32_t agent, const lease_ended& what, nanoseconds now, world_port&) override {
    say(now, "ended " + std::to_string(agent) + ": " + what.reason);
  }
  void on_revoke(const lease_revoke& what, nanoseconds now, world_port& port) override {
    if (what.token <= done_[what.gpu])
      return; // The broker confirms what this GPU has given back.
    say(now, "revoke " + std::to_string(what.token));
    done_[what.gpu] = what.token;
    port.set_timer(agents + what.gpu, nanoseconds::max());
    port.verified(what.gpu, what.token);
  }
  void on_probe(const probe_order& what, nanoseconds now, world_port& port) override {
    say(now, "probe " + std::to_string(what.gpu));
    port.probed(what.gpu, {});
  }
  void on_refused(uint32_t agent, uint64_t request, nanoseconds now, world_port&) override {
    say(now, "refused " + std::to_string(agent) + " request " + std::to_string(request));
  }
  lab_result finish(nanoseconds) override { return {}; }
  const std::string& broken() const override { return broken_; }

  void ask(uint32_t agent, world_port& port) {
    lease_request what;
    what.request = ++next_[agent];
    what.flow = {"p", "a" + std::to_string(agent)};
    what.need = need;
    what.estimated_hold = work;
    port.request(agent, what);
  }

  uint64_t last_request(uint32_t agent) const { return next_[agent]; }

private:
  void finish(uint32_t gpu, nanoseconds now, world_port& port) {
    done_[gpu] = token_[gpu];
    port.release(gpu, token_[gpu], "done", lease_outcome::fine);
    port.verified(gpu, token_[gpu]);
    port.set_timer(holder_[gpu], now + pause + nanoseconds{holder_[gpu]});
  }

  void say(nanoseconds now, const std::string& what) {
    if (lines.size() < 1000)
      lines.push_back(std::to_string(now.count() / 1'000'000) + " " + what);
  }

  std::vector<uint32_t> holder_;
  std::vector<uint64_t> token_;
  std::vector<uint64_t> done_;
  std::vector<uint64_t> next_;
  std::string broken_;
};

struct stage {
  struct settings : caf::actor_system_config {
    settings() {
      configure(*this, 1);
      virtual_scheduler::install(*this);
    }
  };

  explicit stage(tiny_world& of, std::function<void(event&&)> journal = {})
    : house(system, of, std::move(journal)) {
    house.open([&](const journal_actor& log) {
      gpu_lease_config what;
      what.policy = make_fifo_policy();
      what.table.estimate_places = false;
      what.table.log_events = keep_events;
      for (uint32_t g = 0; g < of.gpu_count(); ++g)
        what.gpus.push_back(of.gpu(g));
      what.events = event_port{log, house.start_time()};
      return system.spawn<gpu_lease>(std::move(what));
    });
    house.start();
  }
  ~stage() { house.end(); }

  void run_for(nanoseconds by) { virtual_scheduler::of(system).run_for(by); }

  bool keep_events = true;
  settings config;
  caf::actor_system system{config};
  lab_house house;
};

} // namespace

TEST_CASE("two agents take turns on one GPU, each for as long as the world says") {
  tiny_world w;
  stage s{w};
  s.run_for(34s);
  CHECK(w.lines
    == std::vector<std::string>{"0 granted 0 token 1", "10000 granted 1 token 2",
      "20000 granted 0 token 3", "30000 granted 1 token 4"});
  CHECK(s.house.broken() == "");
}

TEST_CASE("a timer takes the place of the one that its entity had") {
  tiny_world w;
  w.agents = 1;
  stage s{w};
  s.house.set_timer(2, 50s);
  s.house.set_timer(2, 30s);
  s.house.set_timer(2, 40s);
  s.run_for(100s);
  auto count = std::count_if(w.lines.begin(), w.lines.end(),
    [](const std::string& line) { return line.find("incident") != std::string::npos; });
  CHECK(count == 1);
  CHECK(std::find(w.lines.begin(), w.lines.end(), "40000 incident") != w.lines.end());
}

TEST_CASE("a timer in the past fires at once, and one at the end of time never does") {
  tiny_world w;
  w.agents = 0;
  w.gpus = 0;
  stage s{w};
  s.run_for(10s);
  s.house.set_timer(0, 5s);
  s.run_for(0s);
  CHECK(w.lines == std::vector<std::string>{"10000 incident"});
  s.house.set_timer(0, 20s);
  s.house.set_timer(0, nanoseconds::max());
  s.run_for(100s);
  CHECK(w.lines.size() == 1);
}

TEST_CASE("a refused request comes back to the agent who made it") {
  tiny_world w;
  w.agents = 1;
  w.need = "h100";
  stage s{w};
  s.run_for(10s);
  CHECK(w.lines == std::vector<std::string>{"0 refused 0 request 1"});
  CHECK(s.house.broken() == "");
}

TEST_CASE("a GPU that is lost ends its lease, and comes back under another boot id after a probe") {
  tiny_world w;
  w.agents = 1;
  stage s{w};
  s.run_for(5s);
  s.house.down(0, "Xid 79");
  s.run_for(1s);
  s.house.up(0, "boot-1");
  s.run_for(1s);
  CHECK(w.lines
    == std::vector<std::string>{
      "0 granted 0 token 1", "5000 ended 0: node_lost: Xid 79", "5000 revoke 1"});
  s.house.up(0, "boot-2");
  s.run_for(100ms);
  CHECK(w.lines.back() == "7000 probe 0");
  w.ask(0, s.house);
  s.run_for(100ms);
  CHECK(w.lines.back() == "7100 granted 0 token 2");
}

TEST_CASE("an agent can take its request back") {
  tiny_world w;
  std::vector<std::string> kinds;
  stage s{w, [&](event&& e) { kinds.push_back(e.kind); }};
  s.run_for(5s);
  s.house.cancel(1, w.last_request(1));
  s.run_for(5s);
  CHECK(w.granted == 1);
  CHECK(std::count(kinds.begin(), kinds.end(), "lease_wait_end") == 1);
  // One that has become a lease meanwhile is taken back from its GPU.
  s.run_for(2s);
  CHECK(w.granted == 2);
  s.house.cancel(0, w.last_request(0));
  s.run_for(100ms);
  CHECK(w.lines.back() == "12000 revoke 2");
}

TEST_CASE("the broker's events reach the journal in order, with the time of what they tell") {
  tiny_world w;
  std::vector<event> events;
  stage s{w, [&](event&& e) { events.push_back(std::move(e)); }};
  s.run_for(1000s);
  CHECK(events.size() > 300);
  CHECK(std::is_sorted(
    events.begin(), events.end(), [](const event& a, const event& b) { return a.t < b.t; }));
  uint64_t token = 0;
  for (const auto& e : events)
    if (e.kind == "lease_grant")
      CHECK(e.token == ++token);
  CHECK(token == w.granted);
}

TEST_CASE("nothing reaches the world or the journal once the house has ended") {
  tiny_world w;
  size_t events = 0;
  stage s{w, [&](event&&) { ++events; }};
  s.run_for(5s);
  auto before = events;
  auto lines = w.lines.size();
  s.house.end();
  CHECK(events == before);
  CHECK(w.lines.size() == lines);
  CHECK(s.system.registry().running() == 0);
  s.house.end();
}

TEST_CASE("many houses can be opened and ended one after the other") {
  for (int i = 0; i < 200; ++i) {
    tiny_world w;
    w.agents = 20;
    w.gpus = 3;
    stage s{w};
    s.run_for(60s);
    REQUIRE(w.granted > 10);
  }
}

namespace {

class wrong_policy final : public lease_policy {
public:
  std::string_view name() const override { return "wrong"; }
  void on_request(const waiter&) override { throw std::runtime_error("out of order"); }
  void on_cancel(uint64_t) override {}
  void on_grant(uint64_t, uint32_t, nanoseconds) override {}
  void on_release(const lease_usage&, std::string_view, nanoseconds) override {}
  std::optional<uint64_t> pick(const gpu_offer&, nanoseconds) override { return std::nullopt; }
  std::unique_ptr<lease_policy> clone() const override { return nullptr; }
  std::string save() const override { return {}; }
  result<void> load(std::string_view) override { return {}; }
};

} // namespace

TEST_CASE("a policy that throws ends the broker, and the house says so") {
  tiny_world w;
  stage::settings config;
  caf::actor_system system{config};
  lab_house house{system, w, {}};
  house.open([&](const journal_actor& log) {
    gpu_lease_config what;
    what.policy = std::make_unique<wrong_policy>();
    what.gpus.push_back({.name = "gpu#0", .model = "b200"});
    what.events = event_port{log, house.start_time()};
    return system.spawn<gpu_lease>(std::move(what));
  });
  house.start();
  virtual_scheduler::of(system).run_for(1s);
  CHECK(house.broken().find("the lease broker has ended") == 0);
  CHECK(house.broken().find("out of order") != std::string::npos);
  house.end();
}
