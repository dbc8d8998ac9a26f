// Moves of `guided_search`: which neighbour of which point is tried next.

#include "kernels/search/guided_search.hpp"
#include "kernels/search/point_model.hpp"
#include "kernels/search/search_key.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

/// Points whose neighbours are looked at together.
constexpr size_t bases_max = 3;
/// Points beside the neighbours that are looked at: a jump, should the model see one.
constexpr int jumps = 16;
/// Trials that the model learns from: the fastest, and the newest of the others.
constexpr size_t fastest_max = 64;
constexpr size_t newest_max = 32;
/// What a candidate that failed counts for, as a logarithm.
constexpr double failure_log_time = 0.7;
/// Makes workers that ask at the same time go different ways: gains this near are equal.
constexpr double noise = 0.1;
/// Plans that may be refused in one proposal.
constexpr size_t refusals_max = 12;

struct scored_move {
  double score = 0;
  program_point point;
  /// Null for a jump.
  const tried_candidate* base = nullptr;
};

struct seen_point {
  std::string key;
  double log_time = 0;
};

/// The fastest points and the newest of the others.
std::vector<seen_point> worth_learning(std::vector<seen_point> all) {
  if (all.size() <= fastest_max + newest_max)
    return all;
  std::vector<double> times;
  for (const seen_point& one : all)
    times.push_back(one.log_time);
  std::nth_element(times.begin(), times.begin() + fastest_max, times.end());
  const double limit = times[fastest_max];
  std::vector<seen_point> out;
  size_t others = 0;
  for (size_t i = all.size(); i-- > 0;) {
    const bool is_fast = all[i].log_time < limit;
    if (is_fast || others < newest_max)
      out.push_back(std::move(all[i]));
    others += is_fast ? 0 : 1;
  }
  return out;
}

} // namespace

std::vector<const tried_candidate*> guided_search::bases() const {
  std::vector<const tried_candidate*> out;
  if (passed_.empty())
    return out;
  const auto add = [&](const tried_candidate* one) {
    if (std::find(out.begin(), out.end(), one) == out.end())
      out.push_back(one);
  };
  add(passed_.front());
  // What is best for a group of workloads is moved from, too.
  if (question_.workloads.size() > 1) {
    if (const auto found = grouping()) {
      for (const workload_group& group : found->groups)
        add(passed_[group.choice]);
    }
  }
  const double limit = limits_.drop * static_cast<double>(passed_.front()->ns);
  for (const tried_candidate* one : passed_) {
    if (static_cast<double>(one->ns) <= limit)
      add(one);
  }
  return out;
}

point_model guided_search::model() const {
  const double best_ns = static_cast<double>(passed_.front()->ns);
  std::vector<seen_point> seen;
  for (const probed_point& one : record_.probes()) {
    if (record_.knows(one.key))
      continue; // Its full trial says more.
    const probe_ratio ratio = record_.compare(one, *passed_.front());
    if (ratio.known || !one.passed)
      seen.push_back({one.key, one.passed ? std::log(ratio.mean) : failure_log_time});
  }
  for (const tried_candidate& one : record_.tried()) {
    if (!one.is_groups)
      seen.push_back(
        {one.key, one.passed ? std::log(static_cast<double>(one.ns) / best_ns) : failure_log_time});
  }
  seen = worth_learning(std::move(seen));
  std::vector<std::vector<double>> shares;
  for (size_t p = 0; p < space_.partitions(); ++p)
    shares.push_back(space_.work_shares(p));
  point_model out(std::move(shares));
  for (const seen_point& one : seen)
    out.add(one.key, one.log_time);
  out.fit();
  return out;
}

guided_search::offer guided_search::move() {
  const auto from = bases();
  if (from.empty())
    return std::nullopt;
  const point_model guesses = model();
  std::vector<scored_move> moves;
  std::set<std::string> seen;
  const auto consider = [&](program_point point, const tried_candidate* base) {
    std::string key = space_.key(point);
    if (record_.knows_point(key) || record_.is_broken(key) || seen.contains(key))
      return;
    const double gain = point_model::expected_gain(guesses.at(key));
    moves.push_back({gain * (1 + noise * random_.share()), std::move(point), base});
    seen.insert(std::move(key));
  };
  size_t used = 0;
  for (const tried_candidate* base : from) {
    const size_t before = moves.size();
    for (program_point& point : space_.neighbours(base->point))
      consider(std::move(point), base);
    used += moves.size() > before ? 1 : 0;
    if (used == bases_max)
      break;
  }
  for (int i = 0; i < jumps; ++i)
    consider(drawn_point(), nullptr);
  std::stable_sort(moves.begin(), moves.end(),
    [](const scored_move& a, const scored_move& b) { return a.score > b.score; });
  for (size_t i = 0; i < std::min(moves.size(), refusals_max); ++i) {
    const scored_move& one = moves[i];
    const std::string parent = one.base == nullptr ? "" : one.base->key;
    auto words = one.base == nullptr
      ? "Unlike what was tried, but the trials speak for it: " + space_.describe(one.point) + "."
      : fmt::format("Like {}, but {}.", parent, space_.difference(one.base->point, one.point));
    if (auto out = try_out(one.point, parent, std::move(words)))
      return out;
  }
  return std::nullopt;
}

} // namespace gristmill
