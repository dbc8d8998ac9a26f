#include "gpu/lease/policy.hpp"

#include "gpu/lease/flow_tree.hpp"
#include "gpu/lease/guarded_policy.hpp"
#include "gpu/lease/policies/all.hpp"
#include "gpu/lease/policy_registry.hpp"
#include "gpu/lease/policy_text.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <set>

namespace gristmill {

namespace {

/// Filled once; only added to afterwards.
struct policy_registry {
  std::mutex mutex;
  std::map<std::string, policy_kind, std::less<>> kinds;

  policy_registry() {
    for (auto& kind : house_policies())
      kinds.emplace(kind.name, kind);
  }
};

policy_registry& bare_registry() {
  static policy_registry all;
  return all;
}

policy_registry& registry() {
  static std::once_flag once;
  std::call_once(once, add_own_policies);
  return bare_registry();
}

std::vector<policy_kind> all_kinds() {
  auto& all = registry();
  std::lock_guard lock(all.mutex);
  std::vector<policy_kind> out;
  for (const auto& [name, kind] : all.kinds)
    out.push_back(kind);
  return out;
}

const std::vector<std::string>& part_names() {
  static const std::vector<std::string> names = {"class", "problem", "agent", "user", "project"};
  return names;
}

/// `user` and `project` are what the broker for a shared machine calls problem and agent.
std::string plain_part(const std::string& name) {
  return name == "user" ? "problem" : name == "project" ? "agent" : name;
}

flow_part part_of(const std::string& name) {
  return name == "class" ? flow_part::klass
    : name == "problem"  ? flow_part::problem
                         : flow_part::agent;
}

std::vector<policy_parameter> parameters_of(const policy_kind& kind) {
  auto out = kind.parameters;
  if (kind.place == policy_place::flows)
    out.insert(out.begin(),
      {"by", value_kind::part, fmt::format("{}", kind.by_fallback.front()),
        kind.by_fallback.size() == 2 ? "what makes a flow; not given: problem, then agent within it"
                                     : "what makes a flow"});
  return out;
}

std::string_view kind_words(value_kind kind) {
  switch (kind) {
  case value_kind::decimal:
    return "a decimal such as 0.5, with at most three places";
  case value_kind::time:
    return "a time such as 10s, 50ms or 1.5h";
  case value_kind::natural:
    return "a whole number";
  case value_kind::order:
    return "names with '>' between them";
  case value_kind::part:
    return "class, problem (or user), agent (or project)";
  case value_kind::text:
    return "a text";
  }
  return "?";
}

std::vector<std::string> split_order(std::string_view text) {
  std::vector<std::string> out;
  if (text.empty())
    return out;
  for (;;) {
    auto end = text.find('>');
    out.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos)
      return out;
    text.remove_prefix(end + 1);
  }
}

bool fits_kind(const std::string& value, value_kind kind) {
  switch (kind) {
  case value_kind::decimal:
    return parse_thousandths(value).has_value();
  case value_kind::time:
    return parse_policy_time(value).has_value();
  case value_kind::natural: {
    uint64_t number = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    return error == std::errc{} && end == value.data() + value.size();
  }
  case value_kind::order: {
    auto names = split_order(value);
    return !names.empty() && std::find(names.begin(), names.end(), "") == names.end();
  }
  case value_kind::part:
    return std::find(part_names().begin(), part_names().end(), value) != part_names().end();
  case value_kind::text:
    return true;
  }
  return false;
}

/// The parameters of a level, checked, with those that were not given.
result<policy_values> values_of(const policy_level_text& level, const policy_kind& kind) {
  auto parameters = parameters_of(kind);
  std::vector<std::string> known;
  for (const auto& p : parameters)
    known.push_back(p.name);
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : level.parameters) {
    auto p = std::find_if(parameters.begin(), parameters.end(),
      [&name = name](const auto& each) { return each.name == name; });
    if (p == parameters.end())
      return fail(errc::invalid_input,
        fmt::format("lease policy '{}': there is no parameter '{}'{}", kind.name, shown(name),
          known.empty() ? "; it has none" : known_choices(name, known)));
    if (!fits_kind(value, p->kind)) {
      auto choices = p->kind == value_kind::part ? known_choices(value, part_names()) : "";
      return fail(errc::invalid_input,
        fmt::format("lease policy '{}': {}={}: must be {}{}", kind.name, name, shown(value),
          kind_words(p->kind), choices));
    }
    texts.emplace(name, p->kind == value_kind::part ? plain_part(value) : value);
  }
  for (const auto& p : parameters)
    if (!texts.contains(p.name)) {
      if (p.fallback.empty() && !p.optional)
        return fail(errc::invalid_input,
          fmt::format("lease policy '{}': parameter '{}' must be given ({})", kind.name, p.name,
            kind_words(p.kind)));
      texts.emplace(p.name, p.fallback);
    }
  return policy_values{std::move(texts)};
}

/// Makes the policies of a tree from the outermost level in.
class policy_builder {
public:
  policy_builder(std::string_view label, std::vector<policy_level_text> levels)
    : label_(label), levels_(std::move(levels)), kinds_(all_kinds()) {}

  result<std::unique_ptr<lease_policy>> build() {
    if (auto expanded = expand(); !expanded)
      return pass(expanded);
    return level(0);
  }

private:
  struct step {
    policy_kind kind;
    policy_values values;
  };

  result<const policy_kind*> kind_named(const std::string& name) const {
    std::vector<std::string> known;
    for (const auto& kind : kinds_) {
      if (kind.name == name)
        return &kind;
      known.push_back(kind.name);
    }
    return fail(errc::invalid_input,
      fmt::format("there is no lease policy '{}'{}", shown(name), known_choices(name, known)));
  }

