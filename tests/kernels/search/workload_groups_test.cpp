#include "kernels/search/workload_groups.hpp"

#include "kernels/search/search_key.hpp"
#include "kernels/search/search_memory.hpp"
#include "tests/kernels/corpus.hpp"

#include <cmath>
#include <doctest/doctest.h>

using namespace gristmill;
using namespace gristmill::test;

namespace {

/// Workloads with axes M and N, run as they are.
std::vector<search_workload> workloads_at(const std::vector<std::pair<int64_t, int64_t>>& sizes) {
  std::vector<search_workload> out;
  for (const auto& [m, n] : sizes) {
    search_workload one;
    one.uuid = std::to_string(out.size());
    one.axes = {{"M", m}, {"N", n}};
    one.twin_axes = one.axes;
    one.elements = static_cast<uint64_t>(m * n);
    out.push_back(std::move(one));
  }
  return out;
}

trial passed(const std::string& key, uint64_t ns) {
  trial out;
  out.key = key;
  out.status = verdict_status::passed;
  out.objective_ns = ns;
  return out;
}

} // namespace

TEST_CASE("one choice for all is one group without a condition") {
  const auto found = best_grouping(workloads_at({{1, 1}, {2, 2}}), {{10, 20}, {12, 22}}, 4);
  REQUIRE(found);
  REQUIRE(found->groups.size() == 1);
  CHECK(found->groups[0].condition == "true");
  CHECK(found->groups[0].choice == 0);
  CHECK(found->groups[0].workloads == std::vector<size_t>{0, 1});
  CHECK(found->log_mean == doctest::Approx(std::log(std::sqrt(200.0))));
}

TEST_CASE("an axis separates the groups that like different choices") {
  // In the problem's order, which is not the order of M.
  const auto found = best_grouping(
    workloads_at({{64, 5}, {8, 5}, {128, 5}, {16, 5}}), {{10, 20, 10, 20}, {20, 10, 20, 10}}, 4);
  REQUIRE(found);
  REQUIRE(found->groups.size() == 2);
  CHECK(found->groups[0].condition == "axis.M <= 16");
  CHECK(found->groups[0].choice == 1);
  CHECK(found->groups[0].workloads == std::vector<size_t>{1, 3});
  CHECK(found->groups[1].condition == "true");
  CHECK(found->groups[1].choice == 0);
  CHECK(found->log_mean == doctest::Approx(std::log(10)));
}

TEST_CASE("where no axis does, the product of axes separates") {
  const auto found = best_grouping(
    workloads_at({{1, 8}, {8, 1}, {8, 8}, {16, 4}}), {{10, 10, 20, 20}, {20, 20, 10, 10}}, 4);
  REQUIRE(found);
  REQUIRE(found->groups.size() == 2);
  CHECK(found->groups[0].condition == "axis.M * axis.N <= 8");
}

TEST_CASE("workloads of equal size are never separated, and groups are bounded") {
  const auto equal = best_grouping(workloads_at({{4, 4}, {4, 4}}), {{10, 20}, {20, 10}}, 4);
  REQUIRE(equal);
  CHECK(equal->groups.size() == 1);
  std::vector<std::pair<int64_t, int64_t>> sizes;
  std::vector<std::vector<double>> times(6, std::vector<double>(6, 20));
  for (size_t i = 0; i < 6; ++i) {
    sizes.emplace_back(int64_t{1} << i, 1);
    times[i][i] = 10;
  }
  const auto bounded = best_grouping(workloads_at(sizes), times, 3);
  REQUIRE(bounded);
  CHECK(bounded->groups.size() == 3);
}

TEST_CASE("a workload stays in one group with its shrunken twin") {
  auto workloads = workloads_at({{64, 1}, {4096, 1}});
  const std::vector<std::vector<double>> times = {{10, 20}, {20, 10}};
  CHECK(best_grouping(workloads, times, 4)->groups.size() == 2);
  // Checked at M = 64 it would run the code of the small one.
  workloads[1].twin_axes = {{"M", 64}, {"N", 1}};
  CHECK(best_grouping(workloads, times, 4)->groups.size() == 1);
  workloads[1].twin_axes = {{"M", 65}, {"N", 1}};
  CHECK(best_grouping(workloads, times, 4)->groups.size() == 2);
}

TEST_CASE("a group more must pay for itself") {
  const auto found = best_grouping(workloads_at({{1, 1}, {2, 1}}), {{1000, 1000}, {1000, 998}}, 4);
  REQUIRE(found);
  CHECK(found->groups.size() == 1);
}

