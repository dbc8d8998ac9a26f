#include "simulation/sweep/sweep_file.hpp"

#include "protocol/nearest.hpp"
#include "simulation/scenario_file.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <toml++/toml.h>

namespace gristmill {

namespace {

constexpr size_t sweep_bytes_max = size_t{1} << 20;

/// What one key of the grid may be.
struct dimension {
  std::string key;
  std::vector<grid_choice> choices;
};

class sweep_reader {
public:
  sweep_reader(std::string where, std::filesystem::path folder)
    : where_(std::move(where)), folder_(std::move(folder)) {}

  result<lab_wishes> read(const toml::table& root) {
    const std::vector<std::string> known = {"scenario", "seeds", "first_seed", "policies",
      "planners", "baseline", "bounds", "engine", "set", "cases", "grid"};
    for (const auto& [key, node] : root)
      if (auto fine = check_key(node, "", std::string(key.str()), known); !fine)
        return pass(fine);
    const auto* scenario_node = root.get("scenario");
    if (scenario_node == nullptr)
      return fail(errc::invalid_input, where_ + ": scenario: is missing: a preset or a file");
    auto name = text_of(*scenario_node, "scenario");
    if (!name)
      return pass(name);
    auto base = load_scenario(place_of(*name));
    if (!base)
      return fail(base.error().code, at(*scenario_node, "scenario") + base.error().what);
    wishes_.base = std::move(*base);
    if (const auto* node = root.get("set"))
      if (auto fine = read_set(*node); !fine)
        return pass(fine);
    if (auto fine = read_plain(root); !fine)
      return pass(fine);
    std::vector<dimension> dimensions;
    if (const auto* node = root.get("cases"))
      if (auto fine = read_cases(*node, dimensions); !fine)
        return pass(fine);
    if (const auto* node = root.get("grid"))
      if (auto fine = read_grid(*node, "", dimensions); !fine)
        return pass(fine);
    if (auto fine = multiply(dimensions); !fine)
      return pass(fine);
    return std::move(wishes_);
  }

private:
  std::string at(const toml::node& node, const std::string& field) const {
    return fmt::format("{}:{}: {}: ", where_, node.source().begin.line, field);
  }

  tl::unexpected<failure> wrong(
    const toml::node& node, const std::string& field, const std::string& what) const {
    return fail(errc::invalid_input, at(node, field) + what);
  }

  result<void> check_key(const toml::node& node, const std::string& table, const std::string& key,
    const std::vector<std::string>& known) const {
    if (std::find(known.begin(), known.end(), key) == known.end())
      return wrong(node, table + key, "unknown key" + suggestion(key, known));
    return {};
  }

  result<std::string> text_of(const toml::node& node, const std::string& field) const {
    auto value = node.value_exact<std::string>();
    if (!value || value->empty())
      return wrong(node, field, "must be a string");
    return *value;
  }

  /// A file that lies beside the sweep file, or a preset's name as it is.
  std::string place_of(const std::string& name) const {
    const auto beside = folder_ / name;
    std::error_code error;
    return std::filesystem::is_regular_file(beside, error) ? beside.string() : name;
  }

  result<std::vector<std::string>> list_of(const toml::node& node, const std::string& field) const {
    const auto* list = node.as_array();
    if (list == nullptr || list->empty())
      return wrong(node, field, "must be a list of strings, not empty");
    std::vector<std::string> out;
    for (const auto& item : *list) {
      auto value = text_of(item, field);
      if (!value)
        return pass(value);
      out.push_back(*value);
    }
    return out;
  }

  result<uint64_t> whole_of(
    const toml::node& node, const std::string& field, uint64_t least, uint64_t most) const {
    auto value = node.value_exact<int64_t>();
    if (!value || *value < 0 || static_cast<uint64_t>(*value) < least
      || static_cast<uint64_t>(*value) > most)
      return wrong(node, field, fmt::format("must be a whole number from {} to {}", least, most));
    return static_cast<uint64_t>(*value);
  }

