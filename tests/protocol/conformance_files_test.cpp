#include "protocol/config_file.hpp"
#include "protocol/convert.hpp"
#include "protocol/definition.hpp"
#include "protocol/emit.hpp"
#include "protocol/solution.hpp"
#include "protocol/trace.hpp"
#include "protocol/workload.hpp"
#include "tests/protocol/sol_data.hpp"

#include <doctest/doctest.h>
#include <set>

// Whole files: the verdicts of `expected.json`, and that writing loses nothing.

using namespace gristmill;

namespace {

std::string text_of(const std::filesystem::path& file) {
  auto text = read_text_file(file, size_t{1} << 24);
  REQUIRE_MESSAGE(text, (text ? "" : text.error().what));
  return *text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const auto line = text.substr(begin, end - begin);
    if (line.find_first_not_of(" \t\r") != std::string::npos)
      out.push_back(line);
    begin = end + 1;
  }
  return out;
}

/// Every file of the data whose name fits, wherever it lies.
template <class Fits>
std::vector<std::filesystem::path> files_that(Fits fits) {
  std::vector<std::filesystem::path> out;
  for (const auto& root : sol_roots())
    for (const auto& each : std::filesystem::recursive_directory_iterator{root})
      if (each.is_regular_file() && fits(each.path().filename().string()))
        out.push_back(each.path());
  return out;
}

bool is_solution(const std::string& file) {
  return file.starts_with("solution") && file.ends_with(".json");
}

void check_shapes(const definition& def, const axis_values& axes, const ordered_json& row) {
  for (const char* part : {"inputs", "outputs"}) {
    const auto& specs = part == std::string{"inputs"} ? def.inputs : def.outputs;
    CHECK(specs.size() == row[part].size());
    for (const auto& spec : specs) {
      CAPTURE(spec.name);
      REQUIRE(row[part].contains(spec.name));
      const auto& wanted = row[part][spec.name];
      CHECK(spec.is_scalar == wanted.is_null());
      if (!wanted.is_null())
        CHECK(*resolve_shape(spec, axes) == wanted.get<std::vector<int64_t>>());
    }
  }
}

void check_workload(const definition& def, const workload& work, const ordered_json& row) {
  CHECK(work.uuid == row["uuid"].get<std::string>());
  auto axes = resolve_axes(def, work.axes);
  REQUIRE(axes);
  CHECK(axes->size() == row["axes"].size());
  for (const auto& [axis_name, value] : *axes)
    CHECK(row["axes"].at(axis_name).get<int64_t>() == value);
  check_shapes(def, *axes, row);
  const auto written = workload_to_json(work)["tolerance"];
  CHECK(written.size() == 5);
  for (const auto& [key, value] : written.items())
    CHECK(value == row["tolerance"].at(key));
}

} // namespace

TEST_CASE("every row of the expected verdicts holds") {
  for (const auto& root : sol_roots()) {
    auto table = read_json_file(root / "expected.json");
    REQUIRE(table);
    CAPTURE(root.string());
    std::string last_definition;
    for (const auto& [file, expect] : table->items()) {
      CAPTURE(file);
      const auto text = text_of(root / file);
      if (is_solution(std::filesystem::path{file}.filename().string())) {
        auto read = parse_solution(text, file);
        CHECK(read.has_value() == expect["ok"].get<bool>());
        if (!read)
          check_blame(read.error().what, expect);
      } else if (file.ends_with("definition.json")) {
        auto def = parse_definition(text, file);
        CHECK(def.has_value() == expect["ok"].get<bool>());
        if (!def)
          check_blame(def.error().what, expect);
        last_definition = text;
      } else {
        REQUIRE(file.ends_with("workload.jsonl"));
        const auto def = parse_definition(last_definition, file);
        const auto lines = lines_of(text);
        REQUIRE(lines.size() == expect.size());
        for (size_t i = 0; i < lines.size(); ++i) {
          auto work = parse_workload(lines[i], file, i + 1);
          CHECK(work.has_value() == expect[i]["ok"].get<bool>());
          if (!work)
            check_blame(work.error().what, expect[i]);
          else
            check_workload(def.value(), *work, expect[i]);
        }
      }
    }
  }
}

TEST_CASE("each file that has a verdict is in the table, and no other") {
  for (const auto& root : sol_roots()) {
    auto table = read_json_file(root / "expected.json");
    REQUIRE(table);
    for (const auto& each : std::filesystem::recursive_directory_iterator{root}) {
      const auto file = each.path().filename().string();
      if (file != "definition.json" && file != "workload.jsonl" && !is_solution(file))
        continue;
      const auto path = each.path().lexically_relative(root).generic_string();
      CAPTURE(path);
      // The workloads of a definition that is refused have no shapes to expect.
      const auto folder = path.substr(0, path.size() - file.size());
      const auto of = table->find(folder + "definition.json");
      if (file == "workload.jsonl" && of != table->end() && !of.value()["ok"].get<bool>())
        continue;
      CHECK(table->contains(path));
    }
  }
}

