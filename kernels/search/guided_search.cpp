#include "kernels/search/guided_search.hpp"

#include "kernels/search/fallback_ladder.hpp"
#include "kernels/search/search_key.hpp"
#include "kernels/search/strategies.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace gristmill {

namespace {

/// Points of relatives that are tried before anything else.
constexpr size_t relatives_max = 3;
/// What families promise, of one program.
constexpr size_t promises_max = 6;
/// Other partitions, and other families of the first one, among the starts.
constexpr size_t partitions_among_starts = 3;
constexpr size_t families_among_starts = 2;
/// Passed points after which a new combination is worth looking for.
constexpr size_t points_between_groups = 4;
/// A probe of a move earns a full trial when it is faster by this much on the whole, or at one
/// workload, which may become a group of its own.
constexpr double promising_mean = 0.99;
constexpr double promising_least = 0.97;
/// Others this near make the lead of the best a matter of luck.
constexpr double near_best = 1.03;
constexpr int random_tries = 128;
constexpr uint64_t scannable = 4096;
/// Plans that may be refused in a row before a scan gives up.
constexpr int refusals_max = 64;

bool is_groups_key(const std::string& key) {
  return key.starts_with(groups_prefix);
}

} // namespace

guided_search::guided_search(const search_space& space, const search_question& question)
  : space_(space), question_(question), limits_(question.limits),
    record_(space, question.workloads, question.history, question.in_flight),
    maker_(space, question, record_), random_(question.seed) {
  // In a small space halving costs more than it saves.
  if (space.size() >= 2 * uint64_t{limits_.probe_starts})
    probe_places_ = probe_workloads(question.workloads);
  promises_ = space.promising();
  promises_.resize(std::min(promises_.size(), promises_max));
  best_ = record_.best();
  passed_ = record_.passed_points();
}

search_result guided_search::next() {
  if (space_.size() == 0 || space_.partitions() == 0)
    return search_ended(search_outcome::no_candidate, "the space of programs has no point");
  if (auto out = first_point())
    return std::move(*out);
  const bool first_was_refused = !maker_.refusal().empty();
  if (best_ == nullptr && (first_was_refused || !record_.tried().empty())) {
    if (auto out = ladder())
      return std::move(*out);
  }
  if (auto reason = stop_reason()) {
    for (auto last : {&guided_search::combination, &guided_search::confirmation}) {
      if (auto out = (this->*last)())
        return std::move(*out);
    }
    return search_ended(search_outcome::exhausted, std::move(*reason));
  }
  const bool is_due = record_.points_since_groups() >= points_between_groups;
  if (auto out = is_due ? combination() : std::nullopt)
    return std::move(*out);
  for (auto step : {&guided_search::promotion, &guided_search::relative, &guided_search::promise,
         &guided_search::start, &guided_search::move, &guided_search::random_point,
         &guided_search::combination, &guided_search::confirmation}) {
    if (auto out = (this->*step)())
      return std::move(*out);
  }
  if (best_ == nullptr && !record_.tried().empty())
    return search_ended(search_outcome::exhausted,
      fmt::format("none of {} kernels was correct", record_.tried().size()));
  return nothing_left(record_, maker_);
}

std::optional<std::string> guided_search::stop_reason() const {
  if (best_ != nullptr && best_->floor_share >= limits_.floor_share)
    return fmt::format("within {:.0f} % of the floor", (1 - limits_.floor_share) * 100);
  const size_t probe_starts = is_probing() ? limits_.probe_starts : 0;
  const uint32_t effort = record_.effort_without_gain(probe_starts);
  if (effort < 2 * uint64_t{limits_.plateau})
    return std::nullopt;
  if (best_ == nullptr)
    return fmt::format("none of {} kernels was correct", record_.tried().size());
  return fmt::format("plateau: {} trials without a gain of 1 %", effort / 2);
}

guided_search::offer guided_search::first_point() {
  const program_point first = space_.first(0);
  return maker_.full(first, "", "A good first guess: " + space_.describe(first) + ".");
}

guided_search::offer guided_search::ladder() {
  const std::string first = space_.key(space_.first(0));
  for (const program_point& point : fallback_ladder(space_)) {
    if (auto out = maker_.full(point, first,
          fmt::format(
            "Nothing was correct yet; other kernels for it: {}.", space_.describe(point))))
      return out;
  }
  return std::nullopt;
}

