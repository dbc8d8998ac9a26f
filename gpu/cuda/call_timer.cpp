#include "gpu/cuda/call_timer.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace gristmill::cuda {

namespace {

using clock = std::chrono::steady_clock;

/// Reads `bytes` at `from`, 16 at a time, and stores only what never comes up in zeros.
constexpr const char* reading_kernel = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry gm_read(.param .u64 from, .param .u64 bytes, .param .u64 sink)
{
  .reg .pred %p<3>;
  .reg .b32 %r<10>;
  .reg .b64 %d<8>;
  ld.param.u64 %d0, [from];
  ld.param.u64 %d1, [bytes];
  ld.param.u64 %d2, [sink];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %nctaid.x;
  mad.lo.u32 %r4, %r1, %r2, %r0;
  mul.lo.u32 %r5, %r2, %r3;
  mul.wide.u32 %d3, %r4, 16;
  mul.wide.u32 %d4, %r5, 16;
  mov.u32 %r6, 0;
loop:
  setp.ge.u64 %p0, %d3, %d1;
  @%p0 bra done;
  add.u64 %d5, %d0, %d3;
  ld.global.cg.v4.u32 {%r0, %r1, %r2, %r3}, [%d5];
  or.b32 %r0, %r0, %r1;
  or.b32 %r2, %r2, %r3;
  or.b32 %r0, %r0, %r2;
  or.b32 %r6, %r6, %r0;
  add.u64 %d3, %d3, %d4;
  bra loop;
done:
  setp.eq.u32 %p1, %r6, 0;
  @%p1 bra end;
  st.global.u32 [%d2], %r6;
end:
  ret;
}
)";

} // namespace

result<event_pair> event_pair::make(driver_ptr api) {
  event_pair out(std::move(api));
  for (auto* one : {&out.from_, &out.to_})
    if (auto bad = (*out.api_)->event_create(one, 0); bad != success)
      return fail(errc::io_failed, "no event: " + out.api_->describe(bad));
  return out;
}

event_pair::event_pair(event_pair&& other) noexcept
  : api_(std::move(other.api_)), from_(std::exchange(other.from_, nullptr)),
    to_(std::exchange(other.to_, nullptr)) {}

event_pair::~event_pair() {
  for (auto one : {from_, to_})
    if (one != nullptr)
      (*api_)->event_destroy(one);
}

status event_pair::read(uint64_t& ns) const {
  if (auto bad = (*api_)->event_synchronise(to_); bad != success)
    return bad;
  float milliseconds = 0;
  if (auto bad = (*api_)->event_elapsed(&milliseconds, from_, to_); bad != success)
    return bad;
  ns = static_cast<uint64_t>(std::llround(static_cast<double>(milliseconds) * 1e6));
  return success;
}

result<std::unique_ptr<call_timer>> call_timer::make(
  driver_ptr api, device_id device, stream_handle stream, uint64_t l2_bytes) {
  auto memory = device_memory::make(api, device);
  if (!memory)
    return pass(memory);
  auto events = event_pair::make(api);
  if (!events)
    return pass(events);
  std::unique_ptr<call_timer> out(
    new call_timer(api, stream, std::move(*memory), std::move(*events)));
  out->scratch_bytes_ = 2 * l2_bytes;
  auto scratch = out->memory_.allocate(out->scratch_bytes_, "flush");
  if (!scratch)
    return pass(scratch);
  out->scratch_ = *scratch;
  if (auto bad = (*api)->module_load(&out->reader_, reading_kernel, 0, nullptr, nullptr);
      bad != success)
    return fail(errc::io_failed, "the reading kernel does not load: " + api->describe(bad));
  if (auto bad = (*api)->module_function(&out->read_, out->reader_, "gm_read"); bad != success)
    return fail(errc::io_failed, "the reading kernel is not there: " + api->describe(bad));
  if (auto bad = (*api)->memset32(out->scratch_, 0, out->scratch_bytes_ / 4, stream);
      bad != success)
    return tl::unexpected<failure>(out->said(bad));
  void* word = nullptr;
  if (auto bad = (*api)->host_allocate(&word, sizeof(uint32_t), host_portable | host_device_map);
      bad != success)
    return fail(errc::io_failed, "no host memory for the device: " + api->describe(bad));
  out->gate_ = static_cast<uint32_t*>(word);
  if (auto bad = (*api)->host_device_address(&out->gate_on_device_, word, 0); bad != success)
    return fail(errc::io_failed, "no device address of host memory: " + api->describe(bad));
  return out;
}

