// A history is handed to every worker of its problem: its trials are shared, never copied, and what
// somebody was given does not change under his eyes.

#include "messages/trial.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace gristmill;

namespace {

trial of(const std::string& key) {
  trial out;
  out.key = key;
  return out;
}

std::string keys(const trial_history& all) {
  std::string out;
  for (const auto& t : all)
    out += t.key;
  return out;
}

} // namespace

TEST_CASE("copies of a history share their trials") {
  trial_history one;
  one.push_back(of("a"));
  const auto other = one;
  REQUIRE(other.size() == 1);
  CHECK(&other[0] == &one[0]);
}

TEST_CASE("a copy made before a change keeps what it had") {
  trial_history one{of("a"), of("b")};
  const auto before = one;
  one.push_back(of("c"));
  one.replace(0, of("x"));
  CHECK(keys(before) == "ab");
  CHECK(keys(one) == "xbc");
  one.erase(1);
  CHECK(keys(one) == "xc");
  one.clear();
  CHECK(one.empty());
  CHECK(keys(before) == "ab");
}

TEST_CASE("the trials of a history outlive the history that they came from") {
  trial_history copy;
  {
    trial_history one{of("a")};
    copy = one;
  }
  CHECK(copy.front().key == "a");
  CHECK(copy.back().key == "a");
}

TEST_CASE("a history is walked like any sequence") {
  const trial_history none;
  CHECK(none.begin() == none.end());
  const trial_history all{of("a"), of("b"), of("c")};
  const auto found =
    std::find_if(all.begin(), all.end(), [](const trial& t) { return t.key == "b"; });
  REQUIRE(found != all.end());
  CHECK(found - all.begin() == 1);
  CHECK(found->key == "b");
  CHECK(found[1].key == "c");
  CHECK((all.end() - 1)->key == "c");
  CHECK(all.begin() < found);
  CHECK(std::count_if(all.begin(), all.end(), [](const trial& t) { return t.key < "c"; }) == 2);
}
