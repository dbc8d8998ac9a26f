#include "planning/cluster/task_table.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace std::chrono_literals;

TEST_CASE("a task is closed once, and only by the node that has it") {
  task_table tasks;
  auto task = tasks.open(1, 1min, 0s);
  REQUIRE(task);
  CHECK_FALSE(tasks.close(*task + 1, 1));
  CHECK_FALSE(tasks.close(*task, 2));
  CHECK(tasks.has(*task, 1));
  CHECK_FALSE(tasks.has(*task, 2));
  CHECK(tasks.close(*task, 1));
  CHECK_FALSE(tasks.close(*task, 1));
  CHECK(tasks.size() == 0);
}

TEST_CASE("numbers of tasks are never used twice") {
  task_table tasks;
  auto first = tasks.open(1, 1s, 0s);
  tasks.close(*first, 1);
  auto second = tasks.open(1, 1s, 0s);
  CHECK(*second > *first);
}

TEST_CASE("the loss of a node closes its tasks and nobody else's") {
  task_table tasks;
  auto a = tasks.open(1, 1s, 0s);
  auto b = tasks.open(2, 1s, 0s);
  auto c = tasks.open(1, 1s, 0s);
  auto lost = tasks.lose(1);
  CHECK(lost == std::vector<uint64_t>{*a, *c});
  CHECK(tasks.open_of(1) == 0);
  CHECK(tasks.open_of(2) == 1);
  CHECK(tasks.lose(1).empty());
  CHECK(tasks.close(*b, 2));
}

TEST_CASE("a task is overdue a grace after its deadline") {
  task_table tasks(10, 30s);
  tasks.open(1, 10s, 5s);
  tasks.open(2, 1s, 5s);
  CHECK(tasks.overdue(36s - 1ns).empty());
  CHECK(tasks.overdue(36s) == std::set<session_id>{2});
  CHECK(tasks.overdue(45s) == std::set<session_id>{1, 2});
}

TEST_CASE("a node has at most so many tasks") {
  task_table tasks(2, 30s);
  CHECK(tasks.open(1, 1s, 0s));
  auto second = tasks.open(1, 1s, 0s);
  CHECK(second);
  auto third = tasks.open(1, 1s, 0s);
  REQUIRE_FALSE(third);
  CHECK(third.error().code == errc::queue_full);
  CHECK(tasks.open(2, 1s, 0s));
  tasks.close(*second, 1);
  CHECK(tasks.open(1, 1s, 0s));
}