call_timer::~call_timer() {
  if (reader_ != nullptr)
    (*api_)->module_unload(reader_);
  if (gate_ != nullptr)
    (*api_)->host_free(gate_);
}

failure call_timer::said(status bad) const {
  return {errc::device_fault, api_->describe(bad)};
}

result<void> call_timer::flush(flush_kind how) {
  const auto& t = **api_;
  (void)t.reset_persisting_l2();
  status bad = success;
  if (how == flush_kind::official) {
    bad = t.memset32(scratch_, 0, scratch_bytes_ / 4, stream_);
  } else {
    cuda::launch_config config;
    config.grid_x = 1024;
    config.block_x = 256;
    config.stream = stream_;
    std::array<uint64_t, 3> parameters{scratch_, scratch_bytes_, scratch_};
    size_t bytes = sizeof parameters;
    std::array<void*, 5> extra{param_buffer, parameters.data(), param_size, &bytes, param_end};
    bad = t.launch(&config, read_, nullptr, extra.data());
  }
  if (bad != success)
    return tl::unexpected<failure>(said(bad));
  return {};
}

result<uint64_t> call_timer::sample(
  const cuda_device::enqueue& call, const timing_protocol& how, bool gated) {
  const auto& t = **api_;
  if (auto done = flush(how.flush); !done)
    return pass(done);
  // What is not gated must not find the flush still running, or its enqueuing would be hidden.
  if (!gated)
    if (auto bad = t.stream_synchronise(stream_); bad != success)
      return tl::unexpected<failure>(said(bad));
  std::atomic_ref<uint32_t> gate(*gate_);
  if (gated) {
    gate.store(0, std::memory_order_release);
    if (auto bad = t.wait_value(stream_, gate_on_device_, 1, wait_value_equal); bad != success)
      return tl::unexpected<failure>(said(bad));
  }
  auto opened = [&](auto&& out) {
    // Whatever happened: a stream that waits for ever would hang the process.
    gate.store(1, std::memory_order_release);
    return std::forward<decltype(out)>(out);
  };
  if (auto bad = events_.begin(stream_); bad != success)
    return opened(result<uint64_t>(tl::unexpected<failure>(said(bad))));
  if (auto done = call(); !done)
    return opened(result<uint64_t>(pass(done)));
  if (auto bad = events_.end(stream_); bad != success)
    return opened(result<uint64_t>(tl::unexpected<failure>(said(bad))));
  gate.store(1, std::memory_order_release);
  uint64_t ns = 0;
  if (auto bad = events_.read(ns); bad != success)
    return tl::unexpected<failure>(said(bad));
  return ns;
}

result<uint32_t> call_timer::warm_up(const cuda_device::enqueue& call, const timing_protocol& how) {
  const auto begin = clock::now();
  uint32_t calls = 0;
  while (calls < how.warm_up_calls || clock::now() - begin < how.warm_up) {
    if (calls > 0 && clock::now() - begin >= how.limit)
      break;
    if (auto done = call(); !done)
      return pass(done);
    if (auto bad = (*api_)->stream_synchronise(stream_); bad != success)
      return tl::unexpected<failure>(said(bad));
    ++calls;
  }
  return calls;
}

result<call_samples> call_timer::take(
  const cuda_device::enqueue& call, const timing_protocol& how) {
  call_samples out;
  auto warmed = warm_up(call, how);
  if (!warmed)
    return pass(warmed);
  out.warm_up_calls = *warmed;
  const auto begin = clock::now();
  for (uint32_t i = 0; i < how.samples; ++i) {
    if (clock::now() - begin >= how.limit)
      break;
    auto device = sample(call, how, true);
    if (!device)
      return pass(device);
    auto span = sample(call, how, false);
    if (!span)
      return pass(span);
    out.device_ns.push_back(*device);
    out.span_ns.push_back(*span);
  }
  if (out.device_ns.empty())
    return fail(errc::timed_out, "no sample could be taken within the time limit");
  return out;
}

} // namespace gristmill::cuda
