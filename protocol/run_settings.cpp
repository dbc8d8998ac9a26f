#include "protocol/run_settings.hpp"

#include "protocol/nearest.hpp"

#include <charconv>
#include <limits>
#include <sstream>
#include <toml++/toml.h>

namespace gristmill {

namespace {

constexpr size_t config_bytes_max = 1 << 20;

/// Where in the file a message points to.
std::string place(const std::string& file_name, const toml::node& node) {
  return file_name + ":" + std::to_string(node.source().begin.line);
}

template <class Number>
result<Number> number_of(const std::string& name, const std::string& text) {
  Number value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    return fail(errc::invalid_input, name + "='" + text + "': must be a whole number of 0 or more");
  return value;
}

struct reader {
  const std::string& file_name;

  result<void> wrong(const toml::node& node, const std::string& field, const char* want) const {
    return fail(errc::invalid_input, place(file_name, node) + ": " + field + ": must be " + want);
  }

  result<void> read(const toml::node& node, const std::string& field, std::string& to) const {
    auto value = node.value_exact<std::string>();
    if (!value)
      return wrong(node, field, "a string");
    to = *value;
    return {};
  }

  result<void> read(
    const toml::node& node, const std::string& field, std::vector<std::string>& to) const {
    const auto* list = node.as_array();
    if (!list)
      return wrong(node, field, "a list of strings");
    std::vector<std::string> out;
    for (const auto& item : *list) {
      auto value = item.value_exact<std::string>();
      if (!value)
        return wrong(item, field, "a list of strings");
      out.push_back(*value);
    }
    to = std::move(out);
    return {};
  }

  result<void> read(const toml::node& node, const std::string& field, bool& to) const {
    auto value = node.value_exact<bool>();
    if (!value)
      return wrong(node, field, "true or false");
    to = *value;
    return {};
  }

  result<void> read(const toml::node& node, const std::string& field, uint32_t& to) const {
    auto value = node.value_exact<int64_t>();
    if (!value || *value < 0 || *value > std::numeric_limits<uint32_t>::max())
      return wrong(node, field, "a whole number of 0 or more");
    to = static_cast<uint32_t>(*value);
    return {};
  }

