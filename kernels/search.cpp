#include "kernels/search.hpp"

#include "kernels/fusion.hpp"
#include "kernels/template_space.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>

namespace gristmill {

namespace {

/// A small generator of our own, so that a seed means the same everywhere.
class splitmix64 {
public:
  explicit splitmix64(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  /// Below `bound`, which is small: the bias of a remainder does not matter to a search.
  size_t below(size_t bound) { return static_cast<size_t>(next() % bound); }

private:
  uint64_t state_;
};

/// A finished trial of a point of this space.
struct tried_point {
  const template_point* point = nullptr;
  const trial* outcome = nullptr;
};

bool has_passed(const trial& t) {
  return t.status == verdict_status::passed && t.objective_ns > 0;
}

search_result ended(search_outcome outcome, std::string reason) {
  search_result out;
  out.outcome = outcome;
  out.reason = std::move(reason);
  return out;
}

/// Trials since the last gain of 1 %; the first kernel that passes is one.
uint32_t trials_without_gain(const std::vector<tried_point>& tried) {
  uint64_t best = 0;
  uint32_t count = 0;
  for (const tried_point& one : tried) {
    const trial& outcome = *one.outcome;
    // In integers: 100 times a time below 99 times the best.
    const bool is_gain = has_passed(outcome)
      && (best == 0
        || static_cast<double>(outcome.objective_ns) < 0.99 * static_cast<double>(best));
    count = is_gain ? 0 : count + 1;
    if (has_passed(outcome) && (best == 0 || outcome.objective_ns < best))
      best = outcome.objective_ns;
  }
  return count;
}

std::string in_words(const template_point& point) {
  if (point.family == template_family::elementwise)
    return fmt::format("blocks of {} threads, vectors of {}, {} vectors a thread{}{}",
      point.threads, point.width, point.unroll, point.streaming ? ", streaming" : "",
      point.fast ? ", approximate arithmetic" : "");
  const char* keep = point.keep == row_keep::registers ? "the row in registers"
    : point.keep == row_keep::shared                   ? "the row in shared memory"
                                                       : "the row read once a pass";
  return fmt::format("{} threads a row, {} row{} a block, vectors of {}, {}{}{}{}{}", point.threads,
    point.rows, point.rows == 1 ? "" : "s", point.width, keep,
    point.online ? ", online softmax" : "", point.reuse ? ", values kept for the next pass" : "",
    point.streaming ? ", streaming" : "", point.fast ? ", approximate arithmetic" : "");
}

/// What a move from one point to a neighbour is about.
std::string difference(const template_point& from, const template_point& to) {
  const auto change = [](std::string_view what, int a, int b) {
    return fmt::format("{} {} instead of {}", what, b, a);
  };
  if (from.width != to.width)
    return change("vectors of", from.width, to.width)
      + (to.width > from.width ? ": fewer and wider memory instructions"
                               : ": more threads with less work each");
  if (from.threads != to.threads)
    return change("threads", from.threads, to.threads)
      + (to.threads > from.threads ? ": more warps hide more latency"
                                   : ": smaller blocks fill the SMs more evenly");
  if (from.rows != to.rows)
    return change("rows a block", from.rows, to.rows) + ": another number of warps a block";
  if (from.unroll != to.unroll)
    return change("vectors a thread", from.unroll, to.unroll)
      + (to.unroll > from.unroll ? ": more reads in flight" : ": fewer registers, more warps");
  if (from.keep != to.keep)
    return to.keep == row_keep::registers ? "the row in registers: memory is read once"
      : to.keep == row_keep::shared       ? "the row in shared memory: more registers for warps"
                                          : "the row read once a pass: the caches may do";
  if (from.online != to.online)
    return to.online ? "maximum and sum in one pass" : "maximum and sum in two passes";
  if (from.reuse != to.reuse)
    return to.reuse ? "values that two passes need kept: fewer instructions"
                    : "values computed again in each pass: fewer registers";
  if (from.streaming != to.streaming)
    return to.streaming ? "data marked as used once" : "data left to the caches";
  return to.fast ? "approximate exponentials and divisions" : "exact exponentials and divisions";
}

class point_search {
public:
  point_search(const problem& target, const fused_kernel& kernel, const space_facts& facts,
    const std::vector<trial>& history, const std::vector<std::string>& in_flight, uint64_t seed,
    const search_limits& limits)
    : target_(target), kernel_(kernel), facts_(facts), limits_(limits), random_(seed),
      points_(feasible_points(facts)) {
    std::map<std::string, const template_point*> by_key;
    for (const template_point& point : points_)
      by_key[key_of(point)] = &point;
    for (const trial& one : history) {
      known_.insert(one.key);
      if (const auto found = by_key.find(one.key); found != by_key.end())
        tried_.push_back({found->second, &one});
    }
    known_.insert(in_flight.begin(), in_flight.end());
    for (const template_point& point : points_) {
      if (known_.contains(key_of(point)))
        ++spent_;
      else
        fresh_.push_back(&point);
    }
  }

