#include "gpu/mock/arena.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace gristmill {

result<device_pointer> arena::add(
  host_memory memory, uint64_t bytes, bool writable, std::string name) {
  if (bytes > capacity_ - used_)
    return fail(errc::refused,
      fmt::format("{} needs {} bytes, but the device has {} of {} left", name, bytes,
        capacity_ - used_, capacity_));
  const device_pointer base = next_;
  const uint64_t step = (bytes + slot - 1) / slot * slot + slot;
  if (step >= ptx::device_address_end - base)
    return fail(errc::refused, fmt::format("{}: the device addresses are used up", name));
  next_ += step;
  used_ += bytes;
  buffers_.emplace(base, buffer{std::move(memory), bytes, writable, std::move(name), false, {}});
  return base;
}

result<void> arena::remove(device_pointer base) {
  const auto found = buffers_.find(base);
  if (found == buffers_.end())
    return fail(errc::invalid_input, fmt::format("{:#x} is not the base of a buffer", base));
  used_ -= found->second.bytes;
  buffers_.erase(found);
  return {};
}

void arena::reset() {
  buffers_.clear();
  used_ = 0;
  next_ = first_address;
}

arena::buffers::const_iterator arena::holder(device_pointer at) const {
  auto after = buffers_.upper_bound(at);
  if (after == buffers_.begin())
    return buffers_.end();
  --after;
  return at - after->first < after->second.bytes ? after : buffers_.end();
}

result<uint8_t*> arena::find(device_pointer at, uint64_t bytes, bool for_writing) const {
  if (bytes == 0)
    return nullptr;
  const auto found = holder(at);
  if (found == buffers_.end() || bytes > found->second.bytes - (at - found->first))
    return fail(errc::invalid_input,
      fmt::format("{} bytes at {:#x} do not lie in one buffer of the device", bytes, at));
  if (for_writing && !found->second.writable)
    return fail(
      errc::invalid_input, fmt::format("{} is read-only on the device", found->second.name));
  return found->second.memory.data() + (at - found->first);
}

result<void> arena::clear(device_pointer at, uint64_t bytes) {
  if (auto checked = find(at, bytes, true); !checked || bytes == 0)
    return checked ? result<void>{} : pass(checked);
  const auto found = buffers_.find(holder(at)->first);
  found->second.memory.clear(at - found->first, bytes);
  return {};
}

void arena::watch(device_pointer base, bool is_output) {
  buffer& held = buffers_.at(base);
  held.undefined.assign(held.bytes, 1);
  held.is_output = is_output;
}

void arena::define(device_pointer at, uint64_t bytes) {
  if (bytes == 0)
    return;
  buffer& held = buffers_.at(holder(at)->first);
  if (!held.undefined.empty())
    std::fill_n(held.undefined.begin() + static_cast<std::ptrdiff_t>(at - holder(at)->first),
      static_cast<std::ptrdiff_t>(bytes), uint8_t{0});
}

void arena::define_like(device_pointer to, device_pointer from, uint64_t bytes) {
  define(to, bytes);
  if (bytes == 0)
    return;
  const auto source = holder(from);
  buffer& held = buffers_.at(holder(to)->first);
  if (!source->second.undefined.empty() && !held.undefined.empty())
    std::memmove(held.undefined.data() + (to - holder(to)->first),
      source->second.undefined.data() + (from - source->first), bytes);
}

std::vector<ptx::region> arena::regions() {
  std::vector<ptx::region> all;
  for (auto& [base, held] : buffers_)
    if (held.bytes > 0)
      all.push_back({base, held.memory.data(), held.bytes, held.writable, held.name,
        held.undefined.empty() ? nullptr : held.undefined.data(), held.is_output});
  return all;
}

uint64_t arena::bytes_behind(const std::vector<uint64_t>& values) const {
  std::set<device_pointer> bases;
  uint64_t sum = 0;
  for (const uint64_t value : values)
    if (const auto found = holder(value);
        found != buffers_.end() && bases.insert(found->first).second)
      sum += found->second.bytes;
  return sum;
}

} // namespace gristmill
