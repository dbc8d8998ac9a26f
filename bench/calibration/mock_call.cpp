#include "bench/calibration/mock_call.hpp"

#include "gpu/launch_parameters.hpp"
#include "gpu/mock/mock_device.hpp"
#include "gpu/toolchain/clang_toolchain.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <span>

namespace gristmill::calibration {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t pattern_bytes = 4 << 20;
// Of one launch at a small size. A block that waits for one that never runs ends here.
constexpr uint64_t instruction_limit = 20'000'000;
// Of the sample that a modelled time rests on.
constexpr uint64_t timed_instruction_limit = 100'000'000;

class private_folder {
public:
  private_folder() {
    std::string made = (fs::temp_directory_path() / "gristmill-corpus-XXXXXX").string();
    if (mkdtemp(made.data()) != nullptr)
      path_ = made;
  }
  private_folder(const private_folder&) = delete;
  private_folder& operator=(const private_folder&) = delete;
  ~private_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

private:
  fs::path path_;
};

class clang_mock_caller final : public mock_caller {
public:
  clang_mock_caller(clang_command clang, gpu_profile gpu,
    std::function<void(const ptx::entry_info&, const sample&, const launch_time&)> timed)
    : clang_(std::move(clang)), gpu_(make_mock_device({.profile = std::move(gpu),
                                  .instruction_limit = instruction_limit,
                                  .clock = {.instruction_limit = timed_instruction_limit},
                                  .timed = std::move(timed)})) {}

  std::string label() const override { return gpu_->properties().time_label; }

  result<std::vector<double>> output(const corpus_kernel& kernel, const corpus_case& of) override {
    auto functions = load(kernel, kernel.small);
    if (!functions)
      return pass(functions);
    const auto inputs = small_inputs(of);
    std::vector<device_pointer> addresses;
    size_t input = 0, place = 0;
    for (size_t i = 0; i < kernel.small->buffers.size(); ++i) {
      const resolved_buffer& buffer = kernel.small->buffers[i];
      const auto address = gpu_->allocate(buffer.bytes, buffer.name);
      if (!address)
        return pass(address);
      addresses.push_back(*address);
      // A wrong answer must not look right because memory happened to be zero.
      const std::vector<uint8_t> wrong(buffer.bytes, 0x7b);
      const bool is_input = buffer.kind == resolved_buffer::role::input;
      if (buffer.kind == resolved_buffer::role::output)
        place = i;
      const auto& content = is_input ? inputs[input++] : wrong;
      if (auto copied = gpu_->copy_in(*address, std::as_bytes(std::span(content))); !copied)
        return pass(copied);
      if (buffer.init == "zero" || buffer.init == "restored")
        if (auto cleared = gpu_->memset(*address, buffer.bytes, 1, 0); !cleared)
          return pass(cleared);
    }
    if (auto ran = run(*kernel.small, *functions, addresses); !ran)
      return pass(ran);
    std::vector<uint8_t> got(kernel.small->buffers[place].bytes);
    const auto copied = gpu_->copy_out(std::as_writable_bytes(std::span(got)), addresses[place]);
    if (!copied)
      return pass(copied);
    return as_doubles(of.small.buffers[place].dtype, got);
  }

  result<call_time> time(const corpus_kernel& kernel, const corpus_case& of) override {
    auto functions = load(kernel, kernel.large);
    if (!functions)
      return pass(functions);
    std::vector<device_pointer> addresses;
    std::vector<std::vector<uint8_t>> kept;
    for (size_t i = 0; i < kernel.large->buffers.size(); ++i) {
      const resolved_buffer& buffer = kernel.large->buffers[i];
      if (buffer.kind != resolved_buffer::role::input) {
        const auto address = gpu_->allocate(buffer.bytes, buffer.name);
        if (!address)
          return pass(address);
        addresses.push_back(*address);
        continue;
      }
      const auto address = map_input(of.large.buffers[i], i, kept);
      if (!address)
        return pass(address);
      addresses.push_back(*address);
    }
    if (auto begun = gpu_->begin_timing(); !begun)
      return pass(begun);
    // Scratch that has to be zero is cleared in each call, and timed.
    for (size_t i = 0; i < addresses.size(); ++i)
      if (const resolved_buffer& buffer = kernel.large->buffers[i]; buffer.init == "zero")
        if (auto cleared = gpu_->memset(addresses[i], buffer.bytes, 1, 0); !cleared)
          return pass(cleared);
    const auto ran = run(*kernel.large, *functions, addresses);
    auto time = gpu_->end_timing();
    if (!ran)
      return pass(ran);
    return time;
  }

private:
  result<std::vector<function_handle>> load(
    const corpus_kernel& kernel, const result<resolved_workload>& work) {
    if (!work)
      return pass(work);
    gpu_->reset();
    const private_folder folder;
    const auto compiled = compile_with_clang(
      {kernel.source, work->unit, kernel.options, gpu_->properties().arch}, folder.path(), clang_);
    if (!compiled)
      return pass(compiled);
    if (compiled->status != verdict_status::passed)
      return fail(errc::invalid_input, "compiler: " + compiled->log);
    const auto module = gpu_->load_module(compiled->ptx);
    if (!module)
      return pass(module);
    std::vector<function_handle> out;
    for (const resolved_step& step : work->steps) {
      if (step.what != resolved_step::op::launch) {
        out.emplace_back();
        continue;
      }
      const auto entry = std::find_if(compiled->entries.begin(), compiled->entries.end(),
        [&](const auto& one) { return one.expression == step.entry; });
      if (entry == compiled->entries.end())
        return fail(errc::not_found, "no entry " + step.entry);
      const auto function = gpu_->find_function(*module, entry->symbol);
      if (!function)
        return pass(function);
      out.push_back(*function);
    }
    return out;
  }

