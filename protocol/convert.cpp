#include "protocol/convert.hpp"

#include "protocol/definition.hpp"
#include "protocol/emit.hpp"
#include "protocol/field_reader.hpp"
#include "protocol/nearest.hpp"
#include "protocol/solution_reader.hpp"
#include "protocol/workload_reader.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>

namespace gristmill {

namespace {

constexpr size_t notes_max = 200;

bool is_object_at(const ordered_json& parent, const char* key) {
  const auto found = parent.find(key);
  return found != parent.end() && found->is_object();
}

void add_note(std::vector<std::string>& notes, std::string note) {
  if (notes.size() < notes_max)
    notes.push_back(std::move(note));
}

// ---- definitions

/// Inputs that a call may leave out: the format has no such thing.
void refuse_optional_inputs(const ordered_json& document, field_reader& fields) {
  if (!is_object_at(document, "inputs"))
    return;
  for (const auto& [input_name, spec] : document["inputs"].items())
    if (spec.is_object() && spec.contains("optional") && spec["optional"] != false)
      fields.error(fmt::format("inputs.{}.optional", input_name),
        "an input that may be left out; the format has none, so this cannot be converted");
}

void note_constraints(const ordered_json& document, std::vector<std::string>& notes) {
  const auto found = document.find("constraints");
  if (found == document.end() || !found->is_array())
    return;
  for (size_t i = 0; i < found->size(); ++i) {
    const auto& each = (*found)[i];
    add_note(notes,
      fmt::format("constraints.{}: {} is dropped; the format has no constraints, so nothing checks "
                  "it any more",
        i, excerpt(each.is_string() ? each.get<std::string>() : dump_json(each, false), 200)));
  }
}

// ---- workloads

/// What is collected over the lines of a file.
struct workload_collector {
  std::string definition_name;
  /// uuid -> the line that was written for it.
  std::map<std::string, std::string> seen;
  std::string text;
  size_t wrapped = 0;
  size_t results_dropped = 0;
  size_t repeated = 0;
  size_t without_tolerance = 0;

  result<void> read(std::string_view line, const std::string& where, std::vector<std::string>& own);
};

result<void> workload_collector::read(
  std::string_view line, const std::string& where, std::vector<std::string>& own) {
  json_limits limits;
  limits.python_numbers = true;
  auto document = parse_json_object(line, where, limits);
  if (!document)
    return pass(document);
  field_reader fields;
  const bool is_wrapped = document->contains("workload") && !document->contains("uuid");
  const auto* body = is_wrapped ? fields.object(*document, "", "workload") : &*document;
  if (is_wrapped) {
    ++wrapped;
    const auto of = fields.text(*document, "", "definition", field_reader::need::required);
    if (definition_name.empty())
      definition_name = of;
    else if (of != definition_name && !of.empty())
      fields.error("definition",
        fmt::format("{}, but an earlier line is of {}; one file holds the workloads of one problem",
          excerpt(of), excerpt(definition_name)));
    for (const char* key : {"solution", "evaluation"}) {
      if (const auto found = document->find(key); found != document->end() && !found->is_null()) {
        ++results_dropped;
        break;
      }
    }
  }
  if (body == nullptr)
    return tl::unexpected(fields.collected(where));
  const auto work = read_workload(*body, is_wrapped ? "workload" : "", fields, line);
  own = fields.warnings();
  if (fields.failed())
    return tl::unexpected(fields.collected(where));
  if (!body->contains("tolerance"))
    ++without_tolerance;
  auto written = to_json(work);
  const auto [known, is_new] = seen.emplace(work.uuid, written);
  if (is_new)
    text += written + "\n";
  else if (known->second == written)
    ++repeated;
  else
    return fail(errc::invalid_input,
      fmt::format("{}: {}: {} stands on an earlier line with other content", where,
        is_wrapped ? "workload.uuid" : "uuid", excerpt(work.uuid)));
  return {};
}

// ---- solutions

/// What the older form calls a language, and this one.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> language_names{{
  {"python", "pytorch"},
  {"triton", "triton"},
  {"cuda", "cuda_cpp"},
  {"cpp", "cuda_cpp"},
}};