  result<void> read_plain(const toml::table& root) {
    if (const auto* node = root.get("seeds")) {
      auto value = whole_of(*node, "seeds", 1, runs_max);
      if (!value)
        return pass(value);
      wishes_.seeds = static_cast<uint32_t>(*value);
    }
    if (const auto* node = root.get("first_seed")) {
      auto value = whole_of(*node, "first_seed", 0, std::numeric_limits<int64_t>::max());
      if (!value)
        return pass(value);
      wishes_.first_seed = *value;
    }
    for (auto [key, list] :
      {std::pair{"policies", &wishes_.policies}, std::pair{"planners", &wishes_.planners}})
      if (const auto* node = root.get(key)) {
        auto value = list_of(*node, key);
        if (!value)
          return pass(value);
        *list = std::move(*value);
      }
    if (const auto* node = root.get("bounds")) {
      auto value = node->value_exact<bool>();
      if (!value)
        return wrong(*node, "bounds", "must be true or false");
      wishes_.with_bounds = *value;
    }
    if (const auto* node = root.get("engine")) {
      const auto value = node->value_exact<std::string>().value_or("");
      if (value != "core" && value != "actors")
        return wrong(*node, "engine", "must be \"core\" or \"actors\"");
      wishes_.engine = value == "core" ? lab_engine::core : lab_engine::actors;
    }
    if (const auto* node = root.get("baseline"))
      return read_baseline(*node);
    return {};
  }

  result<void> read_baseline(const toml::node& node) {
    const auto* table = node.as_table();
    if (table == nullptr)
      return wrong(node, "baseline", "must be a table with `policy` and `planner`");
    for (const auto& [key, value] : *table) {
      const std::string name(key.str());
      if (auto fine = check_key(value, "baseline.", name, {"policy", "planner"}); !fine)
        return fine;
      auto text = text_of(value, "baseline." + name);
      if (!text)
        return pass(text);
      (name == "policy" ? wishes_.baseline_policy : wishes_.baseline_planner) = *text;
    }
    return {};
  }

  /// A value as `set_scenario_key` reads it.
  result<std::string> value_of(const toml::node& node, const std::string& field) const {
    if (auto text = node.value_exact<std::string>())
      return *text;
    if (auto whole = node.value_exact<int64_t>())
      return fmt::format("{}", *whole);
    if (auto number = node.value_exact<double>())
      return fmt::format("{}", *number);
    if (auto truth = node.value_exact<bool>())
      return std::string(*truth ? "true" : "false");
    return wrong(node, field, "must be a string, a number, true or false");
  }

  /// Calls `each(key, node)` for every leaf; `a.b = 1` and `"a.b" = 1` are the same.
  template <class Each>
  result<void> flatten(const toml::table& table, const std::string& prefix, Each each) const {
    for (const auto& [key, node] : table) {
      const auto name = prefix + std::string(key.str());
      const auto* inner = node.as_table();
      if (auto fine = inner != nullptr ? flatten(*inner, name + ".", each) : each(name, node);
          !fine)
        return fine;
    }
    return {};
  }

  /// Whether the key and the value hold is seen at once, so that the message has the line.
  result<void> try_setting(const toml::node& node, const std::string& field, const std::string& key,
    const std::string& value) const {
    scenario copy = wishes_.base;
    if (auto set = set_scenario_key(copy, key, value); !set)
      return fail(set.error().code, at(node, field) + set.error().what);
    return {};
  }

  result<void> read_set(const toml::node& node) {
    const auto* table = node.as_table();
    if (table == nullptr)
      return wrong(node, "set", "must be a table of keys of the scenario");
    return flatten(*table, "", [&](const std::string& key, const toml::node& leaf) -> result<void> {
      auto value = value_of(leaf, "set." + key);
      if (!value)
        return pass(value);
      if (auto set = set_scenario_key(wishes_.base, key, *value); !set)
        return fail(set.error().code, at(leaf, "set." + key) + set.error().what);
      return {};
    });
  }

