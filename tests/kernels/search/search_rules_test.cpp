// The rules of the searches, on made-up spaces.

#include "kernels/search.hpp"
#include "kernels/search/fallback_ladder.hpp"
#include "kernels/search/search_key.hpp"
#include "tests/kernels/search/synthetic_space.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <set>
#include <string>

using namespace gristmill;
using namespace gristmill::test;

namespace {

struct asked {
  std::vector<std::string> in_flight;
  std::vector<std::string> relatives;
  plan_check check;
  search_limits limits;
  search_strategy strategy = search_strategy::guided;
};

search_result ask(const synthetic_space& space, const trial_history& history, uint64_t seed,
  const asked& with = {}) {
  return propose(space,
    {space.workloads(), history, with.in_flight, seed, with.relatives, with.check, with.limits},
    with.strategy);
}

/// Runs a search to its end, with the verdicts that `judge` gives.
struct whole_run {
  trial_history history;
  std::vector<generated_candidate> candidates;
  std::string reason;
};

using judge_function = std::function<trial(const generated_candidate&)>;

whole_run run(const synthetic_space& space, uint64_t seed, const asked& with = {},
  const judge_function& judge = {}, size_t steps_max = 5000) {
  whole_run out;
  for (uint64_t step = 0; step < steps_max; ++step) {
    const auto next = ask(space, out.history, seed + step, with);
    if (next.outcome != search_outcome::candidate) {
      CHECK(next.outcome == search_outcome::exhausted);
      out.reason = next.reason;
      return out;
    }
    out.history.push_back(
      judge ? judge(next.candidate) : space.judge(next.candidate.key, next.candidate.workloads));
    out.candidates.push_back(next.candidate);
  }
  return out;
}

synthetic_shape with_sizes(synthetic_shape shape, size_t workloads, double drift = 0) {
  shape.sizes.clear();
  for (size_t i = 0; i < workloads; ++i)
    shape.sizes.push_back(int64_t{32} << i);
  shape.drift = drift;
  return shape;
}

trial failed(const std::string& key, verdict_status status = verdict_status::compile_error) {
  trial out;
  out.key = key;
  out.status = status;
  return out;
}

size_t count_kind(const whole_run& of, search_key_kind kind) {
  return static_cast<size_t>(std::count_if(of.history.begin(), of.history.end(),
    [&](const trial& one) { return read_key(one.key).kind == kind; }));
}

/// The history of a search up to the end of its first round of probes.
trial_history after_probes(const synthetic_space& space, const asked& with,
  const std::function<void(trial&, size_t)>& change) {
  trial_history history;
  size_t probes = 0;
  for (uint64_t step = 0; probes < with.limits.probe_starts; ++step) {
    const auto next = ask(space, history, step, with);
    REQUIRE(next.outcome == search_outcome::candidate);
    trial seen = space.judge(next.candidate.key, next.candidate.workloads);
    if (next.candidate.effort == attempt_effort::probe)
      change(seen, probes++);
    history.push_back(std::move(seen));
  }
  return history;
}

} // namespace

TEST_CASE("equal arguments give equal proposals") {
  const synthetic_space space(with_sizes(several_stages(3), 8));
  trial_history history;
  for (uint64_t step = 0; step < 40; ++step) {
    const auto a = ask(space, history, step);
    const auto b = ask(space, history, step);
    REQUIRE(a.outcome == b.outcome);
    CHECK(a.candidate.key == b.candidate.key);
    CHECK(a.candidate.source == b.candidate.source);
    CHECK(a.candidate.hypothesis == b.candidate.hypothesis);
    CHECK(a.candidate.workloads == b.candidate.workloads);
    if (a.outcome != search_outcome::candidate)
      break;
    history.push_back(space.judge(a.candidate.key, a.candidate.workloads));
  }
}

