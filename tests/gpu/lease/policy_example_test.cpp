#include "examples/lease_policy/shortest_queue.hpp"

#include "tests/gpu/lease/policy_support.hpp"

#include <algorithm>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

TEST_CASE("a policy of one's own is registered once and then known by name, also in a tree") {
  auto added = register_lease_policy(
    "shortest_queue", make_shortest_queue, "the problem with the fewest waiting requests first");
  REQUIRE(added);
  CHECK(
    register_lease_policy("shortest_queue", make_shortest_queue, "").error().code == errc::refused);
  CHECK(register_lease_policy("fifo", make_shortest_queue, "").error().code == errc::refused);
  for (const char* name : {"", "Upper", "a-b", "9a", "a b", "abcdefghijklmnopqrstuvwxyz0123456"})
    CHECK(register_lease_policy(name, make_shortest_queue, "").error().code == errc::invalid_input);

  auto names = policy_names();
  CHECK(std::find(names.begin(), names.end(), "shortest_queue") != names.end());
  CHECK(
    policy_from_text("shortest_queu").error().what.find("'shortest_queue'?") != std::string::npos);
  CHECK_FALSE(policy_from_text("shortest_queue(x=1)"));

  for (const char* text : {"shortest_queue", "priority/shortest_queue"}) {
    CAPTURE(std::string{text});
    auto p = policy(text);
    uint64_t ticket = 1;
    for (const char* problem : {"long", "long", "long", "short", "middle", "middle"})
      p->on_request(make_waiter(ticket++, problem, "a"));
    p->on_request(make_waiter(ticket++, "elsewhere", "a", 2));
    for (uint64_t expected : {4, 5, 6, 1, 2, 3})
      CHECK(serve(*p, 1s) == expected);
    CHECK_FALSE(p->pick({0, fits(1)}, 0ns));
    CHECK(serve(*p, 1s, 2) == 7);
    auto other = policy(text);
    CHECK(other->load(p->save()));
    CHECK_FALSE(other->load("x"));
  }
}

TEST_CASE("a policy of one's own that names nobody, or a stranger, leaves no GPU idle") {
  struct careless final : lease_policy {
    explicit careless(std::optional<uint64_t> pick) : answer(pick) {}
    std::string_view name() const override { return "careless"; }
    void on_request(const waiter&) override {}
    void on_cancel(uint64_t) override {}
    void on_grant(uint64_t, uint32_t, nanoseconds) override {}
    void on_release(const lease_usage&, std::string_view, nanoseconds) override {}
    std::optional<uint64_t> pick(const gpu_offer&, nanoseconds) override { return answer; }
    std::unique_ptr<lease_policy> clone() const override { return nullptr; }
    std::string save() const override { return ""; }
    result<void> load(std::string_view) override { return {}; }
    std::optional<uint64_t> answer;
  };
  REQUIRE(register_lease_policy(
    "nobody", [] { return std::make_unique<careless>(std::nullopt); }, "names nobody"));
  REQUIRE(register_lease_policy(
    "stranger", [] { return std::make_unique<careless>(3); }, "names a ticket of another flow"));
  for (auto [text, complaint] : {std::pair{"nobody", "names nobody, although ticket 1 waits"},
         {"stranger", "names ticket 3, which does not wait"}}) {
    CAPTURE(std::string{text});
    auto p = policy(text);
    p->on_request(make_waiter(1, "a", "x"));
    p->on_request(make_waiter(2, "a", "x"));
    CHECK(serve(*p, 1s) == 1);
    CHECK(serve(*p, 1s) == 2);
    CHECK_FALSE(p->pick({0, fits(1)}, 0ns));
    auto failures = p->take_failures();
    REQUIRE(failures.size() == 2);
    CHECK(failures[0].find(complaint) != std::string::npos);
    p->on_request(make_waiter(3, "b", "x", 2));
    p->on_request(make_waiter(4, "b", "x"));
    CHECK(serve(*p, 1s) == 4);
  }
  for (const char* text : {"rr(by=problem)/nobody", "rr(by=problem)/stranger"}) {
    CAPTURE(std::string{text});
    auto p = policy(text);
    p->on_request(make_waiter(1, "a", "x"));
    p->on_request(make_waiter(2, "a", "x"));
    p->on_request(make_waiter(3, "b", "x"));
    CHECK(p->clone() == nullptr);
    CHECK(serve(*p, 1s) == 1);
    CHECK(serve(*p, 1s) == 3);
    CHECK(serve(*p, 1s) == 2);
  }
}
