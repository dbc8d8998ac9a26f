#pragma once

#include "gpu/broker/line_buffer.hpp"
#include "gpu/broker/wire.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gristmill {

/// Time of the monotonic clock, which all processes of a machine share.
std::chrono::nanoseconds broker_now();

/// Where a broker listens unless told otherwise: $GRISTMILL_LEASE_SOCKET, else
/// $XDG_RUNTIME_DIR/gristmill-broker.sock, else /tmp/gristmill-broker-UID.sock.
std::string default_broker_socket();

/// A connection to the broker. Not for several threads at once.
class broker_client {
public:
  /// Connects and says hello; does not wait for the answer, which is the first line to come. `as`
  /// may be empty. Errors: `not_found` when nobody listens there, `io_failed`.
  static result<broker_client> connect(const std::string& socket, const std::string& as);
  broker_client() = default;
  broker_client(broker_client&& other) noexcept;
  broker_client& operator=(broker_client&& other) noexcept;
  ~broker_client();

  /// To poll for reading; -1 when there is no connection.
  int descriptor() const { return socket_; }
  bool connected() const { return socket_ >= 0; }
  void close();

  /// Errors: `io_failed`; the connection is closed then.
  result<void> send(const client_line& line);

  /// The next line, waiting for it up to `wait`; nothing when none came. Errors: `io_failed` when
  /// the broker has gone or speaks another language; the connection is closed then.
  result<std::optional<broker_line>> next(std::chrono::nanoseconds wait);

  /// Sends and waits for an answer of that kind; lines of other kinds are dropped. Errors: as
  /// above, `timed_out`, and what an `error` line says.
  result<broker_line> ask(
    const client_line& line, broker_say answer, std::chrono::nanoseconds wait);

private:
  int socket_ = -1;
  line_buffer input_{broker_line_bytes_max};
};

/// Keeps a lease that was granted: renews it in time, hears when it is taken back, and finds the
/// broker again after a restart (with back-off; the restarted broker then adopts the lease under
/// the same token). It does nothing by itself: call `step` when `descriptor` is readable and at the
/// latest after `next_step`.
class lease_keeper {
public:
  /// `granted` is the line of that kind; `guarded` and `request` as in the request.
  lease_keeper(
    broker_client client, std::string socket, std::string as, broker_line granted, bool guarded);

  struct news {
    /// The lease is over: end what runs. Told once.
    std::optional<std::string> revoked;
    /// The answer to `ended`.
    std::optional<broker_line> closed;
  };
  /// Never waits.
  news step(std::chrono::nanoseconds now);
  std::chrono::nanoseconds next_step(std::chrono::nanoseconds now) const;
  int descriptor() const { return client_.descriptor(); }

  /// Work has begun in that session (0: in this very process).
  void started(int64_t session);
  /// Nothing of the lease runs any more. When the broker cannot be reached it finds out by itself.
  void ended(lease_outcome outcome, const std::string& reason);

  const broker_line& granted() const { return granted_; }
  /// When the term is over, by our own clock.
  std::chrono::nanoseconds deadline() const { return deadline_; }
  bool over() const { return over_; }
  /// Closes this copy of the connection; another process keeps the lease.
  void let_go() { client_.close(); }

private:
  client_line line(client_verb verb) const;
  void send(const client_line& what);
  void reconnect(std::chrono::nanoseconds now);

  broker_client client_;
  std::string socket_;
  std::string as_;
  broker_line granted_;
  bool guarded_;
  std::chrono::nanoseconds granted_at_;
  std::chrono::nanoseconds deadline_;
  std::chrono::nanoseconds renew_at_;
  std::chrono::nanoseconds retry_at_{0};
  std::chrono::nanoseconds back_off_{0};
  bool started_ = false;
  bool over_ = false;
  int64_t session_ = 0;
};

