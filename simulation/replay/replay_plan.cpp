#include "simulation/replay/replay_plan.hpp"

#include "simulation/model/counter_stream.hpp"
#include "simulation/model/scenario_check.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

/// A GPU that goes away right after a lease must not be free for an instant, or somebody would be
/// granted it.
constexpr nanoseconds clean_up_before_outage = std::chrono::milliseconds{1};

/// As long as the simulator goes on; nobody waits for that.
constexpr nanoseconds duration_max = std::chrono::hours{24 * 3650};

/// The simulator wants no shorter ones.
constexpr double cap_min_s = 0.002;

/// What the broker writes when an executor has gone by itself or was sent home.
constexpr const char* executor_ended = "its executor has ended";

/// GPUs that are alike and stand side by side: a group of the scenario.
struct gpu_place {
  std::string name;
  std::string node;
};

bool good_model(const std::string& text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'
      || c == '_' || c == '.';
  });
}

/// A scenario allows fewer characters in a model than GPUs have.
std::map<std::string, std::string> models_of(const lease_trace& trace) {
  std::map<std::string, std::string> out;
  for (const auto& gpu : trace.gpus) {
    const auto& model = gpu.attributes.model;
    out.emplace(model, good_model(model) ? model : fmt::format("model-{}", out.size()));
  }
  return out;
}

std::vector<gpu_place> place_gpus(
  const lease_trace& trace, const std::map<std::string, std::string>& models, scenario& what) {
  std::vector<gpu_place> out;
  const traced_gpu* before = nullptr;
  for (const auto& gpu : trace.gpus) {
    const auto& about = gpu.attributes;
    if (before == nullptr || before->attributes.model != about.model
      || before->attributes.node != about.node) {
      gpu_group group;
      group.name = fmt::format("g{}", what.gpus.size());
      group.model = models.at(about.model);
      group.per_node = 0;
      what.gpus.push_back(std::move(group));
    }
    auto& group = what.gpus.back();
    out.push_back({fmt::format("{}#{}", group.name, group.count), group.name + "-0"});
    ++group.count;
    before = &gpu;
  }
  return out;
}

/// The need as the simulated GPUs can be asked for it: they have a model and a node, no memory and
/// no architecture.
struct kept_need {
  std::string text;
  bool exact = true;
};

kept_need keep_need(const std::string& text, const lease_trace& trace,
  const std::vector<gpu_place>& places, const std::map<std::string, std::string>& models) {
  auto need = parse_need(text).value_or(gpu_need{});
  size_t fitting = 0;
  bool same = true;
  gpu_need part;
  if (auto found = models.find(need.model); !need.model.empty() && found != models.end())
    part.model = found->second;
  for (size_t i = 0; i < trace.gpus.size(); ++i) {
    const auto& about = trace.gpus[i].attributes;
    bool full = fits(need, about);
    gpu_need shown{need.model, {}, need.node, 0};
    fitting += full ? 1 : 0;
    same = same && full == fits(shown, about);
    if (!need.node.empty() && about.node == need.node && part.node.empty())
      part.node = places[i].node;
  }
  if (fitting == trace.gpus.size() || fitting == 0)
    return {{}, fitting != 0};
  return {to_string(part), same};
}

std::array<double, 5> caps_of(const lease_trace& trace) {
  std::array<nanoseconds, 5> longest{};
  for (const auto& r : trace.requests) {
    auto& cap = longest[static_cast<size_t>(r.what)];
    cap = std::max({cap, r.term, r.hold});
    if (r.was_granted())
      cap = std::max(cap, r.released - r.granted);
  }
  std::array<double, 5> out = scenario{}.caps_s;
  for (size_t i = 0; i < out.size(); ++i)
    if (longest[i] > nanoseconds{0})
      out[i] = std::max(seconds_of(longest[i]), cap_min_s);
  return out;
}

/// Of one agent: when each of its lanes was free again.
using lanes = std::set<std::pair<nanoseconds, uint32_t>>;

class planner {
public:
  explicit planner(const lease_trace& trace) : trace_(trace) {}

  result<replay_plan> plan() {
    auto& what = out_.what;
    what.name = "replay";
    what.estimate = hold_estimate::exact;
    what.caps_s = caps_of(trace_);
    const auto models = models_of(trace_);
    places_ = place_gpus(trace_, models, what);
    for (const auto& text : trace_.needs)
      needs_.push_back(keep_need(text, trace_, places_, models));
    add_leases();
    if (out_.agents.size() + trace_.gpus.size() >= entities_max)
      return fail(errc::refused,
        fmt::format("{} agents and {} GPUs are more than the simulator has room for ({} in all); "
                    "read the first part only (--until), or import less (--limit)",
          out_.agents.size(), trace_.gpus.size(), entities_max));
    // However the leases are ordered, one after the other is the longest that they can take.
    auto all = std::min(trace_.span + held_ + std::chrono::hours{1}, duration_max);
    what.duration_s = seconds_of(all);
    what.patience_s = what.duration_s;
    add_outages(all);
    tell();
    return std::move(out_);
  }

private:
  static nanoseconds end_of(const traced_request& r) {
    return r.was_granted() ? r.freed : std::max(r.gave_up, r.asked);
  }