TEST_CASE("nothing to choose from is no grouping; sizes that overflow separate nothing") {
  CHECK_FALSE(best_grouping({}, {{1}}, 4));
  CHECK_FALSE(best_grouping(workloads_at({{1, 1}}), {}, 4));
  auto huge = workloads_at({{1, 1}, {1, 2}});
  for (auto& one : huge) {
    one.axes[0].second = INT64_MAX;
    one.twin_axes = one.axes;
  }
  const auto found = best_grouping(huge, {{10, 20}, {20, 10}}, 4);
  REQUIRE(found);
  CHECK(found->groups[0].condition == "axis.N <= 1");
}

TEST_CASE("a probe measures the largest workload and a small one, and is not worth it for few") {
  std::vector<std::pair<int64_t, int64_t>> sizes;
  for (int64_t i = 1; i <= 7; ++i)
    sizes.emplace_back(i, 1);
  CHECK(probe_workloads(workloads_at(sizes)).empty());
  sizes.insert(sizes.begin(), {100, 1});
  CHECK(probe_workloads(workloads_at(sizes)) == std::vector<size_t>{0, 3});
  for (int64_t i = 0; i < 4; ++i)
    sizes.emplace_back(50 + i, 1);
  CHECK(probe_workloads(workloads_at(sizes)).size() == 3);
}

TEST_CASE("only axes that differ between the workloads can separate them") {
  for (const auto& one : builtin_corpus()) {
    const auto workloads = search_workloads(one.target, 2'000'000);
    REQUIRE(workloads.size() == one.target.workloads.size());
    for (size_t i = 0; i < workloads.size(); ++i) {
      CHECK(workloads[i].uuid == one.target.workloads[i].uuid);
      CHECK(workloads[i].elements > 0);
      CHECK(workloads[i].axes.size() == workloads[i].twin_axes.size());
    }
  }
}

TEST_CASE("keys of the search can be taken apart") {
  CHECK(read_key("probe:map/t256").kind == search_key_kind::probe);
  CHECK(read_key("probe:map/t256").subject == "map/t256");
  CHECK(read_key("confirm:groups:a/x1;b/x2").subject == "groups:a/x1;b/x2");
  CHECK(read_key("p2:map/t256").kind == search_key_kind::point);
  CHECK(stage_keys("p2:map/t256/v8+gemm/bm64")
    == std::vector<std::string_view>{"map/t256/v8", "gemm/bm64"});
  CHECK(family_of("gemm/bm64") == "gemm");
  CHECK(family_of("plain") == "plain");
}

TEST_CASE("equal groups have equal keys, different ones different keys, also long ones") {
  const std::vector<std::pair<std::string, std::string>> groups = {
    {"axis.M <= 16", "map/t128"}, {"true", "map/t256"}};
  const std::string key = groups_key(groups);
  CHECK(key == "groups:axis.M <= 16?map/t128;map/t256");
  CHECK(parts_of_groups_key(key) == groups);
  auto other = groups;
  other[0].first = "axis.M <= 17";
  CHECK(groups_key(other) != key);
  const std::string tail(300, 'x');
  const auto a = groups_key({{"axis.M <= 16", "map/" + tail}, {"true", "map/t256"}});
  const auto b = groups_key({{"axis.M <= 17", "map/" + tail}, {"true", "map/t256"}});
  CHECK(a != b);
  CHECK(a.size() < 40);
  CHECK(parts_of_groups_key(a).empty());
}

TEST_CASE("a search learns the best points of problems of equal structure, and of no others") {
  search_memory memory;
  memory.learn("s", "one", {passed("a", 30), passed("b", 10), passed("c", 20), passed("d", 40)});
  memory.learn("s", "two", {passed("e", 5), passed("b", 9)});
  memory.learn("t", "three", {passed("f", 1)});
  CHECK(memory.relatives("s", "four") == std::vector<std::string>{"b", "e", "c", "a"});
  CHECK(memory.relatives("s", "one") == std::vector<std::string>{"e", "b"});
  CHECK(memory.relatives("u", "four").empty());
  // Newer knowledge takes the place of the older; probes, groups and failures are none.
  trial probe = passed("probe:g", 1);
  probe.effort = attempt_effort::probe;
  trial failure = passed("h", 1);
  failure.status = verdict_status::compile_error;
  memory.learn("s", "two", {probe, failure, passed("groups:a;b", 2), passed("i", 8)});
  CHECK(memory.relatives("s", "one") == std::vector<std::string>{"i"});
}