guided_search::offer guided_search::try_out(
  const program_point& point, std::string parent, std::string hypothesis) {
  // Without a correct kernel a probe proves little; without times it is compared with nothing.
  const bool may_probe = best_ == nullptr ? record_.tried().empty() : !best_->times.empty();
  if (!is_probing() || !may_probe) {
    return record_.knows_point(space_.key(point))
      ? std::nullopt
      : maker_.full(point, std::move(parent), std::move(hypothesis));
  }
  hypothesis +=
    fmt::format(" Probed on {} of {} workloads.", probe_places_.size(), question_.workloads.size());
  return maker_.probe(point, probe_places_, std::move(parent), std::move(hypothesis));
}

guided_search::offer guided_search::promote(const probed_point& probe, const std::string& why) {
  return maker_.full(probe.point, std::string(probe_prefix) + probe.key,
    fmt::format("{}: {}.", why, space_.describe(probe.point)));
}

guided_search::offer guided_search::promotion() {
  const auto& probes = record_.probes();
  const size_t handed_out = probes.size() + record_.probes_in_flight();
  if (handed_out < limits_.probe_starts || best_ == nullptr)
    return std::nullopt;
  const size_t first_round = std::min<size_t>(limits_.probe_starts, probes.size());
  std::vector<const probed_point*> round;
  for (size_t i = 0; i < first_round; ++i) {
    if (probes[i].passed)
      round.push_back(&probes[i]);
  }
  std::stable_sort(round.begin(), round.end(),
    [](const probed_point* a, const probed_point* b) { return a->ns < b->ns; });
  round.resize(std::min<size_t>(round.size(), (limits_.probe_starts + 2) / 3));
  for (const probed_point* one : round) {
    const probe_ratio ratio = record_.compare(*one, *best_);
    if (ratio.known && ratio.mean > limits_.drop)
      continue;
    if (auto out =
          promote(*one, fmt::format("Among the best third of {} probes", limits_.probe_starts)))
      return out;
  }
  const probed_point* promising = nullptr;
  double least = 1;
  for (size_t i = first_round; i < probes.size(); ++i) {
    if (!probes[i].passed || record_.knows(probes[i].key))
      continue;
    const probe_ratio ratio = record_.compare(probes[i], *best_);
    if (ratio.known && (ratio.mean < promising_mean || ratio.least < promising_least)
      && (promising == nullptr || ratio.mean < least)) {
      promising = &probes[i];
      least = ratio.mean;
    }
  }
  if (promising == nullptr)
    return std::nullopt;
  return promote(
    *promising, fmt::format("Its probe took {:.0f} % of the best one's time", 100 * least));
}

guided_search::offer guided_search::relative() {
  const auto& keys = question_.relatives;
  for (size_t i = 0; i < std::min(keys.size(), relatives_max); ++i) {
    const auto point = space_.find(keys[i]);
    if (!point || record_.is_broken(keys[i]))
      continue;
    if (auto out = maker_.full(*point, "",
          "Among the best for a problem of equal structure: " + space_.describe(*point) + "."))
      return out;
  }
  return std::nullopt;
}

guided_search::offer guided_search::promise() {
  for (const program_point& point : promises_) {
    if (record_.is_broken(space_.key(point)))
      continue;
    if (auto out = try_out(
          point, "", "Among the best guesses of its family: " + space_.describe(point) + "."))
      return out;
  }
  return std::nullopt;
}

std::vector<program_point> guided_search::systematic_starts() const {
  std::vector<program_point> out;
  for (size_t p = 1; p < space_.partitions() && p <= partitions_among_starts; ++p)
    out.push_back(space_.first(p));
  auto families = other_families(space_, space_.first(0));
  families.resize(std::min(families.size(), families_among_starts));
  out.insert(out.end(), families.begin(), families.end());
  return out;
}

size_t guided_search::starts_wanted(size_t systematic) const {
  if (is_probing())
    return limits_.probe_starts;
  // Families that say what to try have been asked; other cuts and families are moves like others.
  if (!promises_.empty())
    return 0;
  return limits_.starts == 0 ? 0 : std::max<size_t>(systematic + 1, limits_.starts);
}

guided_search::offer guided_search::start() {
  const size_t done = is_probing() ? record_.probes().size() + record_.probes_in_flight()
                                   : std::max<size_t>(record_.full_points(), 1) - 1;
  const auto systematic = systematic_starts();
  if (done >= starts_wanted(systematic.size()))
    return std::nullopt;
  for (const program_point& point : systematic) {
    if (record_.is_broken(space_.key(point)))
      continue;
    const char* what = point.partition == 0 ? "Another family" : "Another cut into stages";
    if (auto out = try_out(point, "", fmt::format("{}: {}.", what, space_.describe(point))))
      return out;
  }
  return random_point();
}

