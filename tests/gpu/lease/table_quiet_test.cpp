// A table that writes no events and estimates no places decides as one that does.

#include "gpu/lease/table.hpp"
#include "tests/gpu/lease/lease_world.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

std::string text_of(const lease_action& a) {
  const auto& g = a.granted.granted;
  switch (a.kind) {
  case lease_action_kind::grant:
    return fmt::format("grant {} {} {} {} {} {}", a.holder, a.granted.request, g.gpu, g.token,
      static_cast<int>(g.what), g.term.count());
  case lease_action_kind::notify_holder:
    return fmt::format(
      "notify {} {} {} {}", a.holder, a.ended.request, a.ended.token, a.ended.reason);
  case lease_action_kind::revoke:
    return fmt::format("revoke {} {} {}", a.revoke.gpu, a.revoke.token, a.revoke.reason);
  case lease_action_kind::reserve:
    return fmt::format("reserve {} {}", a.reserve.gpu, a.reserve.last);
  case lease_action_kind::probe:
    return fmt::format("probe {} {}", a.probe.gpu, a.probe.limit.count());
  case lease_action_kind::rerun:
    return fmt::format("rerun {} {}", a.rerun->candidate, a.rerun->failure.attempt);
  case lease_action_kind::log:
    break;
  }
  return {};
}

/// One table and what it has said in the latest step.
struct side {
  lease_table table;
  lease_actions out;
  std::vector<std::string> said;
  size_t events = 0;

  side(lease_table_config config, const std::string& policy, bool loud)
    : table(with(config, loud), *policy_by_name(policy)) {}

  static lease_table_config with(lease_table_config config, bool loud) {
    config.log_events = loud;
    config.estimate_places = loud;
    return config;
  }

  void carry_out(nanoseconds now) {
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i].kind == lease_action_kind::reserve)
        table.on_block_reserved(out[i].reserve.gpu, out[i].reserve.last, now, out);
    for (const auto& a : out) {
      events += a.entry ? 1 : 0;
      if (a.kind != lease_action_kind::log)
        said.push_back(text_of(a));
    }
    out.clear();
  }

  void say(const lease_ack& ack) { said.push_back(fmt::format("{} {}", ack.applied, ack.note)); }
};

/// One random step, told to a table. All that is drawn is drawn before, so that both hear the same.
struct step {
  uint32_t what = 0;
  uint32_t gpu = 0;
  uint32_t chance = 0;
  holder_id holder = 0;
  lease_request request;
  nanoseconds now{0};
};

void tell(side& to, const step& s) {
  auto& t = to.table;
  auto token = t.snapshot().gpus[s.gpu].token - (s.chance % 16 == 0 ? 1 : 0);
  if (s.what < 34) {
    auto ticket = t.on_request(s.holder, s.request, s.now, to.out);
    to.said.push_back(
      ticket ? fmt::format("ticket {}", ticket->ticket) : "refused: " + ticket.error().what);
  } else if (s.what < 38) {
    to.say(t.on_cancel(s.holder, 1 + s.chance % s.request.request, s.now, to.out));
  } else if (s.what < 50) {
    to.say(t.on_activated(s.gpu, token, s.now, to.out));
  } else if (s.what < 64) {
    auto outcome = s.chance % 5 == 0 ? lease_outcome::fault : lease_outcome::fine;
    to.say(t.on_release(s.gpu, token, "done", outcome, s.now, to.out));
  } else if (s.what < 84) {
    probe_report probe;
    if (s.chance % 23 == 0)
      probe = {probe_outcome::failed, "slow"};
    to.say(t.on_verified(s.gpu, token, probe, s.now, to.out));
  } else if (s.what < 88) {
    to.say(t.on_probed(s.gpu, {}, s.now, to.out));
  } else if (s.what < 89) {
    t.on_device_down(s.gpu, "gone", s.now, to.out);
  } else if (s.what < 91) {
    to.say(t.on_device_up(s.gpu, fmt::format("boot-{}", s.chance % 99), s.now, to.out));
  } else if (s.what < 92) {
    t.on_holder_down(s.holder, s.now, to.out);
  } else if (s.what < 93) {
    broker_command c;
    c.verb = s.chance % 3 == 0 ? broker_verb::drain : broker_verb::undrain;
    c.gpu = fmt::format("g{}", s.gpu);
    to.say(t.on_broker_command(c, s.now, to.out));
  } else if (s.what < 95) {
    to.say(t.on_renew(s.gpu, token, 1s * (s.chance % 7), s.now, to.out));
  } else {
    t.on_tick(s.now, to.out);
  }
  to.carry_out(s.now);
}

