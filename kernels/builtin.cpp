#include "kernels/builtin.hpp"

#include "protocol/nearest.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <string>

namespace gristmill {

namespace {

std::string_view file(std::string_view problem_name, std::string_view file_name) {
  const std::string path = fmt::format("{}/{}", problem_name, file_name);
  for (const embedded_file& one : builtin_files()) {
    if (one.path == path)
      return one.content;
  }
  return {};
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const embedded_file& one : builtin_files())
    list.emplace_back(one.path.substr(0, one.path.find('/')));
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

} // namespace

std::vector<problem> builtin_problems() {
  std::vector<problem> problems;
  for (const auto& name : names()) {
    auto loaded = builtin_problem(name);
    assert(loaded && "an embedded problem does not load");
    problems.push_back(std::move(*loaded));
  }
  return problems;
}

std::span<const std::string_view> default_problems() {
  static constexpr std::string_view chosen[] = {"rmsnorm", "silu_and_mul", "softmax"};
  return chosen;
}

result<problem> builtin_problem(std::string_view name) {
  const auto known = names();
  if (std::find(known.begin(), known.end(), name) == known.end())
    return fail(errc::not_found,
      fmt::format("there is no built-in problem \"{}\"{}", name, suggestion(name, known)));
  return problem_from_texts(std::string{name}, file(name, "definition.json"),
    file(name, "workload.jsonl"), file(name, "graph.json"));
}

} // namespace gristmill
