#include "actors/planner_text.hpp"

#include "gpu/lease/policy_text.hpp"

#include <fmt/format.h>
#include <string>

namespace gristmill {

namespace {

struct parameter {
  const char* name;
  double allocation_settings::*member;
  double most;
};

constexpr parameter parameters[] = {{"floor", &allocation_settings::floor, 1},
  {"gate", &allocation_settings::gate, 10}, {"prior", &allocation_settings::prior, 10}};

result<void> take(
  allocation_settings& settings, const std::string& name, const std::string& value) {
  for (const auto& p : parameters) {
    if (name != p.name)
      continue;
    auto thousandths = parse_thousandths(value);
    if (!thousandths || static_cast<double>(*thousandths) > p.most * 1000)
      return fail(errc::invalid_input,
        fmt::format(
          "--planner: rebalance({}={}): must be a decimal from 0 to {} with at most three "
          "places",
          p.name, shown(value), p.most));
    settings.*p.member = static_cast<double>(*thousandths) / 1000;
    return {};
  }
  return fail(errc::invalid_input,
    fmt::format("--planner: rebalance has no parameter '{}'{}", shown(name),
      known_choices(name, {"floor", "gate", "prior"})));
}

} // namespace

result<allocation_settings> planner_from_text(std::string_view text) {
  auto levels = parse_policy_text(text);
  if (!levels) {
    // The form is that of the lease policies, and so are the messages.
    constexpr std::string_view theirs = "lease policy";
    auto what = levels.error().what;
    if (what.starts_with(theirs))
      what.replace(0, theirs.size(), "allocation");
    return fail(levels.error().code, "--planner: " + what);
  }
  if (levels->size() != 1)
    return fail(errc::invalid_input,
      fmt::format("--planner {}: an allocation has one level, this text has {}", shown(text),
        levels->size()));
  const auto& level = levels->front();
  allocation_settings settings;
  if (level.name == "rebalance")
    settings.kind = allocation_kind::rebalance;
  else if (level.name != "equal")
    return fail(errc::invalid_input,
      fmt::format("--planner {}: unknown{}", shown(level.name),
        known_choices(level.name, {"equal", "rebalance"})));
  if (settings.kind == allocation_kind::equal && !level.parameters.empty())
    return fail(errc::invalid_input,
      fmt::format("--planner: equal has no parameter '{}'; it has none at all",
        shown(level.parameters.front().first)));
  for (const auto& [name, value] : level.parameters)
    if (auto taken = take(settings, name, value); !taken)
      return pass(taken);
  return settings;
}

} // namespace gristmill
