#include "simulation/report/lab_plan.hpp"

#include "gpu/lease/policy.hpp"
#include "journal/hash.hpp"
#include "planning/allocation/allocation_text.hpp"
#include "protocol/nearest.hpp"
#include "simulation/scenario_file.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace gristmill {

namespace {

constexpr const char* equal_name = "equal";
constexpr const char* oracle_name = "oracle";

result<void> check_list(const std::vector<std::string>& list, const char* what) {
  for (size_t i = 0; i < list.size(); ++i)
    if (std::find(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(i), list[i])
      != list.begin() + static_cast<std::ptrdiff_t>(i))
      return fail(errc::invalid_input, fmt::format("{} `{}` is named twice", what, list[i]));
  return {};
}

/// The oracle is no rule of production, so only the laboratory can propose it.
result<void> check_planner(const std::string& planner) {
  if (planner == oracle_name)
    return {};
  auto rule = allocation_from_text(planner);
  if (rule)
    return {};
  const auto what = fmt::format("planner `{}`: ", planner);
  if (nearest(planner, {oracle_name}))
    return fail(errc::invalid_input, what + "there is none; did you mean `oracle`?");
  return fail(rule.error().code, what + rule.error().what);
}

result<size_t> baseline_of(
  const lab_plan& plan, size_t first, const std::string& policy, const std::string& planner) {
  std::vector<std::string> known;
  for (size_t v = first; v < plan.variants.size(); ++v) {
    const auto& what = plan.variants[v].what;
    if (what.lease_policy == policy && what.planner == planner)
      return v;
    known.push_back(what.lease_policy + " and " + what.planner);
  }
  const auto wanted = policy + " and " + planner;
  return fail(errc::invalid_input,
    fmt::format(
      "the baseline `{}` is not among what is compared{}", wanted, suggestion(wanted, known)));
}

} // namespace

std::optional<size_t> lab_plan::sibling(size_t variant, std::string_view planner) const {
  const auto& of = variants[variant];
  for (size_t v = 0; v < variants.size(); ++v)
    if (variants[v].point == of.point && variants[v].what.lease_policy == of.what.lease_policy
      && variants[v].what.planner == planner)
      return v;
  return std::nullopt;
}

std::string lab_plan::label(size_t variant) const {
  const auto& of = variants[variant];
  std::string out;
  for (const auto& [key, value] : points[of.point])
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", key, value);
  const auto several = [this](auto get) {
    return std::any_of(variants.begin(), variants.end(),
      [&](const lab_variant& v) { return get(v) != get(variants.front()); });
  };
  const bool policies = several([](const lab_variant& v) { return v.what.lease_policy; });
  const bool planners = several([](const lab_variant& v) { return v.what.planner; });
  if (policies || out.empty())
    out += (out.empty() ? "" : " ") + of.what.lease_policy;
  if (planners && of.what.problems > 0)
    out += (out.empty() ? "" : " ") + of.what.planner;
  return out;
}

std::string lab_plan::hash() const {
  std::string text = fmt::format(
    "first_seed={}\nseeds={}\nengine={}\n", first_seed, seeds, static_cast<int>(engine));
  for (const auto& v : variants)
    text += v.config + "\n";
  return sha256_hex(text);
}

result<lab_plan> make_plan(const lab_wishes& wishes) {
  lab_plan plan;
  plan.name = wishes.base.name;
  plan.first_seed = wishes.first_seed;
  plan.seeds = wishes.seeds;
  plan.engine = wishes.engine;
  const auto grid = wishes.grid.empty() ? std::vector<grid_choice>(1) : wishes.grid;
  for (const auto& choice : grid)
    plan.points.push_back(choice.labels);
  if (wishes.seeds == 0)
    return fail(errc::invalid_input, "no seed: at least one is needed");
  if (wishes.first_seed > std::numeric_limits<uint64_t>::max() - wishes.seeds)
    return fail(errc::invalid_input, "the seeds pass the largest number");
  if (auto fine = check_list(wishes.policies, "lease policy"); !fine)
    return pass(fine);
  if (auto fine = check_list(wishes.planners, "planner"); !fine)
    return pass(fine);
  for (size_t p = 0; p < plan.points.size(); ++p) {
    scenario here = wishes.base;
    for (const auto& [key, value] : grid[p].settings)
      if (auto set = set_scenario_key(here, key, value); !set)
        return pass(set);
    auto policies = wishes.policies;
    if (policies.empty())
      policies.push_back(here.lease_policy);
    auto planners = wishes.planners;
    if (here.problems == 0 && !planners.empty())
      return fail(errc::invalid_input,
        fmt::format("planner `{}`: scenario `{}` has no problems, so there is nothing for a "
                    "planner to decide",
          planners.front(), here.name));
    if (planners.empty())
      planners.push_back(here.planner);
    if (here.problems > 0)
      for (const auto& planner : planners)
        if (auto fine = check_planner(planner); !fine)
          return pass(fine);
    const size_t asked = planners.size();
    if (wishes.with_bounds && here.problems > 0)
      for (const char* bound : {equal_name, oracle_name})
        if (std::find(planners.begin(), planners.end(), bound) == planners.end())
          planners.emplace_back(bound);
    const size_t first = plan.variants.size();
    for (const auto& policy : policies) {
      if (auto fine = policy_from_text(policy); !fine)
        return fail(
          fine.error().code, fmt::format("lease policy `{}`: {}", policy, fine.error().what));
      for (size_t i = 0; i < planners.size(); ++i) {
        if (plan.variants.size() == variants_max)
          return fail(errc::invalid_input,
            fmt::format("more than {} variants: the grid is too large", variants_max));
        lab_variant v;
        v.point = p;
        v.what = here;
        v.what.lease_policy = policy;
        v.what.planner = planners[i];
        v.config = config_hash(v.what);
        v.is_bound = i >= asked;
        plan.variants.push_back(std::move(v));
      }
    }
    const bool has_equal =
      std::find(planners.begin(), planners.end(), equal_name) != planners.end();
    const auto usual =
      wishes.against_equal && here.problems > 0 && has_equal ? equal_name : planners.front();
    auto base = baseline_of(plan, first, wishes.baseline_policy.value_or(policies.front()),
      wishes.baseline_planner.value_or(usual));
    if (!base)
      return pass(base);
    plan.baselines.push_back(*base);
  }
  if (plan.runs() > runs_max)
    return fail(errc::invalid_input,
      fmt::format("{} variants with {} seeds are {} runs; at most {}", plan.variants.size(),
        plan.seeds, plan.runs(), runs_max));
  return plan;
}

} // namespace gristmill
