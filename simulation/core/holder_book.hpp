#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gristmill {

/// Which agent a holder of the lease table is. As in the broker actor an agent gets a new number
/// when it asks while it has nothing open, so that both write the same journal. A hash table with
/// open addressing; it allocates nothing after its making.
class holder_book {
public:
  explicit holder_book(uint32_t agents)
    : agents_(agents), places_(std::bit_ceil(uint64_t{4} * agents + 4)),
      shift_(64 - std::countr_zero(places_.size())) {}

  /// The holder number of an agent that opens one more request.
  uint64_t open(uint32_t agent) {
    auto& a = agents_[agent];
    if (a.open++ == 0) {
      a.holder = ++last_;
      size_t at = home(a.holder);
      while (places_[at].holder != 0)
        at = next(at);
      places_[at] = {a.holder, agent};
    }
    return a.holder;
  }

  /// One of its requests is over.
  void close(uint64_t holder) {
    const size_t at = find(holder);
    if (at == nowhere)
      return;
    auto& a = agents_[places_[at].agent];
    if (--a.open == 0)
      erase(at);
  }

  uint64_t holder_of(uint32_t agent) const {
    return agents_[agent].open == 0 ? 0 : agents_[agent].holder;
  }

  /// False: nobody who has anything open.
  bool agent_of(uint64_t holder, uint32_t& agent) const {
    const size_t at = find(holder);
    if (at == nowhere)
      return false;
    agent = places_[at].agent;
    return true;
  }

private:
  struct place {
    uint64_t holder = 0;
    uint32_t agent = 0;
  };
  struct agent_entry {
    uint64_t holder = 0;
    uint32_t open = 0;
  };

  static constexpr size_t nowhere = ~size_t{0};

  size_t home(uint64_t holder) const { return holder * 0x9e37'79b9'7f4a'7c15 >> shift_; }
  size_t next(size_t at) const { return (at + 1) & (places_.size() - 1); }
  size_t find(uint64_t holder) const {
    for (size_t at = home(holder); places_[at].holder != 0; at = next(at))
      if (places_[at].holder == holder)
        return at;
    return nowhere;
  }
  void erase(size_t at) {
    // Those behind it that would not be found over the gap move up.
    size_t gap = at;
    for (size_t i = next(at); places_[i].holder != 0; i = next(i)) {
      const size_t mask = places_.size() - 1;
      const size_t distance = (i - home(places_[i].holder)) & mask;
      if (distance >= ((i - gap) & mask)) {
        places_[gap] = places_[i];
        gap = i;
      }
    }
    places_[gap] = {};
  }

  std::vector<agent_entry> agents_;
  std::vector<place> places_;
  int shift_;
  uint64_t last_ = 0;
};

} // namespace gristmill
