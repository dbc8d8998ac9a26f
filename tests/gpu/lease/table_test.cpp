#include "gpu/lease/table.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace gristmill;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

constexpr holder_id alice = 1;
constexpr holder_id bob = 2;

/// A table with fifo policy, its actions so far, and a clock that the test moves.
struct lease_fixture {
  lease_table_config config;
  std::optional<lease_table> table;
  lease_actions out;
  nanoseconds now{0};

  lease_fixture() { start(1); }

  void start(int gpus, lease_table_config c = {}, const std::string& policy = "fifo") {
    config = c;
    table.emplace(config, *policy_by_name(policy));
    out.clear();
    for (int i = 0; i < gpus; ++i) {
      auto gpu = table->add_gpu({fmt::format("mock:h200#{}", i), "h200", 0}, now, out);
      store_tokens();
      table->on_device_up(gpu, now, out);
    }
    out.clear();
  }

  /// Plays the journal: every reservation is stored at once.
  void store_tokens() {
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i].kind == lease_action_kind::reserve)
        table->on_block_reserved(out[i].reserve.gpu, out[i].reserve.last, now, out);
  }

  result<lease_ticket> ask(holder_id holder, uint64_t request = 1, const std::string& need = "h200",
    nanoseconds patience = 0ns) {
    lease_request r;
    r.request = request;
    r.flow = {"p", fmt::format("agent-{}", holder)};
    r.need = need;
    r.patience = patience;
    r.attempt = "p/cuda/1";
    return table->on_request(holder, r, now, out);
  }

  /// All actions of a kind since the last call of `clear`.
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

  bool logged(const std::string& kind) const {
    for (const auto& a : of(lease_action_kind::log))
      if (a.entry->kind == kind)
        return true;
    return false;
  }

  gpu_phase phase(uint32_t gpu = 0) const { return table->snapshot().gpus[gpu].phase; }
  uint64_t token(uint32_t gpu = 0) const { return table->snapshot().gpus[gpu].token; }

  void pass_time(nanoseconds t) {
    now += t;
    table->on_tick(now, out);
  }

  /// A lease of GPU 0 that has started.
  uint64_t active_lease(holder_id holder = alice) {
    REQUIRE(ask(holder));
    auto t = grants().back().granted.granted.token;
    table->on_activated(0, t, now, out);
    CHECK(phase() == gpu_phase::active);
    out.clear();
    return t;
  }

  ~lease_fixture() {
    auto broken = table->broken_invariant();
    CHECK_MESSAGE(!broken, broken.value_or(""));
  }
};

} // namespace

TEST_CASE_FIXTURE(lease_fixture, "a free GPU is granted at once, with its class's term") {
  auto ticket = ask(alice, 7);
  REQUIRE(ticket);
  CHECK(ticket->request == 7);
  REQUIRE(grants().size() == 1);
  const auto g = grants()[0];
  CHECK(g.holder == alice);
  CHECK(g.granted.request == 7);
  CHECK(g.granted.granted == lease{0, 1, lease_class::timing, 120s});
  CHECK(phase() == gpu_phase::granted);
  CHECK(logged("lease_request"));
  CHECK(logged("lease_grant"));
}

TEST_CASE_FIXTURE(lease_fixture, "each class has its cap") {
  const std::pair<lease_class, nanoseconds> caps[] = {{lease_class::correctness, 60s},
    {lease_class::timing, 120s}, {lease_class::profile, 300s}, {lease_class::reference, 600s},
    {lease_class::official, 600s}};
  for (auto [what, term] : caps) {
    start(1);
    lease_request r;
    r.what = what;
    r.need = "h200";
    REQUIRE(table->on_request(alice, r, now, out));
    CHECK(grants()[0].granted.granted.term == term);
  }
}

TEST_CASE_FIXTURE(lease_fixture, "a GPU is lent to the next one only after it was verified") {
  auto t = active_lease();
  REQUIRE(ask(bob));
  CHECK(grants().empty());
  CHECK(table->on_release(0, t, "done", now, out).applied);
  CHECK(phase() == gpu_phase::releasing);
  CHECK(grants().empty());
  REQUIRE(revokes().size() == 1);
  CHECK(revokes()[0].revoke.token == t);
  table->on_verified(0, t, now, out);
  REQUIRE(grants().size() == 1);
  CHECK(grants()[0].holder == bob);
  CHECK(grants()[0].granted.granted.token == t + 1);
  CHECK(notices().empty());
}