/// What to ask for.
struct lease_wish {
  lease_class what = lease_class::timing;
  /// "USER/PROJECT"; empty for the login name.
  std::string as;
  std::string need;
  std::string command;
  std::string candidate;
  std::chrono::nanoseconds estimate{0};
  /// 0: the cap of the class.
  std::chrono::nanoseconds cap{0};
  /// 0: as long as the broker allows.
  std::chrono::nanoseconds patience{0};
};

/// A GPU for this very process, from `acquire` until `release` or the end of the object. Needs no
/// thread: the broker sees that the process lives by its connection. When the cap is reached the
/// broker asks for the GPU back, and ends the process if it does not get it.
///
///     auto gpu = broker_lease::acquire({.what = lease_class::timing, .cap = 60s});
///     if (!gpu) return complain(gpu.error());
///     setenv("CUDA_VISIBLE_DEVICES", gpu->visible().c_str(), 1);
///     …
///     gpu->release(lease_outcome::fine, "done");
class broker_lease {
public:
  /// Waits for its turn. `on_wait` hears the ticket and then each change of place, at most once a
  /// second. While the broker is being restarted it stands in line anew. Errors: `not_found` (no
  /// broker), `timed_out` (patience), and what the broker refuses.
  static result<broker_lease> acquire(const lease_wish& wish, const std::string& socket = {},
    const std::function<void(const broker_line&)>& on_wait = {});
  broker_lease(broker_lease&&) = default;
  broker_lease& operator=(broker_lease&&) = delete;
  ~broker_lease();

  const std::string& gpu() const { return keeper_->granted().gpu_name; }
  const std::string& visible() const { return keeper_->granted().visible; }
  uint64_t token() const { return keeper_->granted().token; }
  const std::string& id() const { return keeper_->granted().lease; }
  std::chrono::nanoseconds left() const;

  /// To poll for reading, with `valid` called when it is.
  int descriptor() const { return keeper_->descriptor(); }
  /// Looks what the broker has said, without waiting. Call it between two pieces of work: false
  /// tells that the lease is over and the GPU must not be used any more.
  bool valid();

  /// Gives the GPU back; waits up to `wait` for what it has cost. Later calls do nothing.
  result<broker_line> release(lease_outcome outcome = lease_outcome::fine,
    const std::string& reason = "done", std::chrono::nanoseconds wait = std::chrono::seconds{1});

private:
  explicit broker_lease(lease_keeper keeper);
  std::unique_ptr<lease_keeper> keeper_;
  bool released_ = false;
  /// A child made by fork must not give its parent's GPU back.
  pid_t owner_ = 0;
};

/// Waits in line like `broker_lease::acquire`, in steps: for whoever has other things to watch.
class lease_waiter {
public:
  lease_waiter(lease_wish wish, std::string socket, bool guarded, std::chrono::nanoseconds watch,
    std::chrono::nanoseconds now);

  struct news {
    /// A ticket or a new place.
    std::optional<broker_line> place;
    bool granted = false;
    /// The wait is over without a GPU.
    std::optional<failure> failed;
  };
  /// Never waits. After `granted` or `failed` there is nothing more.
  news step(std::chrono::nanoseconds now);
  std::chrono::nanoseconds next_step(std::chrono::nanoseconds now) const;
  int descriptor() const { return client_.descriptor(); }
  /// After `granted`.
  lease_keeper take();
  /// The first estimate, as the ticket told it.
  std::optional<std::chrono::nanoseconds> first_estimate() const { return first_estimate_; }
  void cancel();

private:
  std::optional<failure> connect(std::chrono::nanoseconds now);
  news read();

  lease_wish wish_;
  std::string socket_;
  bool guarded_;
  std::chrono::nanoseconds watch_;
  std::chrono::nanoseconds give_up_at_;
  broker_client client_;
  std::optional<broker_line> granted_;
  std::optional<std::chrono::nanoseconds> first_estimate_;
  std::chrono::nanoseconds retry_at_{0};
  std::chrono::nanoseconds back_off_{0};
  /// Set while there is no broker: after this the wait is given up.
  std::optional<std::chrono::nanoseconds> lost_until_;
  bool connected_before_ = false;
};

} // namespace gristmill
