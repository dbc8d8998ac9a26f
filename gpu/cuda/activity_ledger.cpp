#include "gpu/cuda/activity_ledger.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gristmill::cuda {

namespace {

std::string list(const std::vector<device_activity>& all) {
  std::string out;
  for (const auto& one : all)
    out += (out.empty() ? "" : "; ") + describe(one);
  return out.empty() ? "nothing" : out;
}

/// What `all` has beyond `less`, each as often as it is too many.
std::vector<device_activity> beyond(
  std::vector<device_activity> all, const std::vector<device_activity>& less) {
  for (const auto& one : less)
    if (auto found = std::find(all.begin(), all.end(), one); found != all.end())
      all.erase(found);
  return all;
}

} // namespace

std::string describe(const device_activity& activity) {
  if (activity.kind != "kernel")
    return fmt::format("{} of {} bytes", activity.kind, activity.bytes);
  return fmt::format("kernel {}, grid {}, block {}", activity.name, fmt::join(activity.grid, "x"),
    fmt::join(activity.block, "x"));
}

void activity_ledger::note(const std::string& rule, std::string detail) {
  auto& so_far = noted_[rule];
  if (so_far.times++ == 0)
    so_far.first = std::move(detail);
}

std::vector<finding> activity_ledger::findings() const {
  std::vector<finding> out;
  for (const auto& [rule, what] : noted_)
    out.push_back({rule, "",
      what.times == 1 ? what.first
                      : fmt::format("{} (and {} times more)", what.first, what.times - 1),
      false});
  return out;
}

activity_ledger::entry activity_ledger::judge(uint64_t window,
  const std::vector<device_activity>& planned, std::vector<traced_activity> seen,
  uint64_t dropped) {
  std::sort(seen.begin(), seen.end(),
    [](const auto& a, const auto& b) { return a.correlation < b.correlation; });
  std::vector<device_activity> did;
  uint64_t first = UINT64_MAX, last = 0;
  bool timeless = false;
  for (const auto& one : seen) {
    if (one.window == window) {
      did.push_back(one.what);
      timeless = timeless || one.start == 0 || one.end < one.start;
      first = std::min(first, one.start);
      last = std::max(last, one.end);
    } else if (one.window == 0) {
      note("activity_outside_call", describe(one.what) + " ran, and no call of ours asked for it");
    } else if (auto before = judged_.find(one.window); before != judged_.end() && before->second) {
      note("extra_activity",
        fmt::format("{} came to light after the call had been counted", describe(one.what)));
    }
    // What is left is our own work between calls, and late records of a window that was given up.
  }
  auto again = [&](std::string why) {
    ++again_;
    judged_[window] = false;
    return entry{std::nullopt, std::move(why)};
  };
  const auto extra = beyond(did, planned);
  const auto missing = beyond(planned, did);
  if (!extra.empty())
    note("extra_activity",
      fmt::format(
        "the plan says {}; the device did {}: {} too many", list(planned), list(did), list(extra)));
  if (dropped > 0)
    return again(fmt::format("the tracer lost {} records", dropped));
  if (!missing.empty())
    return again(fmt::format("the tracer does not show {}", list(missing)));
  if (timeless)
    return again("the tracer gave no times");
  if (did.empty())
    return again("the call did nothing on the device");
  if (extra.empty() && did != planned)
    note("extra_activity",
      fmt::format("the plan says {}; the device was asked for {}", list(planned), list(did)));
  if (shown_.empty())
    shown_ = did;
  else if (shown_ != did)
    note("extra_activity", fmt::format("one call did {}, another {}", list(shown_), list(did)));
  judged_[window] = true;
  return entry{last - first, ""};
}

} // namespace gristmill::cuda
