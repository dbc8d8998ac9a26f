#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gristmill {

enum class problem_path_kind : uint8_t {
  /// A folder with a definition.json or a workload.jsonl.
  folder,
  /// A definition by itself: a file that ends in .json.
  definition,
  /// Workloads by themselves: a file that ends in .jsonl.
  workloads,
};

struct problem_path {
  std::filesystem::path path;
  problem_path_kind kind = problem_path_kind::folder;
};

struct found_problems {
  /// In the order of their names.
  std::vector<problem_path> found;
  /// Folders that could not be searched.
  std::vector<failure> errors;
};

/// What a PATH of the command line stands for: a problem folder, the two kinds of files, or every
/// problem folder below a folder (links are followed, each folder is looked into once, 16 levels
/// and 100,000 entries at most). Errors, each with the nearest valid choice: a path that is not
/// there, a file of another kind, a folder without any problem.
found_problems find_problems(const std::filesystem::path& given);

} // namespace gristmill
