#include "gpu/children/runner_pass.hpp"

#include "gpu/launch_parameters.hpp"
#include "tensors/generate.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// Buffers are filled and read in pieces of this size.
constexpr uint64_t piece_bytes = uint64_t{4} << 20;

using role = resolved_buffer::role;

tl::unexpected<pass_failure> fail_pass(verdict_status status, std::string detail) {
  return tl::unexpected<pass_failure>(pass_failure{status, std::move(detail), {}});
}

/// A failure of the device that is no fault of a kernel: what the candidate asked for in vain is
/// its own error, what the system refused is ours.
tl::unexpected<pass_failure> device_said(const failure& why) {
  switch (why.code) {
  case errc::invalid_input:
  case errc::not_found:
  case errc::refused:
  case errc::unsupported:
  case errc::device_fault:
    return fail_pass(verdict_status::runtime_error, why.what);
  case errc::timed_out:
    return fail_pass(verdict_status::timeout, why.what);
  default:
    return fail_pass(verdict_status::infrastructure, why.what);
  }
}

tl::unexpected<pass_failure> fault_of(const device_fault& fault) {
  const auto status = fault.timeout ? verdict_status::timeout : verdict_status::runtime_error;
  return tl::unexpected<pass_failure>(pass_failure{status, fault.what, fault});
}

/// Another stream of the same fill for each buffer.
tensor_key key_of(tensor_key fill, size_t buffer) {
  for (size_t i = 0; i < 4; ++i)
    fill.bytes[12 + i] ^= static_cast<uint8_t>(buffer >> (8 * i));
  return fill;
}

void random_bytes(const philox_stream& stream, uint64_t first_block, std::span<std::byte> out) {
  for (size_t at = 0; at < out.size(); at += sizeof(philox_block)) {
    const auto block = stream.block(first_block + at / sizeof(philox_block));
    std::memcpy(out.data() + at, block.data(), std::min(sizeof block, out.size() - at));
  }
}

uint64_t elements_in(dtype type, uint64_t bytes) {
  return bytes * 8 / element_bits(type);
}

} // namespace

runner_pass::runner_pass(device& gpu, const child_context& context, const run_pass& pass,
  const run_unit& unit, const std::string& code, const tensor_key& fill)
  : gpu_(gpu), context_(context), pass_(pass), unit_(unit), code_(code), fill_(fill) {}

runner_pass::~runner_pass() {
  gpu_.reset();
}

pass_result<void> runner_pass::allocate(const run_buffer& buffer) {
  const auto& what = buffer.what;
  if (what.bytes == 0) {
    addresses_.push_back(0);
    return {};
  }
  auto address = [&]() -> result<device_pointer> {
    if (what.kind != role::input)
      return gpu_.allocate(what.bytes, what.name);
    if (buffer.file_bytes < what.bytes)
      return gpu_.map_repeated(
        context_.path(buffer.file), buffer.file_bytes, what.bytes, what.name);
    auto file = mapped_file::open(context_.path(buffer.file), what.bytes);
    if (!file)
      return fail(errc::io_failed, file.error().what);
    mapped_.push_back(std::move(*file));
    return gpu_.map_input(mapped_.back().bytes(), what.name);
  }();
  if (!address)
    return device_said(address.error());
  if (*address % what.align != 0)
    return fail_pass(verdict_status::runtime_error,
      fmt::format("`{}` asks for an alignment of {}, which this device does not give", what.name,
        what.align));
  addresses_.push_back(*address);
  return {};
}

pass_result<void> runner_pass::find_functions() {
  functions_.resize(pass_.steps.size());
  parameters_.resize(pass_.steps.size());
  for (size_t i = 0; i < pass_.steps.size(); ++i) {
    const auto& step = pass_.steps[i];
    if (step.what != resolved_step::op::launch)
      continue;
    const auto entry = std::find_if(unit_.entries.begin(), unit_.entries.end(),
      [&](const auto& one) { return one.expression == step.entry; });
    if (entry == unit_.entries.end())
      return fail_pass(
        verdict_status::infrastructure, fmt::format("the unit has no entry for `{}`", step.entry));
    auto found = gpu_.find_function(module_, entry->symbol);
    if (!found)
      return device_said(found.error());
    auto described = gpu_.describe(*found);
    if (!described)
      return device_said(described.error());
    auto parameters = lay_out(step.args, addresses_, *described, gpu_);
    if (!parameters)
      return device_said(parameters.error());
    if (parameters->size() != described->parameter_bytes)
      return fail_pass(verdict_status::runtime_error,
        fmt::format("`{}` takes {} bytes of arguments, but the plan passes {}", step.entry,
          described->parameter_bytes, parameters->size()));
    parameters_[i] = std::move(*parameters);
    functions_[i] = *found;
  }
  return {};
}

pass_result<void> runner_pass::set_up() {
  gpu_.reset();
  auto loaded = gpu_.load_module(code_);
  if (!loaded)
    return device_said(loaded.error());
  module_ = *loaded;
  // Mapped files must not move once the device knows their addresses.
  mapped_.reserve(pass_.buffers.size());
  for (const auto& buffer : pass_.buffers)
    if (auto done = allocate(buffer); !done)
      return done;
  for (size_t i = 0; i < pass_.buffers.size(); ++i)
    if (pass_.buffers[i].what.init == "restored")
      if (auto done = zero(i); !done)
        return done;
  return find_functions();
}

pass_result<void> runner_pass::zero(size_t buffer) {
  if (addresses_[buffer] == 0)
    return {};
  if (auto done = gpu_.memset(addresses_[buffer], pass_.buffers[buffer].what.bytes, 1, 0); !done)
    return device_said(done.error());
  return {};
}

