#include "simulation/model/scenario_check.hpp"

#include "simulation/model/gpu_places.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

/// Collects the first thing that is wrong.
class checker {
public:
  void range(double value, double least, double most, const std::string& key) {
    if (!(value >= least && value <= most))
      refuse(fmt::format("{} is {}; it must lie in {}..{}", key, value, least, most));
  }
  void above(double value, double least, double most, const std::string& key) {
    if (!(value > least && value <= most))
      refuse(fmt::format("{} is {}; it must be above {} and at most {}", key, value, least, most));
  }
  void refuse(std::string what) {
    if (first_.empty())
      first_ = std::move(what);
  }
  const std::string& first() const { return first_; }

  void time(const time_law& law, const std::string& key) {
    range(law.mean_s, 0, duration_max_s, key + ".mean");
    range(law.sigma, 0, 5, key + ".sigma");
    range(law.cv2, 1, 1e6, key + ".cv2");
    range(law.cap_s, 0, duration_max_s, key + ".cap");
  }

private:
  std::string first_;
};

bool good_name(const std::string& name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'
      || c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), good);
}

constexpr auto name_rule = "1 to 64 letters, digits, '-', '_' or '.'";

void check_gpus(const scenario& what, checker& see) {
  uint64_t count = 0;
  std::set<std::string> names;
  for (const auto& group : what.gpus) {
    if (!good_name(group.name))
      see.refuse(fmt::format("gpus.name is '{}'; it must be {}", group.name, name_rule));
    if (!good_name(group.model))
      see.refuse(fmt::format("gpus.model is '{}'; it must be {}", group.model, name_rule));
    if (!names.insert(group.name).second)
      see.refuse(fmt::format("gpus.name '{}' stands twice", group.name));
    see.above(group.speed, 0, 1000, "gpus.speed");
    count += group.count;
  }
  if (count == 0)
    see.refuse("gpus.count: there must be at least one GPU");
  uint64_t agents = 0;
  names.clear();
  for (const auto& group : what.agents) {
    if (!good_name(group.name))
      see.refuse(fmt::format("agents.name is '{}'; it must be {}", group.name, name_rule));
    if (!names.insert(group.name).second)
      see.refuse(fmt::format("agents.name '{}' stands twice", group.name));
    see.range(group.weight, 1, 1'000'000, "agents.weight");
    see.above(group.hold_factor, 0, 1e6, "agents.hold_factor");
    see.range(group.think_factor, 0, 1e6, "agents.think_factor");
    if (group.need.size() > 1024)
      see.refuse("agents.need is longer than 1024 bytes");
    agents += group.count;
  }
  if (agents + count + 2 > entities_max)
    see.refuse(
      fmt::format("agents.count and gpus.count: {} agents and {} GPUs are more than the {} "
                  "that a run may have together",
        agents, count, entities_max - 2));
}