TEST_CASE_FIXTURE(lease_fixture, "a stale release is a no-op that says so") {
  auto t = active_lease();
  CHECK_FALSE(table->on_release(0, t - 1, "done", now, out).applied);
  CHECK_FALSE(table->on_release(0, t + 1, "done", now, out).applied);
  CHECK_FALSE(table->on_release(9, t, "done", now, out).applied);
  CHECK(out.empty());
  CHECK(phase() == gpu_phase::active);
  CHECK(table->on_release(0, t, "done", now, out).applied);
  auto again = table->on_release(0, t, "done", now, out);
  CHECK_FALSE(again.applied);
  CHECK(again.note.find("mock:h200#0") != std::string::npos);
}

TEST_CASE_FIXTURE(lease_fixture, "a grant that nobody starts is withdrawn after five seconds") {
  REQUIRE(ask(alice));
  REQUIRE(ask(bob));
  auto t = token();
  out.clear();
  CHECK(table->next_deadline() == 5s);
  pass_time(4999ms);
  CHECK(out.empty());
  pass_time(1ms);
  REQUIRE(notices().size() == 1);
  CHECK(notices()[0].holder == alice);
  CHECK(notices()[0].ended.token == t);
  CHECK(revokes()[0].revoke.token == t);
  CHECK(phase() == gpu_phase::releasing);
  // Too late: the token is dead, whatever the executor says now.
  table->on_activated(0, t, now, out);
  CHECK(phase() == gpu_phase::releasing);
  table->on_verified(0, t, now, out);
  CHECK(grants()[0].granted.granted.token == t + 1);
}

TEST_CASE_FIXTURE(lease_fixture, "a grant is started by its own token only, not ended before it") {
  REQUIRE(ask(alice));
  auto t = token();
  out.clear();
  table->on_activated(0, t + 1, now, out);
  table->on_activated(0, t - 1, now, out);
  table->on_verified(0, t, now, out);
  CHECK(phase() == gpu_phase::granted);
  CHECK(out.empty());
  CHECK_FALSE(table->broken_invariant());
  table->on_activated(0, t, now, out);
  CHECK(phase() == gpu_phase::active);
}

TEST_CASE_FIXTURE(
  lease_fixture, "the clock of an execution starts at the grant, not in the queue") {
  auto t = active_lease();
  REQUIRE(ask(bob));
  now = 119s;
  table->on_release(0, t, "done", now, out);
  table->on_verified(0, t, now, out);
  table->on_activated(0, t + 1, now, out);
  out.clear();
  pass_time(120s);
  CHECK(phase() == gpu_phase::active);
  CHECK(out.empty());
  pass_time(5s);
  CHECK(phase() == gpu_phase::releasing);
}

TEST_CASE_FIXTURE(lease_fixture, "an expired lease is revoked a grace after its term") {
  auto t = active_lease();
  CHECK(table->next_deadline() == 125s);
  CHECK(table->on_renew(0, t, 119s).applied);
  CHECK_FALSE(table->on_renew(0, t, 120s).applied);
  CHECK_FALSE(table->on_renew(0, t + 1, 1s).applied);
  pass_time(124s);
  CHECK(out.empty());
  pass_time(1s);
  CHECK(revokes().size() == 1);
  CHECK(notices()[0].ended.reason == "expired");
  CHECK(logged("lease_revoke"));
  CHECK(phase() == gpu_phase::releasing);
}

TEST_CASE_FIXTURE(lease_fixture, "a GPU that nobody verifies is taken out of service") {
  auto t = active_lease();
  table->on_release(0, t, "done", now, out);
  out.clear();
  pass_time(59s);
  CHECK(phase() == gpu_phase::releasing);
  pass_time(1s);
  CHECK(phase() == gpu_phase::lost);
  CHECK(logged("gpu_down"));
  CHECK_FALSE(table->next_deadline());
}

TEST_CASE_FIXTURE(
  lease_fixture, "a GPU that went down with a lease is verified before it is free") {
  auto t = active_lease();
  REQUIRE(ask(bob));
  out.clear();
  table->on_device_down(0, "fell off the bus", now, out);
  CHECK(phase() == gpu_phase::lost);
  REQUIRE(notices().size() == 1);
  CHECK(notices()[0].holder == alice);
  table->on_device_down(0, "again", now, out);
  CHECK(notices().size() == 1);
  out.clear();
  table->on_device_up(0, now, out);
  CHECK(phase() == gpu_phase::verifying);
  CHECK(grants().empty());
  CHECK(revokes().size() == 1);
  table->on_verified(0, t, now, out);
  CHECK(grants().size() == 1);
}