  result<void> read(
    const toml::node& node, const std::string& field, std::optional<uint64_t>& to) const {
    if (auto text = node.value_exact<std::string>()) {
      auto large = number_of<uint64_t>(place(file_name, node) + ": " + field, *text);
      if (!large)
        return pass(large);
      to = *large;
      return {};
    }
    auto value = node.value_exact<int64_t>();
    if (!value || *value < 0)
      return wrong(node, field, "a whole number of 0 or more");
    to = static_cast<uint64_t>(*value);
    return {};
  }
};

/// Calls `use(key, member)` for every setting of a table, so that reading and the list of known
/// names cannot drift apart.
template <class Settings, class F>
void each_in_run(Settings& s, F use) {
  use("problems", s.problems);
  use("keep_going", s.keep_going);
  use("gpus", s.gpus);
  use("workers", s.workers);
  use("budget", s.budget);
  use("seed", s.seed);
  use("out", s.out);
  use("proposer", s.proposer);
  use("candidates", s.candidates);
  use("bounds", s.bounds);
  use("toolchain", s.toolchain);
  use("lease_policy", s.lease_policy);
  use("planner", s.planner);
}

template <class Settings, class F>
void each_in_oracle(Settings& s, F use) {
  use("kind", s.oracle);
  use("python", s.python);
}

template <class Settings, class F>
void each_in_measure(Settings& s, F use) {
  use("rounds", s.rounds);
  use("check_elements", s.check_elements);
  use("promote", s.promote);
  use("samples", s.samples);
  use("flush", s.flush);
}

template <class Settings, class F>
void each_in_cluster(Settings& s, F use) {
  use("listen", s.listen);
  use("tls", s.tls);
  use("heartbeat", s.heartbeat);
  use("node_timeout", s.node_timeout);
}

template <class Settings, class F>
void each_in_models(Settings& s, F use) {
  use("endpoint", s.model_endpoint);
  use("model", s.model);
  use("dialect", s.model_dialect);
  use("key_env", s.model_key_env);
  use("file", s.models);
  use("allow_unpriced", s.allow_unpriced);
  use("problem_budget", s.problem_budget);
  use("agent_budget", s.agent_budget);
  use("cassette", s.cassette);
  use("program", s.program);
  use("docs", s.docs);
}

template <class Each>
result<void> read_table(
  const toml::node& node, const std::string& name, const std::string& file_name, Each each) {
  const auto* table = node.as_table();
  if (!table)
    return fail(errc::invalid_input, place(file_name, node) + ": " + name + ": must be a table");
  for (const auto& [key, value] : *table) {
    std::string wanted(key.str());
    std::vector<std::string> known;
    result<void> outcome;
    bool found = false;
    each([&](const char* setting, auto& member) {
      known.emplace_back(setting);
      if (wanted != setting)
        return;
      found = true;
      outcome = reader{file_name}.read(value, name + "." + wanted, member);
    });
    if (!found)
      return fail(errc::invalid_input,
        place(file_name, value) + ": " + name + "." + wanted + ": unknown key"
          + suggestion(wanted, known));
    if (!outcome)
      return outcome;
  }
  return {};
}

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::value<std::string>(text);
  return out.str();
}

std::string shown(const std::string& value) {
  return quoted(value);
}
std::string shown(bool value) {
  return value ? "true" : "false";
}
std::string shown(uint32_t value) {
  return std::to_string(value);
}
std::string shown(const std::optional<uint64_t>& value) {
  if (!value)
    return {};
  auto text = std::to_string(*value);
  // TOML has no number above 2^63 - 1.
  return *value > uint64_t{std::numeric_limits<int64_t>::max()} ? quoted(text) : text;
}
std::string shown(const std::vector<std::string>& values) {
  std::string text = "[";
  for (const auto& v : values)
    text += (text.size() == 1 ? "" : ", ") + quoted(v);
  return text + "]";
}

result<void> take_text(const std::string&, const char* text, std::string& to) {
  to = text;
  return {};
}

result<void> take_text(const std::string& name, const char* text, bool& to) {
  const std::string_view given = text;
  if (given != "true" && given != "false")
    return fail(errc::invalid_input, name + "='" + text + "': must be true or false");
  to = given == "true";
  return {};
}

result<void> take_text(const std::string& name, const char* text, uint32_t& to) {
  auto value = number_of<uint32_t>(name, text);
  if (!value)
    return pass(value);
  to = *value;
  return {};
}

result<void> take_text(const std::string& name, const char* text, std::optional<uint64_t>& to) {
  auto value = number_of<uint64_t>(name, text);
  if (!value)
    return pass(value);
  to = *value;
  return {};
}

result<void> take_text(const std::string&, const char* text, std::vector<std::string>& to) {
  to.clear();
  std::istringstream parts{text};
  for (std::string part; std::getline(parts, part, ',');)
    to.push_back(part);
  return {};
}

} // namespace

