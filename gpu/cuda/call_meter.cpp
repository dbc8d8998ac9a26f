#include "gpu/cuda/call_meter.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gristmill::cuda {

namespace {

/// Where the tracer gives the samples, so many by events stand beside them.
constexpr uint32_t beside_max = 20;
/// Of its time limit, what tracing may take where events are to follow: three quarters.
constexpr int traced_share_num = 3, traced_share_den = 4;
/// The warm-up goes on so many times as long as asked for, until the canary is stable.
constexpr int warm_up_rounds = 10;
/// Two readings of a stable canary are closer than one part in so many.
constexpr uint64_t canary_parts = 100;

/// Windows of all measurements of this process; 0 and 1 are taken.
uint64_t next_window() {
  static uint64_t last = activity_ledger::ours;
  return ++last;
}

bool close_together(uint32_t a, uint32_t b) {
  const uint64_t apart = a > b ? a - b : b - a;
  return apart * canary_parts < std::max(a, b);
}

/// What is asked for in its scope belongs to that window.
class open_window {
public:
  open_window(activity_tracer& tracer, uint64_t window) : tracer_(tracer) { tracer_.open(window); }
  open_window(const open_window&) = delete;
  open_window& operator=(const open_window&) = delete;
  ~open_window() { tracer_.close(); }

private:
  activity_tracer& tracer_;
};

} // namespace

result<call_meter::steps> call_meter::set_up(call_use use) {
  auto call = script_.prepare(number_, use);
  if (!call)
    return call;
  if (auto done = parts_.kernels.scrub(local_bytes_); !done)
    return pass(done);
  if (auto done = parts_.timer.flush(how_.flush); !done)
    return pass(done);
  return call;
}

result<void> call_meter::finish(call_use use) {
  const auto number = number_++;
  if (script_.after)
    return script_.after(number, use);
  return {};
}

result<uint64_t> call_meter::timed(steps call, bool gated) {
  return parts_.timer.sample([&] { return parts_.calls.enqueue(call); }, gated);
}

result<void> call_meter::warm_up() {
  auto call = script_.prepare(0, call_use::warm_up);
  if (!call)
    return pass(call);
  auto local = parts_.calls.local_bytes(*call);
  if (!local)
    return pass(local);
  local_bytes_ = *local;
  auto overlaps = parts_.calls.overlaps(*call);
  if (!overlaps)
    return pass(overlaps);
  overlaps_ = *overlaps;
  uint32_t before = 0;
  for (int round = 0; round < warm_up_rounds; ++round) {
    auto calls = parts_.timer.load(
      [&] { return parts_.calls.enqueue(*call); }, how_.warm_up, how_.warm_up_calls, how_.limit);
    if (!calls)
      return pass(calls);
    out_.record.warm_up_calls += *calls;
    auto now = parts_.kernels.canary();
    if (!now)
      return pass(now);
    out_.record.canary_khz_before = *now;
    if (before != 0 && close_together(before, *now)) {
      out_.canary_stable = true;
      break;
    }
    before = *now;
    // The first round is the load that was asked for; the others are looks at the canary.
    if (round == 0)
      how_.warm_up /= 4;
  }
  // The first launch of the scrubber may have to wait for the device, which no gate allows.
  return parts_.kernels.scrub(local_bytes_);
}