TEST_CASE_FIXTURE(lease_fixture, "a GPU that was idle when it went down is free when it is back") {
  table->on_device_down(0, "maintenance", now, out);
  REQUIRE(ask(alice));
  CHECK(grants().empty());
  table->on_device_up(0, now, out);
  CHECK(grants().size() == 1);
}

TEST_CASE_FIXTURE(lease_fixture, "a repeated report that a GPU is up changes nothing") {
  auto t = active_lease();
  table->on_device_up(0, now, out);
  CHECK(out.empty());
  CHECK(phase() == gpu_phase::active);
  table->on_release(0, t, "done", now, out);
  out.clear();
  table->on_device_up(0, now, out);
  CHECK(out.empty());
  CHECK(phase() == gpu_phase::releasing);
}

TEST_CASE_FIXTURE(lease_fixture, "the death of a holder ends its leases and its waits") {
  auto t = active_lease(alice);
  REQUIRE(ask(alice, 2));
  REQUIRE(ask(bob));
  out.clear();
  table->on_holder_down(alice, now, out);
  CHECK(phase() == gpu_phase::releasing);
  CHECK(revokes().size() == 1);
  CHECK(notices().empty());
  CHECK(table->snapshot().waiting == 1);
  table->on_verified(0, t, now, out);
  REQUIRE(grants().size() == 1);
  CHECK(grants()[0].holder == bob);
  out.clear();
  table->on_holder_down(99, now, out);
  CHECK(out.empty());
}

TEST_CASE_FIXTURE(lease_fixture, "a cancellation takes a request out of the queue") {
  active_lease();
  REQUIRE(ask(bob, 3));
  CHECK(table->on_cancel(bob, 3, now, out).applied);
  CHECK(table->snapshot().waiting == 0);
  CHECK(logged("lease_wait_end"));
  CHECK_FALSE(table->on_cancel(bob, 3, now, out).applied);
  CHECK_FALSE(table->on_cancel(bob, 4, now, out).applied);
  // The number belongs to its asker.
  CHECK_FALSE(table->on_cancel(bob, 1, now, out).applied);
}

TEST_CASE_FIXTURE(lease_fixture, "a cancellation that crosses its grant ends the lease") {
  REQUIRE(ask(alice, 5));
  CHECK(phase() == gpu_phase::granted);
  CHECK(table->on_cancel(alice, 5, now, out).applied);
  CHECK(phase() == gpu_phase::releasing);
}

TEST_CASE_FIXTURE(
  lease_fixture, "patience is measured in the queue and ends a wait with a notice") {
  active_lease();
  REQUIRE(ask(bob, 4, "h200", 10s));
  out.clear();
  CHECK(table->next_deadline() == 10s);
  pass_time(10s);
  REQUIRE(notices().size() == 1);
  CHECK(notices()[0].holder == bob);
  CHECK(notices()[0].ended.request == 4);
  CHECK(notices()[0].ended.token == 0);
  CHECK(table->snapshot().waiting == 0);
  CHECK(phase() == gpu_phase::active);
}

TEST_CASE_FIXTURE(lease_fixture, "a full queue refuses, and takes more when somebody left") {
  lease_table_config c;
  c.waiting_max = 2;
  start(1, c);
  active_lease();
  REQUIRE(ask(bob, 1));
  REQUIRE(ask(bob, 2));
  auto refused = ask(bob, 3);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::queue_full);
  table->on_cancel(bob, 1, now, out);
  CHECK(ask(bob, 3)->ahead == 1);
}

TEST_CASE_FIXTURE(lease_fixture, "a request that is sent twice stands in line once") {
  active_lease();
  auto first = ask(bob, 1);
  auto again = ask(bob, 1);
  CHECK(first->ticket == again->ticket);
  CHECK(table->snapshot().waiting == 1);
  CHECK(ask(alice, 1)->ticket == 1);
  CHECK(table->snapshot().waiting == 1);
}

