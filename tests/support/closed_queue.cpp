#include "tests/support/closed_queue.hpp"

#include "simulation/core/lab_result.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <queue>
#include <set>

namespace gristmill::test {

namespace {

using std::chrono::nanoseconds;

double seconds(nanoseconds t) {
  return std::chrono::duration<double>(t).count();
}

nanoseconds from_seconds(double s) {
  return nanoseconds{std::llround(s * 1e9)};
}

struct agent_state {
  std::string name;
  double mean_hold_s = 0;
  uint64_t draws = 0;
  nanoseconds hold{0};
  nanoseconds asked{0};
  nanoseconds granted{0};
  bool waiting = false;
  uint32_t gpu = 0;
  uint64_t ticket = 0;
  nanoseconds held{0};
  uint64_t grants = 0;
};

/// Ends of thinking and of holding; equal times in the order of the agents.
struct due {
  nanoseconds at{0};
  uint32_t agent = 0;
  bool release = false;

  auto operator<=>(const due&) const = default;
};

class simulation {
public:
  simulation(const closed_queue& m, lease_policy& p) : m_(m), policy_(p), agents_(m.agents) {
    for (uint32_t i = 0; i < m.gpus; ++i)
      free_.insert(i);
    for (uint32_t i = 0; i < m.agents; ++i) {
      auto& a = agents_[i];
      a.name = fmt::format("agent-{:03}", i);
      auto normal = std::sqrt(-2 * std::log(counter_unit(m.seed, i, UINT64_MAX)))
        * std::cos(2 * std::numbers::pi * counter_unit(m.seed, i, UINT64_MAX - 1));
      a.mean_hold_s = seconds(m.hold) * std::exp(m.sigma * normal - m.sigma * m.sigma / 2);
      think(i, nanoseconds{0});
    }
  }

  closed_queue_result run() {
    auto end = m_.warm_up + m_.measured;
    while (!events_.empty() && events_.top().at < end) {
      auto e = events_.top();
      events_.pop();
      if (e.release)
        release(e.agent, e.at);
      else
        ask(e.agent, e.at);
      serve(e.at);
    }
    closed_queue_result out;
    double total = 0;
    for (auto& a : agents_) {
      if (a.waiting)
        longest_wait_ = std::max(longest_wait_, end - a.asked);
      else if (a.granted != nanoseconds{-1})
        a.held += end - std::max(a.granted, m_.warm_up);
      out.held_s.push_back(seconds(a.held));
      total += seconds(a.held);
      out.starved += a.grants == 0 ? 1 : 0;
    }
    out.leases_per_s = static_cast<double>(releases_) / seconds(m_.measured);
    out.jain = jain_index(out.held_s);
    out.utilisation = total / (seconds(m_.measured) * m_.gpus);
    out.mean_wait_s = grants_ == 0 ? 0 : waited_s_ / static_cast<double>(grants_);
    out.longest_wait_s = seconds(longest_wait_);
    return out;
  }

private:
  double exponential(uint32_t agent) {
    return -std::log(counter_unit(m_.seed, agent, agents_[agent].draws++));
  }

  void think(uint32_t agent, nanoseconds now) {
    agents_[agent].granted = nanoseconds{-1};
    events_.push({now + from_seconds(seconds(m_.think) * exponential(agent)), agent, false});
  }

  void ask(uint32_t agent, nanoseconds now) {
    auto& a = agents_[agent];
    auto draw = exponential(agent); // Also where it is not used: the draws stay in step.
    a.hold =
      std::max(from_seconds(a.mean_hold_s * (m_.exponential_hold ? draw : 1)), nanoseconds{1});
    a.asked = now;
    a.waiting = true;
    waiter w;
    w.ticket = a.ticket = by_ticket_.size() + 1;
    w.flow = {a.name, a.name};
    w.est_hold = m_.estimate_is_mean ? from_seconds(a.mean_hold_s) : a.hold;
    w.cap = std::chrono::hours{1};
    w.arrived = now;
    w.deadline = now + std::chrono::hours{24};
    by_ticket_.push_back(agent);
    policy_.on_request(w);
  }

  void release(uint32_t agent, nanoseconds now) {
    auto& a = agents_[agent];
    policy_.on_release({a.ticket, a.gpu, a.hold}, "done", now);
    free_.insert(a.gpu);
    if (now >= m_.warm_up) {
      ++releases_;
      a.held += now - std::max(a.granted, m_.warm_up);
    }
    think(agent, now);
  }

  void serve(nanoseconds now) {
    while (!free_.empty()) {
      auto gpu = *free_.begin();
      auto ticket = policy_.pick({gpu, 1}, now);
      if (!ticket)
        return;
      free_.erase(gpu);
      auto agent = by_ticket_.at(*ticket - 1);
      auto& a = agents_[agent];
      policy_.on_grant(*ticket, gpu, now);
      a.waiting = false;
      a.gpu = gpu;
      a.granted = now;
      if (now >= m_.warm_up) {
        ++a.grants;
        ++grants_;
        waited_s_ += seconds(now - a.asked);
        longest_wait_ = std::max(longest_wait_, now - a.asked);
      }
      events_.push({now + a.hold, agent, true});
    }
  }

  const closed_queue& m_;
  lease_policy& policy_;
  std::vector<agent_state> agents_;
  std::set<uint32_t> free_;
  std::vector<uint32_t> by_ticket_;
  std::priority_queue<due, std::vector<due>, std::greater<>> events_;
  uint64_t releases_ = 0;
  uint64_t grants_ = 0;
  double waited_s_ = 0;
  nanoseconds longest_wait_{0};
};

} // namespace

closed_queue_result simulate(const closed_queue& model, lease_policy& policy) {
  return simulation{model, policy}.run();
}

} // namespace gristmill::test
