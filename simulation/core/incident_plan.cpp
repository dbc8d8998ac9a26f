#include "simulation/core/incident_plan.hpp"

#include "simulation/model/counter_stream.hpp"
#include "simulation/model/gpu_places.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <set>

namespace gristmill {

namespace {

using std::chrono::nanoseconds;

constexpr size_t incidents_max = 1'000'000;

struct stretch {
  nanoseconds from{0};
  nanoseconds until{0};
  double pace = 0;
};

/// What the slowest of all stretches allows, as edges.
std::vector<pace_edge> paces_of(const std::vector<stretch>& stretches) {
  std::vector<std::pair<nanoseconds, std::pair<double, bool>>> edges;
  for (const auto& s : stretches) {
    edges.push_back({s.from, {s.pace, true}});
    edges.push_back({s.until, {s.pace, false}});
  }
  std::sort(edges.begin(), edges.end());
  std::multiset<double> in_force;
  std::vector<pace_edge> out;
  for (size_t i = 0; i < edges.size(); ++i) {
    const auto& [pace, begins] = edges[i].second;
    if (begins)
      in_force.insert(pace);
    else
      in_force.erase(in_force.find(pace));
    if (i + 1 < edges.size() && edges[i + 1].first == edges[i].first)
      continue;
    out.push_back({edges[i].first, in_force.empty() ? 1.0 : *in_force.begin()});
  }
  return out;
}

} // namespace

nanoseconds incident_plan::end_of_call(nanoseconds now, nanoseconds work) const {
  if (paces.empty())
    return now + work;
  auto next = std::upper_bound(paces.begin(), paces.end(), now,
    [](nanoseconds t, const pace_edge& edge) { return t < edge.at; });
  double pace = next == paces.begin() ? 1.0 : std::prev(next)->pace;
  auto left = work;
  for (; next != paces.end(); ++next) {
    const auto span = next->at - now;
    const nanoseconds done{
      pace >= 1 ? span.count() : static_cast<int64_t>(static_cast<double>(span.count()) * pace)};
    if (done >= left)
      break;
    left -= done;
    now = next->at;
    pace = next->pace;
  }
  // The last edge is the end of an incident, so its pace is 1.
  return now
    + nanoseconds{
      pace >= 1 ? left.count() : static_cast<int64_t>(static_cast<double>(left.count()) / pace)};
}

result<incident_plan> plan_incidents(const scenario& what, uint64_t seed) {
  const auto places = gpu_places(what);
  const auto nodes = node_names(places);
  const auto end = what.duration_s;
  std::vector<std::vector<stretch>> of_gpu(places.size());
  std::vector<stretch> of_model;
  size_t count = 0;
  const auto add = [&](incident_kind kind, const std::string& name, uint32_t gpu, double at,
                     double length, double pace) {
    const stretch s{time_of(at), std::max(time_of(at + length), time_of(at) + nanoseconds{1}),
      kind == incident_kind::rate_limit ? pace : 0};
    ++count;
    switch (kind) { // no default: the compiler reports a missing case
    case incident_kind::gpu_down:
      of_gpu[gpu].push_back(s);
      break;
    case incident_kind::node_down:
      for (size_t g = 0; g < places.size(); ++g)
        if (places[g].node == name)
          of_gpu[g].push_back(s);
      break;
    case incident_kind::model_outage:
    case incident_kind::rate_limit:
      of_model.push_back(s);
      break;
    }
  };
  for (const auto& one : what.incidents) {
    uint32_t gpu = 0;
    if (one.kind == incident_kind::gpu_down)
      while (gpu + 1 < places.size() && places[gpu].name != one.what)
        ++gpu;
    if (one.at_s < end)
      add(one.kind, one.what, gpu, one.at_s, one.for_s, one.pace);
  }
  for (size_t l = 0; l < what.chance_incidents.size(); ++l) {
    const auto& law = what.chance_incidents[l];
    const size_t units = law.kind == incident_kind::gpu_down ? places.size()
      : law.kind == incident_kind::node_down                 ? nodes.size()
                                                             : 1;
    for (size_t unit = 0; unit < units; ++unit) {
      counter_stream draws(seed, stream_of(stream_purpose::incident, l << 32 | unit));
      double at = 0;
      while (count <= incidents_max) {
        at += law.mean_between_s * draws.exponential();
        const double length = law.mean_for_s * draws.exponential();
        if (at >= end)
          break;
        add(law.kind, law.kind == incident_kind::node_down ? nodes[unit] : std::string{},
          static_cast<uint32_t>(unit), at, length, law.pace);
        at += length;
      }
    }
  }
  if (count > incidents_max)
    return fail(errc::invalid_input,
      fmt::format("chance_incidents: these laws make more than {} incidents; "
                  "raise chance_incidents.mean_between",
        incidents_max));
  incident_plan out;
  for (uint32_t gpu = 0; gpu < of_gpu.size(); ++gpu) {
    auto& all = of_gpu[gpu];
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.from < b.from; });
    for (size_t i = 0; i < all.size();) {
      auto until = all[i].until;
      const auto from = all[i].from;
      for (++i; i < all.size() && all[i].from <= until; ++i)
        until = std::max(until, all[i].until);
      out.gpus.push_back({from, gpu, false});
      out.gpus.push_back({until, gpu, true});
    }
  }
  std::stable_sort(out.gpus.begin(), out.gpus.end(),
    [](const auto& a, const auto& b) { return a.at != b.at ? a.at < b.at : a.gpu < b.gpu; });
  out.paces = paces_of(of_model);
  return out;
}

} // namespace gristmill
