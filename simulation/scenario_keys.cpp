#include "simulation/scenario_keys.hpp"

#include "gpu/lease/policy_text.hpp"
#include "protocol/nearest.hpp"
#include "simulation/model/counter_stream.hpp"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace gristmill {

namespace {

/// A time: seconds as a number, or a text with a unit.
struct time_slot {
  double* seconds = nullptr;
};

using slot = std::variant<double*, time_slot, uint32_t*, bool*, std::string*, lease_class*,
  draw_kind*, hold_estimate*, incident_kind*>;

template <class T>
struct field {
  std::string key;
  slot (*at)(T&);
};

// --- names of the enumerations, in their order -----------------------------------------------

const std::vector<std::string>& names_of(const lease_class*) {
  static const std::vector<std::string> names = {
    "correctness", "timing", "profile", "reference", "official"};
  return names;
}
const std::vector<std::string>& names_of(const draw_kind*) {
  static const std::vector<std::string> names = {
    "constant", "exponential", "lognormal", "hyperexponential"};
  return names;
}
const std::vector<std::string>& names_of(const hold_estimate*) {
  static const std::vector<std::string> names = {"none", "mean", "exact"};
  return names;
}
const std::vector<std::string>& names_of(const incident_kind*) {
  static const std::vector<std::string> names = {
    "gpu_down", "node_down", "model_outage", "rate_limit"};
  return names;
}

// --- the keys --------------------------------------------------------------------------------

#define GRISTMILL_KEY(type, name, expression)                                                      \
  field<type> {                                                                                    \
    name, [](type& s) -> slot { return expression; }                                               \
  }
#define GRISTMILL_LAW(prefix, law)                                                                 \
  GRISTMILL_KEY(scenario, prefix ".kind", &s.law.kind),                                            \
    GRISTMILL_KEY(scenario, prefix ".mean", time_slot{&s.law.mean_s}),                             \
    GRISTMILL_KEY(scenario, prefix ".sigma", &s.law.sigma),                                        \
    GRISTMILL_KEY(scenario, prefix ".cv2", &s.law.cv2),                                            \
    GRISTMILL_KEY(scenario, prefix ".cap", time_slot{&s.law.cap_s})

const std::vector<field<scenario>>& fields() {
  static const std::vector<field<scenario>> all = {
    GRISTMILL_KEY(scenario, "name", &s.name),
    GRISTMILL_KEY(scenario, "duration", time_slot{&s.duration_s}),
    GRISTMILL_KEY(scenario, "warm_up", time_slot{&s.warm_up_s}),
    GRISTMILL_KEY(scenario, "lease_policy", &s.lease_policy),
    GRISTMILL_KEY(scenario, "planner", &s.planner),
    GRISTMILL_KEY(scenario, "estimate", &s.estimate),
    GRISTMILL_KEY(scenario, "patience", time_slot{&s.patience_s}),
    GRISTMILL_KEY(scenario, "problems", &s.problems),
    GRISTMILL_KEY(scenario, "starts_solved", &s.starts_solved),
    GRISTMILL_KEY(scenario, "curve_points", &s.curve_points),
    GRISTMILL_KEY(scenario, "caps.correctness", time_slot{&s.caps_s[0]}),
    GRISTMILL_KEY(scenario, "caps.timing", time_slot{&s.caps_s[1]}),
    GRISTMILL_KEY(scenario, "caps.profile", time_slot{&s.caps_s[2]}),
    GRISTMILL_KEY(scenario, "caps.reference", time_slot{&s.caps_s[3]}),
    GRISTMILL_KEY(scenario, "caps.official", time_slot{&s.caps_s[4]}),
    GRISTMILL_KEY(scenario, "arrivals.rate", &s.arrivals.rate),
    GRISTMILL_KEY(scenario, "arrivals.leases_mean", &s.arrivals.leases_mean),
    GRISTMILL_KEY(scenario, "arrivals.class", &s.arrivals.what),
    GRISTMILL_KEY(scenario, "arrivals.jobs_max", &s.arrivals.jobs_max),
    GRISTMILL_KEY(scenario, "think.calls_mean", &s.think.calls_mean),
    GRISTMILL_KEY(scenario, "think.tail_chance", &s.think.tail_chance),
    GRISTMILL_KEY(scenario, "think.tail_factor", &s.think.tail_factor),
    GRISTMILL_LAW("think.call", think.call),
    GRISTMILL_KEY(scenario, "compile.on_lease", &s.compile.on_lease),
    GRISTMILL_KEY(scenario, "compile.slots", &s.compile.slots),
    GRISTMILL_LAW("compile", compile.time),
    GRISTMILL_LAW("hold", hold.time),
    GRISTMILL_KEY(scenario, "hold.agent_sigma", &s.hold.agent_sigma),
    GRISTMILL_KEY(scenario, "hold.launch", time_slot{&s.hold.launch_s}),
    GRISTMILL_KEY(scenario, "hold.verify", time_slot{&s.hold.verify_s}),
    GRISTMILL_KEY(scenario, "fate.hang", &s.fate.hang),
    GRISTMILL_KEY(scenario, "fate.hang_cleanup", time_slot{&s.fate.hang_cleanup_s}),
    GRISTMILL_KEY(scenario, "fate.fault", &s.fate.fault),
    GRISTMILL_KEY(scenario, "learning.gamma", &s.learning.gamma),
    GRISTMILL_KEY(scenario, "learning.correct", &s.learning.correct),
    GRISTMILL_KEY(scenario, "learning.improve", &s.learning.improve),
    GRISTMILL_KEY(scenario, "learning.step", &s.learning.step),
    GRISTMILL_KEY(scenario, "learning.spread", &s.learning.spread),
    GRISTMILL_KEY(scenario, "outcome.win", &s.outcome.win),
    GRISTMILL_KEY(scenario, "outcome.win_mean", &s.outcome.win_mean),
    GRISTMILL_KEY(scenario, "outcome.loss_mean", &s.outcome.loss_mean),
    GRISTMILL_KEY(scenario, "outcome.leases", &s.outcome.leases),
    GRISTMILL_KEY(scenario, "outcome.start_mean", &s.outcome.start_mean),
    GRISTMILL_KEY(scenario, "outcome.start_sigma", &s.outcome.start_sigma),
    GRISTMILL_KEY(scenario, "outcome.headroom_mu", &s.outcome.headroom_mu),
    GRISTMILL_KEY(scenario, "outcome.headroom_sigma", &s.outcome.headroom_sigma),
  };
  return all;
}

const std::vector<field<gpu_group>>& gpu_fields() {
  static const std::vector<field<gpu_group>> all = {
    GRISTMILL_KEY(gpu_group, "name", &s.name),
    GRISTMILL_KEY(gpu_group, "model", &s.model),
    GRISTMILL_KEY(gpu_group, "count", &s.count),
    GRISTMILL_KEY(gpu_group, "speed", &s.speed),
    GRISTMILL_KEY(gpu_group, "per_node", &s.per_node),
  };
  return all;
}

const std::vector<field<agent_group>>& agent_fields() {
  static const std::vector<field<agent_group>> all = {
    GRISTMILL_KEY(agent_group, "name", &s.name),
    GRISTMILL_KEY(agent_group, "count", &s.count),
    GRISTMILL_KEY(agent_group, "class", &s.what),
    GRISTMILL_KEY(agent_group, "weight", &s.weight),
    GRISTMILL_KEY(agent_group, "need", &s.need),
    GRISTMILL_KEY(agent_group, "hold_factor", &s.hold_factor),
    GRISTMILL_KEY(agent_group, "think_factor", &s.think_factor),
  };
  return all;
}

const std::vector<field<incident>>& incident_fields() {
  static const std::vector<field<incident>> all = {
    GRISTMILL_KEY(incident, "kind", &s.kind),
    GRISTMILL_KEY(incident, "at", time_slot{&s.at_s}),
    GRISTMILL_KEY(incident, "for", time_slot{&s.for_s}),
    GRISTMILL_KEY(incident, "what", &s.what),
    GRISTMILL_KEY(incident, "pace", &s.pace),
  };
  return all;
}

const std::vector<field<incident_law>>& chance_fields() {
  static const std::vector<field<incident_law>> all = {
    GRISTMILL_KEY(incident_law, "kind", &s.kind),
    GRISTMILL_KEY(incident_law, "mean_between", time_slot{&s.mean_between_s}),
    GRISTMILL_KEY(incident_law, "mean_for", time_slot{&s.mean_for_s}),
    GRISTMILL_KEY(incident_law, "pace", &s.pace),
  };
  return all;
}

#undef GRISTMILL_LAW
#undef GRISTMILL_KEY

/// Calls `use(members, fields)` with the list of that name.
template <class S, class F>
auto with_list(S& what, std::string_view list, F use) {
  if (list == "gpus")
    return use(what.gpus, gpu_fields());
  if (list == "agents")
    return use(what.agents, agent_fields());
  if (list == "incidents")
    return use(what.incidents, incident_fields());
  return use(what.chance_incidents, chance_fields());
}

template <class T>
std::vector<std::string> keys_of(const std::vector<field<T>>& all) {
  std::vector<std::string> out;
  for (const auto& f : all)
    out.push_back(f.key);
  return out;
}

// --- values ----------------------------------------------------------------------------------

std::string shown_value(const scenario_value& value) {
  if (const auto* text = std::get_if<std::string>(&value))
    return "'" + shown(*text) + "'";
  if (const auto* flag = std::get_if<bool>(&value))
    return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<int64_t>(&value))
    return fmt::format("{}", *whole);
  return fmt::format("{}", std::get<double>(value));
}

