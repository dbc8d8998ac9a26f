#pragma once

#include "messages/result.hpp"
#include "protocol/definition.hpp"
#include "protocol/workload.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A definition with its workloads, from a folder or from texts that the program carries.
struct problem {
  /// How commands and reports call it: the folder's name, or the built-in one. `def.name` is what
  /// the file says.
  std::string name;
  definition def;
  std::vector<workload> workloads;
  /// Empty for a built-in.
  std::filesystem::path folder;
  /// Content of `graph.json`, the operator graph that a bound is computed from; else empty.
  std::string graph_json;
  std::vector<std::string> warnings;
  /// The texts as they were read, for hashing and for copies.
  std::string definition_text;
  std::string workload_text;
};

/// Reads `definition.json`, `workload.jsonl` and, if it is there, `graph.json`.
result<problem> load_problem(const std::filesystem::path& folder);

/// The same from texts; `graph_text` may be empty.
result<problem> problem_from_texts(const std::string& name, std::string_view definition_text,
  std::string_view workload_text, std::string_view graph_text);

} // namespace gristmill
