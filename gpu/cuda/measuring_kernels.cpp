#include "gpu/cuda/measuring_kernels.hpp"

#include "gpu/cuda/measuring_ptx.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill::cuda {

namespace {

constexpr unsigned threads = 256;
constexpr uint64_t canary_ns = 2'000'000, page_bytes = 64 * 1024;
constexpr std::array<const char*, 6> names{
  "gm_read", "gm_digest", "gm_fill", "gm_differ", "gm_touch", "gm_canary"};

} // namespace

result<std::unique_ptr<measuring_kernels>> measuring_kernels::make(
  driver_ptr api, device_id device, stream_handle stream, const device_properties& properties) {
  auto memory = device_memory::make(api, device);
  if (!memory)
    return pass(memory);
  std::unique_ptr<measuring_kernels> out(
    new measuring_kernels(api, stream, properties, std::move(*memory)));
  auto room = out->memory_.allocate(256, "measuring");
  if (!room)
    return pass(room);
  out->words_ = *room;
  if (auto bad = (*api)->module_load(&out->module_, measuring_ptx(), 0, nullptr, nullptr);
      bad != success)
    return fail(errc::io_failed, "our own kernels do not load: " + api->describe(bad));
  static_assert(names.size() == entry_count);
  for (size_t i = 0; i < names.size(); ++i)
    if (auto bad = (*api)->module_function(&out->functions_[i], out->module_, names[i]);
        bad != success)
      return fail(
        errc::io_failed, fmt::format("{} is not there: {}", names[i], api->describe(bad)));
  return out;
}

measuring_kernels::~measuring_kernels() {
  if (module_ != nullptr)
    (*api_)->module_unload(module_);
  for (const auto& [local, one] : scrubbers_)
    (*api_)->module_unload(one.module);
}

unsigned measuring_kernels::blocks_for(uint64_t bytes) const {
  const uint64_t wanted = (bytes / 8 + threads) / threads;
  return static_cast<unsigned>(std::clamp<uint64_t>(wanted, 1, uint64_t{8} * sm_count_));
}

result<void> measuring_kernels::launch(function_handle function, unsigned blocks,
  unsigned block_threads, unsigned shared, std::span<const uint64_t> parameters) {
  launch_config config;
  config.grid_x = blocks;
  config.block_x = block_threads;
  config.shared_bytes = shared;
  config.stream = stream_;
  size_t bytes = parameters.size_bytes();
  std::array<void*, 5> extra{
    param_buffer, const_cast<uint64_t*>(parameters.data()), param_size, &bytes, param_end};
  if (auto bad = (*api_)->launch(&config, function, nullptr, extra.data()); bad != success)
    return failure_of(*api_, "a kernel of our own", bad);
  return {};
}

result<void> measuring_kernels::set_words(uint64_t first, uint64_t second) {
  // On the stream, so that what runs there now is done before.
  const std::array<uint32_t, 4> parts{static_cast<uint32_t>(first),
    static_cast<uint32_t>(first >> 32), static_cast<uint32_t>(second),
    static_cast<uint32_t>(second >> 32)};
  for (size_t i = 0; i < parts.size(); ++i)
    if (auto bad = (*api_)->memset32(words_ + 4 * i, parts[i], 1, stream_); bad != success)
      return failure_of(*api_, "a memset", bad);
  return {};
}

result<std::array<uint64_t, 2>> measuring_kernels::words() {
  if (auto bad = (*api_)->stream_synchronise(stream_); bad != success)
    return failure_of(*api_, "waiting for a kernel of our own", bad);
  std::array<uint64_t, 2> out{};
  if (auto bad = (*api_)->copy_out(out.data(), words_, sizeof out); bad != success)
    return failure_of(*api_, "a copy", bad);
  return out;
}

result<uint64_t> measuring_kernels::digest(address from, uint64_t bytes, uint64_t seed) {
  if (auto done = set_words(bytes, 0); !done)
    return pass(done);
  const std::array<uint64_t, 4> parameters{from, bytes, seed, words_};
  if (bytes > 0)
    if (auto done = launch(functions_[entry_digest], blocks_for(bytes), threads, 0, parameters);
        !done)
      return pass(done);
  auto out = words();
  if (!out)
    return pass(out);
  return (*out)[0];
}

result<range_difference> measuring_kernels::difference(address a, address b, uint64_t bytes) {
  if (auto done = set_words(0, UINT64_MAX); !done)
    return pass(done);
  const std::array<uint64_t, 4> parameters{a, b, bytes, words_};
  if (bytes > 0)
    if (auto done = launch(functions_[entry_differ], blocks_for(bytes), threads, 0, parameters);
        !done)
      return pass(done);
  auto out = words();
  if (!out)
    return pass(out);
  return range_difference{(*out)[0], (*out)[0] == 0 ? 0 : (*out)[1] * 8};
}

result<void> measuring_kernels::fill(address to, uint64_t bytes, uint64_t seed) {
  const std::array<uint64_t, 3> parameters{to, bytes, seed};
  if (bytes == 0)
    return {};
  return launch(functions_[entry_fill], blocks_for(bytes), threads, 0, parameters);
}

result<void> measuring_kernels::read(address from, uint64_t bytes) {
  const std::array<uint64_t, 3> parameters{from, bytes, words_ + 16};
  return launch(functions_[entry_read], 1024, threads, 0, parameters);
}

result<void> measuring_kernels::touch(address from, uint64_t bytes) {
  const std::array<uint64_t, 3> parameters{from, bytes, page_bytes};
  if (bytes == 0)
    return {};
  return launch(functions_[entry_touch], sm_count_, threads, 0, parameters);
}

result<uint32_t> measuring_kernels::canary() {
  const std::array<uint64_t, 2> parameters{words_, canary_ns};
  if (auto done = launch(functions_[entry_canary], 1, 1, 0, parameters); !done)
    return pass(done);
  auto out = words();
  if (!out)
    return pass(out);
  const auto [cycles, ns] = *out;
  if (ns < canary_ns || cycles == 0)
    return fail(errc::unsupported, "the device's timer does not run");
  return static_cast<uint32_t>(cycles * 1'000'000 / ns);
}

result<void> measuring_kernels::scrub(uint32_t local_bytes) {
  auto found = scrubbers_.find(local_bytes);
  if (found == scrubbers_.end()) {
    scrubber made;
    const auto text = scrub_ptx(local_bytes, shared_bytes_);
    if (auto bad = (*api_)->module_load(&made.module, text.c_str(), 0, nullptr, nullptr);
        bad != success)
      return fail(errc::io_failed, "the scrubbing kernel does not load: " + api_->describe(bad));
    found = scrubbers_.emplace(local_bytes, made).first;
    auto& function = found->second.function;
    auto bad = (*api_)->module_function(&function, made.module, "gm_scrub");
    if (bad == success)
      bad = (*api_)->function_set(
        function, function_dynamic_shared_max, static_cast<int>(shared_bytes_));
    if (bad != success)
      return fail(errc::io_failed, "the scrubbing kernel: " + api_->describe(bad));
  }
  const std::array<uint64_t, 2> parameters{local_bytes + 1, words_ + 32};
  // A block takes all shared memory of its multiprocessor, so each gets one.
  return launch(found->second.function, sm_count_, 1024, shared_bytes_, parameters);
}

} // namespace gristmill::cuda