result<void> apply_toml(
  run_settings& settings, std::string_view text, const std::string& file_name) {
  if (text.size() > config_bytes_max)
    return fail(errc::invalid_input, file_name + ": larger than 1 MiB");
  auto changed = settings;
  try {
    auto document = toml::parse(text, file_name);
    for (const auto& [key, node] : document) {
      std::string name(key.str());
      result<void> outcome;
      if (name == "run")
        outcome = read_table(node, name, file_name, [&](auto use) { each_in_run(changed, use); });
      else if (name == "oracle")
        outcome =
          read_table(node, name, file_name, [&](auto use) { each_in_oracle(changed, use); });
      else if (name == "measure")
        outcome =
          read_table(node, name, file_name, [&](auto use) { each_in_measure(changed, use); });
      else if (name == "cluster")
        outcome =
          read_table(node, name, file_name, [&](auto use) { each_in_cluster(changed, use); });
      else if (name == "models")
        outcome =
          read_table(node, name, file_name, [&](auto use) { each_in_models(changed, use); });
      else
        return fail(errc::invalid_input,
          place(file_name, node) + ": " + name + ": unknown table"
            + suggestion(name, {"run", "oracle", "measure", "cluster", "models"}));
      if (!outcome)
        return outcome;
    }
  } catch (const toml::parse_error& error) {
    return fail(errc::invalid_input,
      file_name + ":" + std::to_string(error.source().begin.line) + ": "
        + std::string(error.description()));
  }
  settings = std::move(changed);
  return {};
}

result<void> apply_environment(
  run_settings& settings, const std::function<const char*(const char*)>& lookup) {
  auto changed = settings;
  result<void> outcome;
  auto take = [&](const char* variable, auto& member) {
    const char* text = lookup(variable);
    if (text && outcome)
      outcome = take_text(variable, text, member);
  };
  take("GRISTMILL_KEEP_GOING", changed.keep_going);
  take("GRISTMILL_GPUS", changed.gpus);
  take("GRISTMILL_WORKERS", changed.workers);
  take("GRISTMILL_BUDGET", changed.budget);
  take("GRISTMILL_SEED", changed.seed);
  take("GRISTMILL_OUT", changed.out);
  take("GRISTMILL_PROPOSER", changed.proposer);
  take("GRISTMILL_BOUNDS", changed.bounds);
  take("GRISTMILL_TOOLCHAIN", changed.toolchain);
  take("GRISTMILL_LEASE_POLICY", changed.lease_policy);
  take("GRISTMILL_PLANNER", changed.planner);
  take("GRISTMILL_ORACLE", changed.oracle);
  take("GRISTMILL_PYTHON", changed.python);
  take("GRISTMILL_MODEL_ENDPOINT", changed.model_endpoint);
  take("GRISTMILL_MODEL", changed.model);
  take("GRISTMILL_MODEL_DIALECT", changed.model_dialect);
  take("GRISTMILL_MODEL_KEY_ENV", changed.model_key_env);
  take("GRISTMILL_MODELS", changed.models);
  take("GRISTMILL_ALLOW_UNPRICED", changed.allow_unpriced);
  take("GRISTMILL_PROBLEM_BUDGET", changed.problem_budget);
  take("GRISTMILL_AGENT_BUDGET", changed.agent_budget);
  take("GRISTMILL_CASSETTE", changed.cassette);
  take("GRISTMILL_PROGRAM", changed.program);
  take("GRISTMILL_DOCS", changed.docs);
  take("GRISTMILL_ROUNDS", changed.rounds);
  take("GRISTMILL_CHECK_ELEMENTS", changed.check_elements);
  take("GRISTMILL_PROMOTE", changed.promote);
  take("GRISTMILL_SAMPLES", changed.samples);
  take("GRISTMILL_FLUSH", changed.flush);
  take("GRISTMILL_LISTEN", changed.listen);
  take("GRISTMILL_TLS", changed.tls);
  if (outcome)
    settings = std::move(changed);
  return outcome;
}

std::string to_toml(const run_settings& settings) {
  std::string text = "[run]\n";
  auto add = [&](const char* name, const auto& member) {
    if (auto value = shown(member); !value.empty())
      text += std::string(name) + " = " + value + "\n";
  };
  each_in_run(settings, add);
  text += "\n[oracle]\n";
  each_in_oracle(settings, add);
  text += "\n[measure]\n";
  each_in_measure(settings, add);
  text += "\n[cluster]\n";
  each_in_cluster(settings, add);
  text += "\n[models]\n";
  each_in_models(settings, add);
  return text;
}

} // namespace gristmill
