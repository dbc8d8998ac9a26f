#include "tests/gpu/lease/lease_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

lease_table_config with_ttl() {
  lease_table_config c;
  c.ttl = 30s;
  return c;
}

const probe_report failed{probe_outcome::failed, "canary 7.2 % slow"};
const probe_report blind{probe_outcome::could_not, "the probe did not answer"};

} // namespace

TEST_CASE_FIXTURE(table_fixture, "a lease goes through all its phases, each with one line") {
  REQUIRE(ask(alice));
  CHECK(phase() == gpu_phase::granted);
  auto t = begin();
  CHECK(phase() == gpu_phase::active);
  table->on_release(0, t, "done", now, out);
  CHECK(phase() == gpu_phase::releasing);
  CHECK(table->on_ended(0, t, now, out).applied);
  CHECK(phase() == gpu_phase::verifying);
  CHECK_FALSE(table->on_ended(0, t, now, out).applied);
  CHECK(table->on_verified(0, t, now, out).applied);
  CHECK(phase() == gpu_phase::free);
  for (const char* kind :
    {"lease_request", "lease_grant", "lease_active", "lease_release", "gpu_verifying", "gpu_free"})
    CHECK_MESSAGE(lines(kind).size() == 1, kind);
  auto grant = lines("lease_grant")[0];
  CHECK(grant.gpu == "g0");
  CHECK(grant.problem == "p");
  CHECK(grant.data.find("\"class\":\"timing\"") != std::string::npos);
  CHECK(grant.data.find("\"holder\":1") != std::string::npos);
}

TEST_CASE_FIXTURE(table_fixture, "a term may be shorter than the cap, and never longer") {
  auto r = make(alice);
  r.term = 10s;
  REQUIRE(table->on_request(alice, r, now, out));
  CHECK(grants()[0].granted.granted.term == 10s);
  begin();
  CHECK(table->next_deadline() == 15s);
  auto longer = make(bob);
  longer.term = 121s;
  auto refused = table->on_request(bob, longer, now, out);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::invalid_input);
  CHECK(refused.error().what.find("cap of class timing") != std::string::npos);
  pass_time(15s);
  CHECK(notices().back().ended.reason == "expired");
}

TEST_CASE_FIXTURE(table_fixture, "a lease that is not renewed for its ttl is revoked") {
  start(1, with_ttl());
  auto t = lease_active(alice);
  pass_time(29s);
  CHECK(table->on_renew(0, t, 0ns, now, out).applied);
  pass_time(29s);
  CHECK(phase() == gpu_phase::active);
  pass_time(1s);
  CHECK(phase() == gpu_phase::releasing);
  CHECK(notices()[0].ended.reason == "not renewed for 30 s");
  CHECK_FALSE(table->on_renew(0, t, 0ns, now, out).applied);
}

TEST_CASE_FIXTURE(table_fixture, "no renewal goes past the cap of the class") {
  start(1, with_ttl());
  auto t = lease_active(alice);
  for (int i = 0; i < 11; ++i) {
    pass_time(10s);
    CHECK(table->on_renew(0, t, 0ns, now, out).applied);
  }
  pass_time(10s);
  CHECK_FALSE(table->on_renew(0, t, 0ns, now, out).applied);
  CHECK(phase() == gpu_phase::active);
  pass_time(5s);
  CHECK(notices()[0].ended.reason == "expired");
}

TEST_CASE_FIXTURE(
  table_fixture, "an idle lease is renewed while nobody waits, and ended when somebody does") {
  auto t = lease_active(alice);
  CHECK(table->on_renew(0, t, 60s, now, out).applied);
  REQUIRE(ask(bob));
  CHECK(table->on_renew(0, t, 4999ms, now, out).applied);
  auto no = table->on_renew(0, t, 5s, now, out);
  CHECK_FALSE(no.applied);
  CHECK(no.note.find("idle") != std::string::npos);
  CHECK(phase() == gpu_phase::releasing);
  REQUIRE(lines("alarm").size() == 1);
  CHECK(lines("alarm")[0].reason == "idle_while_leased");
}

TEST_CASE_FIXTURE(table_fixture, "idle counts only against those who wait for such a GPU") {
  empty();
  table->on_device_up(add({"a", "h200"}), now, out);
  table->on_device_up(add({"b", "b200"}), now, out);
  REQUIRE(ask_for(alice, 1, "h200"));
  REQUIRE(ask_for(bob, 1, "b200"));
  auto t = begin(0);
  begin(1);
  REQUIRE(ask_for(carol, 1, "b200"));
  CHECK(table->on_renew(0, t, 60s, now, out).applied);
  REQUIRE(ask_for(carol, 2, "h200"));
  CHECK_FALSE(table->on_renew(0, t, 60s, now, out).applied);
}

