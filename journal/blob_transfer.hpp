#pragma once

#include "journal/blob_inbox.hpp"
#include "messages/cluster.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gristmill {

struct blob_transfer_limits {
  /// Pieces that are asked for and have not come, of all blobs of one peer. This is the whole
  /// back-pressure: a peer sends only what was asked for.
  uint32_t pieces_open_max = 4;
  /// Half-written files of one peer; its other blobs wait.
  uint32_t blobs_open_max = 4;
  uint64_t blob_bytes_max = uint64_t{256} << 20;
  /// In all fetches together.
  uint32_t blobs_waiting_max = 8192;
  uint32_t fetches_max = 4096;
  /// Of a fetch that names none.
  std::chrono::nanoseconds fetch_deadline = std::chrono::minutes{10};
  /// A peer that leaves a piece unanswered for so long is not waited for any more.
  std::chrono::nanoseconds piece_deadline = std::chrono::seconds{30};
  /// Half-written files that are kept when their peer was lost, to go on from there, and how long.
  uint32_t parked_max = 4;
  std::chrono::nanoseconds parked_for = std::chrono::minutes{10};
};

/// Decides which pieces of which blobs are asked of whom, and when a fetch is over. Knows no
/// actors, threads or clocks: `now` is the caller's, from any start. Blobs go into the inbox in
/// order, so at most `pieces_open_max` pieces of a peer are held in memory. A blob that several
/// fetches want travels once; when its peer fails, it goes on with the peer of another fetch that
/// waits for it.
class blob_transfer {
public:
  using instant = std::chrono::nanoseconds;

  struct pull {
    uint64_t peer = 0;
    blob_pull what;
  };
  struct ending {
    uint64_t fetch = 0;
    result<blobs_fetched> outcome;
  };
  /// What the caller is to do.
  struct steps {
    std::vector<pull> pulls;
    std::vector<ending> ended;
  };

  /// `inbox` outlives this object.
  blob_transfer(blob_inbox& inbox, blob_transfer_limits limits);

  /// `id` is new and so chosen by the caller, as is the number of the peer. Blobs without a name
  /// (`blob_ref` of "no blob") are skipped. Ends with `invalid_input` for a name that is no SHA-256
  /// or one named with two sizes, `refused` above `blob_bytes_max`, `queue_full`, `not_found` when
  /// the peer does not give it, `io_failed` when it cannot be written here or came damaged twice,
  /// `timed_out`, `node_lost`.
  steps fetch(uint64_t id, uint64_t peer, blob_fetch what, instant now);

  /// Pieces that nobody asked this peer for are ignored.
  steps piece(uint64_t peer, blob_piece what, instant now);

  steps peer_gone(uint64_t peer, instant now);

  /// Deadlines up to `now`.
  steps due(instant now);

  /// All fetches end with this; nothing unfinished is left in the inbox.
  steps end(const failure& why);

  /// When `due` has to be called next; nothing when there is nothing to wait for.
  std::optional<instant> next_due() const;

  /// Whether anything is still wanted of the peer.
  bool wants(uint64_t peer) const;

  size_t fetches_open() const { return fetches_.size(); }
  /// Blobs that came damaged and were fetched once more, over the life of this object.
  uint64_t fetched_again() const { return fetched_again_; }

private:
  struct wanted_blob {
    blob_ref what;
    /// Fetches that wait for it, oldest first.
    std::vector<uint64_t> waiters;
    uint64_t peer = 0;
    /// There is an unfinished file of it.
    bool begun = false;
    /// Bytes that are in that file; bytes that are there or asked for.
    uint64_t written = 0;
    uint64_t asked = 0;
    /// Deadlines of what was asked for and is not here, by offset.
    std::map<uint64_t, instant> open;
    /// Here, but something before it is missing.
    std::map<uint64_t, std::string> early;
    /// Fetched for the second time, because the first one came damaged.
    bool again = false;
    /// Damaged; begins again when nothing of it is under way any more.
    bool spoiled = false;
  };

  struct open_fetch {
    uint64_t peer = 0;
    instant deadline{0};
    std::set<std::string> missing;
    uint64_t bytes = 0;
  };

  struct peer_state {
    /// Names of blobs; those that are open take turns.
    std::deque<std::string> waiting;
    std::deque<std::string> active;
    uint32_t pieces_open = 0;
  };

  struct parked_blob {
    blob_ref what;
    uint64_t written = 0;
    instant until{0};
  };

  using blob_place = std::map<std::string, wanted_blob>::iterator;

  result<void> admit(const blob_fetch& what);
  /// The end of every public call: asks as much as the windows of all touched peers allow.
  steps finish(steps out, instant now);
  void ask_more(uint64_t peer, instant now, steps& out);
  result<void> begin(wanted_blob& blob);
  void take(blob_place blob, blob_piece what, instant now, steps& out);
  void damaged(blob_place blob, const std::string& why, instant now, steps& out);
  void begin_again(blob_place blob, instant now, steps& out);
  void complete(blob_place blob, instant now, steps& out);
  /// Its waiters with this peer end; when others wait, it goes on with theirs.
  void peer_failed(blob_place blob, const failure& why, bool keep, instant now, steps& out);
  void fail_all(blob_place blob, const failure& why, instant now, steps& out);
  void end_fetch(uint64_t id, result<blobs_fetched> outcome, instant now, steps& out);
  /// Nobody waits for it. What is written of it is parked or gone.
  void remove(blob_place blob, bool keep, instant now);
  void leave_peer(wanted_blob& blob);
  bool unpark(wanted_blob& blob);
  void drop_parked();

  blob_inbox& inbox_;
  const blob_transfer_limits limits_;
  std::map<uint64_t, open_fetch> fetches_;
  std::map<std::string, wanted_blob> blobs_;
  std::map<uint64_t, peer_state> peers_;
  /// Peers that may have room for more.
  std::set<uint64_t> touched_;
  /// Unfinished files that nobody wants now, oldest first.
  std::deque<parked_blob> parked_;
  uint64_t fetched_again_ = 0;
};

} // namespace gristmill