TEST_CASE("no key is proposed twice, by any search, also not one that others are trying") {
  for (auto strategy :
    {search_strategy::guided, search_strategy::random, search_strategy::exhaustive}) {
    const synthetic_space space(with_sizes(several_stages(5), 8, 1));
    asked with;
    with.strategy = strategy;
    std::set<std::string> keys;
    trial_history history;
    for (uint64_t step = 0; step < 80; ++step) {
      const auto next = ask(space, history, step, with);
      if (next.outcome != search_outcome::candidate)
        break;
      CHECK(keys.insert(next.candidate.key).second);
      CHECK_FALSE(next.candidate.hypothesis.empty());
      // Three workers: each verdict comes two proposals later.
      with.in_flight.push_back(next.candidate.key);
      if (with.in_flight.size() > 2) {
        const std::string done = with.in_flight.front();
        with.in_flight.erase(with.in_flight.begin());
        const auto places = probe_workloads(space.workloads());
        std::vector<std::string> probed;
        if (read_key(done).kind == search_key_kind::probe) {
          for (size_t place : places)
            probed.push_back(space.workloads()[place].uuid);
        }
        history.push_back(space.judge(done, probed));
      }
    }
    CHECK(keys.size() > 20);
  }
}

TEST_CASE("the first proposal is a full trial of the first point, whatever the seed") {
  const synthetic_space space(with_sizes(several_stages(1), 14));
  for (uint64_t seed = 0; seed < 10; ++seed) {
    asked with;
    with.relatives = {space.key(space.at(7))};
    const auto next = ask(space, {}, seed, with);
    REQUIRE(next.outcome == search_outcome::candidate);
    CHECK(next.candidate.key == space.key(space.first(0)));
    CHECK(next.candidate.effort == attempt_effort::full);
    CHECK(next.candidate.workloads.empty());
  }
}

TEST_CASE("with many workloads the starts are probes of a few of them") {
  const synthetic_space space(with_sizes(several_stages(1), 8));
  trial_history history;
  history.push_back(space.judge(ask(space, history, 1).candidate.key));
  const auto next = ask(space, history, 1);
  REQUIRE(next.outcome == search_outcome::candidate);
  CHECK(next.candidate.effort == attempt_effort::probe);
  CHECK(next.candidate.key.starts_with("probe:"));
  // A small workload and the largest, in the problem's order.
  CHECK(next.candidate.workloads == std::vector<std::string>{"w2", "w7"});
}

TEST_CASE("with few workloads, and in small spaces, nothing is probed") {
  for (const auto& shape : {with_sizes(several_stages(1), 1), with_sizes(several_stages(1), 7), [] {
                              synthetic_shape small = with_sizes(one_family(1, 1), 14);
                              return small;
                            }()}) {
    const auto all = run(synthetic_space(shape), 1);
    CHECK(count_kind(all, search_key_kind::probe) == 0);
    CHECK(count_kind(all, search_key_kind::point) > 3);
  }
}

TEST_CASE("the best third of the probes is measured in full") {
  const synthetic_space space(with_sizes(several_stages(2), 8));
  asked with;
  // All equally fast but for the third and the fifth, so that nothing is dropped.
  const uint64_t base = space.judge(space.key(space.first(0)), {"w2", "w7"}).objective_ns;
  auto history = after_probes(space, with, [&](trial& one, size_t place) {
    const double share = place == 2 ? 0.8 : place == 4 ? 0.9 : 1.1;
    one.objective_ns = static_cast<uint64_t>(static_cast<double>(base) * share);
    for (workload_time& each : one.times) {
      const trial first = space.judge(space.key(space.first(0)), {each.uuid});
      each.ns = static_cast<uint64_t>(static_cast<double>(first.objective_ns) * share);
    }
  });
  std::vector<std::string> probes;
  for (const trial& one : history) {
    if (one.effort == attempt_effort::probe)
      probes.push_back(std::string(read_key(one.key).subject));
  }
  REQUIRE(probes.size() == 6);
  std::vector<std::string> promoted;
  for (int i = 0; i < 3; ++i) {
    const auto next = ask(space, history, 50, with);
    REQUIRE(next.outcome == search_outcome::candidate);
    if (next.candidate.effort == attempt_effort::probe)
      break;
    promoted.push_back(next.candidate.key);
    CHECK(next.candidate.parent == "probe:" + next.candidate.key);
    CHECK(next.candidate.hypothesis.find("best third of 6 probes") != std::string::npos);
    auto verdict = space.judge(next.candidate.key);
    verdict.objective_ns *= 2; // Whatever it turns out to be, no more than two follow.
    history.push_back(verdict);
  }
  CHECK(promoted == std::vector<std::string>{probes[2], probes[4]});
}

