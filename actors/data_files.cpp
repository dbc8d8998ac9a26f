#include "actors/data_files.hpp"

#include "journal/hash.hpp"

#include <system_error>

namespace gristmill {

namespace {

std::string file_name(const std::string& tensor, const data_set& set) {
  auto stem = sha256_hex(tensor).substr(0, 16);
  if (set.is_first())
    return stem + ".bin";
  // Names of sets are ours, but they hold blanks and values of axes.
  return stem + "." + sha256_hex(set.name).substr(0, 16) + ".bin";
}

} // namespace

std::filesystem::path input_file(const run_context& context, const std::string& problem_name,
  const std::string& uuid, const std::string& tensor, const data_set& set) {
  return context.inputs(problem_name, uuid, set.draw) / file_name(tensor, set);
}

std::filesystem::path reference_file(const run_context& context, const std::string& problem_name,
  const std::string& uuid, const std::string& tensor, const data_set& set) {
  return context.references(problem_name, uuid, set.draw) / file_name(tensor, set);
}

void remove_draw(const run_context& context, const std::string& draw) {
  if (draw.empty())
    return;
  for (const auto& folder : context.draw_folders(draw)) {
    std::error_code error; // What stays behind goes with the run's scratch.
    std::filesystem::remove_all(folder, error);
  }
}

std::filesystem::path custom_numbers_file(
  const run_context& context, const std::string& problem_name, const std::string& uuid) {
  return context.inputs(problem_name, uuid) / "numbers.json";
}

} // namespace gristmill