std::string converted_language(
  const ordered_json& spec, field_reader& fields, std::vector<std::string>& notes) {
  const auto old = fields.text(spec, "spec", "language", field_reader::need::required);
  if (old.empty())
    return {};
  for (const auto& [from, to] : language_names) {
    if (from != old)
      continue;
    if (from != to)
      add_note(notes, fmt::format("spec.language: `{}` became `{}`", from, to));
    return std::string{to};
  }
  std::vector<std::string> known = python_languages();
  known.insert(known.end(), cpp_languages().begin(), cpp_languages().end());
  if (std::find(known.begin(), known.end(), old) != known.end())
    return old;
  for (const auto& each : language_names)
    known.emplace_back(each.first);
  fields.error("spec.language",
    fmt::format("{} has no counterpart in the format{}", excerpt(old), suggestion(old, known)));
  return {};
}

void convert_hardware(ordered_json& spec, field_reader& fields, std::vector<std::string>& notes) {
  const auto found = spec.find("target_hardware");
  if (found == spec.end() || !found->is_array())
    return; // The reader of the format says what is wrong with it.
  ordered_json kept = ordered_json::array();
  for (const auto& each : *found) {
    const auto text = each.is_string() ? each.get<std::string>() : std::string{};
    if (text == "B200" || text == "LOCAL") {
      kept.push_back(text);
    } else if (text == "local") {
      kept.push_back("LOCAL");
      add_note(notes, "spec.target_hardware: `local` became `LOCAL`");
    } else {
      add_note(notes,
        fmt::format("spec.target_hardware: {} is dropped; the format knows B200 and LOCAL",
          excerpt(each.is_string() ? text : dump_json(each, false))));
    }
  }
  if (kept.empty())
    fields.error("spec.target_hardware",
      "none of them is B200 or LOCAL, and which of the two is meant cannot be guessed");
  *found = std::move(kept);
}

void convert_binding(
  ordered_json& spec, bool cpp, field_reader& fields, std::vector<std::string>& notes) {
  const auto found = spec.find("binding");
  const bool given = found != spec.end() && !found->is_null();
  if (!cpp) {
    if (given && *found == "tvm-ffi") {
      spec.erase("binding");
      add_note(notes, "spec.binding: `tvm-ffi` is dropped; it says nothing about Python sources");
    }
    return;
  }
  const char* way_out = "; rewrite the entry point for a torch extension, say "
                        "\"binding\": \"torch\", and convert again";
  if (!given)
    fields.error("spec.binding",
      fmt::format(
        "absent, which means tvm-ffi in the older form; the format has no tvm-ffi{}", way_out));
  else if (*found == "tvm-ffi")
    fields.error("spec.binding", fmt::format("the format has no `tvm-ffi`{}", way_out));
}

bool is_cpp_language(const std::string& language) {
  const auto& names = cpp_languages();
  return std::find(names.begin(), names.end(), language) != names.end();
}

} // namespace

std::string_view name(document_kind kind) {
  switch (kind) {
  case document_kind::definition:
    return "definition";
  case document_kind::workloads:
    return "workloads";
  case document_kind::solution:
    break;
  }
  return "solution";
}

