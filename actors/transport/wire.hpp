#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

struct ssl_st;
struct ssl_ctx_st;

namespace gristmill {

/// One TCP connection, with TLS or without; never blocks. One thread at a time reads and writes;
/// `shut` and the questions about its end are for any thread.
class wire {
public:
  enum class state {
    /// Bytes went, or the handshake is over.
    done,
    /// To be called again when the socket can be read, or written.
    want_read,
    want_write,
    /// The peer closed its side in order.
    ended,
    /// Broken; `failure_text` says how.
    failed,
  };

  struct progress {
    state what = state::done;
    size_t bytes = 0;
  };

  /// Owns `socket`, which becomes non-blocking.
  explicit wire(int socket);
  ~wire();
  wire(const wire&) = delete;
  wire& operator=(const wire&) = delete;

  /// TLS from here on. A client asks for a certificate that names `server_name`. False: no memory.
  bool start_tls(ssl_ctx_st* context, bool server, const std::string& server_name);
  bool encrypted() const { return ssl_ != nullptr; }

  progress handshake();
  progress read(void* buffer, size_t size);
  progress write(const void* buffer, size_t size);
  /// Bytes that are decrypted and wait to be read; the socket does not tell of them.
  size_t waiting() const;

  /// Name in the certificate of the peer, after the handshake; empty without TLS.
  std::string peer_name() const;
  /// Why TLS did not come to be, in words for a person.
  const std::string& failure_text() const { return failure_; }
  /// TLS itself was refused, by us or by the peer, rather than the connection lost.
  bool tls_refused() const { return tls_refused_; }
  /// ... because what came is no TLS at all.
  bool speaks_no_tls() const { return speaks_no_tls_; }

  int socket() const { return socket_; }
  /// No more is read or written: whoever polls the socket finds it at its end. Any thread.
  void shut();

  /// From here on somebody else closes the socket, and says `gone` before that.
  int give_socket_away();
  void gone();
  bool is_gone() const;
  /// Waits until `gone`; false after the time.
  bool wait_gone(long milliseconds) const;

  /// Bytes that whoever has the socket still wants to write, as far as it knows.
  void note_unsent(size_t bytes) { unsent_ = bytes; }
  size_t unsent() const { return unsent_; }

  /// Somebody has received a whole message from this connection.
  void heard() { set(&wire::heard_); }
  bool was_heard() const;

private:
  progress outcome(int returned, bool writing);
  void set(bool wire::*flag);

  int socket_ = -1;
  ssl_st* ssl_ = nullptr;
  std::string failure_;
  bool tls_refused_ = false;
  bool speaks_no_tls_ = false;

  std::atomic<size_t> unsent_{0};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool owned_ = true;
  bool shut_ = false;
  bool gone_ = false;
  bool heard_ = false;
};

using wire_ptr = std::shared_ptr<wire>;

} // namespace gristmill
