#include "tests/protocol/program/card_run.hpp"

#include "gpu/launch_parameters.hpp"
#include "gpu/mock/mock_device.hpp"
#include "kernels/builtin.hpp"
#include "kernels/native/native_reference.hpp"
#include "tensors/codec.hpp"
#include "tensors/generate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <span>

namespace gristmill::test {

namespace {

using bytes = std::vector<std::byte>;
constexpr uint64_t instruction_limit = 20'000'000;

struct tensors_of_call {
  std::vector<bytes> inputs;
  std::vector<bytes> outputs;
};

bytes drawn(const tensor_spec& spec, const axis_values& axes, uint8_t number) {
  const auto shape = resolve_shape(spec, axes);
  REQUIRE(shape);
  bytes out(*storage_bytes(spec.type, *shape));
  tensor_key key;
  key.bytes[0] = number;
  generate({}, spec.type, *shape, key, 0, out);
  return out;
}

std::vector<float> decoded(dtype type, const bytes& raw) {
  std::vector<float> out(raw.size() * 8 / element_bits(type));
  decode_to_float(type, raw, out);
  return out;
}

/// The nearest of e2m1's values, of two at the same distance the one with the even code.
void fp4_codes(const std::vector<float>& x, bytes& codes) {
  static constexpr std::array<double, 8> values{0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (size_t i = 0; i < x.size(); ++i) {
    const double magnitude = std::min(std::fabs(static_cast<double>(x[i])), 6.0);
    size_t best = 0;
    for (size_t c = 1; c < values.size(); ++c) {
      const double now = std::fabs(magnitude - values[c]),
                   old = std::fabs(magnitude - values[best]);
      if (now < old || (now == old && c % 2 == 0))
        best = c;
    }
    const auto code = static_cast<std::byte>(best + (x[i] < 0 ? 8 : 0));
    codes[i / 2] |= i % 2 == 0 ? code : code << 4;
  }
}

/// Inputs, and outputs by the reference.
tensors_of_call referenced(const problem& target, const axis_values& axes) {
  tensors_of_call out;
  for (const auto& spec : target.def.inputs)
    out.inputs.push_back(drawn(spec, axes, static_cast<uint8_t>(out.inputs.size() + 1)));
  for (const auto& spec : target.def.outputs) {
    const auto shape = resolve_shape(spec, axes);
    REQUIRE(shape);
    out.outputs.emplace_back(*storage_bytes(spec.type, *shape));
  }
  if (target.name == "fp4_codes") {
    // Ties do not come by chance.
    auto values = decoded(dtype::float32, out.inputs[0]);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = i % 3 == 0 ? std::round(values[i] * 8) / 4 : values[i] * 3;
    encode_from_float(dtype::float32, values, out.inputs[0]);
    fp4_codes(values, out.outputs[0]);
    return out;
  }
  const std::vector<std::span<const std::byte>> in(out.inputs.begin(), out.inputs.end());
  const std::vector<std::span<std::byte>> to(out.outputs.begin(), out.outputs.end());
  const auto done = run_native_reference(target.definition_text, axes, in, to);
  REQUIRE_MESSAGE(done, (done ? std::string{} : done.error().what));
  return out;
}

void compare(const tensor_spec& spec, const bytes& got, const bytes& want, card_outcome& out) {
  const bool exact = spec.type == dtype::int8;
  const double slack = exact ? 0 : spec.type == dtype::bfloat16 ? 0.01 : 1e-4;
  const auto a = decoded(spec.type, got), b = decoded(spec.type, want);
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    ++out.elements;
    // Written so that NaN is a miss.
    if (std::fabs(x - y) <= slack + slack * std::fabs(y))
      continue;
    if (out.misses++ == 0)
      out.first_miss = fmt::format("{}[{}] is {} instead of {}", spec.name, i, x, y);
  }
}

mock_device_config small_device() {
  mock_device_config out;
  out.profile = *profile("h200");
  out.instruction_limit = instruction_limit;
  return out;
}

class card_call {
public:
  card_call(const strategy_card& card, const problem& target, card_outcome& out)
    : card_(card), target_(target), out_(out), gpu_(make_mock_device(small_device())) {}

