#include "gpu/mock/ptx/line_counts.hpp"

#include "gpu/mock/ptx/report.hpp"

#include <map>

namespace gristmill::ptx {
namespace {

enum place : size_t { global, shared, local };

place place_of(const operation& o) {
  switch (o.counted) {
  case category::load_shared:
  case category::store_shared:
  case category::atomic_shared:
    return shared;
  case category::load_local:
  case category::store_local:
    return local;
  default:
    // ldmatrix, stmatrix and wgmma read shared memory.
    return o.where == space::shared || o.counted == category::mma ? shared : global;
  }
}

} // namespace

std::vector<line_counts> count_lines(const kernel& code,
  const std::vector<operation_counts>& operations, const std::vector<uint64_t>& diverged) {
  std::map<int, line_counts> lines;
  for (size_t i = 0; i < operations.size(); ++i) {
    const operation& o = code.operations[i];
    const operation_counts& n = operations[i];
    if (o.hidden || n.instructions == 0)
      continue;
    const source_line& source = code.sources[o.source];
    line_counts& line = lines[source.line];
    if (line.ptx_line == 0) {
      line.ptx_line = source.line;
      line.source = source_of(code, source);
      line.instruction = one_line(source.text);
      line.counted = o.counted;
    }
    line.warp_instructions += n.instructions;
    line.lane_instructions += n.lanes;
    line.diverged += diverged[i];
    const auto add = [&](place where, const auto& counted) {
      line.bytes[where] += counted.bytes;
      line.passes[where] += where == shared ? counted.wavefronts : counted.sectors;
    };
    add(place_of(o), n.memory[as_counted]);
    add(shared, n.memory[generic_to_shared]);
    add(local, n.memory[generic_to_local]);
  }
  std::vector<line_counts> result;
  for (auto& [number, line] : lines)
    result.push_back(std::move(line));
  return result;
}

} // namespace gristmill::ptx
