#include "kernels/search/search_record.hpp"

#include "kernels/search/search_key.hpp"

#include <algorithm>
#include <cmath>

namespace gristmill {

namespace {

bool has_passed(const trial& one) {
  return one.status == verdict_status::passed && one.objective_ns > 0;
}

} // namespace

search_record::search_record(const search_space& space,
  const std::vector<search_workload>& workloads, const trial_history& history,
  const std::vector<std::string>& in_flight) {
  for (size_t i = 0; i < workloads.size(); ++i)
    place_of_workload_.emplace(workloads[i].uuid, i);
  for (const trial& one : history) {
    known_.insert(one.key);
    // What our own machinery broke says nothing about the candidate.
    if (one.status == verdict_status::infrastructure)
      continue;
    const search_key key = read_key(one.key);
    if (key.kind == search_key_kind::probe)
      add_probe(space, one, key.subject);
    else
      add_full(space, one, key.subject, key.kind == search_key_kind::confirm,
        key.subject.starts_with(groups_prefix));
  }
  for (const std::string& key : in_flight) {
    if (!known_.insert(key).second)
      continue;
    const search_key read = read_key(key);
    const bool is_probe = read.kind == search_key_kind::probe;
    if ((is_probe || read.kind == search_key_kind::point) && space.find(read.subject))
      ++(is_probe ? probes_in_flight_ : full_in_flight_);
  }
}

std::vector<double> search_record::times_of(const trial& one) const {
  std::vector<double> times(place_of_workload_.size(), 0);
  for (const workload_time& each : one.times) {
    if (const auto found = place_of_workload_.find(each.uuid); found != place_of_workload_.end())
      times[found->second] = static_cast<double>(each.ns);
  }
  if (std::find(times.begin(), times.end(), 0.0) != times.end())
    times.clear();
  return times;
}

void search_record::add_full(const search_space& space, const trial& one, std::string_view subject,
  bool is_confirmation, bool is_groups) {
  const bool passed = has_passed(one);
  if (const auto found = place_of_tried_.find(subject); found != place_of_tried_.end()) {
    tried_candidate& known = tried_[found->second];
    ++known.measurements;
    known.passed = known.passed && passed;
    known.ns = known.passed ? std::max(known.ns, one.objective_ns) : 0;
    return;
  }
  if (is_confirmation)
    return; // Of a candidate of which nothing else is known.
  tried_candidate out;
  out.key = subject;
  out.is_groups = is_groups;
  if (!is_groups) {
    const auto point = space.find(subject);
    if (!point)
      return;
    out.point = *point;
    count_families(subject, passed);
    ++points_tried_;
  }
  out.passed = passed;
  out.measurements = 1;
  if (passed) {
    out.ns = one.objective_ns;
    out.floor_share = one.floor_share;
    out.times = times_of(one);
  }
  steps_.push_back({false, passed, out.ns, out.times});
  place_of_tried_.emplace(out.key, tried_.size());
  tried_.push_back(std::move(out));
}

void search_record::add_probe(
  const search_space& space, const trial& one, std::string_view subject) {
  const auto point = space.find(subject);
  if (!point)
    return;
  probed_point out;
  out.key = subject;
  out.point = *point;
  out.passed = has_passed(one);
  out.ns = out.passed ? one.objective_ns : 0;
  for (const workload_time& each : one.times) {
    const auto found = place_of_workload_.find(each.uuid);
    if (out.passed && found != place_of_workload_.end() && each.ns > 0)
      out.times.emplace_back(found->second, static_cast<double>(each.ns));
  }
  count_families(subject, out.passed);
  steps_.push_back({true, out.passed, out.ns, {}});
  probes_.push_back(std::move(out));
}

void search_record::count_families(std::string_view point_key, bool passed) {
  std::set<std::string_view> families;
  for (std::string_view stage : stage_keys(point_key))
    families.insert(family_of(stage));
  for (std::string_view family : families) {
    family_count& count = families_[std::string(family)];
    ++(passed ? count.passed : count.failed);
  }
}

bool search_record::knows_point(const std::string& point_key) const {
  return known_.contains(point_key) || known_.contains(std::string(probe_prefix) + point_key);
}

const tried_candidate* search_record::best() const {
  const tried_candidate* out = nullptr;
  for (const tried_candidate& one : tried_) {
    if (one.passed && (out == nullptr || one.ns < out->ns))
      out = &one;
  }
  return out;
}

std::vector<const tried_candidate*> search_record::passed_points() const {
  std::vector<const tried_candidate*> out;
  for (const tried_candidate& one : tried_) {
    if (one.passed && !one.is_groups)
      out.push_back(&one);
  }
  std::stable_sort(out.begin(), out.end(),
    [](const tried_candidate* a, const tried_candidate* b) { return a->ns < b->ns; });
  return out;
}

probe_ratio search_record::compare(const probed_point& probe, const tried_candidate& best) const {
  probe_ratio out;
  if (best.times.empty() || probe.times.empty())
    return out;
  double sum = 0;
  double least = 0;
  for (const auto& [place, ns] : probe.times) {
    const double ratio = std::log(ns / best.times[place]);
    sum += ratio;
    least = std::min(least, ratio);
  }
  out.known = true;
  out.mean = std::exp(sum / static_cast<double>(probe.times.size()));
  out.least = std::exp(least);
  return out;
}

uint32_t search_record::effort_without_gain(size_t probe_starts) const {
  uint64_t best = 0;
  std::vector<double> envelope;
  uint32_t effort = 0;
  size_t probes = 0;
  for (const step& one : steps_) {
    if (one.is_probe) {
      effort += !one.passed || probes >= probe_starts ? 1 : 0;
      ++probes;
      continue;
    }
    bool is_gain =
      one.passed && (best == 0 || static_cast<double>(one.ns) < 0.99 * static_cast<double>(best));
    if (one.passed && (best == 0 || one.ns < best))
      best = one.ns;
    if (!one.times.empty()) {
      double change = 0;
      if (envelope.empty())
        envelope = one.times;
      for (size_t i = 0; i < envelope.size(); ++i) {
        if (one.times[i] < envelope[i]) {
          change += std::log(one.times[i] / envelope[i]);
          envelope[i] = one.times[i];
        }
      }
      is_gain = is_gain || change < std::log(0.99) * static_cast<double>(envelope.size());
    }
    effort = is_gain ? 0 : effort + 2;
  }
  return effort;
}

size_t search_record::points_since_groups() const {
  size_t count = 0;
  for (const tried_candidate& one : tried_) {
    if (one.is_groups)
      count = 0;
    else
      count += one.passed ? 1 : 0;
  }
  return count;
}

bool search_record::is_broken(const std::string& point_key) const {
  for (std::string_view stage : stage_keys(point_key)) {
    const auto found = families_.find(family_of(stage));
    if (found != families_.end() && found->second.failed >= 2 && found->second.passed == 0)
      return true;
  }
  return false;
}

} // namespace gristmill