std::optional<document_kind> recognise_document(std::string_view text) {
  json_limits limits;
  limits.python_numbers = true;
  const auto is_line = [](const ordered_json& from) {
    return from.is_object() && (from.contains("workload") || from.contains("uuid"));
  };
  if (const auto whole = parse_json(text, "", limits)) {
    if (!whole->is_object())
      return std::nullopt;
    if (whole->contains("spec") && whole->contains("sources"))
      return document_kind::solution;
    if (whole->contains("axes") && whole->contains("reference"))
      return document_kind::definition;
    return is_line(*whole) ? std::optional{document_kind::workloads} : std::nullopt;
  }
  // Several lines are no JSON document; the first that is not blank tells.
  const size_t begin = text.find_first_not_of(" \t\r\n\f\v");
  if (begin == std::string_view::npos)
    return std::nullopt;
  text.remove_prefix(begin);
  const auto first = parse_json(text.substr(0, text.find('\n')), "", limits);
  return first && is_line(*first) ? std::optional{document_kind::workloads} : std::nullopt;
}

result<converted> convert_definition(std::string_view text, const std::string& file_name) {
  json_limits limits;
  limits.python_numbers = true;
  auto document = parse_json(text, file_name, limits);
  if (!document)
    return pass(document);
  converted out;
  if (document->is_object()) {
    field_reader fields;
    refuse_optional_inputs(*document, fields);
    if (fields.failed())
      return tl::unexpected(fields.collected(file_name, text));
    note_constraints(*document, out.notes);
  }
  // What else the older form has is what the reader ignores, and says so.
  std::vector<std::string> warnings;
  auto def = parse_definition(text, file_name, &warnings);
  if (!def)
    return pass(def);
  for (auto& each : warnings)
    add_note(out.notes, std::move(each));
  out.text = to_json(*def);
  return out;
}

result<converted> convert_workloads(std::string_view text, const std::string& file_name) {
  workload_collector lines;
  converted out;
  const auto read = [&](std::string_view line, size_t number, std::vector<std::string>& own) {
    return lines.read(line, fmt::format("{}:{}", file_name, number), own);
  };
  if (auto fine = for_each_line(text, file_name, &out.notes, read); !fine)
    return pass(fine);
  if (lines.text.empty())
    return fail(errc::invalid_input, fmt::format("{}: no workload in it", file_name));
  const auto count = [&](size_t number, const char* what) {
    if (number > 0)
      add_note(out.notes, fmt::format("{} of the lines: {}", number, what));
  };
  count(lines.wrapped, "the trace around the workload is dropped");
  count(lines.results_dropped, "solution and evaluation are dropped; `gristmill score` reads them");
  count(lines.repeated, "the workload stands on an earlier line too and is written once");
  count(lines.without_tolerance, "no tolerance; the defaults of the format are filled in");
  out.text = std::move(lines.text);
  return out;
}

result<converted> convert_solution(std::string_view text, const std::string& file_name) {
  auto document = parse_solution_document(text, file_name);
  if (!document)
    return pass(document);
  converted out;
  if (is_object_at(*document, "spec") && !(*document)["spec"].contains("languages")) {
    auto& spec = (*document)["spec"];
    field_reader fields;
    const auto language = converted_language(spec, fields, out.notes);
    convert_hardware(spec, fields, out.notes);
    convert_binding(spec, is_cpp_language(language), fields, out.notes);
    if (fields.failed())
      return tl::unexpected(fields.collected(file_name, text));
    spec.erase("language");
    spec["languages"] = ordered_json::array({language});
    if (!spec.contains("destination_passing_style"))
      add_note(out.notes,
        "spec.destination_passing_style: absent, so `true` is filled in: the function gets its "
        "outputs as last arguments; say false if it returns them");
  }
  std::vector<std::string> warnings;
  auto read = read_solution(*document, text, file_name, &warnings, solution_rules::safe, {});
  if (!read)
    return pass(read);
  for (auto& each : warnings)
    add_note(out.notes, std::move(each));
  out.text = to_json(*read);
  return out;
}

result<converted> convert_document(
  document_kind kind, std::string_view text, const std::string& file_name) {
  switch (kind) {
  case document_kind::definition:
    return convert_definition(text, file_name);
  case document_kind::workloads:
    return convert_workloads(text, file_name);
  case document_kind::solution:
    break;
  }
  return convert_solution(text, file_name);
}

} // namespace gristmill
