#include "gpu/mock/ptx/report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gristmill::ptx {

source_place source_of(const kernel& code, const source_line& line) {
  source_place place;
  if (line.source == 0)
    return place;
  place.line = line.source;
  if (const auto found = code.files->find(line.file); found != code.files->end())
    place.file = found->second;
  return place;
}

std::string place_text(int ptx_line, const source_place& source) {
  if (source.line == 0)
    return fmt::format("PTX line {}", ptx_line);
  return fmt::format(
    "PTX line {} ({}:{})", ptx_line, source.file.empty() ? "?" : source.file, source.line);
}

executed_place place_of(
  const kernel& code, const launch& what, uint64_t block, size_t operation, uint32_t thread) {
  executed_place place;
  const size_t at = std::min<size_t>(operation, code.operations.size() - 1);
  const source_line& line = code.sources[code.operations[at].source];
  place.ptx_line = line.line;
  place.source = source_of(code, line);
  place.instruction = one_line(line.text);
  place.block = {static_cast<uint32_t>(block % what.grid[0]),
    static_cast<uint32_t>(block / what.grid[0] % what.grid[1]),
    static_cast<uint32_t>(block / what.grid[0] / what.grid[1])};
  place.thread = {thread % what.block[0], thread / what.block[0] % what.block[1],
    thread / what.block[0] / what.block[1]};
  return place;
}

fault describe_fault(
  const warp& w, size_t operation, fault_kind kind, const std::string& what, uint32_t lane) {
  const kernel& code = *w.block->code;
  fault f;
  static_cast<executed_place&>(f) =
    place_of(code, *w.block->what, w.block->number, operation, w.id * warp_lanes + lane);
  f.kind = kind;
  f.entry = code.info.name;
  f.what = fmt::format("kernel '{}', {}, `{}`: {}; block ({}, {}, {}), thread ({}, {}, {})",
    f.entry, place_text(f.ptx_line, f.source), f.instruction, what, f.block[0], f.block[1],
    f.block[2], f.thread[0], f.thread[1], f.thread[2]);
  return f;
}

} // namespace gristmill::ptx
