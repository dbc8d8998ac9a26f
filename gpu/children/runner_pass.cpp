#include "gpu/children/runner_pass.hpp"

#include "tensors/generate.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// Buffers are filled and read in pieces of this size.
constexpr uint64_t piece_bytes = uint64_t{4} << 20;

using role = resolved_buffer::role;

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

tensor_key key_of(tensor_key fill, size_t buffer) {
  for (size_t i = 0; i < 4; ++i)
    fill.bytes[12 + i] ^= static_cast<uint8_t>(buffer >> (8 * i));
  return fill;
}

pass_result<device_pointer> map_buffer(device& gpu, const child_context& context,
  const run_buffer& buffer, std::vector<mapped_file>& mapped) {
  const auto& what = buffer.what;
  auto address = [&]() -> result<device_pointer> {
    if (buffer.file_bytes < what.bytes)
      return gpu.map_repeated(context.path(buffer.file), buffer.file_bytes, what.bytes, what.name);
    auto file = mapped_file::open(context.path(buffer.file), what.bytes);
    if (!file)
      return fail(errc::io_failed, file.error().what);
    // The bytes stay where they are when the object that holds them moves.
    mapped.push_back(std::move(*file));
    return gpu.map_input(mapped.back().bytes(), what.name);
  }();
  if (!address)
    return device_said(address.error());
  return *address;
}

pass_result<void> fill_random(const runner_device& gpu, const resolved_buffer& what,
  device_pointer to, tensor_key key, bool plausible) {
  if (to == 0)
    return {};
  if (gpu.real != nullptr && !plausible) {
    uint64_t seed = 0;
    std::memcpy(&seed, key.bytes.data() + 8, sizeof seed);
    if (auto done = gpu.real->fill(to, what.bytes, seed); !done)
      return device_said(done.error());
    return {};
  }
  const auto kind = choose_distribution("", "", what.type, what.shape, "");
  const philox_stream stream(key);
  std::vector<std::byte> piece(std::min(piece_bytes, what.bytes));
  uint64_t at = 0;
  for (; at < what.bytes; at += piece.size()) {
    const std::span<std::byte> part(piece.data(), std::min(piece_bytes, what.bytes - at));
    if (plausible)
      generate(kind, what.type, what.shape, key, elements_in(what.type, at), part);
    else
      random_bytes(stream, at / sizeof(philox_block), part);
    if (auto done = gpu.any->copy_in(to + at, part); !done)
      return device_said(done.error());
    if (gpu.real != nullptr) {
      at += part.size();
      break;
    }
  }
  // A lease is too dear to draw gigabytes on the host: what follows repeats the first piece.
  while (at < what.bytes) {
    const uint64_t more = std::min(at, what.bytes - at);
    if (auto done = gpu.any->copy(to + at, to, more); !done)
      return device_said(done.error());
    at += more;
  }
  return {};
}

std::optional<unwritten> find_unwritten(
  const resolved_buffer& what, std::span<const std::byte> content, tensor_key key, bool repeats) {
  if (what.type == dtype::boolean)
    return std::nullopt;
  const uint64_t least = std::max<uint64_t>(64, 16 * element_bits(what.type) / 8);
  const auto kind = choose_distribution("", "", what.type, what.shape, "");
  std::vector<std::byte> piece(std::min<uint64_t>(piece_bytes, content.size()));
  uint64_t run = 0;
  for (uint64_t at = 0; at < content.size(); at += piece.size()) {
    const std::span<std::byte> part(
      piece.data(), std::min<uint64_t>(piece_bytes, content.size() - at));
    if (at == 0 || !repeats)
      generate(kind, what.type, what.shape, key, elements_in(what.type, at), part);
    for (uint64_t i = 0; i < part.size(); ++i) {
      run = part[i] == content[at + i] ? run + 1 : 0;
      const bool is_last =
        at + i + 1 == content.size() || (i + 1 < part.size() && part[i + 1] != content[at + i + 1]);
      if (run >= least && is_last)
        return unwritten{at + i + 1 - run, run};
    }
  }
  return std::nullopt;
}

