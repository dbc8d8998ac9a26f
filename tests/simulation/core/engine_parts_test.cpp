#include "simulation/core/holder_book.hpp"
#include "simulation/core/timer_tree.hpp"
#include "simulation/model/counter_stream.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <vector>

using namespace gristmill;
using std::chrono::nanoseconds;

TEST_CASE("the first timer is the earliest, of equal ones that of the smallest entity") {
  for (uint32_t entities : {1u, 2u, 3u, 7u, 64u, 100u}) {
    CAPTURE(entities);
    timer_tree tree(entities);
    CHECK(tree.first().at == timer_tree::never);
    std::vector<nanoseconds> model(entities, timer_tree::never);
    counter_stream draws(1, entities);
    for (int i = 0; i < 5000; ++i) {
      const auto e = static_cast<uint32_t>(draws.word() % entities);
      const auto at = draws.chance(0.3) ? timer_tree::never
                                        : nanoseconds{static_cast<int64_t>(draws.word() % 50)};
      tree.set(e, at);
      model[e] = at;
      const auto least = std::min_element(model.begin(), model.end());
      CHECK(tree.first().at == *least);
      if (*least != timer_tree::never)
        CHECK(tree.first().entity == static_cast<uint32_t>(least - model.begin()));
    }
  }
}

TEST_CASE("an agent keeps its holder number while it has something open, then gets a new one") {
  holder_book book(3);
  CHECK(book.holder_of(1) == 0);
  CHECK(book.open(1) == 1);
  CHECK(book.open(1) == 1);
  CHECK(book.open(0) == 2);
  uint32_t agent = 9;
  CHECK(book.agent_of(1, agent));
  CHECK(agent == 1);
  book.close(1);
  CHECK(book.holder_of(1) == 1);
  book.close(1);
  CHECK(book.holder_of(1) == 0);
  CHECK_FALSE(book.agent_of(1, agent));
  book.close(1); // Nobody: no effect.
  CHECK(book.open(1) == 3);
}

TEST_CASE("holders are found among many that come and go") {
  constexpr uint32_t agents = 50;
  holder_book book(agents);
  std::map<uint64_t, uint32_t> model;
  counter_stream draws(2, 2);
  for (int i = 0; i < 20'000; ++i) {
    const auto agent = static_cast<uint32_t>(draws.word() % agents);
    if (const auto holder = book.holder_of(agent); holder != 0) {
      book.close(holder);
      model.erase(holder);
    } else {
      model[book.open(agent)] = agent;
    }
    if (i % 50 == 0)
      for (const auto& [holder, who] : model) {
        uint32_t found = agents;
        CHECK(book.agent_of(holder, found));
        CHECK(found == who);
      }
  }
}
