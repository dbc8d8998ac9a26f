#pragma once

#include "gpu/lease/table.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace gristmill::test {

using std::chrono::nanoseconds;

/// A table, its actions so far, and a clock that the test moves. The journal stores at once.
struct table_fixture {
  static constexpr holder_id alice = 1;
  static constexpr holder_id bob = 2;
  static constexpr holder_id carol = 3;

  lease_table_config config;
  std::optional<lease_table> table;
  lease_actions out;
  nanoseconds now{0};

  table_fixture() { start(1); }

  void start(uint32_t gpus, lease_table_config c = {}, const char* policy = "fifo") {
    empty(c, policy);
    for (uint32_t i = 0; i < gpus; ++i)
      table->on_device_up(add({fmt::format("g{}", i), "h200"}), now, out);
    out.clear();
  }

  void empty(lease_table_config c = {}, const char* policy = "fifo") {
    config = c;
    now = nanoseconds{0};
    table.emplace(config, *policy_by_name(policy));
    out.clear();
  }

  uint32_t add(gpu_entry entry) {
    auto gpu = table->add_gpu(std::move(entry), now, out);
    store_tokens();
    return gpu;
  }

  void store_tokens() {
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i].kind == lease_action_kind::reserve)
        table->on_block_reserved(out[i].reserve.gpu, out[i].reserve.last, now, out);
  }

  static lease_request make(holder_id holder, uint64_t number = 1) {
    lease_request r;
    r.request = number;
    r.flow = {"p", fmt::format("agent-{}", holder)};
    r.attempt = fmt::format("p/cuda/{}", number);
    return r;
  }

  result<lease_ticket> ask(holder_id holder, uint64_t number = 1) {
    return table->on_request(holder, make(holder, number), now, out);
  }
  result<lease_ticket> ask_with(holder_id holder, uint64_t number, const std::string& candidate) {
    auto r = make(holder, number);
    r.candidate = candidate;
    return table->on_request(holder, r, now, out);
  }
  result<lease_ticket> ask_for(holder_id holder, uint64_t number, const std::string& need) {
    auto r = make(holder, number);
    r.need = need;
    return table->on_request(holder, r, now, out);
  }

  std::vector<lease_action> of(lease_action_kind kind) const {
    std::vector<lease_action> found;
    for (const auto& a : out)
      if (a.kind == kind)
        found.push_back(a);
    return found;
  }
  std::vector<lease_action> grants() const { return of(lease_action_kind::grant); }
  std::vector<lease_action> revokes() const { return of(lease_action_kind::revoke); }
  std::vector<lease_action> notices() const { return of(lease_action_kind::notify_holder); }
  std::vector<lease_action> probes() const { return of(lease_action_kind::probe); }
  std::vector<event> lines(const std::string& kind) const {
    std::vector<event> found;
    for (const auto& a : out)
      if (a.kind == lease_action_kind::log && a.entry->kind == kind)
        found.push_back(*a.entry);
    return found;
  }

  gpu_phase phase(uint32_t gpu = 0) const { return table->phase(gpu); }
  uint64_t token(uint32_t gpu = 0) const { return table->snapshot().gpus[gpu].token; }
  bool alarmed(const std::string& kind) const {
    for (const auto& alarm : table->snapshot({}, now).alarms)
      if (alarm.kind == kind)
        return true;
    return false;
  }

  void pass_time(nanoseconds t) {
    now += t;
    table->on_tick(now, out);
    store_tokens();
  }

  /// The executor begins what was granted last on this GPU.
  uint64_t begin(uint32_t gpu = 0) {
    auto t = token(gpu);
    CHECK(table->on_activated(gpu, t, now, out).applied);
    return t;
  }
  /// A lease of a free GPU that has begun; `out` is empty afterwards.
  uint64_t lease_active(holder_id holder, uint64_t number = 1, uint32_t gpu = 0) {
    REQUIRE(ask(holder, number));
    auto t = begin(gpu);
    out.clear();
    return t;
  }
  void end(uint64_t t, lease_outcome outcome = lease_outcome::fine, uint32_t gpu = 0,
    const probe_report& probe = {}) {
    CHECK(table->on_release(gpu, t, to_string(outcome), outcome, now, out).applied);
    table->on_verified(gpu, t, probe, now, out);
    store_tokens();
  }

  ~table_fixture() {
    auto broken = table->broken_invariant();
    CHECK_MESSAGE(!broken, broken.value_or(""));
  }
};

} // namespace gristmill::test