TEST_CASE_FIXTURE(table_fixture, "a renewal tells as well that the work has begun") {
  REQUIRE(ask(alice));
  CHECK(table->on_renew(0, token(), 0ns, now, out).applied);
  CHECK(phase() == gpu_phase::active);
}

TEST_CASE_FIXTURE(table_fixture, "an executor that starts a dead token is told to stop") {
  auto t = lease_active(alice);
  end(t);
  out.clear();
  CHECK_FALSE(table->on_activated(0, t, now, out).applied);
  REQUIRE(revokes().size() == 1);
  CHECK(revokes()[0].revoke.token == t);
  CHECK(phase() == gpu_phase::free);
}

TEST_CASE_FIXTURE(
  table_fixture, "a failed probe after a lease taints the result and holds the GPU back") {
  auto t = lease_active(alice);
  REQUIRE(ask(bob));
  table->on_release(0, t, "done", now, out);
  out.clear();
  auto ack = table->on_verified(0, t, failed, now, out);
  CHECK(ack.applied);
  CHECK(ack.note.starts_with("tainted"));
  CHECK(phase() == gpu_phase::suspect);
  REQUIRE(notices().size() == 1);
  CHECK(notices()[0].holder == alice);
  CHECK(notices()[0].ended.token == t);
  CHECK(notices()[0].ended.reason.find("7.2 %") != std::string::npos);
  CHECK(lines("lease_tainted").size() == 1);
  REQUIRE(probes().size() == 1);
  CHECK(probes()[0].probe.limit == 10s);
  CHECK(grants().empty());
  CHECK(table->on_probed(0, {}, now, out).applied);
  CHECK(grants().size() == 1);
}

TEST_CASE_FIXTURE(table_fixture, "three failed probes in a row are a quarantine; fewer are not") {
  auto t = lease_active(alice);
  end(t, lease_outcome::fine, 0, failed);
  CHECK(table->on_probed(0, failed, now, out).applied);
  CHECK(phase() == gpu_phase::suspect);
  // Ordered again only after a pause, which doubles.
  CHECK(table->next_deadline() == now + 10s);
  CHECK_FALSE(table->on_probed(0, failed, now, out).applied);
  pass_time(10s);
  CHECK(table->on_probed(0, failed, now, out).applied);
  CHECK(phase() == gpu_phase::quarantined);
  CHECK(lines("gpu_quarantined").size() == 1);
  CHECK_FALSE(table->next_deadline());
  CHECK(table->snapshot().gpus[0].reason.find("3 probes") != std::string::npos);
}

TEST_CASE_FIXTURE(table_fixture, "a passed probe starts the count of failures anew") {
  auto t = lease_active(alice);
  end(t, lease_outcome::fine, 0, failed);
  table->on_probed(0, failed, now, out);
  pass_time(10s);
  table->on_probed(0, {}, now, out);
  CHECK(phase() == gpu_phase::free);
  t = lease_active(alice, 2);
  end(t, lease_outcome::fine, 0, failed);
  CHECK(phase() == gpu_phase::suspect);
}

TEST_CASE_FIXTURE(
  table_fixture, "a GPU in quarantine comes back by a person who names it, and a passed probe") {
  table->quarantine(0, "a process stays after SIGKILL", now, out);
  REQUIRE(ask(alice));
  CHECK(table->on_broker_command({broker_verb::undrain, "", "all"}, now, out).applied);
  CHECK(phase() == gpu_phase::quarantined);
  table->on_device_up(0, now, out);
  CHECK(phase() == gpu_phase::quarantined);
  auto unknown = table->on_broker_command({broker_verb::undrain, "g7", ""}, now, out);
  CHECK_FALSE(unknown.applied);
  CHECK(unknown.note.find("g0") != std::string::npos);
  CHECK(table->on_broker_command({broker_verb::undrain, "g0", "looked"}, now, out).applied);
  CHECK(phase() == gpu_phase::suspect);
  CHECK(grants().empty());
  table->on_probed(0, {}, now, out);
  CHECK(grants().size() == 1);
}