  result<void> run(const resolved_workload& work, const std::vector<function_handle>& functions,
    const std::vector<device_pointer>& at) {
    for (size_t i = 0; i < work.steps.size(); ++i) {
      const resolved_step& step = work.steps[i];
      if (step.what == resolved_step::op::memset) {
        if (auto done =
              gpu_->memset(at[step.buffer] + step.offset, step.bytes, step.width, step.value);
            !done)
          return done;
        continue;
      }
      if (step.what == resolved_step::op::copy) {
        if (auto done = gpu_->copy(
              at[step.buffer] + step.offset, at[step.src_buffer] + step.src_offset, step.bytes);
            !done)
          return done;
        continue;
      }
      const launch_shape shape{
        step.grid, step.block, step.cluster, step.shared_bytes, step.cooperative};
      const auto described = gpu_->describe(functions[i]);
      if (!described)
        return pass(described);
      const auto parameters = lay_out(step.args, at, *described, *gpu_);
      if (!parameters)
        return pass(parameters);
      const auto report = gpu_->launch(functions[i], shape, *parameters);
      if (!report)
        return pass(report);
      if (report->fault)
        return fail(errc::device_fault, report->fault->what);
    }
    return {};
  }

  result<device_pointer> map_input(
    const case_buffer& buffer, size_t index, std::vector<std::vector<uint8_t>>& kept) {
    // A ramp or a cycle means something only as a whole.
    const bool whole = buffer.bytes <= pattern_bytes || fill_of(buffer.fill) == fill_kind::cycle
      || fill_of(buffer.fill) == fill_kind::ramp;
    const uint64_t width = buffer.bytes / buffer.elements;
    kept.push_back(drawn(buffer, index, whole ? buffer.elements : pattern_bytes / width));
    if (whole) {
      const auto address = gpu_->allocate(buffer.bytes, buffer.name);
      if (!address)
        return pass(address);
      if (auto done = gpu_->copy_in(*address, std::as_bytes(std::span(kept.back()))); !done)
        return pass(done);
      return *address;
    }
    const fs::path path = patterns_.path() / buffer.name;
    std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(kept.back().data()),
        static_cast<std::streamsize>(kept.back().size()));
    return gpu_->map_repeated(path.string(), pattern_bytes, buffer.bytes, buffer.name);
  }

  clang_command clang_;
  std::unique_ptr<device> gpu_;
  private_folder patterns_;
};

} // namespace

result<std::unique_ptr<mock_caller>> make_mock_caller(
  std::function<void(const ptx::entry_info&, const sample&, const launch_time&)> timed) {
  const char* path = std::getenv("PATH");
  auto clang = find_clang(path == nullptr ? "" : path);
  if (!clang)
    return pass(clang);
  auto gpu = profile("h200");
  if (!gpu)
    return pass(gpu);
  return std::make_unique<clang_mock_caller>(std::move(*clang), std::move(*gpu), std::move(timed));
}

std::vector<std::vector<uint8_t>> small_inputs(const corpus_case& of) {
  std::vector<std::vector<uint8_t>> out;
  for (size_t i = 0; i < of.small.buffers.size(); ++i)
    if (of.small.buffers[i].kind == case_buffer::role::input)
      out.push_back(drawn(of.small.buffers[i], i, of.small.buffers[i].elements));
  return out;
}

} // namespace gristmill::calibration
