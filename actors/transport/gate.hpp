#pragma once

#include "actors/transport/cluster_address.hpp"
#include "actors/transport/half_open.hpp"
#include "actors/transport/join_talk.hpp"
#include "actors/transport/listening_socket.hpp"
#include "actors/transport/tls_folder.hpp"
#include "actors/transport/wire.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <string>
#include <thread>
#include <vector>

namespace gristmill {

struct gate_settings {
  cluster_address address;
  /// Folder of the coordinator; empty: no TLS, and only processes of the same user get in.
  std::string tls;
  join_identity ours;
  /// Connections that have not proved who they are, and how long one may take for it.
  size_t half_open_max = 64;
  std::chrono::milliseconds patience{5000};
  /// Connections that were let in.
  size_t connections_max = 1024;
  /// Whoever is let in and then says nothing for so long is closed; who has spoken is the business
  /// of the heartbeats.
  std::chrono::milliseconds silence{10000};
};

/// A connection that has proved who it is.
struct arrival {
  wire_ptr line;
  /// Of its `join_identity`.
  std::string process;
  /// Name in its certificate; empty without TLS.
  std::string name;
};

/// The one open port of a coordinator. A thread of its own takes connections, makes TLS, asks who
/// they are and what version, and passes on only those that belong to the cluster; the actor
/// library never hears of the others. Everything is bounded (`gate_settings`), refusals are logged
/// at most every few seconds, and a changed TLS folder holds for the next connection.
class cluster_gate {
public:
  /// `port` is one that was taken at `settings.address` before; else it is taken here. Errors:
  /// `invalid_input` (address in use, not of this machine, name unknown, TLS folder), `io_failed`.
  static result<std::unique_ptr<cluster_gate>> open(
    gate_settings settings, std::optional<listening_socket> port = std::nullopt);

  ~cluster_gate();
  cluster_gate(const cluster_gate&) = delete;
  cluster_gate& operator=(const cluster_gate&) = delete;

  uint16_t port() const { return port_; }

  /// Nobody is let in any more, and the port is free; also those who wait to be taken are closed.
  void stop();

  /// A socket that has one byte to read for each connection that `next` gives. The caller closes
  /// it.
  int take_ready_socket();
  std::optional<arrival> next();

  /// Names in the certificates of the connections that `process` has now; empty ones without TLS.
  /// Nothing when it has none.
  std::vector<std::string> names_of(const std::string& process) const;

  /// The connections that were let in and still live.
  std::vector<wire_ptr> lines() const;

private:
  struct guest;
  struct member {
    std::weak_ptr<wire> line;
    std::string process;
    std::string name;
    half_open::instant since;
  };

  explicit cluster_gate(gate_settings settings);
  result<void> check();
  result<void> start(listening_socket port);
  result<void> load_identity();

  void run();
  void accept_some(half_open::instant now);
  void step(guest& one, half_open::instant now);
  /// False when there is nothing more to be done for now.
  bool step_talk(guest& one, half_open::instant now);
  bool step_wait(guest& one, half_open::instant now);
  bool flush(guest& one);
  void refuse(guest& one, const std::string& text, const std::string& reason);
  void hand_over(guest& one, half_open::instant now);
  void close_silent(half_open::instant now);
  void note_refusal(const guest& one, const std::string& reason, half_open::instant now);

  gate_settings settings_;
  uint16_t port_ = 0;
  int listener_ = -1;
  int stop_ = -1;
  int ready_in_ = -1;
  int ready_out_ = -1;
  std::thread thread_;

  // Of the thread.
  std::optional<tls_identity> identity_;
  std::string stamp_;
  std::map<uint64_t, std::unique_ptr<guest>> guests_;
  std::optional<half_open> waiting_;
  uint64_t next_id_ = 0;
  half_open::instant accept_again_{};
  half_open::instant swept_{};
  half_open::instant noted_{};
  uint64_t refused_since_ = 0;

  mutable std::mutex mutex_;
  std::queue<arrival> arrivals_;
  std::vector<member> members_;
};

} // namespace gristmill
