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
  const std::string& problem_name, const std::string& uuid, const std::string& draw) const {
  auto root = draw.empty() ? directory / "data" / "inputs" : draw_folders(draw)[0];
  return root / folder_name(problem_name, uuid);
}

std::filesystem::path run_context::references(
  const std::string& problem_name, const std::string& uuid, const std::string& draw) const {
  auto root = draw.empty() ? directory / "data" / "references" : draw_folders(draw)[1];
  return root / folder_name(problem_name, uuid);
}

std::array<std::filesystem::path, 2> run_context::draw_folders(const std::string& draw) const {
  const auto name = "draw-" + sha256_hex(draw).substr(0, 16);
  return {directory / "data" / "inputs" / name, directory / "data" / "references" / name};
}

} // namespace gristmill