TEST_CASE_FIXTURE(lease_fixture, "a request that cannot be served is refused with the reason") {
  auto model = ask(alice, 1, "b200");
  REQUIRE_FALSE(model);
  CHECK(model.error().code == errc::not_found);
  CHECK(model.error().what.find("h200") != std::string::npos);
  CHECK(ask(alice, 1, "h200", -1s).error().code == errc::invalid_input);
  CHECK(ask(alice, 1, "h200", 25h).error().code == errc::invalid_input);
  lease_request r;
  r.weight = 0;
  CHECK(table->on_request(alice, r, now, out).error().code == errc::invalid_input);
  r.weight = 1;
  r.estimated_hold = -1ns;
  CHECK(table->on_request(alice, r, now, out).error().code == errc::invalid_input);
  r.estimated_hold = 0ns;
  r.what = static_cast<lease_class>(9);
  CHECK(table->on_request(alice, r, now, out).error().code == errc::invalid_input);
  CHECK(out.empty());
}

TEST_CASE_FIXTURE(lease_fixture, "a GPU serves its model and those who take any") {
  auto b200 = table->add_gpu({"mock:b200#0", "b200", 0}, now, out);
  store_tokens();
  table->on_device_up(b200, now, out);
  active_lease();
  REQUIRE(ask(bob, 1, "h200"));
  CHECK(grants().empty());
  REQUIRE(ask(bob, 2, ""));
  REQUIRE(grants().size() == 1);
  CHECK(grants()[0].granted.granted.gpu == b200);
}

TEST_CASE("no token is granted before its block is stored") {
  lease_table table({}, make_fifo_policy());
  lease_actions out;
  auto gpu = table.add_gpu({"g", "m", 0}, 0ns, out);
  REQUIRE(out.size() == 1);
  CHECK(out[0].kind == lease_action_kind::reserve);
  CHECK(out[0].reserve.last == 1024);
  CHECK(out[0].entry->kind == "token_block");
  CHECK(out[0].entry->token == 1024);
  table.on_device_up(gpu, 0ns, out);
  REQUIRE(table.on_request(alice, {}, 0ns, out));
  auto granted = [&] {
    return std::any_of(out.begin(), out.end(),
      [](const lease_action& a) { return a.kind == lease_action_kind::grant; });
  };
  CHECK_FALSE(granted());
  // Not the block that was asked for.
  table.on_block_reserved(gpu, 2048, 0ns, out);
  CHECK_FALSE(granted());
  table.on_block_reserved(gpu, 1024, 0ns, out);
  CHECK(granted());
  CHECK_FALSE(table.broken_invariant());
}

TEST_CASE("a restart skips to the end of the block that the journal knows") {
  lease_table table({}, make_fifo_policy());
  lease_actions out;
  auto gpu = table.add_gpu({"g", "m", 3072}, 0ns, out);
  CHECK(out[0].reserve.last == 4096);
  table.on_block_reserved(gpu, 4096, 0ns, out);
  table.on_device_up(gpu, 0ns, out);
  REQUIRE(table.on_request(alice, {}, 0ns, out));
  CHECK(out.back().granted.granted.token == 3073);
}

TEST_CASE_FIXTURE(lease_fixture, "the next block is asked for before the last token is spent") {
  lease_table_config c;
  c.token_block = 8;
  start(1, c);
  uint64_t newest = 0;
  int reservations = 0;
  for (int i = 0; i < 100; ++i) {
    out.clear();
    REQUIRE(ask(alice, 100 + static_cast<uint64_t>(i)));
    reservations += static_cast<int>(of(lease_action_kind::reserve).size());
    store_tokens();
    REQUIRE(grants().size() == 1);
    auto t = grants()[0].granted.granted.token;
    CHECK(t == newest + 1);
    newest = t;
    table->on_release(0, t, "done", now, out);
    table->on_verified(0, t, now, out);
  }
  CHECK(reservations == 12);
}

TEST_CASE_FIXTURE(lease_fixture, "without a stored block grants wait and then go on") {
  lease_table_config c;
  c.token_block = 1;
  start(1, c);
  REQUIRE(ask(alice, 1));
  auto reserve = of(lease_action_kind::reserve);
  REQUIRE(reserve.size() == 1);
  table->on_release(0, 1, "done", now, out);
  table->on_verified(0, 1, now, out);
  out.clear();
  REQUIRE(ask(bob, 1));
  CHECK(grants().empty());
  table->on_block_reserved(0, reserve[0].reserve.last, now, out);
  REQUIRE(grants().size() == 1);
  CHECK(grants()[0].granted.granted.token == 2);
}

