#pragma once

#include "actors/blob_traffic.hpp"
#include "actors/interfaces.hpp"
#include "journal/blob_transfer.hpp"

#include <cstdint>
#include <map>
#include <memory>

namespace gristmill {

struct blob_keeper_config {
  /// Of the run at the coordinator, of its own at a node.
  std::shared_ptr<blob_store> store;
  /// Null: nothing is ever deleted, as at the coordinator.
  std::shared_ptr<blob_cache> cache;
  /// May be null: nobody counts.
  std::shared_ptr<blob_traffic> traffic;
  blob_transfer_limits limits;
  /// How often what others put into the store is counted in; only with a cache.
  std::chrono::nanoseconds refresh_every = std::chrono::seconds{5};
};

/// The disk and the wire around `blob_transfer`. A fetch names the keeper of the peer; what is here
/// already does not travel, and blobs without a name are skipped, so a task's references can be
/// given as they are. Peers are watched while something is wanted of them. Codes of a failed fetch:
/// see `blob_transfer::fetch`; `shutting_down` at the end. What a blob costs is the reader's to
/// limit: whoever may connect may pull whatever it can name by hash.
class blob_keeper final : public blob_keeper_actor::base {
public:
  blob_keeper(caf::actor_config& config, blob_keeper_config settings);

  const char* name() const override { return "blob-keeper"; }
  behavior_type make_behavior() override;
  void on_exit() override;

private:
  struct peer {
    uint64_t number = 0;
    blob_keeper_actor handle;
  };

  blob_transfer::instant now();
  uint64_t number_of(const blob_keeper_actor& handle);
  void apply(blob_transfer::steps what);
  void let_go_of_peers();
  void set_timer();

  blob_keeper_config settings_;
  store_inbox inbox_;
  blob_transfer transfer_;
  seam::monitors monitors_;
  std::map<caf::actor_addr, peer> peers_;
  std::map<uint64_t, caf::actor_addr> addresses_;
  std::map<uint64_t, caf::typed_response_promise<blobs_fetched>> promises_;
  uint64_t next_fetch_ = 1;
  uint64_t next_peer_ = 1;
  /// The newest timer counts.
  uint64_t generation_ = 0;
  blob_transfer::instant timer_at_{0};
  bool timer_set_ = false;
  blob_transfer::instant refresh_at_{0};
};

/// On a thread of its own, because it waits for the disk. The caller owns it and ends it. In a
/// simulation `spawn<blob_keeper>` does the same on the scheduler.
blob_keeper_actor start_blob_keeper(caf::actor_system& system, blob_keeper_config settings);

} // namespace gristmill