  result<void> read_cases(const toml::node& node, std::vector<dimension>& out) const {
    const auto* table = node.as_table();
    if (table == nullptr || table->empty())
      return wrong(node, "cases", "must be tables of keys of the scenario, one a case");
    dimension cases{"case", {}};
    for (const auto& [key, inner] : *table) {
      const std::string name(key.str());
      const auto* settings = inner.as_table();
      if (settings == nullptr)
        return wrong(inner, "cases." + name, "must be a table of keys of the scenario");
      grid_choice choice{{{"case", name}}, {}};
      auto fine = flatten(*settings, "", [&](const std::string& leaf_key, const toml::node& leaf) {
        const auto field = "cases." + name + "." + leaf_key;
        auto value = value_of(leaf, field);
        if (!value)
          return result<void>(pass(value));
        choice.settings.emplace_back(leaf_key, *value);
        return result<void>{};
      });
      if (!fine)
        return fine;
      // Together: what one key alone contradicts, all of them may mend.
      scenario copy = wishes_.base;
      for (const auto& [setting, value] : choice.settings)
        if (auto set = set_scenario_key(copy, setting, value); !set)
          return fail(set.error().code, at(inner, "cases." + name) + set.error().what);
      cases.choices.push_back(std::move(choice));
    }
    out.push_back(std::move(cases));
    return {};
  }

  result<void> read_grid(
    const toml::node& node, const std::string& prefix, std::vector<dimension>& out) const {
    const auto* table = node.as_table();
    if (table == nullptr)
      return wrong(node, "grid", "must be a table of keys of the scenario, each with a list");
    return flatten(
      *table, prefix, [&](const std::string& key, const toml::node& leaf) -> result<void> {
        const auto field = "grid." + key;
        const auto* list = leaf.as_array();
        if (list == nullptr || list->empty())
          return wrong(leaf, field, "must be a list of values, not empty");
        dimension one{key, {}};
        for (const auto& item : *list) {
          auto value = value_of(item, field);
          if (!value)
            return pass(value);
          if (auto fine = try_setting(item, field, key, *value); !fine)
            return fine;
          for (const auto& before : one.choices)
            if (before.labels.front().second == *value)
              return wrong(item, field, *value + " stands twice");
          one.choices.push_back({{{key, *value}}, {{key, *value}}});
        }
        out.push_back(std::move(one));
        return {};
      });
  }

  /// All combinations, the first dimension the slowest.
  result<void> multiply(const std::vector<dimension>& dimensions) {
    if (dimensions.empty())
      return {};
    wishes_.grid.assign(1, {});
    for (const auto& d : dimensions) {
      if (wishes_.grid.size() > variants_max / d.choices.size())
        return fail(errc::invalid_input,
          fmt::format("{}: grid.{}: more than {} points: the grid is too large", where_, d.key,
            variants_max));
      std::vector<grid_choice> next;
      for (const auto& before : wishes_.grid)
        for (const auto& choice : d.choices) {
          auto both = before;
          both.labels.insert(both.labels.end(), choice.labels.begin(), choice.labels.end());
          both.settings.insert(both.settings.end(), choice.settings.begin(), choice.settings.end());
          next.push_back(std::move(both));
        }
      wishes_.grid = std::move(next);
    }
    return {};
  }

  std::string where_;
  std::filesystem::path folder_;
  lab_wishes wishes_;
};

} // namespace

result<lab_wishes> sweep_from_toml(
  std::string_view text, const std::string& where, const std::filesystem::path& folder) {
  if (text.size() > sweep_bytes_max)
    return fail(errc::invalid_input,
      fmt::format("{}: {} bytes; a sweep has at most {}", where, text.size(), sweep_bytes_max));
  try {
    const auto root = toml::parse(text, where);
    return sweep_reader(where, folder).read(root);
  } catch (const toml::parse_error& error) {
    return fail(errc::invalid_input,
      fmt::format("{}:{}: {}", where, error.source().begin.line, error.description()));
  }
}

} // namespace gristmill
