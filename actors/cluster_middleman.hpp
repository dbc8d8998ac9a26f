#pragma once

#include "actors/transport/gate.hpp"
#include "messages/caf_seam.hpp"

#include <chrono>
#include <memory>
#include <set>
#include <string>

namespace gristmill {

/// The second place, after messages/caf_seam.hpp, that knows which CAF it is: how its networking is
/// given connections that we made ourselves. CAF would take any connection, make TLS in its own
/// loop without an end, and allocate what a header of 32 bytes announces; so it never listens and
/// never connects here. It gets a connection once both sides have proved who they are, and reads
/// from it only messages of bounded size.

/// No message between nodes is larger, and no more is kept for a peer that does not read. Whoever
/// announces more is closed before anything is allocated.
inline constexpr size_t wire_message_max = 16u << 20;
inline constexpr size_t wire_backlog_max = 32u << 20;

/// Loads networking into a configuration, with heartbeats and a random node id: CAF 0.17 makes it
/// from MAC address and process id, which two containers can share.
void load_middleman(caf::actor_system_config& config, std::chrono::nanoseconds heartbeat,
  std::chrono::nanoseconds timeout, std::string tls);

/// What was loaded, in a running system. One a system; lives as long as it.
class cluster_middleman {
public:
  virtual ~cluster_middleman() = default;

  /// Null when `load_middleman` was not called.
  static cluster_middleman* of(caf::actor_system& system);

  /// Folder of the transport.
  const std::string& tls() const { return tls_; }

  /// Publishes `door` behind the gate, in place of one from before. Null: only that.
  result<void> publish(const caf::strong_actor_ptr& door, std::set<std::string> signatures,
    std::unique_ptr<cluster_gate> gate);

  /// What is published at the other end of a new connection. Closes the connection of an earlier
  /// call with the same address first. Errors: `timed_out`, `node_lost`; then `premature`
  /// says whether a tick of CAF's came before the first message and took the new connection for one
  /// that is silent since the epoch: another try is due at once.
  result<caf::strong_actor_ptr> attach(wire_ptr line, const std::string& address,
    const std::set<std::string>& signatures, std::chrono::nanoseconds deadline, bool& premature);

  /// Closes the connection of `attach` with this address.
  void detach(const std::string& address);

  /// Null while nothing is published.
  std::shared_ptr<cluster_gate> gate() const;

protected:
  class state;
  cluster_middleman(caf::actor_system& system, std::string tls);
  void start();
  void end();

  caf::actor_system& system_;
  std::string tls_;
  std::shared_ptr<state> state_;
};

} // namespace gristmill