runner_pass::runner_pass(runner_device gpu, const child_context& context, const run_pass& pass,
  unit_store& units, const tensor_key& fill)
  : on_(std::move(gpu)), gpu_(*on_.any), real_(on_.real), context_(context), pass_(pass),
    units_(units), fill_(fill) {}

runner_pass::~runner_pass() {
  if (real_ == nullptr) {
    gpu_.reset();
    return;
  }
  for (const auto address : addresses_)
    if (address != 0)
      (void)gpu_.free(address);
}

pass_result<void> runner_pass::allocate(size_t buffer) {
  const auto& what = pass_.buffers[buffer].what;
  if (what.bytes == 0) {
    addresses_.push_back(0);
    return {};
  }
  if (what.kind == role::input) {
    auto address = map_buffer(gpu_, context_, pass_.buffers[buffer], mapped_);
    if (!address)
      return pass(address);
    addresses_.push_back(*address);
  } else {
    auto address = gpu_.allocate(what.bytes, what.name);
    if (!address)
      return device_said(address.error());
    addresses_.push_back(*address);
  }
  if (real_ != nullptr) {
    const auto draw = philox_stream(key_of(fill_, buffer)).block(UINT64_MAX);
    auto moved = real_->move(addresses_.back(), draw[0]);
    if (!moved)
      return device_said(moved.error());
    addresses_.back() = *moved;
  }
  if (addresses_.back() % what.align != 0)
    return fail_pass(verdict_status::runtime_error,
      fmt::format("`{}` asks for an alignment of {}, which this device does not give", what.name,
        what.align));
  return {};
}

pass_result<void> runner_pass::set_up() {
  if (real_ == nullptr)
    gpu_.reset();
  auto loaded = real_ == nullptr ? units_.load(gpu_, pass_.unit) : units_.keep(*real_, pass_.unit);
  if (!loaded)
    return pass(loaded);
  module_ = *loaded;
  for (size_t i = 0; i < pass_.buffers.size(); ++i)
    if (auto done = allocate(i); !done)
      return done;
  for (size_t i = 0; i < pass_.buffers.size(); ++i)
    if (pass_.buffers[i].what.init == "restored")
      if (auto done = zero(i); !done)
        return done;
  auto built = call_builder::make(gpu_, module_, pass_, units_.unit(pass_.unit));
  if (!built)
    return pass(built);
  auto steps = built->steps(addresses_);
  if (!steps)
    return pass(steps);
  steps_ = std::move(*steps);
  return {};
}

pass_result<void> runner_pass::zero(size_t buffer) {
  if (addresses_[buffer] == 0)
    return {};
  if (auto done = gpu_.memset(addresses_[buffer], pass_.buffers[buffer].what.bytes, 1, 0); !done)
    return device_said(done.error());
  return {};
}

pass_result<void> runner_pass::digest_inputs(std::vector<uint64_t>& into) {
  // On a modelled device an input is the file itself, which nothing can write.
  for (size_t i = 0; real_ != nullptr && i < pass_.buffers.size(); ++i) {
    const auto& what = pass_.buffers[i].what;
    if (what.kind != role::input || what.bytes == 0)
      continue;
    uint64_t seed = 0;
    std::memcpy(&seed, fill_.bytes.data(), sizeof seed);
    auto digest = real_->digest(addresses_[i], what.bytes, seed);
    if (!digest)
      return device_said(digest.error());
    into.push_back(*digest);
  }
  return {};
}

pass_result<void> runner_pass::check_inputs(
  const std::vector<uint64_t>& before, std::vector<finding>& findings) {
  std::vector<uint64_t> now;
  if (auto done = digest_inputs(now); !done)
    return done;
  if (now != before)
    findings.push_back({"writes_input", "", "an input is not what it was before the call", true});
  return {};
}