result<void> call_meter::take_traced() {
  auto& why = out_.record.fallback;
  if (parts_.tracer == nullptr) {
    why = parts_.why_no_tracer;
    return {};
  }
  auto& tracer = *parts_.tracer;
  using kernels = activity_tracer::kernels;
  bool serial = !overlaps_ && !how_.trace_overlapping;
  if (auto done = tracer.resume(serial ? kernels::serial : kernels::overlapping); !done) {
    why = done.error().what;
    return {};
  }
  const open_window ours(tracer, activity_ledger::ours);
  // What was recorded before belongs to nobody here.
  (void)tracer.collect(0, 0);
  (void)tracer.collect(0, 0);
  activity_ledger ledger(std::max(10U, how_.samples / 2));
  std::string last_loss;
  while (out_.samples_ns.size() < how_.samples && !ledger.given_up()) {
    if (time_is_over(how_.limit * traced_share_num / traced_share_den))
      break;
    auto call = set_up(call_use::traced);
    if (!call)
      return pass(call);
    auto planned = parts_.calls.planned(*call);
    if (!planned)
      return pass(planned);
    if (planned->empty()) {
      why = "the call does nothing on the device that could be traced";
      break;
    }
    const auto window = next_window();
    const auto events = [&] {
      const open_window timed_call(tracer, window);
      return timed(*call, true);
    }();
    if (!events && events.error().code != errc::timed_out)
      return pass(events);
    if (!events) {
      // Traced so, the driver waits for the device, which waits for us. The call has run all the
      // same, and its script sees it.
      if (auto done = finish(call_use::traced); !done)
        return done;
      why = events.error().what;
      if (!std::exchange(serial, false) || !tracer.resume(kernels::overlapping))
        break;
      why.clear();
      continue;
    }
    auto seen = tracer.collect(window, planned->size());
    auto judged = ledger.judge(window, *planned, std::move(seen.seen), seen.dropped);
    if (judged.ns)
      out_.samples_ns.push_back(*judged.ns);
    else
      last_loss = judged.why_again;
    if (auto done = finish(call_use::traced); !done)
      return done;
  }
  tracer.pause();
  out_.record.taken_again = ledger.taken_again();
  out_.record.activities = ledger.activities();
  out_.findings = ledger.findings();
  if (ledger.given_up())
    why = fmt::format("{} samples had to be taken again, more than half; at last: {}",
      ledger.taken_again(), last_loss);
  else if (out_.samples_ns.empty() && why.empty())
    why = last_loss.empty() ? "no traced sample could be taken within the time limit" : last_loss;
  if (why.empty())
    out_.record.method = "cupti";
  else
    out_.samples_ns.clear();
  return {};
}

result<void> call_meter::take_by_events() {
  const bool beside = !out_.record.method.empty();
  const auto wanted = beside ? std::min(how_.samples, beside_max) : how_.samples;
  while (out_.record.device_ns.size() < wanted && !time_is_over(how_.limit))
    for (const auto use : {call_use::behind_wait, call_use::span}) {
      auto call = set_up(use);
      if (!call)
        return pass(call);
      auto ns = timed(*call, use == call_use::behind_wait);
      if (!ns)
        return pass(ns);
      (use == call_use::behind_wait ? out_.record.device_ns : out_.record.span_ns).push_back(*ns);
      if (auto done = finish(use); !done)
        return done;
    }
  if (beside)
    return {};
  out_.record.method = "events";
  out_.samples_ns = out_.record.device_ns;
  return {};
}

result<measured_call> call_meter::run() {
  if (parts_.tracer != nullptr)
    parts_.tracer->pause();
  out_.record.flush = to_string(how_.flush);
  if (auto done = warm_up(); !done)
    return pass(done);
  begin_ = clock::now();
  if (parts_.weather != nullptr)
    parts_.weather->begin();
  auto done = how_.trace ? take_traced() : result<void>{};
  if (!how_.trace)
    out_.record.fallback = "tracing was not asked for";
  if (done)
    done = take_by_events();
  if (parts_.tracer != nullptr)
    parts_.tracer->pause();
  if (parts_.weather != nullptr)
    out_.record.weather = parts_.weather->end();
  if (!done)
    return pass(done);
  if (out_.samples_ns.empty())
    return fail(errc::timed_out, "no sample could be taken within the time limit");
  auto canary = parts_.kernels.canary();
  if (!canary)
    return pass(canary);
  out_.record.canary_khz_after = *canary;
  return std::move(out_);
}

} // namespace gristmill::cuda
