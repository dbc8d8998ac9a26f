#include "planning/cluster/node_table.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

node_device mock(const std::string& name, const std::string& label = "mock:h200",
  const std::string& arch = "sm_90a") {
  node_device out;
  out.name = name;
  out.label = label;
  out.model = "h200";
  out.arch = arch;
  return out;
}

node_offer offer_of(const std::string& name, const std::string& boot = "b1") {
  node_offer out;
  out.node = name;
  out.boot = boot;
  out.devices = {mock("mock:h200#0")};
  out.compile_slots = 2;
  out.workers = 4;
  out.toolchain = "clang-19.1.7";
  return out;
}

struct with_table {
  node_table table{{"mock:h200", "sm_90a", "clang-19.1.7", true}};

  session_id ready(const node_offer& offer) {
    auto session = table.offer(offer, 0s);
    REQUIRE(session);
    REQUIRE(table.ready(*session, 0s));
    return *session;
  }
};

} // namespace

TEST_CASE_FIXTURE(with_table, "a node is joining after its offer and works once it is ready") {
  auto session = table.offer(offer_of("n1"), 1s);
  REQUIRE(session);
  CHECK(table.find(*session)->state == node_state::joining);
  CHECK(table.with_devices().empty());
  CHECK(table.ready(*session, 2s));
  CHECK(table.with_devices() == std::vector<session_id>{*session});
  CHECK_FALSE(table.ready(*session, 3s));
}

TEST_CASE_FIXTURE(with_table, "a name belongs to one node that is here") {
  ready(offer_of("n1", "b1"));
  auto other = table.offer(offer_of("n1", "b2"), 1s);
  REQUIRE_FALSE(other);
  CHECK(other.error().code == errc::refused);
  CHECK(other.error().what.find("n1") != std::string::npos);
}

TEST_CASE_FIXTURE(
  with_table, "the same start of a node that connects anew has a stay to be ended") {
  auto first = ready(offer_of("n1", "b1"));
  CHECK(table.stay_before(offer_of("n1", "b1")) == first);
  CHECK(table.stay_before(offer_of("n1", "b2")) == 0);
  CHECK(table.stay_before(offer_of("n2", "b1")) == 0);
  table.lose(first, "it has connected anew", false, 1s);
  CHECK(table.stay_before(offer_of("n1", "b1")) == 0);
  auto second = table.offer(offer_of("n1", "b1"), 1s);
  REQUIRE(second);
  CHECK(*second != first);
  CHECK(table.find(first) == nullptr);
}

TEST_CASE_FIXTURE(with_table, "a node that only could not be reached may come back at once") {
  auto first = ready(offer_of("n1"));
  table.lose(first, "unreachable", false, 1s);
  CHECK(table.offer(offer_of("n1", "b2"), 1s));
}

