#include "tests/kernels/mock_run.hpp"

#include "gpu/launch_parameters.hpp"
#include "gpu/mock/mock_device.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"
#include "tensors/codec.hpp"
#include "tensors/generate.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace gristmill::test {

namespace {

device_facts facts_of_device(const device_properties& of) {
  return {.sm_count = of.sm_count,
    .smem_per_block = static_cast<uint32_t>(of.shared_per_block),
    .smem_per_sm = static_cast<uint32_t>(of.shared_per_sm),
    .l2_bytes = of.l2_bytes,
    .arch = 90};
}

/// A folder that goes away with the value.
struct private_folder {
  std::filesystem::path path;

  private_folder() {
    std::string name =
      (std::filesystem::temp_directory_path() / "gristmill-kernels-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  private_folder(const private_folder&) = delete;
  private_folder& operator=(const private_folder&) = delete;
  ~private_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

} // namespace

struct mock_bench::bound {
  resolved_workload call;
  std::vector<function_handle> functions;
};

mock_bench::mock_bench() {
  const char* path = std::getenv("PATH");
  auto found = find_clang(path == nullptr ? "" : path);
  if (!found) {
    MESSAGE("SKIPPED: generated kernels are not run: " << found.error().what);
    return;
  }
  clang_ = *found;
  auto h200 = profile("h200");
  REQUIRE(h200);
  gpu_ = make_mock_device({.profile = *h200, .clock = {}});
}

mock_bench::bound mock_bench::prepare(
  const generated_kernel& kernel, const problem& target, const workload& work) {
  const auto plan = parse_plan(kernel.plan);
  REQUIRE_MESSAGE(plan, (plan ? std::string{} : plan.error().what));
  const auto axes = resolve_axes(target.def, work.axes);
  REQUIRE(axes);
  std::vector<std::pair<std::string, scalar_value>> scalars;
  for (const auto& spec : target.def.inputs) {
    if (spec.is_scalar)
      scalars.emplace_back(spec.name, *make_scalar(spec.type, work.find_input(spec.name)->value));
  }
  auto call = resolve(*plan, target.def, *axes, scalars, facts_of_device(gpu_->properties()));
  REQUIRE_MESSAGE(call, (call ? std::string{} : call.error().what));
  const private_folder folder;
  const auto compiled = compile_with_clang(
    {kernel.source, call->unit, plan->options, gpu_->properties().arch}, folder.path, *clang_);
  REQUIRE_MESSAGE(compiled, (compiled ? std::string{} : compiled.error().what));
  REQUIRE_MESSAGE(compiled->status == verdict_status::passed,
    compiled->log << "\n"
                  << kernel.source);
  gpu_->reset();
  const auto module = gpu_->load_module(compiled->ptx);
  REQUIRE_MESSAGE(module, (module ? std::string{} : module.error().what));
  bound out{std::move(*call), {}};
  for (const auto& step : out.call.steps) {
    const auto entry = std::find_if(compiled->entries.begin(), compiled->entries.end(),
      [&](const auto& one) { return one.expression == step.entry; });
    REQUIRE(entry != compiled->entries.end());
    const auto function = gpu_->find_function(*module, entry->symbol);
    REQUIRE(function);
    out.functions.push_back(*function);
  }
  return out;
}

void mock_bench::launch(const bound& call, const std::vector<device_pointer>& addresses) {
  for (size_t i = 0; i < call.call.steps.size(); ++i) {
    const auto& step = call.call.steps[i];
    const launch_shape shape{step.grid, step.block, step.cluster, step.shared_bytes, false};
    const auto described = gpu_->describe(call.functions[i]);
    REQUIRE(described);
    const auto parameters = lay_out(step.args, addresses, *described, *gpu_);
    REQUIRE_MESSAGE(parameters, (parameters ? std::string{} : parameters.error().what));
    const auto report = gpu_->launch(call.functions[i], shape, *parameters);
    REQUIRE_MESSAGE(report, (report ? std::string{} : report.error().what));
    REQUIRE_MESSAGE(!report->fault, (report->fault ? report->fault->what : std::string{}));
  }
}

std::vector<tensor> mock_bench::outputs(const generated_kernel& kernel, const problem& target,
  const workload& work, const std::vector<tensor>& inputs) {
  const bound call = prepare(kernel, target, work);
  std::vector<std::vector<std::byte>> storage;
  std::vector<device_pointer> addresses;
  for (size_t i = 0; i < call.call.buffers.size(); ++i) {
    const auto& buffer = call.call.buffers[i];
    // A wrong answer must not look right because memory happened to be zero.
    storage.emplace_back(buffer.bytes, std::byte{0x7b});
    if (buffer.kind == resolved_buffer::role::input) {
      REQUIRE(inputs[i].size() * element_bits(buffer.type) / 8 == buffer.bytes);
      encode_from_float(buffer.type, inputs[i], storage.back());
    }
    const auto address = gpu_->allocate(buffer.bytes, buffer.name);
    REQUIRE(address);
    REQUIRE(gpu_->copy_in(*address, storage.back()));
    addresses.push_back(*address);
  }
  launch(call, addresses);
  std::vector<tensor> outputs;
  for (size_t i = 0; i < call.call.buffers.size(); ++i) {
    const auto& buffer = call.call.buffers[i];
    if (buffer.kind != resolved_buffer::role::output)
      continue;
    REQUIRE(gpu_->copy_out(storage[i], addresses[i]));
    outputs.emplace_back(buffer.bytes * 8 / element_bits(buffer.type));
    decode_to_float(buffer.type, storage[i], outputs.back());
  }
  return outputs;
}

call_time mock_bench::time(
  const generated_kernel& kernel, const problem& target, const workload& work) {
  const bound call = prepare(kernel, target, work);
  std::vector<device_pointer> addresses;
  for (const auto& buffer : call.call.buffers) {
    const auto address = gpu_->allocate(buffer.bytes, buffer.name);
    REQUIRE(address);
    addresses.push_back(*address);
  }
  REQUIRE(gpu_->begin_timing());
  launch(call, addresses);
  auto time = gpu_->end_timing();
  REQUIRE_MESSAGE(time, (time ? std::string{} : time.error().what));
  return *time;
}

std::vector<tensor> drawn_inputs(const problem& target, const workload& work) {
  const auto axes = resolve_axes(target.def, work.axes);
  REQUIRE(axes);
  std::vector<tensor> inputs;
  for (const auto& spec : target.def.inputs) {
    if (spec.is_scalar)
      continue;
    const auto shape = resolve_shape(spec, *axes);
    REQUIRE(shape);
    std::vector<std::byte> raw(*storage_bytes(spec.type, *shape));
    tensor_key key;
    key.bytes[0] = static_cast<uint8_t>(inputs.size() + 1);
    generate({}, spec.type, *shape, key, 0, raw);
    inputs.emplace_back(raw.size() * 8 / element_bits(spec.type));
    decode_to_float(spec.type, raw, inputs.back());
  }
  return inputs;
}

} // namespace gristmill::test