TEST_CASE_FIXTURE(lease_fixture, "the executor's end without a release frees the GPU and tells") {
  auto t = active_lease();
  table->on_verified(0, t, now, out);
  CHECK(phase() == gpu_phase::free);
  CHECK(notices().size() == 1);
}

TEST_CASE_FIXTURE(lease_fixture, "reports about unknown GPUs and other tokens change nothing") {
  auto t = active_lease();
  for (auto state :
    {device_state::up, device_state::active, device_state::verified, device_state::down}) {
    device_report r;
    r.gpu = 17;
    r.state = state;
    r.token = t;
    table->on_report(r, now, out);
  }
  table->on_verified(0, t + 1, now, out);
  table->on_verified(0, 0, now, out);
  table->on_block_reserved(17, 1, now, out);
  CHECK(out.empty());
  CHECK(phase() == gpu_phase::active);
}

TEST_CASE_FIXTURE(lease_fixture, "draining tells all who wait and lets the running lease end") {
  auto t = active_lease();
  REQUIRE(ask(bob));
  out.clear();
  table->drain("the run ends", now, out);
  REQUIRE(notices().size() == 1);
  CHECK(notices()[0].ended.reason.find("the run ends") != std::string::npos);
  CHECK(phase() == gpu_phase::active);
  CHECK(ask(bob, 9).error().code == errc::shutting_down);
  CHECK(table->on_release(0, t, "done", now, out).applied);
  table->on_verified(0, t, now, out);
  CHECK(phase() == gpu_phase::free);
}

TEST_CASE_FIXTURE(lease_fixture, "a flow is charged once for each lease, clean-up included") {
  auto t = active_lease(alice);
  now = 10s;
  table->on_release(0, t, "done", now, out);
  now = 17s;
  table->on_verified(0, t, now, out);
  table->on_verified(0, t, now, out);
  auto usage = table->snapshot().usage;
  REQUIRE(usage.size() == 1);
  CHECK(usage[0].held_ns == 17'000'000'000u);
  CHECK(usage[0].leases == 1);
}

TEST_CASE_FIXTURE(lease_fixture, "every transition is one line, and its data is sorted JSON") {
  auto t = active_lease();
  now = 3s;
  table->on_release(0, t, "done \"well\"", now, out);
  table->on_verified(0, t, now, out);
  auto lines = of(lease_action_kind::log);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].entry->kind == "lease_release");
  CHECK(lines[0].entry->gpu == "mock:h200#0");
  CHECK(lines[0].entry->token == t);
  CHECK(lines[0].entry->attempt == "p/cuda/1");
  CHECK(lines[0].entry->t == 3s);
  CHECK(lines[0].entry->data
    == R"({"agent":"agent-1","class":"timing","held_ns":3000000000,"holder":1,"request":1,"ticket":1})");
  CHECK(lines[1].entry->kind == "gpu_free");
}

TEST_CASE_FIXTURE(lease_fixture, "a snapshot shows phases, tokens and who works where") {
  start(2);
  active_lease();
  auto s = table->snapshot();
  REQUIRE(s.gpus.size() == 2);
  CHECK(s.gpus[0].phase == gpu_phase::active);
  CHECK(s.gpus[0].attempt == "p/cuda/1");
  CHECK(s.gpus[1].phase == gpu_phase::free);
  CHECK(s.gpus[1].attempt.empty());
  CHECK(s.granted_total == 1);
  CHECK(s.waiting == 0);
}

TEST_CASE_FIXTURE(lease_fixture, "27 GPUs and 500 waiters are served in order, none twice") {
  start(27);
  std::vector<int> served(500, 0);
  for (uint64_t i = 0; i < 500; ++i)
    REQUIRE(ask(100 + i, 1));
  CHECK(table->snapshot().waiting == 473);
  size_t seen = 0;
  uint64_t expected = 0;
  for (; seen < out.size(); ++seen) {
    if (out[seen].kind != lease_action_kind::grant)
      continue;
    auto g = out[seen];
    CHECK(g.holder == 100 + expected++);
    ++served[g.holder - 100];
    now += 1ms;
    table->on_release(g.granted.granted.gpu, g.granted.granted.token, "done", now, out);
    table->on_verified(g.granted.granted.gpu, g.granted.granted.token, now, out);
  }
  CHECK(std::all_of(served.begin(), served.end(), [](int n) { return n == 1; }));
}
