#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// Connections that have not proved yet who they are. There are at most so many of them, each for
/// at most so long: a stranger who opens many, or says a byte a second, only gets his own ones
/// closed.
class half_open {
public:
  using instant = std::chrono::steady_clock::time_point;

  half_open(size_t most, std::chrono::nanoseconds patience) : most_(most), patience_(patience) {}

  /// A new one. Answers which has to go for it: the oldest of the address that has most, so that an
  /// address with few is served however many another one opens.
  std::optional<uint64_t> add(uint64_t id, const std::string& address, instant now);
  void remove(uint64_t id);
  /// Those whose time is over; they are removed.
  std::vector<uint64_t> expired(instant now);
  /// When the next one expires.
  std::optional<instant> next_deadline() const;
  size_t size() const { return entries_.size(); }

private:
  struct entry {
    uint64_t id = 0;
    std::string address;
    instant since;
  };

  size_t most_;
  std::chrono::nanoseconds patience_;
  /// In the order of their arrival.
  std::list<entry> entries_;
};

} // namespace gristmill
