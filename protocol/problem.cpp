#include "protocol/problem.hpp"

#include "protocol/json_document.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr size_t text_max = size_t{64} << 20;

result<problem> assemble(const std::string& name, const std::string& prefix,
  std::string definition_text, std::string workload_text, std::string graph_text) {
  problem out;
  auto def = parse_definition(definition_text, prefix + "definition.json", &out.warnings);
  if (!def)
    return pass(def);
  auto workloads = parse_workloads(workload_text, prefix + "workload.jsonl", &out.warnings);
  if (!workloads)
    return pass(workloads);
  if (workloads->empty())
    return fail(errc::invalid_input, prefix + "workload.jsonl: no workload in it");
  out.name = name;
  out.def = std::move(*def);
  out.workloads = std::move(*workloads);
  out.definition_text = std::move(definition_text);
  out.workload_text = std::move(workload_text);
  out.graph_json = std::move(graph_text);
  return out;
}

/// The last component that is a name: not empty ("rmsnorm/") and not "." or "..".
std::string folder_name(const std::filesystem::path& folder) {
  std::error_code code;
  const auto full = std::filesystem::weakly_canonical(folder, code);
  auto name = (code ? folder : full).lexically_normal();
  if (!name.has_filename())
    name = name.parent_path();
  return name.filename().string();
}

} // namespace

result<problem> load_problem(const std::filesystem::path& folder) {
  std::error_code code;
  if (!std::filesystem::is_directory(folder, code))
    return fail(errc::not_found, fmt::format("{}: no such problem folder", folder.string()));
  auto definition_text = read_text_file(folder / "definition.json", text_max);
  if (!definition_text)
    return pass(definition_text);
  auto workload_text = read_text_file(folder / "workload.jsonl", text_max);
  if (!workload_text)
    return pass(workload_text);
  std::string graph_text;
  if (std::filesystem::exists(folder / "graph.json", code)) {
    auto graph = read_text_file(folder / "graph.json", text_max);
    if (!graph)
      return pass(graph);
    graph_text = std::move(*graph);
  }
  auto out = assemble(folder_name(folder), folder.string() + "/", std::move(*definition_text),
    std::move(*workload_text), std::move(graph_text));
  if (out)
    out->folder = folder;
  return out;
}

result<problem> problem_from_texts(const std::string& name, std::string_view definition_text,
  std::string_view workload_text, std::string_view graph_text) {
  return assemble(name, name + "/", std::string{definition_text}, std::string{workload_text},
    std::string{graph_text});
}

} // namespace gristmill
