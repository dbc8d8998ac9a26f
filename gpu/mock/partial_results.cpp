#include "gpu/mock/partial_results.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gristmill {

void partial_results::clear() {
  missing_.clear();
  watched_.clear();
}

void partial_results::watch(std::vector<ptx::region>& memory) {
  watched_.clear();
  for (ptx::region& r : memory) {
    if (!r.writable || r.bytes == 0)
      continue;
    watched_region& here = watched_[r.device];
    here.bytes = r.bytes;
    here.written.assign((r.bytes - 1) / ptx::written_grain + 1, 0);
    r.written = here.written.data();
  }
}

void partial_results::launched(const std::string& entry, uint64_t done, uint64_t blocks) {
  // What it made of missing values is worth no more than they are.
  const bool from_missing = !missing_.empty();
  for (const auto& [device, seen] : watched_) {
    if (std::all_of(seen.written.begin(), seen.written.end(), [](uint8_t w) { return w == 0; }))
      continue;
    const auto known = missing_.find(device);
    if (done == blocks && known == missing_.end() && !from_missing)
      continue;
    const bool is_new = known == missing_.end();
    region_state& state = missing_[device];
    if (done != blocks || is_new)
      state.launch = fmt::format("`{}` ({} of {} blocks were executed)", entry, done, blocks);
    state.bytes = seen.bytes;
    // Where a part of the blocks ran, the rest might have written anywhere; and a sum that atomics
    // make lacks what they would have added.
    if (is_new)
      state.grains.assign(seen.written.size(), done != blocks ? 1 : 0);
    for (size_t i = 0; i < seen.written.size(); ++i)
      if (seen.written[i] != 0 && from_missing)
        state.grains[i] = 1;
      else if (seen.written[i] == 1)
        state.grains[i] = 0;
      else if (seen.written[i] == 2 && done != blocks)
        state.grains[i] = 1;
    if (std::all_of(state.grains.begin(), state.grains.end(), [](uint8_t g) { return g == 0; }))
      missing_.erase(device);
  }
  watched_.clear();
}

void partial_results::overwritten(uint64_t device, uint64_t bytes) {
  auto found = missing_.upper_bound(device);
  if (bytes == 0 || found == missing_.begin() || device >= (--found)->first + found->second.bytes)
    return;
  region_state& state = found->second;
  const uint64_t from = device - found->first;
  // Only whole grains: of the others a part may still be missing.
  for (uint64_t grain = (from + ptx::written_grain - 1) / ptx::written_grain;
       grain < state.grains.size(); ++grain)
    if (std::min((grain + 1) * ptx::written_grain, state.bytes) <= from + bytes)
      state.grains[grain] = 0;
  if (std::all_of(state.grains.begin(), state.grains.end(), [](uint8_t g) { return g == 0; }))
    missing_.erase(found);
}

uint64_t partial_results::bytes() const {
  uint64_t sum = 0;
  for (const auto& [device, state] : missing_)
    sum += state.bytes;
  return sum;
}

std::string partial_results::words() const {
  std::string out;
  for (const auto& [device, state] : missing_)
    if (out.find(state.launch) == std::string::npos)
      out += (out.empty() ? "" : ", ") + state.launch;
  return out;
}

std::vector<ptx::region> partial_results::marked(const std::vector<ptx::region>& memory) {
  std::vector<ptx::region> out = memory;
  for (ptx::region& r : out) {
    r.written = nullptr;
    r.undefined = nullptr;
    // What is stored is no decision.
    r.is_output = false;
    const auto found = missing_.find(r.device);
    if (found == missing_.end())
      continue;
    region_state& state = found->second;
    state.undefined.resize(state.bytes);
    for (uint64_t byte = 0; byte < state.bytes; ++byte)
      state.undefined[byte] = state.grains[byte / ptx::written_grain];
    r.undefined = state.undefined.data();
  }
  return out;
}

} // namespace gristmill
