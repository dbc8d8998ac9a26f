#include "actors/data_files.hpp"

#include "journal/hash.hpp"

namespace gristmill {

namespace {

std::string file_name(const std::string& tensor, const char* suffix) {
  return sha256_hex(tensor).substr(0, 16) + suffix;
}

} // namespace

std::filesystem::path input_file(const run_context& context, const std::string& problem_name,
  const std::string& uuid, const std::string& tensor, bool clock) {
  return context.inputs(problem_name, uuid) / file_name(tensor, clock ? ".clock.bin" : ".bin");
}

std::filesystem::path reference_file(const run_context& context, const std::string& problem_name,
  const std::string& uuid, const std::string& tensor) {
  return context.references(problem_name, uuid) / file_name(tensor, ".bin");
}

std::filesystem::path custom_numbers_file(
  const run_context& context, const std::string& problem_name, const std::string& uuid) {
  return context.inputs(problem_name, uuid) / "numbers.json";
}

} // namespace gristmill
