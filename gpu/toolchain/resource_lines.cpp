#include "gpu/toolchain/resource_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>

namespace gristmill {

namespace {

struct figures {
  uint64_t registers = 0, shared = 0, stack = 0, spilled = 0;
  bool told = false;
};

/// The number in front of `unit`, as in "1600 bytes smem"; 0 when the line has none.
uint64_t number_before(std::string_view line, std::string_view unit) {
  const size_t at = line.find(unit);
  if (at == std::string_view::npos)
    return 0;
  size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9')
    --begin;
  uint64_t value = 0;
  std::from_chars(line.data() + begin, line.data() + at, value);
  return value;
}

/// What stands between `before` and the next `after`.
std::string_view between(std::string_view line, std::string_view before, std::string_view after) {
  const size_t at = line.find(before);
  if (at == std::string_view::npos)
    return {};
  const std::string_view rest = line.substr(at + before.size());
  return rest.substr(0, rest.find(after));
}

} // namespace

bool is_slowed_by_linking(std::string_view assembler_log) {
  return assembler_log.find("(C7504)") != std::string_view::npos
    || assembler_log.find("(C7509)") != std::string_view::npos;
}

std::string resource_lines(std::string_view assembler_log) {
  constexpr size_t entries_max = 64;
  std::map<std::string, figures> entries;
  figures* current = nullptr;
  for (size_t start = 0; start < assembler_log.size();) {
    const size_t end = std::min(assembler_log.find('\n', start), assembler_log.size());
    const std::string_view line = assembler_log.substr(start, end - start);
    start = end + 1;
    if (const auto name = between(line, "Compiling entry function '", "'"); !name.empty()) {
      current = entries.size() < entries_max ? &entries[std::string(name)] : nullptr;
      continue;
    }
    if (current == nullptr)
      continue;
    if (line.find(" bytes stack frame") != std::string_view::npos) {
      current->stack = number_before(line, " bytes stack frame");
      current->spilled = number_before(line, " bytes spill stores");
    }
    if (line.find("Used ") != std::string_view::npos) {
      current->registers = number_before(line, " registers");
      current->shared = number_before(line, " bytes smem");
      current->told = true;
    }
  }
  std::string text;
  for (const auto& [name, found] : entries)
    if (found.told)
      text += fmt::format(
        "resources: {}: {} registers, {} bytes shared, {} bytes stack, {} bytes spilled\n", name,
        found.registers, found.shared, found.stack, found.spilled);
  return text;
}

} // namespace gristmill
