#include "actors/run_context.hpp"

#include "journal/hash.hpp"

namespace gristmill {

namespace {

/// Names of problems and workloads come from files of strangers and may be any text.
std::filesystem::path folder_name(const std::string& problem_name, const std::string& uuid) {
  return std::filesystem::path(sha256_hex(problem_name).substr(0, 16))
    / sha256_hex(uuid).substr(0, 16);
}

} // namespace

std::filesystem::path run_context::inputs(
  const std::string& problem_name, const std::string& uuid) const {
  return directory / "data" / "inputs" / folder_name(problem_name, uuid);
}

std::filesystem::path run_context::references(
  const std::string& problem_name, const std::string& uuid) const {
  return directory / "data" / "references" / folder_name(problem_name, uuid);
}

} // namespace gristmill
