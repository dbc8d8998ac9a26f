// How fast the lease broker is with its real actors on the real clock. Prints goals beside figures;
// decides nothing.
//
//   gristmill-bench-lease-actors [seconds of the third part]

#include "actors/gpu_lease.hpp"
#include "actors/gpu_sleep.hpp"
#include "actors/journal.hpp"
#include "actors/system_config.hpp"

#include <algorithm>
#include <atomic>
#include <caf/all.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <thread>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

using wall = std::chrono::steady_clock;

/// Keeps nothing: the disk is not what is measured here.
class counting_sink final : public event_sink {
public:
  result<uint64_t> append(std::span<const event> events, durability) override {
    return count_ += events.size();
  }

private:
  uint64_t count_ = 0;
};

struct samples {
  std::mutex mutex;
  std::vector<int64_t> ns;

  void add(wall::duration d) {
    std::lock_guard guard(mutex);
    ns.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(d).count());
  }

  void print(const char* what, const char* goal) {
    std::lock_guard guard(mutex);
    std::sort(ns.begin(), ns.end());
    if (ns.empty()) {
      std::printf("%s: no sample\n", what);
      return;
    }
    auto at = [&](double q) {
      return double(ns[std::min(ns.size() - 1, size_t(q * double(ns.size())))]) / 1e3;
    };
    std::printf("%s: p50 %.1f us, p99 %.1f us, max %.1f us (%zu samples; goal p99 <= %s)\n", what,
      at(0.5), at(0.99), double(ns.back()) / 1e3, ns.size(), goal);
  }
};

/// Lets real time pass for this thread, which is no actor.
void pause(caf::actor_system& system, std::chrono::nanoseconds by) {
  caf::scoped_actor self{system};
  self->receive(caf::after(by) >> [] {});
}

/// Asks, measures and asks again, until it has had enough or the system ends.
class agent final : public lease_holder_actor::base {
public:
  agent(caf::actor_config& config, gpu_lease_actor broker, uint64_t number, uint64_t wanted,
    samples* grants, std::atomic<uint64_t>* finished)
    : lease_holder_actor::base(config), broker_(std::move(broker)), number_(number),
      wanted_(wanted), grants_(grants), done_(finished) {}

  behavior_type make_behavior() override {
    ask();
    return {
      [this](const lease_granted& what, const caf::strong_actor_ptr& executor) {
        if (grants_ != nullptr)
          grants_->add(wall::now() - asked_);
        measure_request run;
        run.under = what.granted;
        seam::ask(this, caf::actor_cast<gpu_actor>(executor), run)
          .then([this](const measurement&) { next(); }, [this](const caf::error&) { next(); });
      },
      [](const lease_ended&) {},
    };
  }
  void on_exit() override { broker_ = nullptr; }

private:
  void next() {
    ++*done_;
    if (request_ < wanted_)
      ask();
  }

  void ask() {
    lease_request what;
    what.request = ++request_;
    what.flow = {"problem-" + std::to_string(number_ % 25), "agent-" + std::to_string(number_)};
    what.estimated_hold = 100ms;
    asked_ = wall::now();
    seam::ask(this, broker_, what).then([](const lease_ticket&) {}, [](const caf::error&) {});
  }

  gpu_lease_actor broker_;
  uint64_t number_;
  uint64_t wanted_;
  samples* grants_;
  std::atomic<uint64_t>* done_;
  uint64_t request_ = 0;
  wall::time_point asked_;
};

/// An executor that is done at once: from its `verified` to the next holder's start message.
class instant_gpu final : public gpu_actor::base {
public:
  instant_gpu(caf::actor_config& config, gpu_lease_actor broker, samples* handovers)
    : gpu_actor::base(config), broker_(this, std::move(broker), 0, "h200", "1"),
      handovers_(handovers) {}

  behavior_type make_behavior() override {
    broker_.up();
    return {
      [this](const measure_request& what) -> caf::result<measurement> {
        if (released_ != wall::time_point{})
          handovers_->add(wall::now() - released_);
        broker_.active(what.under.token);
        auto reply = make_response_promise<measurement>();
        released_ = wall::now();
        broker_.finish(what.under.token, "done", lease_outcome::fine,
          [reply](bool) mutable { reply.deliver(measurement{}); });
        return reply;
      },
      [this](const lease_revoke& what) { last_revoked_ = what.token; },
      [this](const probe_order&) { broker_.probed({}); },
      [](const tick&) {},
    };
  }
  void on_exit() override { broker_.close(); }

private:
  executor_port broker_;
  samples* handovers_;
  wall::time_point released_{};
  uint64_t last_revoked_ = 0;
};

struct house {
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;
  journal_actor log;
  gpu_lease_actor broker;
  std::vector<caf::strong_actor_ptr> others;
  caf::actor_clock::time_point start;