  recorded_agent& lane_of(const traced_request& r, nanoseconds& before) {
    before = nanoseconds{0};
    auto key = std::make_pair(trace_.agents_by_name ? 0 : r.problem, r.agent);
    auto& free = free_[key];
    uint32_t lane = 0;
    auto found = free.upper_bound({r.asked, std::numeric_limits<uint32_t>::max()});
    if (r.intended || found == free.begin()) {
      lane = static_cast<uint32_t>(out_.agents.size());
      overlapping_ += free.empty() || r.intended ? 0 : 1;
      out_.agents.push_back({trace_.agents[r.agent], r.weight, {}});
    } else {
      --found;
      before = found->first;
      lane = found->second;
      free.erase(found);
    }
    if (!r.intended)
      free.insert({end_of(r), lane});
    auto& agent = out_.agents[lane];
    weights_changed_ += agent.weight != r.weight ? 1 : 0;
    agent.weight = std::max(agent.weight, r.weight);
    return agent;
  }

  void add_leases() {
    std::vector<uint32_t> order(trace_.requests.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
      [&](uint32_t a, uint32_t b) { return trace_.requests[a].asked < trace_.requests[b].asked; });
    std::set<std::pair<uint32_t, nanoseconds>> outage_starts;
    for (uint32_t gpu = 0; gpu < trace_.gpus.size(); ++gpu)
      for (const auto& outage : trace_.gpus[gpu].outages)
        outage_starts.insert({gpu, outage.from});
    for (auto index : order) {
      const auto& r = trace_.requests[index];
      nanoseconds before{0};
      auto& agent = lane_of(r, before);
      recorded_lease lease;
      lease.absolute = r.intended;
      lease.gap = r.intended ? r.asked : r.asked - before;
      lease.estimate = r.estimate;
      lease.what = r.what;
      lease.problem = trace_.problems[r.problem];
      lease.need = needs_[r.need].text;
      needs_changed_ += needs_[r.need].exact ? 0 : 1;
      lease.attempt = fmt::format("{}", index);
      lease.outcome = r.outcome;
      lease.term = r.term;
      if (r.intended) {
        lease.hold = r.hold;
      } else if (r.was_granted()) {
        lease.hold = r.released - r.granted;
        lease.clean_up = r.freed - r.released;
        if (outage_starts.contains({r.gpu, r.freed}))
          lease.clean_up += clean_up_before_outage;
      } else {
        ++given_up_;
        lease.gave_up_after = std::max(r.gave_up - r.asked, nanoseconds{1});
        auto cap = nanoseconds{time_of(out_.what.caps_s[static_cast<size_t>(r.what)])};
        lease.hold = std::min(r.estimate > nanoseconds{0} ? r.estimate : cap / 4, cap);
      }
      lease.term = lease.term == nanoseconds{0} ? lease.term : std::max(lease.term, lease.hold);
      held_ += lease.hold + lease.clean_up;
      agent.leases.push_back(std::move(lease));
    }
  }

  void add_outages(nanoseconds all) {
    auto first = nanoseconds::max();
    nanoseconds last{0};
    for (const auto& r : trace_.requests) {
      first = std::min(first, r.asked);
      last = std::max(last, r.was_granted() ? r.freed : r.gave_up);
    }
    for (uint32_t gpu = 0; gpu < trace_.gpus.size(); ++gpu)
      for (const auto& outage : trace_.gpus[gpu].outages) {
        if (outage.to != traced_request::never && outage.to <= first)
          continue;
        // The end of a run sends its executors home; under another policy there may be work left.
        if (outage.to == traced_request::never
          && (outage.from >= last || outage.why.ends_with(executor_ended)))
          continue;
        incident one;
        one.kind = incident_kind::gpu_down;
        one.what = places_[gpu].name;
        one.at_s = seconds_of(outage.from);
        one.for_s =
          seconds_of((outage.to == traced_request::never ? all : outage.to) - outage.from);
        out_.what.incidents.push_back(std::move(one));
      }
  }

  void tell() {
    auto note = [&](uint64_t count, const std::string& text) {
      if (count != 0)
        out_.notes.push_back(fmt::format("{} {}", count, text));
    };
    note(overlapping_,
      "times an agent asked while it had a lease or a request of its own already: it is played by "
      "several of one name");
    note(weights_changed_, "requests whose weight is not that of their agent; the highest counts");
    note(needs_changed_,
      "requests with a need that the simulator cannot ask for exactly (memory, architecture, or "
      "one that no GPU of the file meets); the rest of the need counts");
    note(given_up_,
      "requests were given up; where a policy serves one before that, it holds for as long as was "
      "estimated");
    note(
      out_.what.incidents.size(), "times a GPU was away; so it is at the same times of the replay");
  }

  const lease_trace& trace_;
  replay_plan out_;
  std::vector<gpu_place> places_;
  std::vector<kept_need> needs_;
  std::map<std::pair<uint32_t, uint32_t>, lanes> free_;
  nanoseconds held_{0};
  uint64_t overlapping_ = 0;
  uint64_t weights_changed_ = 0;
  uint64_t needs_changed_ = 0;
  uint64_t given_up_ = 0;
};

} // namespace

result<replay_plan> plan_replay(const lease_trace& trace) {
  return planner(trace).plan();
}

} // namespace gristmill