TEST_CASE_FIXTURE(
  table_fixture, "a quarantine ends the lease, and the GPU is verified before it comes back") {
  auto t = lease_active(alice);
  table->quarantine(0, "memory stays", now, out);
  REQUIRE(notices().size() == 1);
  CHECK(revokes().size() == 1);
  table->on_broker_command({broker_verb::undrain, "g0", ""}, now, out);
  CHECK(phase() == gpu_phase::verifying);
  table->on_verified(0, t, blind, now, out);
  CHECK(phase() == gpu_phase::suspect);
}

TEST_CASE_FIXTURE(table_fixture,
  "a drained GPU ends its lease in peace and is lent to nobody until it is undrained") {
  start(2);
  auto t = lease_active(alice);
  CHECK(table->on_broker_command({broker_verb::drain, "g0", "new fan"}, now, out).applied);
  CHECK(phase() == gpu_phase::active);
  CHECK(table->on_renew(0, t, 0ns, now, out).applied);
  end(t);
  CHECK(phase() == gpu_phase::draining);
  CHECK(table->snapshot().gpus[0].reason == "new fan");
  REQUIRE(ask(bob));
  REQUIRE(ask(carol));
  CHECK(grants().size() == 1);
  CHECK(grants()[0].granted.granted.gpu == 1);
  table->on_broker_command({broker_verb::undrain, "g0", ""}, now, out);
  CHECK(grants().size() == 2);
}

TEST_CASE_FIXTURE(table_fixture, "all GPUs can be drained; who waits goes on waiting") {
  start(2);
  CHECK(table->on_broker_command({broker_verb::drain, "", "night"}, now, out).applied);
  REQUIRE(ask(alice));
  CHECK(grants().empty());
  CHECK(notices().empty());
  CHECK(table->on_broker_command({broker_verb::undrain, "", ""}, now, out).applied);
  CHECK(grants().size() == 1);
  CHECK(table->on_broker_command({broker_verb::undrain, "", ""}, now, out).note
    == "0 of 2 GPUs changed");
}

TEST_CASE_FIXTURE(
  table_fixture, "constraints pick the GPU, and one that nothing satisfies names what there is") {
  empty();
  constexpr uint64_t gib = uint64_t{1} << 30;
  table->on_device_up(add({"x", "h200", 0, "sm_90a", 141 * gib, "a"}), now, out);
  table->on_device_up(add({"y", "b200", 0, "sm_100a", 180 * gib, "b"}), now, out);
  out.clear();
  REQUIRE(ask_for(alice, 1, "memory>=160GiB"));
  CHECK(grants()[0].granted.granted.gpu == 1);
  REQUIRE(ask_for(bob, 1, "arch=sm_90a,node=a"));
  CHECK(grants()[1].granted.granted.gpu == 0);
  auto none = ask_for(carol, 1, "memory>=200GiB");
  REQUIRE_FALSE(none);
  CHECK(none.error().code == errc::not_found);
  CHECK(none.error().what.find("h200 (arch sm_90a, 141GiB, node a)") != std::string::npos);
  CHECK(ask_for(carol, 1, "memory>=big").error().code == errc::invalid_input);
}

TEST_CASE_FIXTURE(
  table_fixture, "a 65th need that waits is refused, and has its place when others are served") {
  empty();
  for (int i = 0; i < 70; ++i)
    add({fmt::format("g{}", i), fmt::format("m{}", i)});
  for (uint64_t i = 0; i < 63; ++i)
    REQUIRE(ask_for(alice, i, fmt::format("m{}", i)));
  CHECK(ask_for(alice, 64, "m64").error().code == errc::queue_full);
  CHECK(ask_for(bob, 1, "m3"));
  table->on_cancel(alice, 7, now, out);
  CHECK(ask_for(alice, 64, "m64"));
  table->on_device_up(64, now, out);
  REQUIRE(grants().size() == 1);
  CHECK(grants()[0].granted.request == 64);
  table->on_device_up(3, now, out);
  CHECK(grants().size() == 2);
}

TEST_CASE_FIXTURE(
  table_fixture, "a candidate that failed on one GPU is tried again on another one only") {
  start(2);
  REQUIRE(ask_with(alice, 1, "bad"));
  auto t = begin(0);
  REQUIRE(ask_with(bob, 1, "other"));
  REQUIRE(ask_with(carol, 1, "bad"));
  end(t, lease_outcome::fault);
  // GPU 0 is free again, and carol waits for GPU 1.
  CHECK(phase(0) == gpu_phase::free);
  CHECK(table->waiting() == 1);
  begin(1);
  end(token(1), lease_outcome::fine, 1);
  CHECK(table->waiting() == 0);
  CHECK(table->snapshot().gpus[1].flow.agent == "agent-3");
  out.clear();
  begin(1);
  end(token(1), lease_outcome::hang, 1);
  CHECK(lines("candidate_poison").size() == 1);
  auto refused = ask_with(alice, 2, "bad");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::refused);
  CHECK(refused.error().what.find("g0") != std::string::npos);
  CHECK(refused.error().what.find("g1") != std::string::npos);
  CHECK(refused.error().what.find("hang") != std::string::npos);
}

