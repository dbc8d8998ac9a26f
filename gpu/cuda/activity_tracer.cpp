#include "gpu/cuda/activity_tracer.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace gristmill::cuda {

namespace {

constexpr size_t buffer_bytes = size_t{1} << 20, buffer_alignment = 64;
/// CUPTI drops records, and counts them, when it gets no further buffer.
constexpr size_t buffers_max = 64;
constexpr size_t records_max = 1'000'000;
constexpr int asks_max = 4;

/// What must be recorded for a kernel to be linked to its window: the link comes with the record of
/// the driver's call.
constexpr std::array<uint32_t, 4> kinds{
  activity_external_correlation, activity_driver, activity_memcpy, activity_memset};

struct pending_activity {
  traced_activity what;
  /// It has been waited for its link before.
  bool waited = false;
};

/// Between CUPTI's threads and ours.
struct inbox {
  std::mutex lock;
  const cupti* api = nullptr;
  std::vector<pending_activity> activities;
  /// Correlation of the driver's call -> window.
  std::map<uint32_t, uint64_t> links;
  size_t buffers = 0;
  uint64_t lost = 0;
};

inbox& box() {
  static inbox all;
  return all;
}

template <class Record>
Record read_as(const uint8_t* record) {
  Record out;
  std::memcpy(&out, record, sizeof out);
  return out;
}

std::vector<uint32_t> sizes(const std::array<int32_t, 3>& of) {
  std::vector<uint32_t> out;
  for (auto one : of)
    out.push_back(static_cast<uint32_t>(one));
  return out;
}

void take_record(inbox& to, const uint8_t* record) {
  uint32_t kind = 0;
  std::memcpy(&kind, record, sizeof kind);
  traced_activity seen;
  switch (kind) {
  case activity_external_correlation: {
    const auto r = read_as<cupti_external>(record);
    if (r.external_kind == external_custom)
      to.links[r.correlation] = r.external_id;
    return;
  }
  case activity_kernel:
  case activity_concurrent_kernel: {
    const auto r = read_as<cupti_kernel>(record);
    seen = {{"kernel", r.name == nullptr ? "" : r.name, sizes(r.grid), sizes(r.block), 0}, r.start,
      r.end, r.correlation, 0};
    break;
  }
  case activity_memcpy: {
    const auto r = read_as<cupti_memcpy>(record);
    seen = {{"copy", "", {}, {}, r.bytes}, r.start, r.end, r.correlation, 0};
    break;
  }
  case activity_memset: {
    const auto r = read_as<cupti_memset>(record);
    seen = {{"memset", "", {}, {}, r.bytes}, r.start, r.end, r.correlation, 0};
    break;
  }
  default:
    return;
  }
  if (to.activities.size() < records_max)
    to.activities.push_back({std::move(seen), false});
  else
    ++to.lost;
}

void give_buffer(uint8_t** buffer, size_t* bytes, size_t* records) {
  auto& to = box();
  const std::lock_guard held(to.lock);
  *records = 0; // As many as fit.
  *buffer = to.buffers < buffers_max
    ? static_cast<uint8_t*>(std::aligned_alloc(buffer_alignment, buffer_bytes))
    : nullptr;
  *bytes = *buffer == nullptr ? 0 : buffer_bytes;
  to.buffers += *buffer == nullptr ? 0 : 1;
}

void take_buffer(void*, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  auto& to = box();
  const std::lock_guard held(to.lock);
  uint8_t* record = nullptr;
  while (valid_bytes > 0 && (*to.api)->next_record(buffer, valid_bytes, &record) == 0)
    take_record(to, record);
  std::free(buffer);
  --to.buffers;
}

} // namespace

result<activity_tracer*> activity_tracer::start(const std::vector<std::string>& folders) {
  static std::mutex lock;
  static std::optional<result<activity_tracer*>> made;
  const std::lock_guard held(lock);
  if (made)
    return *made;
  made = [&]() -> result<activity_tracer*> {
    auto api = cupti::load(folders);
    if (!api)
      return pass(api);
    // Never destroyed: CUPTI calls back until the process ends.
    auto* out = new activity_tracer(*api);
    box().api = &out->api_;
    if (auto bad = out->api_->register_callbacks(give_buffer, take_buffer); bad != 0)
      return fail(errc::unsupported, "CUPTI takes no callbacks: " + out->api_.describe(bad));
    if (auto done = out->resume(kernels::overlapping); !done)
      return pass(done);
    return out;
  }();
  return *made;
}

void activity_tracer::open(uint64_t window) {
  api_->push_external(external_custom, window);
}

void activity_tracer::close() {
  uint64_t last = 0;
  api_->pop_external(external_custom, &last);
}

activity_tracer::collected activity_tracer::take() {
  collected out;
  size_t dropped = 0;
  if (api_->dropped(nullptr, 0, &dropped) == 0)
    out.dropped = dropped;
  auto& from = box();
  const std::lock_guard held(from.lock);
  out.dropped += std::exchange(from.lost, 0);
  std::vector<pending_activity> later;
  for (auto& one : from.activities) {
    auto link = from.links.find(one.what.correlation);
    if (link != from.links.end()) {
      one.what.window = link->second;
    } else if (!one.waited) {
      // Its link may come with the next buffer.
      one.waited = true;
      later.push_back(std::move(one));
      continue;
    }
    out.seen.push_back(std::move(one.what));
  }
  from.activities = std::move(later);
  if (from.activities.empty())
    from.links.clear();
  return out;
}

activity_tracer::collected activity_tracer::collect(uint64_t window, size_t expected) {
  collected out;
  for (int ask = 0; ask < asks_max; ++ask) {
    (void)api_->flush_all(ask + 1 < asks_max ? 0 : flush_forced);
    auto more = take();
    out.dropped += more.dropped;
    for (auto& one : more.seen)
      out.seen.push_back(std::move(one));
    size_t there = 0;
    for (const auto& one : out.seen)
      there += one.window == window ? 1 : 0;
    if (there >= expected)
      break;
  }
  return out;
}

void activity_tracer::pause() {
  if (kernel_kind_ == 0)
    return;
  (void)api_->disable(std::exchange(kernel_kind_, 0));
  for (auto kind : kinds)
    (void)api_->disable(kind);
}

result<void> activity_tracer::resume(kernels how) {
  pause();
  auto enable = [&](uint32_t kind) -> result<void> {
    if (auto bad = api_->enable(kind); bad != 0)
      return fail(errc::unsupported,
        fmt::format("CUPTI does not record activities of kind {}: {}", kind, api_.describe(bad)));
    return {};
  };
  for (auto kind : kinds)
    if (auto done = enable(kind); !done)
      return done;
  const auto kernel_kind = how == kernels::serial ? activity_kernel : activity_concurrent_kernel;
  auto done = enable(kernel_kind);
  if (done)
    kernel_kind_ = kernel_kind;
  return done;
}

} // namespace gristmill::cuda