  void run(const axis_values& axes, uint32_t sm_count, const card_compiler& compiler) {
    const auto parsed = parse_plan(card_.plan);
    if (!parsed)
      return give_up("plan: " + parsed.error().what);
    const auto properties = gpu_->properties();
    const device_facts facts{.sm_count = sm_count,
      .smem_per_block = static_cast<uint32_t>(properties.shared_per_block),
      .smem_per_sm = static_cast<uint32_t>(properties.shared_per_sm),
      .l2_bytes = properties.l2_bytes,
      .arch = 90};
    const auto call = resolve(*parsed, target_.def, axes, {}, facts);
    if (!call)
      return give_up("plan: " + call.error().what);
    const auto compiled = compiler({card_.source, call->unit, parsed->options, properties.arch});
    if (!compiled)
      return give_up(compiled.error().what);
    if (compiled->status != verdict_status::passed)
      return give_up("compiler: " + compiled->log);
    const auto data = referenced(target_, axes);
    if (place(*call, data) && launch(*call, *compiled))
      read(*call, data);
  }

private:
  void give_up(std::string why) { out_.trouble = std::move(why); }

  bool place(const resolved_workload& call, const tensors_of_call& data) {
    size_t input = 0;
    for (const auto& buffer : call.buffers) {
      // A wrong answer must not look right because memory happened to be zero.
      bytes content(buffer.bytes, std::byte{0x7b});
      if (buffer.kind == resolved_buffer::role::input)
        content = data.inputs[input++];
      else if (buffer.init == "restored")
        content.assign(buffer.bytes, std::byte{0});
      const auto address = gpu_->allocate(buffer.bytes, buffer.name);
      if (!address || !gpu_->copy_in(*address, content)) {
        give_up("no memory for " + buffer.name);
        return false;
      }
      addresses_.push_back(*address);
    }
    return true;
  }

  bool launch(const resolved_workload& call, const compile_output& compiled) {
    const auto module = gpu_->load_module(compiled.ptx);
    if (!module) {
      give_up(module.error().what);
      return false;
    }
    for (const auto& step : call.steps) {
      if (step.what == resolved_step::op::memset) {
        REQUIRE(
          gpu_->memset(addresses_[step.buffer] + step.offset, step.bytes, step.width, step.value));
        continue;
      }
      REQUIRE(step.what == resolved_step::op::launch);
      const auto entry = std::find_if(compiled.entries.begin(), compiled.entries.end(),
        [&](const auto& one) { return one.expression == step.entry; });
      REQUIRE(entry != compiled.entries.end());
      const auto function = gpu_->find_function(*module, entry->symbol);
      REQUIRE(function);
      const auto described = gpu_->describe(*function);
      REQUIRE(described);
      const auto parameters = lay_out(step.args, addresses_, *described, *gpu_);
      if (!parameters) {
        give_up(parameters.error().what);
        return false;
      }
      const auto report = gpu_->launch(*function,
        {step.grid, step.block, step.cluster, step.shared_bytes, step.cooperative}, *parameters);
      if (!report || report->fault) {
        give_up(!report ? report.error().what : report->fault->what);
        return false;
      }
    }
    return true;
  }

  void read(const resolved_workload& call, const tensors_of_call& data) {
    size_t output = 0;
    for (size_t i = 0; i < call.buffers.size(); ++i) {
      if (call.buffers[i].kind != resolved_buffer::role::output)
        continue;
      bytes got(call.buffers[i].bytes);
      REQUIRE(gpu_->copy_out(got, addresses_[i]));
      REQUIRE(got.size() == data.outputs[output].size());
      compare(target_.def.outputs[output], got, data.outputs[output], out_);
      ++output;
    }
  }

  const strategy_card& card_;
  const problem& target_;
  card_outcome& out_;
  std::unique_ptr<device> gpu_;
  std::vector<device_pointer> addresses_;
};

} // namespace

problem problem_of(const strategy_card& card) {
  auto found = builtin_problem(card.problem);
  if (!found) {
    const char* root = std::getenv("GRISTMILL_SOURCE");
    REQUIRE(root != nullptr);
    found =
      load_problem(std::filesystem::path(root) / "tests/corpus/strategy_cards" / card.problem);
  }
  REQUIRE_MESSAGE(found, (found ? std::string{} : found.error().what));
  return std::move(*found);
}

card_outcome run_card(const strategy_card& card, const axis_values& axes, uint32_t sm_count,
  const card_compiler& compiler) {
  card_outcome out;
  const auto target = problem_of(card);
  const auto resolved = resolve_axes(target.def, axes);
  REQUIRE_MESSAGE(resolved, (resolved ? std::string{} : resolved.error().what));
  card_call(card, target, out).run(*resolved, sm_count, compiler);
  return out;
}

} // namespace gristmill::test