  /// Levels that stand for two, and fifo below flows.
  result<void> expand() {
    for (size_t i = 0; i < levels_.size(); ++i) {
      auto kind = kind_named(levels_[i].name);
      if (!kind)
        return pass(kind);
      const auto& k = **kind;
      bool last = i + 1 == levels_.size();
      if (k.place == policy_place::alone && levels_.size() > 1)
        return fail(errc::invalid_input,
          fmt::format(
            "lease policy '{}' must stand by itself: it plans for all GPUs and requests", k.name));
      if (k.place == policy_place::inner && !last)
        return fail(errc::invalid_input,
          fmt::format("lease policy '{}' orders single requests, so '{}' cannot stand below it",
            k.name, shown(levels_[i + 1].name)));
      auto values = values_of(levels_[i], k);
      if (!values)
        return pass(values);
      if (k.place != policy_place::flows) {
        steps_.push_back({k, *values});
        continue;
      }
      bool given = std::any_of(levels_[i].parameters.begin(), levels_[i].parameters.end(),
        [](const auto& p) { return p.first == "by"; });
      for (const auto& by : given ? std::vector{values->text("by")} : k.by_fallback) {
        auto one = levels_[i];
        std::erase_if(one.parameters, [](const auto& p) { return p.first == "by"; });
        one.parameters.emplace_back("by", by);
        if (parts_.contains(by))
          return fail(errc::invalid_input,
            fmt::format("lease policy '{}': by={} stands on two levels{}", shown(label_), by,
              given ? "" : " ('" + k.name + "' without by= means problem, then agent)"));
        parts_.insert(by);
        steps_.push_back({k, *values_of(one, k)});
      }
    }
    if (steps_.back().kind.place == policy_place::flows)
      steps_.push_back({**kind_named("fifo"), policy_values{{}}});
    return {};
  }

  result<std::unique_ptr<lease_policy>> level(size_t at) const {
    const auto& s = steps_[at];
    if (s.kind.place != policy_place::flows)
      return s.kind.make_policy(s.values);
    auto rule = s.kind.make_rule(s.values);
    if (!rule)
      return pass(rule);
    // Made once to see that it can be; then as often as there are flows.
    auto below = level(at + 1);
    if (!below)
      return pass(below);
    auto shared = std::make_shared<const policy_builder>(*this);
    std::shared_ptr<const flow_tree::child_factory> make_child;
    if (steps_[at + 1].kind.name != "fifo")
      make_child = std::make_shared<const flow_tree::child_factory>(
        [shared, at] { return std::move(*shared->level(at + 1)); });
    return std::make_unique<flow_tree>(at == 0 ? label_ : std::string{s.kind.name},
      part_of(s.values.text("by")), std::move(*rule), std::move(make_child));
  }

  std::string label_;
  std::vector<policy_level_text> levels_;
  std::vector<policy_kind> kinds_;
  std::vector<step> steps_;
  std::set<std::string> parts_;
};

bool plain_name(std::string_view name) {
  auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= 32 && name[0] >= 'a' && name[0] <= 'z'
    && std::all_of(name.begin(), name.end(), good);
}

} // namespace

uint64_t policy_values::thousandths(const std::string& name) const {
  return parse_thousandths(text(name)).value_or(0);
}

std::chrono::nanoseconds policy_values::time(const std::string& name) const {
  return parse_policy_time(text(name)).value_or(std::chrono::nanoseconds{0});
}

uint64_t policy_values::natural(const std::string& name) const {
  uint64_t out = 0;
  const auto& digits = text(name);
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return out;
}

std::vector<std::string> policy_values::order(const std::string& name) const {
  return split_order(text(name));
}

result<std::unique_ptr<lease_policy>> policy_from_text(std::string_view text) {
  auto levels = parse_policy_text(text);
  if (!levels)
    return pass(levels);
  return policy_builder{text, std::move(*levels)}.build();
}

result<std::unique_ptr<lease_policy>> policy_by_name(std::string_view name) {
  return policy_from_text(name);
}

std::vector<std::string> policy_names() {
  std::vector<std::string> out;
  for (const auto& kind : all_kinds()) {
    bool bare = std::all_of(kind.parameters.begin(), kind.parameters.end(),
      [](const auto& p) { return !p.fallback.empty() || p.optional; });
    if (bare)
      out.push_back(kind.name);
  }
  return out;
}

std::vector<policy_info> policy_catalogue() {
  std::vector<policy_info> out;
  for (const auto& kind : all_kinds()) {
    policy_info info{kind.name, kind.what, {}};
    for (const auto& p : parameters_of(kind))
      info.parameters.push_back({p.name, std::string{kind_words(p.kind)}, p.fallback, p.what});
    out.push_back(std::move(info));
  }
  return out;
}

result<void> register_lease_policy(
  std::string name, std::function<std::unique_ptr<lease_policy>()> make, std::string description) {
  if (!plain_name(name))
    return fail(errc::invalid_input,
      fmt::format(
        "a lease policy cannot be called '{}': a name is [a-z][a-z0-9_]{{0,31}}", shown(name)));
  policy_kind kind;
  kind.name = name;
  kind.what = std::move(description);
  kind.make_policy = [make = std::move(make), name](
                       const policy_values&) -> result<std::unique_ptr<lease_policy>> {
    auto own = make();
    if (!own)
      return fail(errc::invalid_input, fmt::format("lease policy '{}' was not made", name));
    return make_guarded_policy(std::move(own));
  };
  auto& all = bare_registry();
  std::lock_guard lock(all.mutex);
  if (!all.kinds.emplace(name, std::move(kind)).second)
    return fail(errc::refused, fmt::format("there is a lease policy '{}' already", name));
  return {};
}

} // namespace gristmill
