#pragma once

#include "gpu/lease/policy.hpp"

#include <doctest/doctest.h>
#include <memory>
#include <string>
#include <vector>

namespace gristmill::test {

using std::chrono::nanoseconds;

/// Fits the offer of `fits(1)`, as the offers of `fits(0)` and `any_need` go.
inline need_set fits(need_id need) {
  return 1 | need_set{1} << need;
}

inline waiter make_waiter(uint64_t ticket, const std::string& problem, const std::string& agent,
  need_id need = 1, nanoseconds est = std::chrono::seconds{10}, uint32_t weight = 1) {
  waiter w;
  w.ticket = ticket;
  w.flow = {problem, agent};
  w.need = need;
  w.est_hold = est;
  w.weight = weight;
  w.cap = std::chrono::seconds{120};
  w.deadline = std::chrono::hours{24};
  return w;
}

inline std::unique_ptr<lease_policy> policy(const std::string& text) {
  auto made = policy_from_text(text);
  REQUIRE_MESSAGE(made, (made ? std::string{} : made.error().what));
  return std::move(*made);
}

/// Grants what the policy picks and lets it run for as long as said.
inline uint64_t serve(
  lease_policy& p, nanoseconds held, need_id need = 1, nanoseconds now = nanoseconds{0}) {
  auto ticket = p.pick({0, fits(need)}, now);
  REQUIRE(ticket);
  p.on_grant(*ticket, 0, now);
  p.on_release({*ticket, 0, held}, "done", now + held);
  return *ticket;
}

/// Every policy, and some trees of them.
inline std::vector<std::string> texts() {
  auto out = policy_names();
  for (const char* text :
    {"stride(by=problem)/stride(by=agent)/fifo", "sept(ageing=0.5)",
      "lottery(seed=7,by=problem)/fifo",
      "priority(by=class,order=correctness>timing>profile)/stride(by=problem)/fifo",
      "drr(by=user,quantum=10s)", "las(by=agent,levels=3)/sept", "priority(ageing=30s)/maxmin/edf",
      "rr(by=class)/lottery(by=problem)/drr(by=agent)/sept(ageing=2)"})
    out.push_back(text);
  return out;
}

} // namespace gristmill::test
