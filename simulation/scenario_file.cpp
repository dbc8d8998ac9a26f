#include "simulation/scenario_file.hpp"

#include "gpu/lease/policy.hpp"
#include "planning/allocation/allocation_text.hpp"
#include "protocol/nearest.hpp"
#include "simulation/model/scenario_check.hpp"
#include "simulation/scenario_keys.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <toml++/toml.h>

namespace gristmill {

namespace {

constexpr size_t scenario_bytes_max = size_t{1} << 20;
/// GPUs and agents come in few kinds, incidents may be many.
constexpr size_t members_max = 100'000;

std::vector<std::string> preset_names() {
  std::vector<std::string> out;
  for (const auto& p : presets())
    out.push_back(p.name);
  return out;
}

const preset* preset_of(std::string_view name) {
  for (const auto& p : presets())
    if (p.name == name)
      return &p;
  return nullptr;
}

/// Every key with its list, for suggestions.
std::vector<std::string> all_keys() {
  auto out = scenario_keys();
  for (const auto& list : scenario_lists())
    for (const auto& key : list_keys(list))
      out.push_back(list + "." + key);
  out.push_back("preset");
  return out;
}

bool is_list(std::string_view name) {
  const auto& lists = scenario_lists();
  return std::find(lists.begin(), lists.end(), name) != lists.end();
}

/// Some known key begins with that.
bool is_table(const std::string& path) {
  const auto& keys = scenario_keys();
  return std::any_of(
    keys.begin(), keys.end(), [&](const auto& key) { return key.starts_with(path + "."); });
}

/// Reads one file, into a scenario.
class reader {
public:
  reader(scenario& into, const std::string& where) : into_(into), where_(where) {}

  result<void> read(const toml::table& root) {
    if (const auto* base = root.get("preset"))
      if (auto good = begin_from(*base); !good)
        return good;
    return read_table(root, {});
  }

private:
  std::string place(const toml::node& node, const std::string& key) const {
    return fmt::format("{}:{}: {}: ", where_, node.source().begin.line, key);
  }

  tl::unexpected<failure> unknown(const toml::node& node, const std::string& key) const {
    return fail(errc::invalid_input,
      place(node, key.substr(0, 128)) + "there is no such key" + suggestion(key, all_keys()));
  }

  result<void> begin_from(const toml::node& node) {
    const auto name = node.value_exact<std::string>();
    if (!name)
      return fail(errc::invalid_input, place(node, "preset") + "it must be a text");
    const auto* base = preset_of(*name);
    if (base == nullptr)
      return fail(errc::invalid_input,
        place(node, "preset") + "there is no preset '" + name->substr(0, 64) + "'"
          + suggestion(*name, preset_names()));
    auto read = scenario_from_toml(base->toml, "preset " + base->name);
    if (!read)
      return pass(read);
    into_ = std::move(*read);
    return {};
  }

  result<void> read_table(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      const auto path = prefix.empty() ? name : prefix + "." + name;
      if (prefix.empty() && name == "preset")
        continue;
      if (prefix.empty() && is_list(name)) {
        if (auto good = read_list(node, name); !good)
          return good;
      } else if (const auto* inner = node.as_table()) {
        if (!is_table(path))
          return unknown(node, path);
        if (auto good = read_table(*inner, path); !good)
          return good;
      } else if (auto good = read_value(
                   node, path,
                   [&](const scenario_value& value) { return set_key(into_, path, value); },
                   scenario_keys());
                 !good) {
        return good;
      }
    }
    return {};
  }

  result<void> read_list(const toml::node& node, const std::string& list) {
    if (const auto* table = node.as_table()) {
      // One group may be written as a table; then what it does not say stays as the preset has it.
      if (list_size(into_, list) != 1)
        resize_list(into_, list, 0);
      resize_list(into_, list, 1);
      return read_member(*table, list, 0);
    }
    const auto* array = node.as_array();
    if (array == nullptr || !(array->empty() || array->is_homogeneous<toml::table>()))
      return fail(errc::invalid_input,
        place(node, list) + fmt::format("it must be a list of tables ([[{}]])", list));
    if (array->size() > members_max)
      return fail(
        errc::invalid_input, place(node, list) + fmt::format("more than {} members", members_max));
    resize_list(into_, list, 0);
    resize_list(into_, list, array->size());
    for (size_t i = 0; i < array->size(); ++i)
      if (auto good = read_member(*array->get_as<toml::table>(i), list, i); !good)
        return good;
    return {};
  }

  result<void> read_member(const toml::table& table, const std::string& list, size_t index) {
    const auto keys = list_keys(list);
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      auto good = read_value(
        node, list + "." + name,
        [&](const scenario_value& value) { return set_list_key(into_, list, index, name, value); },
        keys, name);
      if (!good)
        return good;
    }
    return {};
  }

  template <class F>
  result<void> read_value(const toml::node& node, const std::string& path, F set,
    const std::vector<std::string>& known, std::string name = {}) {
    if (name.empty())
      name = path;
    if (std::find(known.begin(), known.end(), name) == known.end())
      return unknown(node, path);
    scenario_value value;
    if (auto text = node.value_exact<std::string>())
      value = std::move(*text);
    else if (auto flag = node.value_exact<bool>())
      value = *flag;
    else if (auto whole = node.value_exact<int64_t>())
      value = *whole;
    else if (auto real = node.value_exact<double>())
      value = *real;
    else
      return fail(
        errc::invalid_input, place(node, path) + "it must be a text, a number, true or false");
    if (auto good = set(value); !good)
      return fail(good.error().code, place(node, path) + good.error().what);
    return {};
  }

