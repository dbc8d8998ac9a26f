#include "kernels/lowering/plain_program.hpp"

#include "kernels/lowering/linker.hpp"
#include "kernels/lowering/partition.hpp"

namespace gristmill {

result<generated_kernel> plain_program(
  const problem& target, const op_graph& graph, const stage_writer& frozen) {
  const auto program = program_graph::make(target, graph);
  if (!program)
    return pass(program);
  stage_library library(**program, true);
  const auto cut = plain_partition(**program, library);
  if (!cut)
    return pass(cut);
  program_code code;
  for (const auto& stage : cut->stages) {
    auto kernel = frozen(stage->sub.target, stage->sub.graph);
    if (!kernel) {
      const auto& space = *stage->spaces.back();
      kernel = space.generate(space.first());
    }
    code.stages.push_back({&stage->sub, std::move(*kernel)});
  }
  return link(**program, {std::move(code)});
}

} // namespace gristmill
