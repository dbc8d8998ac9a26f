#include "gpu/mock/ptx/kernel.hpp"
#include "gpu/mock/ptx/ptx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace gristmill::ptx {

// All variables lie in one block of host memory, writable ones first, so that a snapshot is a copy.
instance::instance(std::shared_ptr<const module> code) : code_(std::move(code)) {
  const std::vector<global_variable>& all = code_->globals;
  uint64_t bytes = 0;
  for (const bool is_const : {false, true})
    for (const global_variable& g : all)
      bytes += g.is_const == is_const ? (g.bytes + 15) / 16 * 16 : 0;
  bytes_.resize(bytes);
  uint64_t next = 0;
  for (const bool is_const : {false, true})
    for (const global_variable& g : all) {
      if (g.is_const != is_const)
        continue;
      std::copy(g.initial.begin(), g.initial.end(), bytes_.data() + next);
      regions_.push_back({g.address, bytes_.data() + next, g.bytes, !is_const, g.name});
      next += (g.bytes + 15) / 16 * 16;
    }
}

instance::~instance() = default;

const module& instance::code() const {
  return *code_;
}

std::vector<uint8_t> instance::snapshot() const {
  std::vector<uint8_t> result;
  for (const region& r : regions_)
    if (r.writable)
      result.insert(result.end(), r.host, r.host + r.bytes);
  return result;
}

void instance::restore(const std::vector<uint8_t>& bytes) {
  size_t at = 0;
  for (const region& r : regions_) {
    if (!r.writable)
      continue;
    assert(at + r.bytes <= bytes.size());
    std::copy_n(bytes.data() + at, r.bytes, r.host);
    at += r.bytes;
  }
}

result<uint64_t> instance::address(std::string_view global) const {
  for (const region& r : regions_)
    if (r.name == global)
      return r.device;
  return fail(errc::not_found, fmt::format("PTX: there is no variable '{}'", global));
}

const std::vector<region>& instance::memory() const {
  return regions_;
}

std::unique_ptr<instance> load(std::shared_ptr<const module> code) {
  return std::make_unique<instance>(std::move(code));
}

} // namespace gristmill::ptx
