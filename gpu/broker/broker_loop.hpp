#pragma once

#include "gpu/broker/broker_core.hpp"
#include "gpu/probe.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace gristmill {

struct broker_loop_limits {
  /// More clients are turned away.
  size_t connections_max = 4096;
  /// What a client may leave unread before its connection is closed.
  size_t unread_bytes_max = size_t{1} << 20;
  /// A client says hello within this time.
  std::chrono::nanoseconds hello_limit = std::chrono::seconds{5};
};

/// Listens on a path. Errors: `refused` when a living broker has it, or something that is no
/// socket; `io_failed`. A socket that a dead broker has left is taken over. Two brokers that start
/// at once are told apart by a lock on PATH.lock.
class broker_socket {
public:
  static result<std::unique_ptr<broker_socket>> listen(const std::string& path, bool for_everybody);
  broker_socket(const broker_socket&) = delete;
  broker_socket& operator=(const broker_socket&) = delete;
  /// Removes the path.
  ~broker_socket();
  int descriptor() const { return socket_; }
  const std::string& path() const { return path_; }

private:
  broker_socket(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::string path_;
  int lock_ = -1;
  int socket_ = -1;
  bool bound_ = false;
};

/// The broker's one thread: a poll loop over the socket, the clients, and the children that look at
/// GPUs. A slow or hostile client costs its own connection only.
class broker_loop {
public:
  /// `probe` looks at CUDA devices. `store` and `socket` must outlive the loop.
  broker_loop(broker_settings settings, broker_store& store, broker_socket& socket,
    std::unique_ptr<gpu_probe> probe, broker_loop_limits limits = {});
  ~broker_loop();
  broker_loop(const broker_loop&) = delete;
  broker_loop& operator=(const broker_loop&) = delete;

  result<void> start();

  /// One turn: waits for something to happen, at most that long, and deals with it.
  void turn(std::chrono::nanoseconds at_most);

  /// Serves until SIGTERM or SIGINT: the first one drains (grants nothing more and ends when no
  /// lease is out), the second one ends at once; leases go on with their guards either way.
  void serve();

  broker_core& core();

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace gristmill
