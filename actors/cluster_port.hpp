#pragma once

#include "actors/interfaces.hpp"
#include "actors/transport/listening_socket.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace gristmill {

/// How a process talks to the others of its cluster. The times are the same on all of them: a side
/// that sends no heartbeats is taken for dead by the other one.
struct cluster_transport {
  std::chrono::nanoseconds heartbeat = std::chrono::seconds{1};
  /// Nothing heard for so long: the peer is taken for lost, and everything that watches one of its
  /// actors hears so. Longer than any message takes to arrive.
  std::chrono::nanoseconds node_timeout = std::chrono::seconds{15};
  /// Folder with ca.pem, cert.pem and key.pem (`gristmill cluster init`). Empty: no TLS, which
  /// holds for loopback alone.
  std::string tls;
};

/// Which end of the connection a process is.
enum class cluster_side {
  coordinator,
  node,
};

/// To be called before anything is started. Errors, all with their remedy: `invalid_input` for an
/// address that needs TLS, for times that do not fit and for a file of the folder that is missing,
/// expired, readable by others, or does not belong to the others.
result<void> check_transport(
  const cluster_transport& transport, const cluster_address& address, cluster_side side);

/// Gives an actor system that is yet to be made the ability to listen and to connect: heartbeats,
/// time-out, a random node id. After `configure`. Such a system has two more threads and opens no
/// port by itself.
void configure_cluster(caf::actor_system_config& config, const cluster_transport& transport);

/// Opens the one port of a coordinator, and publishes `door` there (the hub:
/// `caf::actor_cast<cluster_door_actor>(hub)`). Answers the port that was taken. A second call on
/// the same system replaces the first. `taken` is a port that was taken at `address` before, for
/// whoever has to know that it is free long before there is a door. Errors: `invalid_input`
/// (address in use, not ours, TLS files), `io_failed`.
result<uint16_t> cluster_listen(caf::actor_system& system, const cluster_door_actor& door,
  const cluster_address& address, std::optional<listening_socket> taken = std::nullopt);

/// Closes the port of `cluster_listen`; connections that exist live on. Nothing without one.
void cluster_stop_listening(caf::actor_system& system);

/// Connects to a coordinator, says hello, and answers its door, which is the hub
/// (`caf::actor_cast<cluster_hub_actor>(door)`). Waits up to `deadline`, so it is called from a
/// plain thread, never from an actor. Each call makes a connection of its own, so a handle from
/// before a loss never comes back. Errors, each saying what to do: `node_lost`: nobody listens
/// there, no way there, or the connection broke (worth another try); `timed_out`: no answer in time
/// (worth another try); `not_found`: the host name is unknown (may be worth another try);
/// `refused`: TLS (certificate of another CA, none, expired), another version (names both), another
/// user's process on loopback, or turned away by the coordinator: another try gives the same.
result<cluster_door_actor> cluster_connect(
  caf::actor_system& system, const cluster_address& address, std::chrono::nanoseconds deadline);

/// Whether the process that `peer` lives in may call itself `node`: what the certificate of its
/// connection says (`certificate_covers`). Good without TLS and for actors of this process. Errors,
/// with a reason for its operator: `refused`: the certificate is of another name, now and the next
/// time; `node_lost`: its connection is not known, as when it has just broken (worth another try).
result<void> check_node_name(
  caf::actor_system& system, const caf::strong_actor_ptr& peer, std::string_view node);

/// Whether a process with that certificate may call itself `node`: the same name, or one that
/// starts with it and '-' or '.', so that jobs of a batch system can share one certificate.
bool certificate_covers(std::string_view certified, std::string_view node);

/// The version that this program says in hellos.
std::string cluster_version();

/// Whether the words of whoever connects are of our protocol and version; the reason names both.
cluster_greeting greet(const cluster_hello& hello);

} // namespace gristmill