  search_result next() {
    if (points_.empty())
      return ended(search_outcome::no_candidate, "no point of the template's space is feasible");
    if (auto reason = stop_reason())
      return ended(search_outcome::exhausted, std::move(*reason));
    const template_point first = first_point(points_, facts_);
    if (!known_.contains(key_of(first)))
      return candidate(first, "", "A good first guess: " + in_words(first) + ".");
    if (spent_ <= limits_.random_starts)
      return random_candidate();
    return neighbour();
  }

private:
  std::optional<std::string> stop_reason() const {
    for (const tried_point& one : tried_) {
      if (has_passed(*one.outcome)
        && static_cast<double>(one.outcome->floor_share) >= limits_.floor_share)
        return fmt::format("within {:.0f} % of the floor", (1 - limits_.floor_share) * 100);
    }
    if (const uint32_t count = trials_without_gain(tried_); count >= limits_.plateau)
      return fmt::format("plateau: {} trials without a gain of 1 %", count);
    if (fresh_.empty())
      return "every point was tried";
    return std::nullopt;
  }

  search_result random_candidate() {
    const template_point& point = *fresh_[random_.below(fresh_.size())];
    return candidate(point, "", "A random point: " + in_words(point) + ".");
  }

  /// A fresh neighbour of the best point that has one.
  search_result neighbour() {
    std::vector<tried_point> passed;
    std::copy_if(tried_.begin(), tried_.end(), std::back_inserter(passed),
      [](const tried_point& one) { return has_passed(*one.outcome); });
    std::stable_sort(passed.begin(), passed.end(), [](const tried_point& a, const tried_point& b) {
      return a.outcome->objective_ns < b.outcome->objective_ns;
    });
    for (const tried_point& base : passed) {
      // Moves that change the schedule first; hints and approximations when those are spent.
      std::vector<const template_point*> moves;
      std::vector<const template_point*> switches;
      for (const template_point* point : fresh_) {
        if (distance(*point, *base.point) != 1)
          continue;
        const bool is_switch =
          point->streaming != base.point->streaming || point->fast != base.point->fast;
        (is_switch ? switches : moves).push_back(point);
      }
      const auto& choice = moves.empty() ? switches : moves;
      if (choice.empty())
        continue;
      const template_point& point = *choice[random_.below(choice.size())];
      const std::string parent = key_of(*base.point);
      return candidate(
        point, parent, fmt::format("Like {}, but {}.", parent, difference(*base.point, point)));
    }
    return random_candidate();
  }

  search_result candidate(const template_point& point, std::string parent, std::string hypothesis) {
    auto generated = kernel_at(kernel_, target_.def, point);
    search_result out;
    out.outcome = search_outcome::candidate;
    out.candidate = {std::move(generated.source), std::move(generated.plan), key_of(point),
      std::move(parent), std::move(hypothesis)};
    return out;
  }

  const problem& target_;
  const fused_kernel& kernel_;
  const space_facts& facts_;
  const search_limits& limits_;
  splitmix64 random_;
  std::vector<template_point> points_;
  std::set<std::string> known_;
  std::vector<tried_point> tried_;
  std::vector<const template_point*> fresh_;
  size_t spent_ = 0;
};

} // namespace

search_result propose(const problem& target, const op_graph& graph,
  const std::vector<trial>& history, const std::vector<std::string>& in_flight, uint64_t seed,
  const search_limits& limits) {
  const auto kernel = fuse(graph, target.def);
  if (!kernel)
    return ended(search_outcome::no_candidate, kernel.error().what);
  const auto facts = facts_of(*kernel, target);
  if (!facts)
    return ended(search_outcome::no_candidate, facts.error().what);
  return point_search(target, *kernel, *facts, history, in_flight, seed, limits).next();
}

} // namespace gristmill
