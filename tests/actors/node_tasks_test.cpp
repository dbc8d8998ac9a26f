#include "actors/node_tasks.hpp"
#include "actors/reconnect_delay.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

struct one_node {
  node_tasks tasks{{"cuda:0", "cuda:1"}};
  std::chrono::nanoseconds at{100s};

  one_node() { tasks.set_mode(node_tasks::mode::open); }

  node_task task(uint64_t id, node_task_kind kind = node_task_kind::compile) {
    node_task out;
    out.id = id;
    out.kind = kind;
    out.deadline = 60s;
    if (kind != node_task_kind::compile)
      out.device = "cuda:0";
    return out;
  }
  uint64_t ticket(const node_task& what) {
    auto got = tasks.admit(what, at);
    REQUIRE(got);
    return *got;
  }
  errc refusal(const node_task& what) {
    auto got = tasks.admit(what, at);
    REQUIRE_FALSE(got);
    return got.error().code;
  }
};

constexpr auto measure = node_task_kind::measure;

} // namespace

TEST_CASE_FIXTURE(one_node, "a task is begun once and answered once") {
  auto first = ticket(task(1));
  CHECK(first != 0);
  CHECK_MESSAGE(ticket(task(1)) == 0, "doubled while it runs");
  CHECK(tasks.finish(first)->id == 1);
  CHECK_FALSE(tasks.finish(first));
  CHECK_MESSAGE(ticket(task(1)) == 0, "doubled afterwards");
  CHECK(ticket(task(2)) != first);
}

TEST_CASE_FIXTURE(one_node, "what makes no sense is refused, and nothing is left of it") {
  auto what = task(1, measure);
  what.device = "cuda:7";
  CHECK(refusal(what) == errc::not_found);
  CHECK(tasks.admit(what, at).error().what.find("cuda:0") != std::string::npos);
  for (auto wrong : {0ns, -1ns, std::chrono::nanoseconds{25h}}) {
    auto late = task(1);
    late.deadline = wrong;
    CHECK(refusal(late) == errc::invalid_input);
  }
  CHECK(tasks.open() == 0);
  CHECK_MESSAGE(ticket(task(1)) != 0, "the number is still free");
}

TEST_CASE_FIXTURE(one_node, "before the node is ready nothing is begun") {
  tasks.set_mode(node_tasks::mode::closed);
  CHECK(refusal(task(1)) == errc::node_lost);
}

TEST_CASE_FIXTURE(one_node, "a device measures one thing at a time") {
  auto first = ticket(task(1, measure));
  CHECK(tasks.at_work("cuda:0"));
  CHECK_FALSE(tasks.at_work("cuda:1"));
  CHECK(refusal(task(2, measure)) == errc::node_lost);
  tasks.finish(first);
  CHECK(ticket(task(3, measure)) != 0);
}

TEST_CASE_FIXTURE(one_node, "no more than the limit are open") {
  one_node small;
  small.tasks = node_tasks({"cuda:0"}, {2, 24h, 10s, 8});
  small.tasks.set_mode(node_tasks::mode::open);
  small.ticket(small.task(1));
  auto second = small.ticket(small.task(2));
  CHECK(small.refusal(small.task(3)) == errc::queue_full);
  small.tasks.finish(second);
  CHECK(small.ticket(small.task(3)) != 0);
}

TEST_CASE_FIXTURE(one_node, "a leaving node judges and is quiet, and sends the rest elsewhere") {
  tasks.set_mode(node_tasks::mode::leaving);
  CHECK(refusal(task(1)) == errc::node_lost);
  CHECK(refusal(task(1, measure)) == errc::node_lost);
  CHECK(ticket(task(1, node_task_kind::judge)) != 0);
  CHECK(ticket(task(2, node_task_kind::quiet)) != 0);
}

TEST_CASE_FIXTURE(one_node, "a task falls due twice: to be ended, and to be given up") {
  auto first = ticket(task(1, measure));
  CHECK(*tasks.next_due() == at + 60s);
  CHECK(tasks.take_due(at + 59s).empty());
  auto due = tasks.take_due(at + 60s);
  REQUIRE(due.size() == 1);
  CHECK(due[0].first == first);
  CHECK_FALSE(due[0].second.ending);
  CHECK(tasks.is_ending(first));
  CHECK(tasks.take_due(at + 61s).empty());
  due = tasks.take_due(at + 70s);
  REQUIRE(due.size() == 1);
  CHECK(due[0].second.ending);
}

TEST_CASE_FIXTURE(one_node, "a cancelled task is still answered by its own end") {
  auto first = ticket(task(1, measure));
  CHECK(tasks.cancel(1, at) == first);
  CHECK(tasks.is_ending(first));
  CHECK(tasks.cancel(9, at) == 0);
  CHECK(tasks.finish(first)->id == 1);
}

TEST_CASE_FIXTURE(one_node, "a measurement outlives its hub and is confused with nothing") {
  auto orphan = ticket(task(1, measure));
  auto compiling = ticket(task(2));
  tasks.hub_lost();
  CHECK(refusal(task(1)) == errc::node_lost);
  tasks.set_mode(node_tasks::mode::open);
  CHECK_MESSAGE(tasks.at_work("cuda:0"), "whoever asks has to wait");
  auto other = ticket(task(1)); // The next hub counts from the start.
  CHECK(other != orphan);
  CHECK_MESSAGE(!tasks.finish(compiling), "nobody waits for it");
  CHECK_MESSAGE(tasks.cancel(1, at) == other, "of the present hub");
  auto ended = tasks.finish(orphan);
  REQUIRE(ended);
  CHECK(ended->orphan);
  CHECK(tasks.finish(other)->id == 1);
}

TEST_CASE_FIXTURE(one_node, "the end of a run forgets measurements too") {
  auto first = ticket(task(1, measure));
  tasks.forget_all();
  CHECK_FALSE(tasks.finish(first));
  CHECK_FALSE(tasks.next_due());
}

TEST_CASE("a node waits longer each time, up to a cap, and a part of it by chance") {
  reconnect_delay delay;
  CHECK(delay.next(0) == 100ms);
  CHECK(delay.next(200) == 400ms);
  for (int i = 0; i < 10; ++i)
    delay.next(7);
  for (uint64_t chance : {uint64_t{0}, uint64_t{1234567}, UINT64_MAX}) {
    auto wait = delay.next(chance);
    CHECK(wait >= 2500ms);
    CHECK(wait <= 5000ms);
  }
  delay.reset();
  CHECK(delay.next(0) == 100ms);
}
