#include "actors/held_results.hpp"

#include <algorithm>
#include <utility>

namespace gristmill {

size_t message_bytes(const held_result& what) {
  size_t bytes = 256 + what.key.size() + what.device.size() + what.ended.log.size()
    + what.measured.output_folder.size() + what.measured.failure_text.size();
  for (const auto& w : what.measured.workloads) {
    bytes += 512 + w.detail.size()
      + 8 * (w.samples_ns.size() + w.timing.span_ns.size() + w.timing.device_ns.size())
      + 64 * (w.terms.size() + w.written.size() + w.blocks.size());
    for (const auto& activity : w.timing.activities)
      bytes += 64 + activity.name.size() + 4 * (activity.grid.size() + activity.block.size());
  }
  for (const auto& f : what.measured.findings)
    bytes += 64 + f.rule.size() + f.workload.size() + f.detail.size();
  return bytes;
}

void held_results::answered(held_result what) {
  if (!what.measured.output_folder.empty()) // Else nothing is left to be asked for.
    keep(std::move(what), true);
}

void held_results::held(held_result what) {
  if (what.ended.end == child_end::done && what.measured.failure_text.empty())
    keep(std::move(what), false);
  else if (!what.measured.output_folder.empty())
    dropped_.push_back(std::move(what.measured.output_folder));
}

void held_results::keep(held_result what, bool told) {
  all_.push_back({std::move(what), told});
  trim();
}

void held_results::hub_lost() {
  for (auto& one : all_)
    one.told = false;
  trim();
}

std::vector<held_result> held_results::offer() const {
  std::vector<held_result> out;
  for (const auto& one : all_)
    if (!one.told)
      out.push_back(one.what);
  return out;
}

void held_results::offered() {
  for (auto& one : all_)
    one.told = true;
  std::erase_if(all_, [](const entry& one) { return one.what.measured.output_folder.empty(); });
}

std::optional<held_result> held_results::hand_in(const std::string& key) {
  auto found = std::find_if(
    all_.begin(), all_.end(), [&](const entry& one) { return !one.told && one.what.key == key; });
  if (found == all_.end())
    return std::nullopt;
  auto out = std::move(found->what);
  all_.erase(found);
  return out;
}

bool held_results::judge(const std::string& folder) {
  return !folder.empty() && std::erase_if(all_, [&](const entry& one) {
    return one.what.measured.output_folder == folder;
  }) != 0;
}

void held_results::clear() {
  for (const auto& one : all_)
    drop(one);
  all_.clear();
}

std::vector<std::string> held_results::take_dropped() {
  return std::exchange(dropped_, {});
}

void held_results::drop(const entry& one) {
  if (!one.what.measured.output_folder.empty())
    dropped_.push_back(one.what.measured.output_folder);
}

void held_results::trim() {
  size_t held = 0;
  size_t bytes = 0;
  size_t waiting = 0;
  // From the newest, so that the oldest find no room.
  for (auto i = all_.end(); i != all_.begin();) {
    --i;
    bool fits = true;
    if (i->told) {
      fits = ++waiting <= limits_.waiting_max;
    } else {
      bytes += message_bytes(i->what);
      fits = ++held <= limits_.held_max && bytes <= limits_.bytes_max;
    }
    if (!fits) {
      drop(*i);
      i = all_.erase(i);
    }
  }
}

} // namespace gristmill
