// The two strategies that learn nothing: what a search has to beat.

#include "kernels/search/proposal_maker.hpp"
#include "kernels/search/search_key.hpp"
#include "kernels/search/strategies.hpp"
#include "kernels/splitmix64.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gristmill {

namespace {

/// Draws before the points that are left are listed, if they can be.
constexpr int draws_max = 256;
constexpr uint64_t listable = 4096;
constexpr int refusals_max = 64;
constexpr int refusals_in_order_max = 1024;
/// Points that a search in order looks at for what it has done.
constexpr uint64_t scanned_max = 100'000;

} // namespace

search_result propose_random(const search_space& space, const search_question& question) {
  const search_record record(space, question.workloads, question.history, question.in_flight);
  proposal_maker maker(space, question, record);
  splitmix64 random(question.seed);
  if (space.size() == 0)
    return search_ended(search_outcome::no_candidate, "the space of programs has no point");
  int refusals = 0;
  const auto attempt = [&](const program_point& point) -> std::optional<search_result> {
    if (record.knows(space.key(point)) || refusals > refusals_max)
      return std::nullopt;
    auto out = maker.full(point, "", "A random point: " + space.describe(point) + ".");
    refusals += out ? 0 : 1;
    return out;
  };
  for (int i = 0; i < draws_max; ++i) {
    if (auto out = attempt(space.at(random.below(space.size()))))
      return std::move(*out);
  }
  if (space.size() <= listable) {
    std::vector<uint64_t> left;
    for (uint64_t i = 0; i < space.size(); ++i) {
      if (!record.knows(space.key(space.at(i))))
        left.push_back(i);
    }
    while (!left.empty()) {
      const size_t place = random.below(left.size());
      if (auto out = attempt(space.at(left[place])))
        return std::move(*out);
      left[place] = left.back();
      left.pop_back();
    }
  }
  return nothing_left(record, maker);
}

search_result propose_exhaustive(const search_space& space, const search_question& question) {
  const search_record record(space, question.workloads, question.history, question.in_flight);
  proposal_maker maker(space, question, record);
  if (space.size() == 0)
    return search_ended(search_outcome::no_candidate, "the space of programs has no point");
  // What lies before the last known point was tried or refused; refusing it again takes time.
  size_t known = record.full_points();
  uint64_t begin = 0;
  for (uint64_t i = 0; known > 0 && i < std::min(space.size(), scanned_max); ++i) {
    if (record.knows(space.key(space.at(i)))) {
      --known;
      begin = i + 1;
    }
  }
  int refusals = 0;
  // The second round finds points that were given back, such as those of a worker that was lost.
  for (const auto& [from, to] : {std::pair{begin, space.size()}, std::pair{uint64_t{0}, begin}}) {
    for (uint64_t i = from; i < to; ++i) {
      const program_point point = space.at(i);
      if (auto out = maker.full(point, "",
            fmt::format("Point {} of {}: {}.", i + 1, space.size(), space.describe(point))))
        return std::move(*out);
      if (!record.knows(space.key(point)) && ++refusals > refusals_in_order_max)
        return nothing_left(record, maker);
    }
  }
  return nothing_left(record, maker);
}

} // namespace gristmill