void check_laws(const scenario& what, checker& see) {
  see.range(what.arrivals.rate, 0, 1e6, "arrivals.rate");
  see.range(what.arrivals.leases_mean, 1, 1e6, "arrivals.leases_mean");
  see.range(what.arrivals.jobs_max, 1, 10'000'000, "arrivals.jobs_max");
  see.range(what.think.calls_mean, 1, 1e6, "think.calls_mean");
  see.range(what.think.tail_chance, 0, 1, "think.tail_chance");
  see.range(what.think.tail_factor, 0, 1e6, "think.tail_factor");
  see.time(what.think.call, "think.call");
  see.time(what.compile.time, "compile");
  see.range(what.compile.slots, 0, 1'000'000, "compile.slots");
  see.time(what.hold.time, "hold");
  see.range(what.hold.agent_sigma, 0, 5, "hold.agent_sigma");
  see.range(what.hold.launch_s, 0, 86'400, "hold.launch");
  see.range(what.hold.verify_s, 0, 86'400, "hold.verify");
  see.range(what.fate.hang, 0, 1, "fate.hang");
  see.range(what.fate.fault, 0, 1, "fate.fault");
  see.range(what.fate.hang + what.fate.fault, 0, 1, "fate.hang + fate.fault");
  see.range(what.fate.hang_cleanup_s, 0, 86'400, "fate.hang_cleanup");
}

void check_problems(const scenario& what, checker& see) {
  see.range(what.problems, 0, 100'000, "problems");
  see.range(what.curve_points, 1, 100'000, "curve_points");
  const auto& law = what.learning;
  see.above(law.gamma, 0, 100, "learning.gamma");
  see.range(law.correct, 0, 1, "learning.correct");
  see.range(law.improve, 0, 1, "learning.improve");
  see.above(law.step, 0, 1e6, "learning.step");
  see.range(law.spread, 0, 5, "learning.spread");
  const auto& end = what.outcome;
  see.range(end.win, 0, 1, "outcome.win");
  see.range(end.win_mean, 0, 100, "outcome.win_mean");
  see.range(end.loss_mean, 0, 100, "outcome.loss_mean");
  see.above(end.leases, 0, 1e12, "outcome.leases");
  see.range(end.start_mean, -100, 100, "outcome.start_mean");
  see.range(end.start_sigma, 0, 100, "outcome.start_sigma");
  see.range(end.headroom_mu, -100, 100, "outcome.headroom_mu");
  see.range(end.headroom_sigma, 0, 10, "outcome.headroom_sigma");
}

void check_incidents(const scenario& what, checker& see) {
  const auto places = gpu_places(what);
  const auto nodes = node_names(places);
  std::vector<std::string> gpus;
  for (const auto& place : places)
    gpus.push_back(place.name);
  const auto check_pace = [&](incident_kind kind, double pace, const std::string& key) {
    if (kind == incident_kind::rate_limit && !(pace > 0 && pace < 1))
      see.refuse(fmt::format("{} is {}; of a rate limit it must lie between 0 and 1", key, pace));
  };
  if (what.incidents.size() > 100'000 || what.chance_incidents.size() > 1000)
    see.refuse("incidents: at most 100000, and 1000 laws of chance");
  for (const auto& one : what.incidents) {
    see.range(one.at_s, 0, duration_max_s, "incidents.at");
    see.above(one.for_s, 0, duration_max_s, "incidents.for");
    check_pace(one.kind, one.pace, "incidents.pace");
    const auto known = [&](const std::vector<std::string>& names, const char* kind) {
      if (std::find(names.begin(), names.end(), one.what) == names.end())
        see.refuse(fmt::format("incidents.what: there is no {} '{}'; they are '{}' to '{}'", kind,
          one.what.substr(0, 64), names.empty() ? "" : names.front(),
          names.empty() ? "" : names.back()));
    };
    if (one.kind == incident_kind::gpu_down)
      known(gpus, "GPU");
    if (one.kind == incident_kind::node_down)
      known(nodes, "node");
  }
  for (const auto& law : what.chance_incidents) {
    see.above(law.mean_between_s, 0, 1e12, "chance_incidents.mean_between");
    see.above(law.mean_for_s, 0, duration_max_s, "chance_incidents.mean_for");
    check_pace(law.kind, law.pace, "chance_incidents.pace");
  }
}

} // namespace

result<void> check_scenario(const scenario& what) {
  checker see;
  see.above(what.duration_s, 0, duration_max_s, "duration");
  see.range(what.warm_up_s, 0, duration_max_s, "warm_up");
  if (what.warm_up_s >= what.duration_s)
    see.refuse(fmt::format("warm_up is {} s; it must be shorter than the duration of {} s",
      what.warm_up_s, what.duration_s));
  check_gpus(what, see);
  check_laws(what, see);
  check_problems(what, see);
  check_incidents(what, see);
  for (auto cap : what.caps_s)
    see.above(cap, 0.001, duration_max_s, "caps");
  see.above(what.patience_s, 0.001, duration_max_s, "patience");
  if (!see.first().empty())
    return fail(errc::invalid_input, see.first());
  return {};
}

} // namespace gristmill