  explicit house(uint32_t gpus) {
    configure(config, std::max(2u, std::thread::hardware_concurrency()));
    system = std::make_unique<caf::actor_system>(config);
    start = system->clock().now();
    journal_config keep;
    keep.sink = std::make_unique<counting_sink>();
    log = system->spawn<journal>(std::move(keep));
    gpu_lease_config settings;
    settings.policy = make_stride_policy();
    for (uint32_t i = 0; i < gpus; ++i)
      settings.gpus.push_back({.name = "sleep#" + std::to_string(i), .model = "h200"});
    settings.table.ttl = 30s;
    settings.events = event_port{log, start};
    broker = system->spawn<gpu_lease>(std::move(settings));
  }

  void sleepers(uint32_t count, std::chrono::nanoseconds duration) {
    for (uint32_t i = 0; i < count; ++i) {
      gpu_sleep_config settings;
      settings.gpu = i;
      settings.name = "sleep#" + std::to_string(i);
      settings.model = "h200";
      settings.boot = "1";
      settings.broker = broker;
      settings.events = event_port{log, start};
      settings.duration = duration;
      keep(system->spawn<gpu_sleep>(std::move(settings)));
    }
  }

  template <class Handle>
  void keep(const Handle& handle) {
    others.push_back(caf::actor_cast<caf::strong_actor_ptr>(handle));
  }

  broker_snapshot look() {
    broker_snapshot out;
    caf::scoped_actor self{*system};
    self->request(broker, 10s, broker_query{})
      .receive([&](const broker_snapshot& s) { out = s; },
        [&](const caf::error& e) { std::printf("no snapshot: %s\n", system->render(e).c_str()); });
    return out;
  }

  ~house() {
    for (auto& each : others)
      caf::anon_send_exit(each, caf::exit_reason::kill);
    others.clear();
    caf::anon_send_exit(broker, caf::exit_reason::kill);
    pause(*system, 100ms);
    caf::anon_send_exit(log, caf::exit_reason::kill);
    broker = nullptr;
    log = nullptr;
  }
};

void wait_for(house& h, const std::atomic<uint64_t>& done, uint64_t wanted) {
  auto end = wall::now() + 120s;
  while (done < wanted && wall::now() < end)
    pause(*h.system, 1ms);
}

void grant_on_a_free_gpu() {
  samples grants;
  std::atomic<uint64_t> done{0};
  house h{1};
  h.sleepers(1, 0ns);
  pause(*h.system, 200ms);
  h.keep(h.system->spawn<agent>(h.broker, 0, 20'000, &grants, &done));
  wait_for(h, done, 20'000);
  grants.print("grant on a free GPU", "200 us");
}

void hand_over_with_500_waiting() {
  samples handovers;
  std::atomic<uint64_t> done{0};
  house h{1};
  h.keep(h.system->spawn<instant_gpu>(h.broker, &handovers));
  pause(*h.system, 200ms);
  for (uint64_t i = 0; i < 501; ++i)
    h.keep(h.system->spawn<agent>(h.broker, i, 1'000'000, nullptr, &done));
  wait_for(h, done, 20'000);
  auto waiting = h.look().waiting;
  handovers.print("verified release to the next holder's start message", "1000 us");
  std::printf("  with %u waiting at the end\n", waiting);
}

/// Nanoseconds that GPUs were leased so far.
int64_t leased_ns(const broker_snapshot& s) {
  int64_t sum = 0;
  for (const auto& flow : s.usage)
    sum += static_cast<int64_t>(flow.held_ns);
  for (const auto& g : s.gpus)
    sum += g.held.count();
  return sum;
}

void full_house(std::chrono::seconds how_long) {
  std::atomic<uint64_t> done{0};
  house h{27};
  h.sleepers(27, 100ms);
  for (uint64_t i = 0; i < 500; ++i)
    h.keep(h.system->spawn<agent>(h.broker, i, 1'000'000'000, nullptr, &done));
  pause(*h.system, 2s);
  auto began = wall::now();
  auto before = leased_ns(h.look());
  auto done_before = done.load();
  pause(*h.system, how_long);
  auto after = leased_ns(h.look());
  auto took = std::chrono::duration<double, std::nano>(wall::now() - began).count();
  auto leases = done.load() - done_before;
  std::printf("27 sleep devices, 500 agents, 100 ms holds: %.2f %% leased over %.1f s, %llu leases "
              "(%.2f %% of the %.0f that 100 ms each allow; goal >= 99 %% leased)\n",
    100 * double(after - before) / (27 * took), took / 1e9, static_cast<unsigned long long>(leases),
    100 * double(leases) / (27 * took / 1e8), 27 * took / 1e8);
}

} // namespace

int main(int argc, char** argv) {
  auto seconds = argc > 1 ? std::atoi(argv[1]) : 20;
  grant_on_a_free_gpu();
  hand_over_with_500_waiting();
  full_house(std::chrono::seconds{std::max(seconds, 1)});
}