program_point guided_search::drawn_point() {
  const size_t near = std::min(space_.partitions(), partitions_among_starts + 1);
  const size_t partition = random_.below(2) == 0 ? 0 : random_.below(near);
  program_point out = space_.first(partition);
  const auto redraw = [&](size_t stage) {
    out.stages[stage] = random_.below(space_.points(partition, stage));
  };
  if (out.stages.empty())
    return out;
  // The good first guess of half of the stages stays: random in everything is rarely any good.
  redraw(random_.below(out.stages.size()));
  for (size_t stage = 0; stage < out.stages.size(); ++stage) {
    if (random_.below(2) == 0)
      redraw(stage);
  }
  return out;
}

guided_search::offer guided_search::random_point() {
  int refusals = 0;
  const auto attempt = [&](const program_point& point, bool also_broken) -> offer {
    const std::string key = space_.key(point);
    if (refusals > refusals_max || record_.knows_point(key)
      || (!also_broken && record_.is_broken(key)))
      return std::nullopt;
    auto out = try_out(point, "", "A random point: " + space_.describe(point) + ".");
    refusals += out ? 0 : 1;
    return out;
  };
  for (int i = 0; i < random_tries; ++i) {
    const bool is_near = i < random_tries / 2;
    if (auto out =
          attempt(is_near ? drawn_point() : space_.at(random_.below(space_.size())), false))
      return out;
  }
  if (space_.size() > scannable)
    return std::nullopt;
  const uint64_t offset = random_.below(space_.size());
  for (bool also_broken : {false, true}) {
    for (uint64_t i = 0; i < space_.size(); ++i) {
      if (auto out = attempt(space_.at((offset + i) % space_.size()), also_broken))
        return out;
    }
  }
  return std::nullopt;
}

std::optional<workload_grouping> guided_search::grouping() const {
  std::vector<std::vector<double>> times;
  for (const tried_candidate* one : passed_) {
    if (one->times.empty())
      return std::nullopt;
    times.push_back(one->times);
  }
  return best_grouping(question_.workloads, times, limits_.groups_max);
}

guided_search::offer guided_search::combination() {
  if (best_ == nullptr || question_.workloads.size() < 2 || passed_.size() < 2
    || std::any_of(question_.in_flight.begin(), question_.in_flight.end(), is_groups_key))
    return std::nullopt;
  const auto found = grouping();
  if (!found || found->groups.size() < 2)
    return std::nullopt;
  const double share = std::exp(found->log_mean) / static_cast<double>(best_->ns);
  if (share > limits_.combination_gain)
    return std::nullopt;
  std::vector<std::pair<std::string, program_point>> parts;
  std::string words;
  for (const workload_group& group : found->groups) {
    const tried_candidate& choice = *passed_[group.choice];
    parts.emplace_back(group.condition, choice.point);
    words += fmt::format("{}{}: {}", words.empty() ? "" : "; ",
      group.condition == "true" ? "else" : "where " + group.condition, choice.key);
  }
  return maker_.groups(parts, "", best_->key,
    fmt::format("One configuration for each of {} groups of workloads, {:.1f} % less time "
                "expected: {}.",
      parts.size(), 100 * (1 - share), words));
}

guided_search::offer guided_search::confirmation() {
  if (best_ == nullptr || best_->measurements > 1)
    return std::nullopt;
  const auto rivals =
    std::count_if(record_.tried().begin(), record_.tried().end(), [&](const tried_candidate& one) {
      return &one != best_ && one.passed
        && static_cast<double>(one.ns) <= near_best * static_cast<double>(best_->ns);
    });
  if (rivals == 0)
    return std::nullopt;
  auto why = fmt::format("{} leads, but {} within 3 %: measured once more.", best_->key,
    rivals == 1 ? "another is" : fmt::format("{} others are", rivals));
  if (!best_->is_groups)
    return maker_.confirm(best_->point, std::move(why));
  std::vector<std::pair<std::string, program_point>> parts;
  for (const auto& [condition, key] : parts_of_groups_key(best_->key)) {
    const auto point = space_.find(key);
    if (!point)
      return std::nullopt;
    parts.emplace_back(condition, *point);
  }
  return parts.empty()
    ? std::nullopt
    : maker_.groups(parts, std::string(confirm_prefix), best_->key, std::move(why));
}

search_result propose_guided(const search_space& space, const search_question& question) {
  return guided_search(space, question).next();
}

} // namespace gristmill