  scenario& into_;
  const std::string& where_;
};

result<void> check_texts(const scenario& what) {
  if (auto policy = policy_from_text(what.lease_policy); !policy)
    return fail(policy.error().code, "lease_policy: " + policy.error().what);
  if (what.planner != "oracle")
    if (auto planner = allocation_from_text(what.planner); !planner)
      return fail(planner.error().code, "planner: " + planner.error().what);
  return {};
}

} // namespace

result<scenario> scenario_from_toml(std::string_view text, const std::string& where) {
  if (text.size() > scenario_bytes_max)
    return fail(errc::invalid_input, where + ": a scenario has at most 1 MiB");
  scenario out;
  try {
    const auto root = toml::parse(text, where);
    if (auto good = reader(out, where).read(root); !good)
      return pass(good);
  } catch (const toml::parse_error& error) {
    return fail(errc::invalid_input,
      fmt::format("{}:{}: {}", where, error.source().begin.line, error.description()));
  }
  auto good = check_scenario(out);
  if (good)
    good = check_texts(out);
  if (!good)
    return fail(good.error().code, where + ": " + good.error().what);
  return out;
}

result<scenario> load_scenario(const std::string& preset_or_path) {
  if (const auto* known = preset_of(preset_or_path))
    return scenario_from_toml(known->toml, "preset " + known->name);
  std::error_code bad;
  if (!std::filesystem::exists(preset_or_path, bad))
    return fail(errc::not_found,
      fmt::format("'{}' is neither a preset nor a file{}", preset_or_path,
        suggestion(preset_or_path, preset_names())));
  std::ifstream file(preset_or_path, std::ios::binary);
  std::string text(scenario_bytes_max + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof())
    return fail(errc::io_failed, fmt::format("'{}' cannot be read", preset_or_path));
  text.resize(static_cast<size_t>(file.gcount()));
  return scenario_from_toml(text, preset_or_path);
}

result<void> set_scenario_key(scenario& what, std::string_view key, std::string_view value) {
  const std::string name(key.substr(0, 256));
  const auto dot = key.find('.');
  const auto list = std::string(key.substr(0, dot));
  auto given = scenario_value_of(value);
  if (!is_list(list) || dot == std::string_view::npos) {
    const auto& keys = scenario_keys();
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      return fail(
        errc::invalid_input, name + ": there is no such key" + suggestion(name, all_keys()));
    // What looks like a number may be a name.
    auto good = set_key(what, key, given);
    if (!good && key_text(what, key).starts_with('"'))
      good = set_key(what, key, std::string(value));
    if (!good)
      return fail(good.error().code, name + ": " + good.error().what);
    return {};
  }
  const auto inner = key.substr(dot + 1);
  const auto keys = list_keys(list);
  if (std::find(keys.begin(), keys.end(), inner) == keys.end())
    return fail(
      errc::invalid_input, name + ": there is no such key" + suggestion(name, all_keys()));
  if (const auto size = list_size(what, list); size != 1)
    return fail(errc::invalid_input,
      fmt::format("{}: the scenario has {} members of {}; with this many only a file can say which",
        name, size, list));
  if (auto good = set_list_key(what, list, 0, inner, given); !good)
    return fail(good.error().code, name + ": " + good.error().what);
  return {};
}

std::string canonical_toml(const scenario& what) {
  // Keys of the root first, then one table after the other: within a table no other may begin.
  std::string out;
  std::string table;
  const auto write = [&](const std::string& key) {
    const auto dot = key.rfind('.');
    const auto in = dot == std::string::npos ? std::string{} : key.substr(0, dot);
    if (in != table) {
      out += fmt::format("\n[{}]\n", in);
      table = in;
    }
    out += fmt::format(
      "{} = {}\n", dot == std::string::npos ? key : key.substr(dot + 1), key_text(what, key));
  };
  auto keys = scenario_keys();
  // All keys of one table stand together, in the order of the first of them.
  std::vector<std::string> tables;
  const auto table_of = [](const std::string& key) {
    const auto dot = key.rfind('.');
    return dot == std::string::npos ? std::string{} : key.substr(0, dot);
  };
  for (const auto& key : keys)
    if (std::find(tables.begin(), tables.end(), table_of(key)) == tables.end())
      tables.push_back(table_of(key));
  for (const auto& t : tables)
    for (const auto& key : keys)
      if (table_of(key) == t)
        write(key);
  for (const auto& list : scenario_lists()) {
    if (list_size(what, list) == 0)
      out = fmt::format("{} = []\n", list) + out;
    for (size_t i = 0; i < list_size(what, list); ++i) {
      out += fmt::format("\n[[{}]]\n", list);
      for (const auto& key : list_keys(list))
        out += fmt::format("{} = {}\n", key, list_key_text(what, list, i, key));
    }
  }
  return out;
}

} // namespace gristmill