tl::unexpected<failure> wrong(const scenario_value& value, const std::string& wanted) {
  return fail(errc::invalid_input, fmt::format("{} is not {}", shown_value(value), wanted));
}

/// A finite number.
bool number_of(const scenario_value& value, double& out) {
  if (const auto* whole = std::get_if<int64_t>(&value))
    out = static_cast<double>(*whole);
  else if (const auto* real = std::get_if<double>(&value))
    out = *real;
  else
    return false;
  return std::isfinite(out);
}

result<void> put(double* to, const scenario_value& value) {
  double x = 0;
  if (!number_of(value, x))
    return wrong(value, "a number");
  *to = x;
  return {};
}

result<void> put(time_slot to, const scenario_value& value) {
  double x = 0;
  if (number_of(value, x)) {
    *to.seconds = x;
    return {};
  }
  if (const auto* text = std::get_if<std::string>(&value))
    if (auto t = parse_policy_time(*text)) {
      *to.seconds = seconds_of(*t);
      return {};
    }
  return wrong(value, "a time: seconds, or a text such as \"90s\", \"2h\" or \"21d\"");
}

result<void> put(uint32_t* to, const scenario_value& value) {
  const auto* whole = std::get_if<int64_t>(&value);
  if (whole == nullptr || *whole < 0 || *whole > std::numeric_limits<uint32_t>::max())
    return wrong(value, "a whole number from 0 to 4294967295");
  *to = static_cast<uint32_t>(*whole);
  return {};
}

