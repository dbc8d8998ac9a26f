#pragma once

#include "gpu/lease/flat_index.hpp"

#include <cstdint>
#include <vector>

namespace gristmill {

/// Which agent a holder of the lease table is. As in the broker actor an agent gets a new number
/// when it asks while it has nothing open, so that both write the same journal.
class holder_book {
public:
  explicit holder_book(uint32_t agents) : agents_(agents) {}

  /// The holder number of an agent that opens one more request.
  uint64_t open(uint32_t agent) {
    auto& a = agents_[agent];
    if (a.open++ == 0) {
      a.holder = ++last_;
      by_holder_.insert(mixed(a.holder), agent);
    }
    return a.holder;
  }

  /// One of its requests is over.
  void close(uint64_t holder) {
    uint32_t agent = 0;
    if (agent_of(holder, agent) && --agents_[agent].open == 0)
      by_holder_.erase(mixed(holder), agent);
  }

  /// 0: it has nothing open.
  uint64_t holder_of(uint32_t agent) const {
    return agents_[agent].open == 0 ? 0 : agents_[agent].holder;
  }

  /// False: nobody who has anything open.
  bool agent_of(uint64_t holder, uint32_t& agent) const {
    const auto found = by_holder_.find(mixed(holder));
    if (found == flat_index::none)
      return false;
    agent = found;
    return true;
  }

private:
  struct agent_entry {
    uint64_t holder = 0;
    uint32_t open = 0;
  };

  std::vector<agent_entry> agents_;
  /// Those with something open.
  flat_index by_holder_;
  uint64_t last_ = 0;
};

} // namespace gristmill
