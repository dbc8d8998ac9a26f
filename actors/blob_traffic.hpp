#pragma once

#include "messages/caf_seam.hpp"

#include <cstdint>
#include <map>
#include <mutex>

namespace gristmill {

/// Bytes of blobs that travelled, seen from the side that counts.
struct blob_bytes {
  uint64_t in = 0;
  uint64_t out = 0;
};

/// Counts what a keeper fetched and served, for each peer and in all. Read by others than the
/// keeper, on other threads, so that the figures of a cluster cost no message.
class blob_traffic {
public:
  void came_in(const caf::actor_addr& peer, uint64_t bytes) { add(peer, {bytes, 0}); }
  void went_out(const caf::actor_addr& peer, uint64_t bytes) { add(peer, {0, bytes}); }

  /// `peer` is the keeper of the other side; nothing has travelled with an unknown one.
  blob_bytes with(const caf::actor_addr& peer) const {
    std::lock_guard lock(mutex_);
    auto found = peers_.find(peer);
    return found == peers_.end() ? blob_bytes{} : found->second;
  }

  blob_bytes in_all() const {
    std::lock_guard lock(mutex_);
    return all_;
  }

  /// The peer is gone for good; what it had stays in the sum.
  void forget(const caf::actor_addr& peer) {
    std::lock_guard lock(mutex_);
    peers_.erase(peer);
  }

private:
  void add(const caf::actor_addr& peer, blob_bytes more) {
    std::lock_guard lock(mutex_);
    all_.in += more.in;
    all_.out += more.out;
    auto found = peers_.find(peer);
    // Anybody may pull; a table of strangers must not grow without end.
    if (found == peers_.end()) {
      if (peers_.size() >= peers_max)
        return;
      found = peers_.emplace(peer, blob_bytes{}).first;
    }
    found->second.in += more.in;
    found->second.out += more.out;
  }

  static constexpr size_t peers_max = 4096;

  mutable std::mutex mutex_;
  std::map<caf::actor_addr, blob_bytes> peers_;
  blob_bytes all_;
};

} // namespace gristmill
