#include "cli/integrity_catalogue.hpp"

#include "messages/embedded_file.hpp"
#include "protocol/nearest.hpp"
#include "protocol/strict_json.hpp"
#include "scoring/integrity.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <span>

namespace gristmill {

std::span<const embedded_file> hack_corpus_files();

namespace {

constexpr size_t text_max = 2000;
constexpr size_t list_max = 1000;

std::string_view embedded(std::string_view path) {
  for (const embedded_file& one : hack_corpus_files())
    if (one.path == path)
      return one.content;
  return {};
}

corpus_problem read_problem(strict_object& object) {
  corpus_problem out;
  out.name = object.text("name", text_max);
  object.each("workloads", list_max, [&](const ordered_json& element, std::string where) {
    strict_object inner{element, std::move(where), object.sink()};
    corpus_workload work;
    inner.each_member(
      "axes", list_max, [&](const std::string& name, const ordered_json& value, std::string path) {
        if (value.is_number_integer())
          work.axes.emplace_back(name, value.get<int64_t>());
        else
          inner.complain("axes", path + " is no whole number");
      });
    work.atol = inner.number("atol");
    work.rtol = inner.number("rtol");
    work.matched_ratio = inner.number("matched_ratio");
    out.workloads.push_back(std::move(work));
  });
  return out;
}

corpus_candidate read_candidate(
  strict_object& object, bool cheat, std::string_view (*file)(std::string_view)) {
  corpus_candidate out;
  out.name = object.text("name", text_max);
  out.problem = object.text("problem", text_max);
  if (cheat) {
    out.caught_by = object.text("caught_by", text_max);
    out.twin = object.text("twin", text_max);
    out.modelled_only = object.boolean("modelled_only");
  }
  const std::string base = (cheat ? "cheats/" : "honest/") + out.name;
  out.source = file(base + ".cu");
  out.plan_text = file(base + ".plan.json");
  if (out.source.empty() || out.plan_text.empty())
    object.complain("name", fmt::format("there is no {}.cu with {}.plan.json", base, base));
  return out;
}

catalogue_row read_row(strict_object& object) {
  catalogue_row out;
  out.row = object.natural32("row");
  out.trick = object.text("trick", text_max);
  out.what =
    static_cast<row_class>(object.choice("class", {"impossible", "caught", "not_applicable"}));
  object.each("cheats", list_max, [&](const ordered_json& element, std::string where) {
    if (element.is_string())
      out.cheats.push_back(element.get<std::string>());
    else
      object.complain("cheats", where + " is no text");
  });
  out.why = object.text("why", text_max);
  out.shown_by = object.text("shown_by", text_max);
  return out;
}

/// Every name means something, and every row its part.
result<void> check(const hack_catalogue& all) {
  std::vector<std::string> names;
  std::vector<std::string> problems;
  std::vector<std::string> stages{"compile", "fault"};
  for (const auto& rule : integrity_rules())
    stages.emplace_back(rule.name);
  for (const auto& each : all.problems)
    problems.push_back(each.name);
  for (const auto& each : all.candidates)
    names.push_back(each.name);
  const auto known = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  const auto wrong = [](const std::string& who, const std::string& name,
                       const std::vector<std::string>& list) {
    return fail(errc::invalid_input,
      fmt::format("catalogue: {}: there is no `{}`{}", who, name, suggestion(name, list)));
  };
  std::set<std::string> listed;
  std::set<uint32_t> rows;
  for (const auto& row : all.rows) {
    const auto who = fmt::format("row {}", row.row);
    if (!rows.insert(row.row).second)
      return fail(errc::invalid_input, "catalogue: " + who + " stands there twice");
    if ((row.what == row_class::caught) == row.cheats.empty())
      return fail(errc::invalid_input,
        "catalogue: " + who
          + (row.cheats.empty() ? " names no cheat" : " is not one that is caught"));
    for (const auto& cheat : row.cheats) {
      if (!known(names, cheat))
        return wrong(who, cheat, names);
      listed.insert(cheat);
    }
  }
  for (const auto& each : all.candidates) {
    if (!known(problems, each.problem))
      return wrong(each.name, each.problem, problems);
    if (!each.is_cheat())
      continue;
    if (!known(stages, each.caught_by))
      return wrong(each.name, each.caught_by, stages);
    if (const auto* twin = all.find(each.twin); twin == nullptr || twin->is_cheat())
      return wrong(each.name, each.twin, names);
    if (!listed.contains(each.name))
      return fail(errc::invalid_input, "catalogue: no row names the cheat " + each.name);
  }
  return {};
}

} // namespace

std::string to_string(row_class what) {
  switch (what) { // no default: the compiler reports a missing case
  case row_class::impossible:
    return "impossible";
  case row_class::caught:
    return "caught";
  case row_class::not_applicable:
    return "not applicable";
  }
  return "unknown";
}

const corpus_candidate* hack_catalogue::find(std::string_view name) const {
  const auto found = std::find_if(candidates.begin(), candidates.end(),
    [&](const corpus_candidate& c) { return c.name == name; });
  return found == candidates.end() ? nullptr : &*found;
}

result<hack_catalogue> hack_catalogue_from_json(
  std::string_view text, std::string_view (*file)(std::string_view)) {
  json_limits limits;
  limits.unique_keys = true;
  auto value = parse_json_object(text, "catalogue.json", limits);
  if (!value)
    return pass(value);
  hack_catalogue out;
  std::optional<failure> sink;
  {
    strict_object object{*value, "catalogue", sink};
    object.choice("schema", {"gristmill.hacks/1"});
    object.each("problems", list_max, [&](const ordered_json& element, std::string where) {
      strict_object inner{element, std::move(where), sink};
      out.problems.push_back(read_problem(inner));
    });
    for (const bool cheat : {false, true})
      object.each(
        cheat ? "cheats" : "honest", list_max, [&](const ordered_json& element, std::string where) {
          strict_object inner{element, std::move(where), sink};
          out.candidates.push_back(read_candidate(inner, cheat, file));
        });
    object.each("rows", list_max, [&](const ordered_json& element, std::string where) {
      strict_object inner{element, std::move(where), sink};
      out.rows.push_back(read_row(inner));
    });
  }
  if (sink)
    return tl::unexpected(std::move(*sink));
  if (auto fine = check(out); !fine)
    return pass(fine);
  return out;
}

result<hack_catalogue> read_hack_catalogue() {
  return hack_catalogue_from_json(embedded("catalogue.json"), embedded);
}

} // namespace gristmill
