#include "gpu/cuda/device_memory.hpp"

#include <fmt/format.h>

namespace gristmill::cuda {

namespace {

constexpr uint64_t base_alignment = 256;
/// Where a buffer can be moved to.
constexpr uint64_t places = 1024;

uint64_t rounded_up(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}

} // namespace

result<device_memory> device_memory::make(driver_ptr api, device_id device, memory_kind kind) {
  if (kind == memory_kind::plain)
    return device_memory(std::move(api), device, 1, kind);
  allocation_properties how;
  how.location.id = device;
  size_t granularity = 0;
  if (auto bad = (*api)->memory_granularity(&granularity, &how, granularity_minimum);
      bad != success || granularity == 0)
    return fail(errc::unsupported,
      fmt::format("the device cannot map memory into chosen ranges: {}", api->describe(bad)));
  return device_memory(std::move(api), device, granularity, kind);
}

result<address> device_memory::allocate_plain(range r) {
  // Its own size to the byte: what lies beyond is nobody's.
  if (auto bad = (*api_)->allocate(&r.mapped, r.bytes); bad != success)
    return fail(bad == error_out_of_memory ? errc::refused : errc::io_failed,
      fmt::format("`{}`, {} bytes: no memory: {}", r.name, r.bytes, api_->describe(bad)));
  r.mapped_bytes = r.bytes;
  const address base = r.mapped;
  ranges_.emplace(base, std::move(r));
  return base;
}

result<address> device_memory::allocate(uint64_t bytes, std::string name) {
  if (bytes == 0)
    return fail(errc::invalid_input, fmt::format("`{}`: a buffer of 0 bytes", name));
  if (bytes > UINT64_MAX / 4)
    return fail(errc::refused, fmt::format("`{}`: {} bytes are too many", name, bytes));
  const auto& t = **api_;
  range r;
  r.bytes = bytes;
  r.name = std::move(name);
  if (kind_ == memory_kind::plain)
    return allocate_plain(std::move(r));
  r.mapped_bytes = rounded_up(rounded_up(bytes, base_alignment), granularity_);
  r.reserved_bytes = r.mapped_bytes + 2 * granularity_;
  auto refuse = [&](const char* what, status bad) {
    release(r);
    return fail(bad == error_out_of_memory ? errc::refused : errc::io_failed,
      fmt::format("`{}`, {} bytes: {}: {}", r.name, r.bytes, what, api_->describe(bad)));
  };
  if (auto bad = t.address_reserve(&r.reserved, r.reserved_bytes, granularity_, 0, 0);
      bad != success)
    return refuse("no range of addresses", bad);
  allocation_properties how;
  how.location.id = device_;
  if (auto bad = t.memory_create(&r.memory, r.mapped_bytes, &how, 0); bad != success)
    return refuse("no memory", bad);
  const address at = r.reserved + granularity_;
  if (auto bad = t.memory_map(at, r.mapped_bytes, 0, r.memory, 0); bad != success)
    return refuse("not mapped", bad);
  r.mapped = at;
  if (auto done = set_access(r); !done) {
    release(r);
    return pass(done);
  }
  const address base = at + r.mapped_bytes - rounded_up(bytes, base_alignment);
  ranges_.emplace(base, std::move(r));
  return base;
}

result<void> device_memory::set_access(const range& r) const {
  access_description access{{1, device_}, r.read_only ? access_read : access_read_write};
  if (auto bad = (*api_)->set_access(r.mapped, r.mapped_bytes, &access, 1); bad != success)
    return fail(errc::unsupported,
      fmt::format("`{}` cannot be made {}: {}", r.name, r.read_only ? "read-only" : "writable",
        api_->describe(bad)));
  return {};
}

void device_memory::unmap(range& r) {
  if (r.mapped != 0)
    (*api_)->memory_unmap(r.mapped, r.mapped_bytes);
  r.mapped = 0;
}

result<device_memory::range*> device_memory::range_at(address base) {
  auto found = ranges_.find(base);
  if (found == ranges_.end())
    return fail(errc::invalid_input, fmt::format("no buffer begins at {:#x}", base));
  return &found->second;
}

result<void> device_memory::make_read_only(address base) {
  auto found = range_at(base);
  if (!found)
    return pass(found);
  auto& r = **found;
  if (kind_ == memory_kind::plain)
    return {};
  r.read_only = true;
  return r.mapped == 0 ? result<void>{} : set_access(r);
}

result<void> device_memory::park(address base) {
  auto found = range_at(base);
  if (!found)
    return pass(found);
  if (kind_ == memory_kind::guarded)
    unmap(**found);
  return {};
}

result<address> device_memory::move(address base, uint64_t draw) {
  auto found = range_at(base);
  if (!found)
    return pass(found);
  if (kind_ == memory_kind::plain)
    return base;
  range r = **found;
  ranges_.erase(base);
  unmap(r);
  auto refuse = [&](const char* what, status bad) {
    release(r);
    return fail(errc::io_failed,
      fmt::format("`{}` cannot be moved: {}: {}", r.name, what, api_->describe(bad)));
  };
  const auto& t = **api_;
  if (!r.roams) {
    t.address_free(r.reserved, r.reserved_bytes);
    r.reserved = 0;
    r.reserved_bytes = r.mapped_bytes + (places + 2) * granularity_;
    if (auto bad = t.address_reserve(&r.reserved, r.reserved_bytes, granularity_, 0, 0);
        bad != success)
      return refuse("no range of addresses", bad);
    r.roams = true;
  }
  const address at = r.reserved + (1 + draw % places) * granularity_;
  if (auto bad = t.memory_map(at, r.mapped_bytes, 0, r.memory, 0); bad != success)
    return refuse("not mapped", bad);
  r.mapped = at;
  if (auto done = set_access(r); !done) {
    release(r);
    return pass(done);
  }
  const address moved = at + r.mapped_bytes - rounded_up(r.bytes, base_alignment);
  ranges_.emplace(moved, std::move(r));
  return moved;
}

void device_memory::release(const range& r) {
  // After a fault of a kernel everything fails here, and the process is about to end.
  const auto& t = **api_;
  if (kind_ == memory_kind::plain) {
    t.free(r.mapped);
    return;
  }
  if (r.mapped != 0)
    t.memory_unmap(r.mapped, r.mapped_bytes);
  if (r.memory != 0)
    t.memory_release(r.memory);
  if (r.reserved != 0)
    t.address_free(r.reserved, r.reserved_bytes);
}

result<void> device_memory::free(address base) {
  auto found = range_at(base);
  if (!found)
    return pass(found);
  release(**found);
  ranges_.erase(base);
  return {};
}

void device_memory::free_all() {
  for (const auto& [base, r] : ranges_)
    release(r);
  ranges_.clear();
}

result<void> device_memory::check(address at, uint64_t bytes) const {
  auto next = ranges_.upper_bound(at);
  if (next == ranges_.begin())
    return fail(errc::invalid_input, fmt::format("{:#x} lies in no buffer", at));
  const auto& [base, r] = *std::prev(next);
  const uint64_t offset = at - base;
  if (r.mapped == 0)
    return fail(errc::invalid_input, fmt::format("`{}` is parked", r.name));
  if (offset > r.bytes || bytes > r.bytes - offset)
    return fail(errc::invalid_input,
      fmt::format("bytes {} to {} of `{}` are asked for, which has {}", offset, offset + bytes,
        r.name, r.bytes));
  return {};
}

std::string device_memory::describe_buffers() const {
  std::string out;
  for (const auto& [base, r] : ranges_)
    out += fmt::format("{}`{}` {:#x}+{}", out.empty() ? "" : ", ", r.name, base, r.bytes);
  return out;
}

} // namespace gristmill::cuda