TEST_CASE("a probe slower than 1.3 times the best is dropped") {
  const synthetic_space space(with_sizes(several_stages(2), 8));
  const auto promoted_at = [&](double share) {
    asked with;
    auto history = after_probes(space, with, [&](trial& one, size_t) {
      for (workload_time& each : one.times) {
        const trial first = space.judge(space.key(space.first(0)), {each.uuid});
        each.ns = static_cast<uint64_t>(static_cast<double>(first.objective_ns) * share);
      }
    });
    const auto next = ask(space, history, 50, with);
    REQUIRE(next.outcome == search_outcome::candidate);
    return next.candidate.effort == attempt_effort::full;
  };
  CHECK(promoted_at(1.29));
  CHECK_FALSE(promoted_at(1.31));
}

TEST_CASE("what is slower than 1.3 times the best is no base for moves") {
  // One workload: everything is a full trial. Only the first point is fast.
  const synthetic_space space(one_family(3, 1));
  const std::string first = space.key(space.first(0));
  trial_history history;
  for (uint64_t step = 0; step < 15; ++step) {
    asked with;
    with.limits.plateau = 1000;
    const auto next = ask(space, history, step, with);
    REQUIRE(next.outcome == search_outcome::candidate);
    CHECK((next.candidate.parent.empty() || next.candidate.parent == first));
    auto verdict = space.judge(next.candidate.key);
    verdict.objective_ns = next.candidate.key == first ? 1000 : 1400;
    for (workload_time& each : verdict.times)
      each.ns = verdict.objective_ns;
    history.push_back(verdict);
  }
}

TEST_CASE("until something is correct other kernels are tried, down to the plainest") {
  const synthetic_space space(several_stages(1));
  const std::string plainest = "p2:plain/t256+plain/t256+plain/t256";
  SUBCASE("every good family fails") {
    std::vector<std::string> keys;
    const auto all = run(space, 1, {}, [&](const generated_candidate& one) {
      keys.push_back(one.key);
      return one.key.find("tiles") != std::string::npos || one.key.find("rows") != std::string::npos
        ? failed(one.key)
        : space.judge(one.key);
    });
    REQUIRE(keys.size() > 2);
    CHECK(keys[0] == space.key(space.first(0)));
    // The only stage of the first cut by its other family, right at the second try.
    CHECK(keys[1] == "plain/t256");
    CHECK(std::any_of(all.history.begin(), all.history.end(),
      [](const trial& one) { return one.status == verdict_status::passed; }));
  }
  SUBCASE("only one kernel for each operator is correct, and only the plainest") {
    size_t tries = 0;
    bool is_found = false;
    run(space, 1, {}, [&](const generated_candidate& one) {
      tries += is_found ? 0 : 1;
      is_found = is_found || one.key == plainest;
      CHECK((is_found || one.effort == attempt_effort::full));
      return one.key == plainest ? space.judge(one.key) : failed(one.key);
    });
    CHECK(is_found);
    CHECK(tries <= 4);
  }
  SUBCASE("nothing at all is correct") {
    const auto all = run(space, 1, {}, [&](const generated_candidate& one) {
      return failed(one.key, verdict_status::incorrect_numerical);
    });
    CHECK(all.reason.find("none of ") == 0);
    std::set<std::string> tried;
    for (const trial& one : all.history)
      tried.insert(one.key);
    for (const auto& point : fallback_ladder(space))
      CHECK(tried.contains(space.key(point)));
  }
}