void compare(const std::string& policy, uint64_t seed) {
  chance draw{seed};
  lease_table_config config;
  config.token_block = 4 + draw.below(16);
  config.ttl = 30s * draw.below(2);
  config.waiting_max = 40;
  side loud(config, policy, true);
  side quiet(config, policy, false);
  const auto gpus = 1 + draw.below(6);
  for (uint32_t gpu = 0; gpu < gpus; ++gpu)
    for (auto* each : {&loud, &quiet}) {
      each->table.add_gpu({fmt::format("g{}", gpu), gpu % 2 == 0 ? "h200" : "a100"}, 0s, each->out);
      each->carry_out(0s);
      each->table.on_device_up(gpu, "first", 0s, each->out);
      each->carry_out(0s);
    }
  static const std::vector<std::string> needs = {"", "h200", "a100", "h200", "no such GPU!"};
  step s;
  for (int i = 0; i < 600; ++i) {
    s.what = draw.below(100);
    s.gpu = draw.below(gpus);
    s.chance = draw.below(1 << 20);
    s.holder = 1 + draw.below(9);
    s.now += 1ms * draw.below(draw.below(20) == 0 ? 20'000 : 300);
    ++s.request.request;
    s.request.what = static_cast<lease_class>(draw.below(5));
    s.request.flow = {fmt::format("p{}", draw.below(4)), fmt::format("a{}", draw.below(12))};
    s.request.weight = 1 + draw.below(3);
    s.request.need = needs[draw.below(static_cast<uint32_t>(needs.size()))];
    s.request.estimated_hold = 1s * draw.below(30);
    s.request.patience = 1s * draw.below(200);
    s.request.candidate = draw.below(2) == 0 ? "" : fmt::format("candidate {}", draw.below(8));
    tell(loud, s);
    tell(quiet, s);
    REQUIRE(loud.said == quiet.said);
    REQUIRE(loud.table.waiting() == quiet.table.waiting());
    loud.said.clear();
    quiet.said.clear();
    for (const auto* each : {&loud, &quiet})
      if (auto broken = each->table.broken_invariant())
        FAIL(*broken);
  }
  CHECK(loud.table.policy().save() == quiet.table.policy().save());
  CHECK(loud.events > 100);
  CHECK(quiet.events == 0);
}

} // namespace

TEST_CASE("without events and places a table decides as it does with them") {
  for (const std::string policy : {"fifo", "stride", "sept(ageing=0.5)", "las", "rr", "lottery",
         "drr", "maxmin", "priority", "edf", "backfill"})
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      CAPTURE(policy);
      CAPTURE(seed);
      compare(policy, seed);
    }
}

TEST_CASE("without events a block of tokens is still asked for, with nothing to write") {
  lease_table_config config;
  config.log_events = false;
  lease_table table(config, make_fifo_policy());
  lease_actions out;
  table.add_gpu({"g0", "h200"}, 0s, out);
  REQUIRE(out.size() == 1);
  CHECK(out[0].kind == lease_action_kind::reserve);
  CHECK(out[0].reserve.last == config.token_block);
  CHECK_FALSE(out[0].entry);
  CHECK(out[0].entry->kind.empty());
}

TEST_CASE("without events nobody wakes the table to look for alarms") {
  for (bool loud : {true, false}) {
    lease_table_config config;
    config.log_events = loud;
    lease_table table(config, make_fifo_policy());
    lease_actions out;
    table.add_gpu({"g0", "h200"}, 0s, out);
    lease_request r;
    r.request = 1;
    r.flow = {"p", "a"};
    REQUIRE(table.on_request(1, r, 0s, out));
    CHECK(*table.next_deadline() == (loud ? config.alarm_every : config.patience_max));
  }
}

TEST_CASE("without places a ticket of one that waits says 0 for both") {
  lease_table_config config;
  config.estimate_places = false;
  lease_table table(config, make_stride_policy());
  lease_actions out;
  table.add_gpu({"g0", "h200"}, 0s, out);
  for (uint64_t i = 1; i <= 3; ++i) {
    lease_request r;
    r.request = i;
    r.flow = {"p", "a"};
    auto ticket = table.on_request(1, r, 0s, out);
    REQUIRE(ticket);
    CHECK(ticket->ahead == 0);
    CHECK(ticket->estimated_wait == 0s);
    CHECK(table.position(1, i, 5s)->ahead == 0);
  }
}