result<void> put(bool* to, const scenario_value& value) {
  const auto* flag = std::get_if<bool>(&value);
  if (flag == nullptr)
    return wrong(value, "true or false");
  *to = *flag;
  return {};
}

result<void> put(std::string* to, const scenario_value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr)
    return wrong(value, "a text");
  if (text->size() > 8192)
    return fail(errc::invalid_input, "the text is longer than 8192 bytes");
  *to = *text;
  return {};
}

template <class E>
result<void> put(E* to, const scenario_value& value) {
  const auto& names = names_of(to);
  const auto* text = std::get_if<std::string>(&value);
  for (size_t i = 0; text != nullptr && i < names.size(); ++i)
    if (names[i] == *text) {
      *to = static_cast<E>(i);
      return {};
    }
  return fail(errc::invalid_input,
    fmt::format("{} is not one of the choices{}", shown_value(value),
      suggestion(text != nullptr ? shown(*text) : std::string{}, names)));
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\u{:04x}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string text_of(const slot& at) {
  return std::visit(
    [](auto to) -> std::string {
      using to_type = decltype(to);
      if constexpr (std::is_same_v<to_type, time_slot>)
        return fmt::format("{}", *to.seconds);
      else if constexpr (std::is_same_v<to_type, bool*>)
        return *to ? "true" : "false";
      else if constexpr (std::is_same_v<to_type, std::string*>)
        return quoted(*to);
      else if constexpr (std::is_enum_v<std::remove_pointer_t<to_type>>)
        return quoted(names_of(to)[static_cast<size_t>(*to)]);
      else
        return fmt::format("{}", *to);
    },
    at);
}

template <class T>
result<void> set_field(
  T& in, const std::vector<field<T>>& all, std::string_view key, const scenario_value& value) {
  for (const auto& f : all)
    if (f.key == key)
      return std::visit([&](auto to) { return put(to, value); }, f.at(in));
  return fail(errc::invalid_input, "there is no such key" + suggestion(shown(key), keys_of(all)));
}

template <class T>
std::string field_text(const T& in, const std::vector<field<T>>& all, std::string_view key) {
  // The accessors are written once, for changing; here nothing is changed.
  for (const auto& f : all)
    if (f.key == key)
      return text_of(f.at(const_cast<T&>(in)));
  return {};
}

} // namespace