TEST_CASE("a family that failed twice and never passed is left alone") {
  const synthetic_space space(several_stages(1));
  size_t rows = 0;
  run(
    space, 1, {},
    [&](const generated_candidate& one) {
      const bool has_rows = one.key.find("rows") != std::string::npos;
      rows += has_rows ? 1 : 0;
      return has_rows ? failed(one.key) : space.judge(one.key);
    },
    60);
  CHECK(rows <= 2);
}

TEST_CASE("what our own machinery broke is no failure of the kernel") {
  const synthetic_space space(several_stages(1));
  const std::string first = space.key(space.first(0));
  const auto next = ask(space, {failed(first, verdict_status::infrastructure)}, 1);
  REQUIRE(next.outcome == search_outcome::candidate);
  CHECK(next.candidate.key != first);
  CHECK(next.candidate.hypothesis.find("Nothing was correct") == std::string::npos);
}

TEST_CASE("points of relatives come right after the first, in full, and once each") {
  const synthetic_space space(with_sizes(several_stages(1), 8));
  asked with;
  with.relatives = {"no such point", space.key(space.at(11)), space.key(space.at(500))};
  trial_history history{space.judge(space.key(space.first(0)))};
  for (size_t i = 1; i < 3; ++i) {
    const auto next = ask(space, history, 1, with);
    CHECK(next.candidate.key == with.relatives[i]);
    CHECK(next.candidate.effort == attempt_effort::full);
    CHECK(next.candidate.hypothesis.find("equal structure") != std::string::npos);
    history.push_back(space.judge(next.candidate.key));
  }
  CHECK(ask(space, history, 1, with).candidate.effort == attempt_effort::probe);
}

TEST_CASE(
  "groups of workloads that like different points get a candidate with several configurations") {
  SUBCASE("where it gains") {
    synthetic_shape shape = one_family(4, 3);
    shape.sizes = {32, 256, 2048, 16384};
    shape.drift = 2;
    const synthetic_space space(shape);
    const auto all = run(space, 1);
    uint64_t best_point = UINT64_MAX;
    uint64_t best_groups = UINT64_MAX;
    for (const trial& one : all.history) {
      auto& best = read_key(one.key).subject.starts_with(groups_prefix) ? best_groups : best_point;
      best = std::min(best, one.objective_ns);
    }
    REQUIRE(best_groups != UINT64_MAX);
    CHECK(static_cast<double>(best_groups) <= 0.99 * static_cast<double>(best_point));
    const auto found = std::find_if(
      all.candidates.begin(), all.candidates.end(), [](const generated_candidate& one) {
        return read_key(one.key).kind == search_key_kind::groups;
      });
    REQUIRE(found != all.candidates.end());
    CHECK(found->effort == attempt_effort::full);
    CHECK(found->key.find("axis.M <= ") != std::string::npos);
    CHECK(found->hypothesis.find("groups of workloads") != std::string::npos);
  }
  SUBCASE("not where all like the same") {
    synthetic_shape shape = with_sizes(one_family(4, 1), 4, 0);
    shape.rough = 0;
    CHECK(count_kind(run(synthetic_space(shape), 1), search_key_kind::groups) == 0);
  }
  SUBCASE("not with one workload") {
    CHECK(count_kind(run(synthetic_space(one_family(4, 1)), 1), search_key_kind::groups) == 0);
  }
}

