#include "cli/problem_paths.hpp"

#include "cli/checked_path.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

constexpr int levels_max = 16;
constexpr size_t entries_max = 100'000;

bool is_problem_folder(const fs::path& folder) {
  std::error_code code;
  return fs::exists(folder / "definition.json", code)
    || fs::exists(folder / "workload.jsonl", code);
}

class walk {
public:
  explicit walk(found_problems& out) : out_(out) {}

  void into(const fs::path& folder, int level) {
    std::error_code code;
    const auto real = fs::canonical(folder, code);
    if (code || !seen_.insert(real.string()).second)
      return;
    if (is_problem_folder(folder)) {
      out_.found.push_back({folder, problem_path_kind::folder});
      return;
    }
    std::vector<fs::path> below;
    for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
      if (++entries_ > entries_max)
        return refuse_once(folder, fmt::format("more than {} entries below it", entries_max));
      if (std::error_code own; at->is_directory(own))
        below.push_back(at->path());
    }
    if (code)
      out_.errors.push_back({errc::io_failed,
        fmt::format("{}: cannot be searched: {}", folder.string(), code.message())});
    if (level == levels_max && !below.empty())
      return refuse_once(folder, fmt::format("nested deeper than {} folders", levels_max));
    std::sort(below.begin(), below.end());
    for (const auto& each : below)
      into(each, level + 1);
  }

private:
  void refuse_once(const fs::path& folder, const std::string& why) {
    if (!refused_)
      out_.errors.push_back({errc::invalid_input, fmt::format("{}: {}", folder.string(), why)});
    refused_ = true;
  }

  found_problems& out_;
  std::set<std::string> seen_;
  size_t entries_ = 0;
  bool refused_ = false;
};

/// "; it holds a, b, c", so that a person sees where they are.
std::string holdings(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end;
       !code && at != end && names.size() < entries_max; at.increment(code))
    names.push_back(at->path().filename().string());
  if (names.empty())
    return "; it is empty";
  std::sort(names.begin(), names.end());
  std::string out = "; it holds ";
  for (size_t i = 0; i < names.size() && i < 8; ++i)
    out += (i == 0 ? "" : ", ") + names[i];
  return out + (names.size() > 8 ? ", …" : "");
}

} // namespace

found_problems find_problems(const fs::path& given) {
  found_problems out;
  std::error_code code;
  const auto status = fs::status(given, code);
  if (status.type() == fs::file_type::not_found) {
    out.errors.push_back(missing_path(given));
  } else if (fs::is_directory(status)) {
    walk(out).into(given, 0);
    if (out.found.empty() && out.errors.empty())
      out.errors.push_back({errc::not_found,
        fmt::format("{}: no problem folder (one with definition.json and workload.jsonl), nor one "
                    "below it{}",
          given.string(), holdings(given))});
  } else if (given.extension() == ".json") {
    out.found.push_back({given, problem_path_kind::definition});
  } else if (given.extension() == ".jsonl") {
    out.found.push_back({given, problem_path_kind::workloads});
  } else {
    out.errors.push_back({errc::invalid_input,
      fmt::format("{}: neither a folder nor a file that ends in .json (a definition) or .jsonl "
                  "(workloads)",
        given.string())});
  }
  return out;
}

} // namespace gristmill
