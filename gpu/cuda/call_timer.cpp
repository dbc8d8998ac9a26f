#include "gpu/cuda/call_timer.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <utility>

namespace gristmill::cuda {

namespace {

using clock = std::chrono::steady_clock;

constexpr auto gate_patience = std::chrono::seconds{2};

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

result<std::unique_ptr<call_gate>> call_gate::make(driver_ptr api, stream_handle stream) {
  std::unique_ptr<call_gate> out(new call_gate(api, stream));
  void* word = nullptr;
  if (auto bad = (*api)->host_allocate(&word, sizeof(uint32_t), host_portable | host_device_map);
      bad != success)
    return fail(errc::io_failed, "no host memory for the device: " + api->describe(bad));
  out->word_ = static_cast<uint32_t*>(word);
  if (auto bad = (*api)->host_device_address(&out->word_on_device_, word, 0); bad != success)
    return fail(errc::io_failed, "no device address of host memory: " + api->describe(bad));
  out->watcher_ = std::thread([gate = out.get()] { gate->watch(); });
  return out;
}

call_gate::~call_gate() {
  (void)open();
  {
    const std::lock_guard held(lock_);
    over_ = true;
  }
  changed_.notify_all();
  if (watcher_.joinable())
    watcher_.join();
  if (word_ != nullptr)
    (*api_)->host_free(word_);
}

void call_gate::watch() {
  std::unique_lock held(lock_);
  while (!over_) {
    changed_.wait(held, [&] { return closed_ || over_; });
    const auto which = closings_;
    changed_.wait_for(held, gate_patience, [&] { return !closed_ || over_ || closings_ != which; });
    if (closed_ && closings_ == which && !over_) {
      opened_late_ = true;
      closed_ = false;
      std::atomic_ref(*word_).store(1, std::memory_order_release);
    }
  }
}

result<void> call_gate::close() {
  {
    const std::lock_guard held(lock_);
    std::atomic_ref(*word_).store(0, std::memory_order_release);
    closed_ = true;
    opened_late_ = false;
    ++closings_;
  }
  changed_.notify_all();
  if (auto bad = (*api_)->wait_value(stream_, word_on_device_, 1, wait_value_equal);
      bad != success) {
    (void)open();
    return failure_of(*api_, "the gate", bad);
  }
  return {};
}

bool call_gate::open() {
  bool in_time = false;
  {
    const std::lock_guard held(lock_);
    if (word_ != nullptr)
      std::atomic_ref(*word_).store(1, std::memory_order_release);
    closed_ = false;
    in_time = !std::exchange(opened_late_, false);
  }
  changed_.notify_all();
  return in_time;
}

result<std::unique_ptr<call_timer>> call_timer::make(driver_ptr api, device_id device,
  stream_handle stream, uint64_t l2_bytes, measuring_kernels& kernels) {
  auto memory = device_memory::make(api, device);
  if (!memory)
    return pass(memory);
  auto events = event_pair::make(api);
  if (!events)
    return pass(events);
  auto gate = call_gate::make(api, stream);
  if (!gate)
    return pass(gate);
  std::unique_ptr<call_timer> out(
    new call_timer(api, stream, std::move(*memory), std::move(*events), std::move(*gate), kernels));
  out->scratch_bytes_ = 2 * l2_bytes;
  auto scratch = out->memory_.allocate(out->scratch_bytes_, "flush");
  if (!scratch)
    return pass(scratch);
  out->scratch_ = *scratch;
  if (auto bad = (*api)->memset32(out->scratch_, 0, out->scratch_bytes_ / 4, stream);
      bad != success)
    return out->said(bad);
  return out;
}

tl::unexpected<failure> call_timer::said(status bad) const {
  return failure_of(*api_, "a timed call", bad);
}

result<void> call_timer::flush(flush_kind how) {
  // A device that cannot keep lines has none to give up.
  if (auto bad = (*api_)->reset_persisting_l2(); bad != success && bad != error_not_supported)
    return said(bad);
  if (how == flush_kind::clean)
    return kernels_.read(scratch_, scratch_bytes_);
  if (auto bad = (*api_)->memset32(scratch_, 0, scratch_bytes_ / 4, stream_); bad != success)
    return said(bad);
  return {};
}

result<uint64_t> call_timer::sample(const enqueue& call, bool gated) {
  if (gated) {
    if (auto done = gate_->close(); !done)
      return pass(done);
  } else if (auto bad = (*api_)->stream_synchronise(stream_); bad != success) {
    // The flush must not run any more, or it would hide the enqueuing.
    return said(bad);
  }
  auto bad = events_.begin(stream_);
  result<void> asked;
  if (bad == success)
    asked = call();
  if (bad == success && asked)
    bad = events_.end(stream_);
  // Whatever happened: a stream that waits for ever would hang the process.
  const bool in_time = !gated || gate_->open();
  if (!asked)
    return pass(asked);
  uint64_t ns = 0;
  if (bad == success)
    bad = events_.read(ns);
  if (bad != success)
    return said(bad);
  if (!in_time)
    return fail(errc::timed_out, "the host did not enqueue a call within two seconds");
  return ns;
}

result<uint32_t> call_timer::load(const enqueue& call, std::chrono::nanoseconds time,
  uint32_t calls_min, std::chrono::nanoseconds limit) {
  const auto begin = clock::now();
  uint32_t calls = 0;
  while (calls < calls_min || clock::now() - begin < time) {
    if (calls > 0 && clock::now() - begin >= limit)
      break;
    if (auto done = call(); !done)
      return pass(done);
    if (auto bad = (*api_)->stream_synchronise(stream_); bad != success)
      return said(bad);
    ++calls;
  }
  return calls;
}

} // namespace gristmill::cuda
