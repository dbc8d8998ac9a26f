#include "kernels/native/native_reference.hpp"
#include "kernels/oracle/torch_child.hpp"
#include "protocol/child_answers.hpp"
#include "protocol/child_program.hpp"
#include "protocol/definition.hpp"
#include "tensors/generate.hpp"
#include "tensors/tensor_file.hpp"

#include <fmt/format.h>
#include <span>

namespace gristmill {

namespace {

result<void> draw(const child_context& context, const definition& def, const drawn_tensor& tensor) {
  std::vector<std::byte> content(tensor.file_bytes);
  const auto kind =
    choose_distribution(tensor.name, tensor.description, tensor.type, tensor.shape, def.op_type);
  if (!content.empty())
    generate(kind, tensor.type, tensor.shape, tensor.key, 0, content);
  return write_tensor_file(context.path(tensor.file), content);
}

result<void> draw_all(const child_context& context, const definition& def) {
  for (const auto& work : context.what.prepare.workloads)
    for (const auto* list : {&work.inputs, &work.patterns})
      for (const auto& tensor : *list)
        if (auto drawn = draw(context, def, tensor); !drawn)
          return drawn;
  return {};
}

prepare_answer compute_natively(const child_context& context, const prepare_workload& work) {
  prepare_answer answer{work.uuid, verdict_status::passed, {}};
  auto end = [&](verdict_status status, const failure& why) {
    answer.status = status;
    answer.reason = why.what;
    return answer;
  };
  std::vector<mapped_file> files;
  std::vector<std::span<const std::byte>> inputs;
  for (const auto& tensor : work.inputs) {
    auto file = mapped_file::open(context.path(tensor.file), tensor.bytes);
    if (!file)
      return end(verdict_status::infrastructure, file.error());
    inputs.push_back(file->bytes());
    files.push_back(std::move(*file));
  }
  std::vector<std::vector<std::byte>> contents;
  for (const auto& tensor : work.references)
    contents.emplace_back(tensor.bytes);
  const std::vector<std::span<std::byte>> outputs(contents.begin(), contents.end());
  auto ran = run_native_reference(context.what.prepare.definition_text, work.axes, inputs, outputs);
  if (!ran)
    return end(verdict_status::invalid_reference, ran.error());
  for (size_t i = 0; i < contents.size(); ++i)
    if (auto written = write_tensor_file(context.path(work.references[i].file), contents[i]);
        !written)
      return end(verdict_status::infrastructure, written.error());
  return answer;
}

result<void> prepare(child_context& context) {
  const auto& job = context.what.prepare;
  auto def = parse_definition(job.definition_text, "definition.json");
  if (!def)
    return pass(def);
  context.channel.phase("inputs");
  if (auto drawn = draw_all(context, *def); !drawn)
    return drawn;
  context.channel.phase("references");
  const bool native = job.oracle == oracle_kind::native;
  for (const auto& work : job.workloads)
    if (native && !work.references.empty())
      context.channel.sample(to_json(compute_natively(context, work)));
    else if (work.references.empty())
      context.channel.sample(to_json(prepare_answer{work.uuid, verdict_status::passed, {}}));
  if (native && job.trace.empty())
    return {};
  auto answers = run_torch(context, *def);
  if (!answers)
    return pass(answers);
  for (const auto& answer : answers->workloads)
    context.channel.sample(to_json(answer));
  if (!job.trace.empty())
    context.channel.sample(graph_to_json(answers->graph_file, answers->graph_reason));
  return {};
}

} // namespace

} // namespace gristmill

int main(int argc, char** argv) {
  return gristmill::child_main(
    argc, argv, "gristmill-oracle", gristmill::job_kind::prepare, gristmill::prepare);
}