TEST_CASE("a combination that promises less than 1 % is not worth a trial") {
  const synthetic_space space(with_sizes(several_stages(1), 4));
  const auto kind_at = [&](double gain) {
    trial_history history;
    for (uint64_t i = 0; i < 4; ++i) {
      const auto point = i == 0 ? space.first(0) : space.at(i * 50);
      trial one = space.judge(space.key(point));
      // The second point is better at the two large workloads and worse at the others.
      for (size_t w = 0; w < 4; ++w)
        one.times[w].ns = static_cast<uint64_t>(i == 0 ? 100'000
            : i > 1                                    ? 150'000
            : w < 2                                    ? 120'000
                                                       : 100'000 * (1 - gain));
      one.objective_ns = i == 0 ? 100'000 : i > 1 ? 150'000 : 109'000;
      history.push_back(one);
    }
    return read_key(ask(space, history, 1).candidate.key).kind;
  };
  // Half of the workloads gain: the whole gains half as much.
  CHECK(kind_at(0.015) != search_key_kind::groups);
  CHECK(kind_at(0.03) == search_key_kind::groups);
}

TEST_CASE("before the end the best is measured once more when others are near") {
  const synthetic_space space(one_family(3, 4));
  const auto judged = [&](double second) {
    return [&space, second](const generated_candidate& one) {
      auto verdict = space.judge(one.key);
      const bool is_first = read_key(one.key).subject == space.key(space.first(0));
      verdict.objective_ns = is_first ? 1000 : static_cast<uint64_t>(second);
      for (workload_time& each : verdict.times)
        each.ns = verdict.objective_ns;
      return verdict;
    };
  };
  const auto near = run(space, 1, {}, judged(1029));
  CHECK(near.history.back().key == "confirm:" + space.key(space.first(0)));
  CHECK(near.candidates.back().parent == space.key(space.first(0)));
  CHECK(near.candidates.back().effort == attempt_effort::full);
  CHECK(near.reason.find("plateau") == 0);
  const auto far = run(space, 1, {}, judged(1040));
  CHECK(count_kind(far, search_key_kind::confirm) == 0);
}

TEST_CASE("a winner that was lucky once loses its place, and the next is measured once more") {
  const synthetic_space space(one_family(3, 4));
  const std::string first = space.key(space.first(0));
  const auto all = run(space, 1, {}, [&](const generated_candidate& one) {
    auto verdict = space.judge(one.key);
    const search_key key = read_key(one.key);
    verdict.objective_ns =
      key.subject == first ? (key.kind == search_key_kind::confirm ? 1100 : 1000) : 1020;
    for (workload_time& each : verdict.times)
      each.ns = verdict.objective_ns;
    return verdict;
  });
  CHECK(count_kind(all, search_key_kind::confirm) == 2);
  CHECK(all.history.back().key != "confirm:" + first);
}

TEST_CASE("the search stops at a plateau and near the floor") {
  const synthetic_space space(one_family(3, 2));
  const auto all = run(space, 3);
  CHECK(all.reason == "plateau: 10 trials without a gain of 1 %");
  CHECK(all.history.size() > 10);
  auto verdict = space.judge(space.key(space.first(0)));
  verdict.floor_share = 0.95;
  const auto next = ask(space, {verdict}, 1);
  CHECK(next.outcome == search_outcome::exhausted);
  CHECK(next.reason == "within 5 % of the floor");
}

TEST_CASE("every search tries every point when nothing stops it") {
  for (auto strategy :
    {search_strategy::guided, search_strategy::random, search_strategy::exhaustive}) {
    const synthetic_space space(one_family(2, 1));
    asked with;
    with.strategy = strategy;
    with.limits.plateau = 1'000'000;
    const auto all = run(space, 1, with);
    CHECK(all.reason == "every point was tried");
    CHECK(count_kind(all, search_key_kind::point) == 25);
  }
}

TEST_CASE("exhaustive goes in order, random does not, and both measure in full") {
  const synthetic_space space(with_sizes(several_stages(1), 14));
  asked with;
  with.strategy = search_strategy::exhaustive;
  const auto in_order = run(space, 1, with, {}, 30);
  for (size_t i = 0; i < 30; ++i)
    CHECK(in_order.candidates[i].key == space.key(space.at(i)));
  with.strategy = search_strategy::random;
  const auto drawn = run(space, 1, with, {}, 30);
  std::set<size_t> partitions;
  for (const auto& one : drawn.candidates) {
    CHECK(one.effort == attempt_effort::full);
    partitions.insert(space.find(one.key)->partition);
  }
  CHECK(drawn.candidates[0].key != run(space, 2, with, {}, 1).candidates[0].key);
  CHECK(partitions.size() > 1);
}

TEST_CASE("exhaustive comes back to a point that was given back") {
  const synthetic_space space(one_family(2, 1));
  asked with;
  with.strategy = search_strategy::exhaustive;
  with.limits.plateau = 1'000'000;
  auto all = run(space, 1, with);
  const std::string lost = all.history[5].key;
  all.history.erase(5);
  CHECK(ask(space, all.history, 1, with).candidate.key == lost);
}

TEST_CASE("a plan that cannot be used is never proposed") {
  const synthetic_space space(one_family(2, 1));
  for (auto strategy :
    {search_strategy::guided, search_strategy::random, search_strategy::exhaustive}) {
    asked with;
    with.strategy = strategy;
    with.limits.plateau = 1'000'000;
    // Parameter a must be 4 or less: 15 of 25 points.
    with.check = [](const generated_kernel& kernel) -> result<void> {
      if (kernel.source.find("f/a8") != std::string::npos
        || kernel.source.find("f/a16") != std::string::npos)
        return fail(errc::refused, "too large");
      return {};
    };
    const auto all = run(space, 1, with);
    CHECK(count_kind(all, search_key_kind::point) == 15);
    with.check = [](const generated_kernel&) -> result<void> {
      return fail(errc::refused, "too large");
    };
    const auto none = ask(space, {}, 1, with);
    CHECK(none.outcome == search_outcome::no_candidate);
    CHECK(none.reason.find("too large") != std::string::npos);
  }
}

TEST_CASE("a first point that cannot be launched is passed over for the next on the ladder") {
  const synthetic_space space(several_stages(1));
  asked with;
  with.check = [](const generated_kernel& kernel) -> result<void> {
    if (kernel.source.find("tiles") != std::string::npos)
      return fail(errc::refused, "too large");
    return {};
  };
  const auto next = ask(space, {}, 1, with);
  REQUIRE(next.outcome == search_outcome::candidate);
  CHECK(next.candidate.key == "plain/t256");
  CHECK(next.candidate.effort == attempt_effort::full);
}

TEST_CASE("trials of other origin do not steer the search") {
  const synthetic_space space(one_family(3, 1));
  trial plain = space.judge(space.key(space.first(0)));
  plain.key = "plain/1";
  plain.objective_ns = 1;
  plain.floor_share = 0.99;
  const auto next = ask(space, {plain}, 1);
  REQUIRE(next.outcome == search_outcome::candidate);
  CHECK(next.candidate.key == space.key(space.first(0)));
}

TEST_CASE("workers that ask at the same time get different points") {
  const synthetic_space space(several_stages(1));
  asked with;
  std::set<std::string> keys;
  for (uint64_t worker = 0; worker < 40; ++worker) {
    const auto next = ask(space, {}, worker, with);
    REQUIRE(next.outcome == search_outcome::candidate);
    CHECK(keys.insert(next.candidate.key).second);
    with.in_flight.push_back(next.candidate.key);
  }
}

TEST_CASE("the guided search finds what is within 2 % of the best in few trials") {
  double guided = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const synthetic_space space(one_family(4, seed));
    uint64_t best = UINT64_MAX;
    for (uint64_t i = 0; i < space.size(); ++i)
      best = std::min(best, space.times(space.at(i)).front());
    asked with;
    with.limits.plateau = 1'000'000;
    const auto all = run(space, seed, with, {}, 60);
    const auto found = std::find_if(all.history.begin(), all.history.end(), [&](const trial& one) {
      return static_cast<double>(one.objective_ns) <= 1.02 * static_cast<double>(best);
    });
    guided += static_cast<double>(found - all.history.begin()) / 10;
  }
  // Of 625 points. Measured: 12; random needs more than a hundred.
  CHECK(guided < 25);
}

TEST_CASE("names of searches are checked") {
  CHECK(search_strategy_from_text("template") == search_strategy::guided);
  CHECK(search_strategy_from_text("random") == search_strategy::random);
  CHECK(search_strategy_from_text("exhaustive") == search_strategy::exhaustive);
  const auto wrong = search_strategy_from_text("exhaustiv");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().what.find("did you mean `exhaustive`?") != std::string::npos);
}