scenario_value scenario_value_of(std::string_view text) {
  if (text == "true" || text == "false")
    return text == "true";
  const auto* end = text.data() + text.size();
  int64_t whole = 0;
  if (auto [stop, bad] = std::from_chars(text.data(), end, whole);
      bad == std::errc{} && stop == end)
    return whole;
  double real = 0;
  if (auto [stop, bad] = std::from_chars(text.data(), end, real); bad == std::errc{} && stop == end)
    return real;
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    text = text.substr(1, text.size() - 2);
  return std::string(text);
}

const std::vector<std::string>& scenario_lists() {
  static const std::vector<std::string> names = {"gpus", "agents", "incidents", "chance_incidents"};
  return names;
}

size_t list_size(const scenario& what, std::string_view list) {
  return with_list(what, list, [](const auto& members, const auto&) { return members.size(); });
}

void resize_list(scenario& what, std::string_view list, size_t size) {
  with_list(what, list, [&](auto& members, const auto&) { members.resize(size); });
}

const std::vector<std::string>& scenario_keys() {
  static const std::vector<std::string> keys = keys_of(fields());
  return keys;
}

std::vector<std::string> list_keys(std::string_view list) {
  const scenario nothing;
  return with_list(nothing, list, [](const auto&, const auto& all) { return keys_of(all); });
}

result<void> set_key(scenario& what, std::string_view key, const scenario_value& value) {
  return set_field(what, fields(), key, value);
}

result<void> set_list_key(scenario& what, std::string_view list, size_t index, std::string_view key,
  const scenario_value& value) {
  return with_list(what, list,
    [&](auto& members, const auto& all) { return set_field(members[index], all, key, value); });
}

std::string key_text(const scenario& what, std::string_view key) {
  return field_text(what, fields(), key);
}

std::string list_key_text(
  const scenario& what, std::string_view list, size_t index, std::string_view key) {
  return with_list(what, list,
    [&](const auto& members, const auto& all) { return field_text(members[index], all, key); });
}

} // namespace gristmill