pass_result<void> runner_pass::fill_random(size_t buffer, bool plausible) {
  const auto& what = pass_.buffers[buffer].what;
  const auto key = key_of(fill_, buffer);
  const auto kind = choose_distribution("", "", what.type, what.shape, "");
  const philox_stream stream(key);
  std::vector<std::byte> piece(std::min(piece_bytes, what.bytes));
  for (uint64_t at = 0; at < what.bytes; at += piece.size()) {
    const std::span<std::byte> part(piece.data(), std::min(piece_bytes, what.bytes - at));
    if (plausible)
      generate(kind, what.type, what.shape, key, elements_in(what.type, at), part);
    else
      random_bytes(stream, at / sizeof(philox_block), part);
    if (auto done = gpu_.copy_in(addresses_[buffer] + at, part); !done)
      return device_said(done.error());
  }
  return {};
}

pass_result<void> runner_pass::run_step(size_t index) {
  const auto& step = pass_.steps[index];
  result<void> done;
  switch (step.what) {
  case resolved_step::op::launch: {
    const launch_shape shape{
      step.grid, step.block, step.cluster, step.shared_bytes, step.cooperative};
    auto report = gpu_.launch(functions_[index], shape, parameters_[index]);
    if (!report)
      return device_said(report.error());
    if (report->fault)
      return fault_of(*report->fault);
    return {};
  }
  case resolved_step::op::memset:
    if (step.bytes > 0)
      done = gpu_.memset(addresses_[step.buffer] + step.offset, step.bytes, step.width, step.value);
    break;
  case resolved_step::op::copy:
    if (step.bytes > 0)
      done = gpu_.copy(addresses_[step.buffer] + step.offset,
        addresses_[step.src_buffer] + step.src_offset, step.bytes);
    break;
  }
  if (!done)
    return device_said(done.error());
  return {};
}

pass_result<void> runner_pass::run_steps() {
  // A step depends on earlier ones only, so their order is always right. The memsets of scratch
  // that a plan declares `zero` are steps like any other: `resolve` puts them in front.
  for (size_t i = 0; i < pass_.steps.size(); ++i)
    if (auto done = run_step(i); !done)
      return done;
  return {};
}

pass_result<void> runner_pass::check_restored() const {
  for (size_t i = 0; i < pass_.buffers.size(); ++i) {
    const auto& what = pass_.buffers[i].what;
    if (what.init != "restored")
      continue;
    std::vector<std::byte> piece(std::min(piece_bytes, what.bytes));
    for (uint64_t at = 0; at < what.bytes; at += piece.size()) {
      const std::span<std::byte> part(piece.data(), std::min(piece_bytes, what.bytes - at));
      if (auto done = gpu_.copy_out(part, addresses_[i] + at); !done)
        return device_said(done.error());
      const auto dirty =
        std::find_if(part.begin(), part.end(), [](std::byte b) { return b != std::byte{0}; });
      if (dirty != part.end())
        return fail_pass(verdict_status::runtime_error,
          fmt::format("scratch `{}` is declared `restored`, but byte {} is not zero after the call",
            what.name, at + static_cast<uint64_t>(dirty - part.begin())));
    }
  }
  return {};
}

pass_result<void> runner_pass::write_output(size_t buffer) const {
  const auto& [what, file, unused] = pass_.buffers[buffer];
  std::vector<std::byte> content(what.bytes);
  if (what.bytes > 0)
    if (auto done = gpu_.copy_out(content, addresses_[buffer]); !done)
      return device_said(done.error());
  if (auto done = write_tensor_file(context_.path(file), content); !done)
    return fail_pass(verdict_status::infrastructure, done.error().what);
  return {};
}

pass_result<void> runner_pass::check(std::vector<finding>& findings) {
  if (auto done = set_up(); !done)
    return done;
  for (size_t i = 0; i < pass_.buffers.size(); ++i) {
    const auto& what = pass_.buffers[i].what;
    // What an output held before must neither help nor be taken for an answer, so it holds values
    // that an answer could have.
    const bool poison = what.kind == role::output;
    if (poison || what.init == "undefined")
      if (auto done = fill_random(i, poison); !done)
        return done;
  }
  const auto before = gpu_.globals(module_);
  if (!before)
    return device_said(before.error());
  if (auto done = run_steps(); !done)
    return done;
  auto finished = gpu_.synchronise();
  if (!finished)
    return device_said(finished.error());
  if (finished->fault)
    return fault_of(*finished->fault);
  const auto after = gpu_.globals(module_);
  if (!after)
    return device_said(after.error());
  if (*before != *after) {
    const auto [first, unused] =
      std::mismatch(before->begin(), before->end(), after->begin(), after->end());
    findings.push_back({"changes_global", "",
      fmt::format("a module global differs after the call (byte {} of {}): the kernel could carry "
                  "an answer from one call to the next",
        first - before->begin(), before->size()),
      true});
  }
  if (auto done = check_restored(); !done)
    return done;
  for (size_t i = 0; i < pass_.buffers.size(); ++i)
    if (pass_.buffers[i].what.kind == role::output && !pass_.buffers[i].file.empty())
      if (auto done = write_output(i); !done)
        return done;
  return {};
}

pass_result<call_time> runner_pass::time() {
  if (auto done = set_up(); !done)
    return tl::unexpected<pass_failure>(done.error());
  if (auto begun = gpu_.begin_timing(); !begun)
    return device_said(begun.error());
  if (auto done = run_steps(); !done)
    return tl::unexpected<pass_failure>(done.error());
  auto timed = gpu_.end_timing();
  if (!timed)
    return device_said(timed.error());
  return *timed;
}

} // namespace gristmill