TEST_CASE_FIXTURE(
  table_fixture, "where there is no other GPU, a failed candidate is not tried again") {
  REQUIRE(ask_with(alice, 1, "bad"));
  begin();
  REQUIRE(ask_with(bob, 1, "bad"));
  end(token(), lease_outcome::fault);
  REQUIRE(notices().size() == 1);
  CHECK(notices()[0].holder == bob);
  CHECK(notices()[0].ended.reason.starts_with("refused"));
  CHECK(ask_with(alice, 2, "bad").error().code == errc::refused);
}

TEST_CASE_FIXTURE(
  table_fixture, "the failure of a candidate whose holder has gone is not forgotten") {
  start(2);
  REQUIRE(ask_with(alice, 1, "bad"));
  auto t = begin();
  table->on_holder_down(alice, now, out);
  CHECK_FALSE(table->on_release(0, t, "timeout", lease_outcome::hang, now, out).applied);
  CHECK_FALSE(table->on_release(0, t, "timeout", lease_outcome::hang, now, out).applied);
  table->on_verified(0, t, now, out);
  CHECK(lines("candidate_failed").size() == 1);
}

TEST_CASE_FIXTURE(table_fixture,
  "two candidates failing on one GPU make it suspect; again within the hour it is put aside and "
  "its victims may run again") {
  start(2);
  auto fail_on_0 = [&](const std::string& candidate, uint64_t number) {
    REQUIRE(ask_with(alice, number, candidate));
    begin(0);
    end(token(0), lease_outcome::fault);
  };
  fail_on_0("a", 1);
  CHECK(phase() == gpu_phase::free);
  fail_on_0("b", 2);
  CHECK(phase() == gpu_phase::suspect);
  CHECK(alarmed("gpu_suspect"));
  table->on_probed(0, {}, now, out);
  CHECK(phase() == gpu_phase::free);
  CHECK_FALSE(alarmed("gpu_suspect"));
  now += 10min;
  fail_on_0("c", 3);
  CHECK(phase() == gpu_phase::free);
  out.clear();
  fail_on_0("d", 4);
  CHECK(phase() == gpu_phase::quarantined);
  CHECK(of(lease_action_kind::rerun).size() == 4);
  REQUIRE(lines("rerun").size() == 4);
  CHECK(lines("rerun")[0].candidate == "a");
  CHECK(lines("rerun")[3].attempt == "p/cuda/4");
  CHECK(ask_with(bob, 1, "a"));
}

TEST_CASE_FIXTURE(table_fixture,
  "a policy from outside that names nobody who waits is told on, and the oldest is served") {
  struct wrong_policy final : lease_policy {
    std::string_view name() const override { return "wrong"; }
    void on_request(const waiter&) override { ++count; }
    void on_cancel(uint64_t) override { --count; }
    void on_grant(uint64_t, uint32_t, nanoseconds) override { --count; }
    void on_release(const lease_usage&, std::string_view, nanoseconds) override {}
    std::optional<uint64_t> pick(const gpu_offer&, nanoseconds) override {
      return count > 0 ? std::optional<uint64_t>{999} : std::nullopt;
    }
    std::unique_ptr<lease_policy> clone() const override { return nullptr; }
    std::string save() const override { return {}; }
    result<void> load(std::string_view) override { return {}; }
    int count = 0;
  };
  table.emplace(lease_table_config{}, std::make_unique<wrong_policy>());
  REQUIRE(ask(alice));
  REQUIRE(ask(bob));
  table->on_device_up(add({"g0", "h200"}), now, out);
  REQUIRE(grants().size() == 1);
  CHECK(grants()[0].holder == alice);
  CHECK(lines("policy_failed").size() == 1);
}

TEST_CASE_FIXTURE(table_fixture, "a hash that is none, and a holder that is nobody, are refused") {
  CHECK(ask_with(alice, 1, std::string(129, 'a')).error().code == errc::invalid_input);
  CHECK(ask_with(alice, 1, std::string(128, 'a')));
  CHECK(table->on_request(0, make(0), now, out).error().code == errc::invalid_input);
}