TEST_CASE_FIXTURE(with_table, "a node that fails is kept out longer each time, up to a minute") {
  auto at = 0s;
  for (auto wait : {1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
    auto session = table.offer(offer_of("n1"), at);
    REQUIRE(session);
    table.lose(*session, "its disk is full", true, at);
    auto early = table.offer(offer_of("n1"), at + wait - 1ns);
    REQUIRE_FALSE(early);
    CHECK(early.error().what.find("its disk is full") != std::string::npos);
    at += wait;
  }
  CHECK(table.offer(offer_of("n1"), at));
}

TEST_CASE_FIXTURE(with_table, "a node that a person has drained stays out until it is undrained") {
  auto session = ready(offer_of("n1"));
  CHECK(table.drain(session, "for its fans", true, 1s));
  CHECK(table.with_devices().empty());
  table.lose(session, "for its fans", false, 2s);
  CHECK_FALSE(table.offer(offer_of("n1", "b2"), 3s));
  CHECK(table.undrain("n1"));
  CHECK_FALSE(table.undrain("n1"));
  CHECK_FALSE(table.undrain("n2"));
  CHECK(table.offer(offer_of("n1", "b2"), 3s));
}

TEST_CASE_FIXTURE(with_table, "one that leaves by itself may come back without anybody's word") {
  auto session = ready(offer_of("n1"));
  table.drain(session, "told to end", false, 1s);
  table.lose(session, "told to end", false, 2s);
  CHECK(table.offer(offer_of("n1", "b2"), 3s));
}

TEST_CASE_FIXTURE(with_table, "devices of another label or architecture are left idle, with why") {
  auto offer = offer_of("n1");
  offer.devices = {mock("mock:h200#0"), mock("mock:b200#0", "mock:b200", "sm_100a"),
    mock("cuda:0", "cuda:h200"), mock("mock:h200#1", "mock:h200", "sm_80")};
  auto session = ready(offer);
  const auto& left = table.find(session)->left_idle;
  CHECK(left[0].empty());
  CHECK(left[1].find("mock:b200") != std::string::npos);
  CHECK(left[2].find("cuda:h200") != std::string::npos);
  CHECK(left[3].find("sm_80") != std::string::npos);
  CHECK(table.find(session)->can_measure());
}

TEST_CASE_FIXTURE(with_table, "a node without a device of the run still compiles and has workers") {
  auto offer = offer_of("n1");
  offer.devices = {mock("mock:b200#0", "mock:b200", "sm_100a")};
  auto session = ready(offer);
  CHECK(table.with_devices().empty());
  CHECK(*table.compile_place(2, 2, {}) == session);
  CHECK(table.worker_place() == session);
}

TEST_CASE_FIXTURE(with_table, "a compiler of another version is not used") {
  auto offer = offer_of("n1");
  offer.toolchain = "clang-18.0.0";
  auto session = ready(offer);
  CHECK_FALSE(table.compile_place(2, 2, {}));
  CHECK_FALSE(table.has_compile_place(false, {}));
  CHECK(table.find(session)->no_compiles.find("clang-18.0.0") != std::string::npos);
}

TEST_CASE_FIXTURE(with_table, "a compile goes to the least loaded place, here first") {
  auto a = ready(offer_of("a"));
  auto b = ready(offer_of("b"));
  CHECK(*table.compile_place(0, 2, {}) == 0);
  CHECK(*table.compile_place(1, 2, {}) == a);
  table.find(a)->compiles_running = 1;
  CHECK(*table.compile_place(1, 2, {}) == b);
  table.find(b)->compiles_running = 1;
  CHECK(*table.compile_place(1, 2, {}) == 0);
  CHECK(*table.compile_place(1, 2, {0, a}) == b);
  table.find(a)->compiles_running = 2;
  table.find(b)->compiles_running = 2;
  auto none = table.compile_place(2, 2, {});
  REQUIRE_FALSE(none);
  CHECK(none.error().code == errc::queue_full);
  CHECK(table.has_compile_place(true, {a, b}));
  CHECK_FALSE(table.has_compile_place(true, {0, a, b}));
}

TEST_CASE_FIXTURE(with_table, "workers are spread by the share of taken places") {
  auto big = offer_of("big");
  big.workers = 4;
  auto small = offer_of("small");
  small.workers = 1;
  auto first = ready(big);
  auto second = ready(small);
  CHECK(table.worker_place() == first);
  const auto all = table.free_worker_places();
  table.find(first)->workers.insert(0);
  CHECK(table.free_worker_places() == all - 1);
  CHECK(table.worker_place() == second);
  table.find(second)->workers.insert(1);
  CHECK(table.worker_place() == first);
  table.find(first)->workers = {0, 2, 3, 4};
  CHECK(table.worker_place() == 0);
  CHECK(table.free_worker_places() == 0);
}

TEST_CASE("workers that may not leave have no place on a node") {
  node_table table{{"mock:h200", "sm_90a", "clang-19.1.7", false}};
  auto session = table.offer(offer_of("n1"), 0s);
  REQUIRE(session);
  table.ready(*session, 0s);
  CHECK(table.worker_place() == 0);
}

TEST_CASE_FIXTURE(with_table, "a stay is lost once, and its workers with it") {
  auto session = ready(offer_of("n1"));
  table.find(session)->workers = {3, 1};
  table.lose(session, "gone", false, 1s);
  CHECK(table.by_name("n1")->workers.empty());
  table.lose(session, "gone", false, 1s);
  CHECK(table.by_name("n1")->losses == 1);
}

TEST_CASE_FIXTURE(with_table, "names and numbers of strangers are held to their limits") {
  auto refused = [&](const node_offer& offer) {
    auto got = table.offer(offer, 0s);
    return !got && got.error().code == errc::invalid_input && table.all().empty();
  };
  CHECK(refused(offer_of("")));
  CHECK(refused(offer_of("a/b")));
  CHECK(refused(offer_of(std::string(65, 'a'))));
  CHECK(refused(offer_of("n1", "")));
  auto twice = offer_of("n1");
  twice.devices.push_back(twice.devices.front());
  CHECK(refused(twice));
  auto odd = offer_of("n1");
  odd.devices.front().name = "mock\n0";
  CHECK(refused(odd));
  odd.devices.front().name = "x/mock:h200#0";
  CHECK(refused(odd));
  auto many = offer_of("n1");
  for (int i = 1; i <= 64; ++i)
    many.devices.push_back(mock("mock:h200#" + std::to_string(i)));
  CHECK(refused(many));
  auto held = offer_of("n1");
  held.held.resize(65);
  CHECK(refused(held));
  auto text = offer_of("n1");
  text.toolchain = std::string(257, 'x');
  CHECK(refused(text));
}

TEST_CASE("there are at most so many nodes; the one that was lost first makes room") {
  node_table_limits limits;
  limits.nodes_max = 2;
  node_table table{{"mock:h200", "", "", true}, limits};
  auto a = table.offer(offer_of("a"), 0s);
  auto b = table.offer(offer_of("b"), 0s);
  REQUIRE(b);
  auto c = table.offer(offer_of("c"), 0s);
  REQUIRE_FALSE(c);
  CHECK(c.error().code == errc::queue_full);
  table.lose(*b, "gone", false, 1s);
  table.lose(*a, "gone", false, 2s);
  CHECK(table.offer(offer_of("c"), 3s));
  CHECK(table.names() == std::vector<std::string>{"a", "c"});
}

TEST_CASE("a node that a person has drained is not forgotten for room") {
  node_table_limits limits;
  limits.nodes_max = 1;
  node_table table{{"mock:h200", "", "", true}, limits};
  auto a = table.offer(offer_of("a"), 0s);
  table.drain(*a, "for its fans", true, 1s);
  table.lose(*a, "for its fans", false, 1s);
  CHECK_FALSE(table.offer(offer_of("b"), 2s));
}
