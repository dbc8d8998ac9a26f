#include "kernels/native/native_reference.hpp"
#include "kernels/oracle/torch_child.hpp"
#include "protocol/child_answers.hpp"
#include "protocol/child_program.hpp"
#include "protocol/definition.hpp"
#include "tensors/generate.hpp"
#include "tensors/safetensors.hpp"
#include "tensors/tensor_file.hpp"

#include <fmt/format.h>
#include <span>

namespace gristmill {

namespace {

/// A safetensors input into a file of its own, checked against its declaration. `invalid_input` is
/// the workload's failure.
result<void> copy_blob(const child_context& context, const drawn_tensor& tensor) {
  auto blob = mapped_file::open(tensor.blob_file);
  if (!blob)
    return pass(blob);
  auto tensors = parse_safetensors(blob->bytes());
  if (!tensors)
    return fail(tensors.error().code, tensor.blob_file + ": " + tensors.error().what);
  auto content = find_safetensor(
    *tensors, blob->bytes(), tensor.blob_key, tensor.type, tensor.shape, tensor.blob_file);
  if (!content)
    return pass(content);
  return write_tensor_file(context.path(tensor.file), content->first(tensor.file_bytes));
}

result<void> draw(const child_context& context, const definition& def, const drawn_tensor& tensor) {
  const auto kind = choose_distribution_in(
    tensor.style, tensor.name, tensor.description, tensor.type, tensor.shape, def.op_type);
  // In place: an input may be larger than what a child should hold.
  auto file = new_tensor_file::create(context.path(tensor.file), tensor.file_bytes);
  if (!file)
    return pass(file);
  generate(kind, tensor.type, tensor.shape, tensor.key, 0, file->bytes());
  return file->commit();
}

result<void> make_inputs(
  const child_context& context, const definition& def, const prepare_workload& work) {
  for (const auto* list : {&work.inputs, &work.patterns})
    for (const auto& tensor : *list) {
      result<void> made;
      if (tensor.source == tensor_source::generator)
        made = draw(context, def, tensor);
      else if (tensor.source == tensor_source::safetensors)
        made = copy_blob(context, tensor);
      if (!made)
        return fail(made.error().code, "input `" + tensor.name + "`: " + made.error().what);
    }
  return {};
}

/// Makes all inputs but those of entry points. A workload whose inputs cannot be made is answered
/// for, and leaves the job.
void make_all_inputs(child_context& context, const definition& def) {
  std::vector<prepare_workload> made;
  for (auto& work : context.what.prepare.workloads) {
    auto fine = make_inputs(context, def, work);
    if (fine) {
      made.push_back(std::move(work));
      continue;
    }
    const auto status = fine.error().code == errc::invalid_input ? verdict_status::runtime_error
                                                                 : verdict_status::infrastructure;
    context.channel.sample(to_json(prepare_answer{work.uuid, status, fine.error().what, {}}));
  }
  context.what.prepare.workloads = std::move(made);
}

prepare_answer compute_natively(const child_context& context, const prepare_workload& work) {
  prepare_answer answer{work.uuid, verdict_status::passed, {}, {}};
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
  make_all_inputs(context, *def);
  context.channel.phase("references");
  const bool native = job.oracle == oracle_kind::native;
  for (const auto& work : job.workloads)
    if (native && !work.references.empty())
      context.channel.sample(to_json(compute_natively(context, work)));
    else if (work.references.empty() && work.calls.empty())
      context.channel.sample(to_json(prepare_answer{work.uuid, verdict_status::passed, {}, {}}));
  if (job.trace.empty() && (native || job.workloads.empty()))
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
