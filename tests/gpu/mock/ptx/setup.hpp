#pragma once

#include "gpu/mock/ptx/ptx.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What tests and the benchmark need to launch a kernel; no test framework here.
namespace gristmill::ptx::testing {

/// Numbers from a seed, the same on every machine.
class numbers {
public:
  explicit numbers(uint64_t seed) : state_(seed * 2 + 1) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 0x2545F4914F6CDD1DULL;
  }
  /// In -1..1.
  float unit() { return static_cast<float>(static_cast<int64_t>(next()) >> 40) / 8388608.0F; }

private:
  uint64_t state_;
};

/// A launch whose buffers lie at made-up device addresses.
class setup {
public:
  explicit setup(std::string entry = "k") { what.entry = std::move(entry); }

  template <class T>
  setup& buffer(std::vector<T>& values, bool writable = true) {
    region r{next_, reinterpret_cast<uint8_t*>(values.data()), values.size() * sizeof(T), writable,
      "buffer " + std::to_string(what.memory.size())};
    what.memory.push_back(r);
    next_ += (r.bytes / 4096 + 2) * 4096;
    return value(r.device);
  }
  template <class T>
  setup& value(const T& v) {
    auto& p = what.parameters;
    p.resize((p.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T) + sizeof(T));
    std::memcpy(p.data() + p.size() - sizeof(T), &v, sizeof(T));
    return *this;
  }
  setup& grid(uint32_t x, uint32_t y = 1) {
    what.grid = {x, y, 1};
    return *this;
  }
  setup& block(uint32_t x, uint32_t y = 1) {
    what.block = {x, y, 1};
    return *this;
  }
  outcome run(const std::shared_ptr<const module>& m) const {
    const auto state = load(m);
    return ptx::run(*state, what);
  }
  /// A text that is refused counts as a fault.
  outcome run(std::string_view text) const {
    const auto m = parse(text);
    if (m)
      return run(*m);
    outcome result;
    result.failed.emplace();
    result.failed->what = m.error().what;
    return result;
  }

  launch what;

private:
  uint64_t next_ = 0x1000'0000;
};

} // namespace gristmill::ptx::testing