pass_result<void> runner_pass::run_step(const call_step& step) {
  result<void> done;
  switch (step.what) {
  case call_step::op::launch: {
    auto report = gpu_.launch(step.function, step.shape, step.parameters);
    if (!report)
      return device_said(report.error());
    if (report->fault)
      return fault_of(*report->fault);
    return {};
  }
  case call_step::op::memset:
    if (step.bytes > 0)
      done = gpu_.memset(step.to, step.bytes, step.width, step.value);
    break;
  case call_step::op::copy:
    if (step.bytes > 0)
      done = gpu_.copy(step.to, step.from, step.bytes);
    break;
  }
  if (!done)
    return device_said(done.error());
  return {};
}

pass_result<void> runner_pass::run_steps() {
  if (real_ != nullptr) {
    if (auto done = real_->enqueue_call(steps_); !done)
      return device_said(done.error());
    return {};
  }
  // A step depends on earlier ones only, so their order is always right. The memsets of scratch
  // that a plan declares `zero` are steps like any other: `resolve` puts them in front.
  for (const auto& step : steps_)
    if (auto done = run_step(step); !done)
      return done;
  return {};
}

pass_result<void> runner_pass::wait() {
  auto finished = gpu_.synchronise();
  if (!finished)
    return device_said(finished.error());
  if (finished->fault)
    return fault_of(*finished->fault);
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

pass_result<void> runner_pass::write_output(size_t buffer, std::vector<finding>& findings) const {
  const auto& [what, file, unused] = pass_.buffers[buffer];
  std::vector<std::byte> content(what.bytes);
  if (what.bytes > 0)
    if (auto done = gpu_.copy_out(content, addresses_[buffer]); !done)
      return device_said(done.error());
  if (auto left = find_unwritten(what, content, key_of(fill_, buffer), real_ != nullptr))
    findings.push_back({"unwritten_output", "",
      fmt::format("`{}` still holds what was there before the call, {} bytes from byte {} on",
        what.name, left->bytes, left->first),
      true});
  if (auto done = write_tensor_file(context_.path(file), content); !done)
    return fail_pass(verdict_status::infrastructure, done.error().what);
  return {};
}

pass_result<void> runner_pass::check(std::vector<finding>& findings) {
  on_.may_take(work_allowance);
  if (auto done = set_up(); !done)
    return done;
  for (size_t i = 0; i < pass_.buffers.size(); ++i) {
    const auto& what = pass_.buffers[i].what;
    // What an output held before must neither help nor be taken for an answer, so it holds values
    // that an answer could have.
    const bool poison = what.kind == role::output;
    if (poison || what.init == "undefined")
      if (auto done = fill_random(on_, what, addresses_[i], key_of(fill_, i), poison); !done)
        return done;
  }
  std::vector<uint64_t> inputs;
  if (auto done = digest_inputs(inputs); !done)
    return done;
  const auto before = gpu_.globals(module_);
  if (!before)
    return device_said(before.error());
  on_.may_take(std::chrono::nanoseconds(context_.what.run.timing.limit_ns));
  if (auto done = run_steps(); !done)
    return done;
  if (auto done = wait(); !done)
    return done;
  on_.may_take(work_allowance);
  if (auto done = check_inputs(inputs, findings); !done)
    return done;
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
      if (auto done = write_output(i, findings); !done)
        return done;
  return {};
}

pass_result<void> runner_pass::call() {
  if (auto done = set_up(); !done)
    return done;
  if (auto done = run_steps(); !done)
    return done;
  return wait();
}

pass_result<call_time> runner_pass::time() {
  if (auto done = set_up(); !done)
    return pass(done);
  if (auto begun = gpu_.begin_timing(); !begun)
    return device_said(begun.error());
  if (auto done = run_steps(); !done)
    return pass(done);
  auto timed = gpu_.end_timing();
  if (!timed)
    return device_said(timed.error());
  return *timed;
}

} // namespace gristmill