TEST_CASE("reading what was written gives the same definition, workload and solution") {
  size_t definitions = 0;
  for (const auto& file : files_that([](const auto& name) { return name == "definition.json"; })) {
    CAPTURE(file.string());
    const auto def = parse_definition(text_of(file), "a");
    if (!def)
      continue;
    ++definitions;
    std::vector<std::string> warnings;
    const auto written = to_json(*def);
    const auto again = parse_definition(written, "b", &warnings);
    REQUIRE_MESSAGE(again, (again ? "" : again.error().what));
    CHECK(*again == *def);
    CHECK(to_json(*again) == written);
    CHECK(warnings.empty());
  }
  size_t workloads = 0;
  for (const auto& file : files_that([](const auto& name) { return name == "workload.jsonl"; })) {
    CAPTURE(file.string());
    const auto all = parse_workloads(text_of(file), "a");
    if (!all)
      continue;
    for (const auto& work : *all) {
      ++workloads;
      const auto written = to_json(work);
      CHECK(written.find('\n') == std::string::npos);
      const auto again = parse_workload(written, "b", 1);
      REQUIRE(again);
      CHECK(*again == work);
      CHECK(to_json(*again) == written);
    }
  }
  size_t solutions = 0;
  for (const auto& file : files_that(is_solution)) {
    CAPTURE(file.string());
    const auto read = load_solution(file);
    if (!read)
      continue;
    ++solutions;
    const auto written = to_json(*read);
    const auto again = parse_solution(written, "b");
    REQUIRE(again);
    CHECK(*again == *read);
    CHECK(to_json(*again) == written);
  }
  if (!sol_roots().empty()) {
    CHECK(definitions > 3);
    CHECK(workloads > 5);
    CHECK(solutions > 2);
  }
}

TEST_CASE("solutions without their sources are refused unless the files lie beside them") {
  size_t seen = 0;
  for (const auto& file : files_that(is_solution)) {
    const auto path = file.generic_string();
    if (path.find("/_sibling/") == std::string::npos)
      continue;
    CAPTURE(path);
    ++seen;
    const auto alone = parse_solution(text_of(file), path);
    REQUIRE_FALSE(alone);
    CHECK(alone.error().what.find("sources.0.content: ") != std::string::npos);
    const auto filled = load_solution(file);
    if (path.find("/_sibling/filled/") != std::string::npos) {
      REQUIRE_MESSAGE(filled, (filled ? "" : filled.error().what));
      CHECK(filled->sources[0].content == "// host, from beside\n");
      CHECK(filled->sources[1].content == "// device, from beside\n");
      continue;
    }
    REQUIRE_FALSE(filled);
    CHECK(filled.error().what.find("sources.0.content: absent or empty") != std::string::npos);
    CHECK(filled.error().what.find("is not there") != std::string::npos);
  }
  if (!sol_roots().empty())
    CHECK(seen >= 2);
}

TEST_CASE("files of the older form are refused, and converted as far as they can be") {
  size_t solutions = 0;
  for (const auto& root : sol_roots()) {
    for (const auto& each : std::filesystem::directory_iterator{root / "_ancestor"}) {
      CAPTURE(each.path().string());
      const auto lines = text_of(each.path() / "workload_trace.jsonl");
      const auto refused = parse_workloads(lines, "workload_trace.jsonl");
      REQUIRE_FALSE(refused);
      CHECK(refused.error().what.find("workload_trace.jsonl:1: workload: ") != std::string::npos);
      CHECK(refused.error().what.find("gristmill convert") != std::string::npos);
      const auto workloads = convert_workloads(lines, "workload_trace.jsonl");
      REQUIRE_MESSAGE(workloads, (workloads ? "" : workloads.error().what));
      const auto read = parse_workloads(workloads->text, "workload.jsonl");
      REQUIRE(read);
      CHECK(read->size() == lines_of(lines).size());
      const auto def = convert_definition(text_of(each.path() / "definition.json"), "d");
      REQUIRE_MESSAGE(def, (def ? "" : def.error().what));
      CHECK(parse_definition(def->text, "d"));

      const auto text = text_of(each.path() / "solution.json");
      const auto old = parse_solution(text, "solution.json");
      REQUIRE_FALSE(old);
      CHECK(old.error().what.find("gristmill convert") != std::string::npos);
      const auto converted = convert_solution(text, "solution.json");
      ++solutions;
      if (text.find("\"cuda\"") != std::string::npos) {
        // Its binding is the default of the older form.
        REQUIRE_FALSE(converted);
        CHECK(converted.error().what.find("spec.binding: ") != std::string::npos);
      } else {
        REQUIRE_MESSAGE(converted, (converted ? "" : converted.error().what));
        CHECK(parse_solution(converted->text, "solution.json"));
      }
    }
  }
  CHECK(solutions == sol_roots().size());
}

TEST_CASE("each config file loads and is written again") {
  size_t seen = 0;
  for (const auto& file : files_that([](const auto& name) { return name == "config.json"; })) {
    CAPTURE(file.string());
    const auto config = load_config_file(file);
    REQUIRE_MESSAGE(config, (config ? "" : config.error().what));
    ++seen;
    CHECK(parse_config_file(to_json(*config), "config.json").value() == *config);
    if (file.generic_string().find("gqa_paged_decode") != std::string::npos)
      CHECK(*config == config_file{10, 1, false, true, 200});
  }
  CHECK(seen == sol_roots().size());
}

TEST_CASE("each trace file loads and is written again") {
  for (const auto& file : files_that([](const auto& name) { return name == "traces.jsonl"; })) {
    CAPTURE(file.string());
    const auto traces = load_traces(file);
    REQUIRE_MESSAGE(traces, (traces ? "" : traces.error().what));
    CHECK(traces->size() > 1);
    for (const auto& each : *traces) {
      const auto written = to_json(each);
      REQUIRE(written);
      const auto again = parse_trace(*written, "traces.jsonl", 1);
      REQUIRE_MESSAGE(again, (again ? "" : again.error().what));
      CHECK(*again == each);
      CHECK(*to_json(*again) == *written);
    }
  }
}
