#include "simulation/selfcheck/runs.hpp"

#include <fmt/format.h>
#include <utility>

namespace gristmill {

time_law exponential_law(double mean_s) {
  time_law out;
  out.kind = draw_kind::exponential;
  out.mean_s = mean_s;
  return out;
}

time_law law_of(double mean_s, double cv2) {
  auto out = exponential_law(mean_s);
  if (cv2 == 0)
    out.kind = draw_kind::constant;
  if (cv2 > 1) {
    out.kind = draw_kind::hyperexponential;
    out.cv2 = cv2;
  }
  return out;
}

std::string wait_line(const load_case& what) {
  return fmt::format("mean wait, s: load {}, CV^2 {}, {:.0f} jobs", what.load, what.cv2, what.jobs);
}

scenario bare_scenario(std::string name, uint32_t gpus, double duration_s, double warm_up_s) {
  scenario out;
  out.name = std::move(name);
  out.duration_s = duration_s;
  out.warm_up_s = warm_up_s;
  gpu_group group;
  group.count = gpus;
  out.gpus = {group};
  out.hold.time = exponential_law(1);
  out.estimate = hold_estimate::none;
  out.lease_policy = "fifo";
  out.caps_s = {86'400, 86'400, 86'400, 86'400, 86'400};
  return out;
}

scenario closed_scenario(std::string name, uint32_t agents, uint32_t gpus, double think_s,
  double hold_s, double duration_s, double warm_up_s) {
  auto out = bare_scenario(std::move(name), gpus, duration_s, warm_up_s);
  agent_group group;
  group.count = agents;
  out.agents = {group};
  out.think.call = exponential_law(think_s);
  out.hold.time = exponential_law(hold_s);
  return out;
}

scenario open_scenario(
  std::string name, uint32_t gpus, double load, const time_law& hold, double jobs, double warm_up) {
  const double rate = load * gpus / hold.mean_s;
  auto out =
    bare_scenario(std::move(name), gpus, jobs * (1 + warm_up) / rate, jobs * warm_up / rate);
  out.arrivals.rate = rate;
  out.hold.time = hold;
  return out;
}

result<lab_result> run_scenario(const scenario& what, uint64_t seed, mutant_kind mutant,
  lab_options options, queue_watch* watch) {
  uint32_t gpus = 0;
  for (const auto& group : what.gpus)
    gpus += group.count;
  // Read here as well, because the engine asks for a policy and not for a result.
  if (auto policy = policy_from_text(what.lease_policy); !policy)
    return pass(policy);
  options.world.seed = seed;
  if (mutant != mutant_kind::none || watch)
    options.make_policy = [&what, mutant, gpus, watch] {
      auto policy = with_mutant(mutant, std::move(*policy_from_text(what.lease_policy)), gpus);
      return watch ? watch->before(std::move(policy)) : std::move(policy);
    };
  auto out = run_core(what, std::move(options));
  if (out && watch)
    watch->close(time_of(what.duration_s));
  return out;
}

void count_run(seed_outcome& out, const lab_result& run) {
  out.leases += run.leases_total;
  out.digest += run.digest;
}

std::function<result<seed_outcome>(uint64_t seed, mutant_kind mutant)> run_each(
  std::vector<scenario> all, std::function<double(const lab_result&)> value) {
  return [all = std::move(all), value = std::move(value)](
           uint64_t seed, mutant_kind mutant) -> result<seed_outcome> {
    seed_outcome one;
    for (const auto& of : all) {
      auto run = run_scenario(of, seed, mutant);
      if (!run)
        return pass(run);
      one.values.push_back(value(*run));
      count_run(one, *run);
    }
    return one;
  };
}

} // namespace gristmill
