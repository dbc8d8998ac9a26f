#pragma once

#include "messages/lease.hpp"
#include "messages/result.hpp"
#include "protocol/json_document.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// The version of the lines below; it stands in both hellos and nothing else is said before them.
inline constexpr uint32_t broker_protocol = 1;

/// Longest line from a client, without its line feed. One that is longer ends its connection.
inline constexpr size_t client_line_bytes_max = size_t{16} << 10;
/// Longest line from the broker (a status with all its waiters).
inline constexpr size_t broker_line_bytes_max = size_t{4} << 20;

/// What a client says; the field `line` of its JSON object.
enum class client_verb : uint8_t {
  /// First line of every connection.
  hello = 0,
  /// Stand in line for a GPU.
  request,
  /// Give a waiting request up, or the lease that it has become.
  cancel,
  /// Work under a lease has begun.
  started,
  renew,
  /// Nothing of the lease runs any more.
  ended,
  /// After a restart of the broker: this lease is still held here.
  adopt,
  /// Is this lease (of an outer `gristmill lease`) still valid?
  check,
  status,
  drain,
  undrain,
  /// Sets the weight of a user.
  quota,
};

std::string to_string(client_verb verb);

/// One line of a client, read. Only the members that its verb names are set; docs/broker.md lists
/// the fields of each.
struct client_line {
  client_verb verb = client_verb::hello;
  /// hello: who asks, "USER" or "USER/PROJECT"; empty for the login name.
  uint32_t protocol = broker_protocol;
  std::string as;
  /// request, cancel, adopt: chosen by the client, unique on its connection.
  uint64_t request = 0;
  /// request
  lease_class what = lease_class::timing;
  std::string need;
  std::string candidate;
  /// What will run, for `status` and to learn how long such things hold a GPU.
  std::string command;
  /// 0: not known. Durations are nanoseconds on the wire.
  std::chrono::nanoseconds estimate{0};
  /// 0: wait as long as the broker allows.
  std::chrono::nanoseconds patience{0};
  /// 0: the cap of the class.
  std::chrono::nanoseconds term{0};
  /// How often at most a changed position is told; 0: never.
  std::chrono::nanoseconds watch{0};
  /// True when a guard keeps the lease: it renews, and it ends what runs when told to. False when
  /// the client itself works under the lease: it then holds as long as the connection (and the
  /// term) lasts, and the client's process is ended at the term.
  bool guarded = false;
  /// started, renew, ended, adopt, check
  uint32_t gpu = 0;
  uint64_t token = 0;
  /// The name of the lease; it proves that the client was given it.
  std::string lease;
  /// started, adopt: session (process group leader) of the work, which has no other members.
  int64_t session = 0;
  /// adopt: since the grant. renew: how long nothing has used the GPU.
  std::chrono::nanoseconds held{0};
  std::chrono::nanoseconds idle{0};
  /// ended
  lease_outcome outcome = lease_outcome::fine;
  /// ended, drain
  std::string reason;
  /// drain, undrain: as in `status`; empty for all GPUs.
  std::string gpu_name;
  /// quota
  std::string user;
  uint32_t weight = 1;
  /// status
  uint32_t waiters = 0;

  friend bool operator==(const client_line&, const client_line&) = default;
};

/// Errors: `invalid_input`, naming the field: what is no JSON object, has an unknown verb or key, a
/// value outside its range, a control character in a name, or is nested deeper than 4.
result<client_line> parse_client_line(std::string_view line);
/// Without the line feed.
std::string write_client_line(const client_line& line);

/// What the broker says; the field `line` of its JSON object.
enum class broker_say : uint8_t {
  hello = 0,
  ticket,
  /// The place in line has changed.
  position,
  granted,
  /// The wait is over without a GPU.
  over,
  adopted,
  /// Answer to cancel, renew, check, drain, undrain and quota.
  ack,
  /// The GPU of an `ended` lease has been looked at.
  closed,
  /// End what runs under the lease, then say `ended`.
  revoke,
  status,
  /// The line before could not be obeyed; the connection stays open unless it was no line at all.
  error,
};

std::string to_string(broker_say say);

/// One line of the broker, read.
struct broker_line {
  broker_say say = broker_say::hello;
  /// hello
  uint32_t protocol = broker_protocol;
  uint64_t epoch = 0;
  std::vector<std::string> gpus;
  /// Who the broker takes the client for: "user/project".
  std::string as;
  /// ticket, position, granted, over, adopted, error
  uint64_t request = 0;
  /// ticket, position
  uint64_t ticket = 0;
  uint32_t ahead = 0;
  std::chrono::nanoseconds estimated_wait{0};
  /// granted, adopted, closed, revoke
  uint32_t gpu = 0;
  uint64_t token = 0;
  /// granted, adopted
  std::string gpu_name;
  std::string lease;
  /// Value for CUDA_VISIBLE_DEVICES.
  std::string visible;
  std::chrono::nanoseconds term{0};
  /// The guard must renew within this time.
  std::chrono::nanoseconds ttl{0};
  /// over, revoke
  std::string reason;
  /// ack
  bool applied = false;
  std::string note;
  /// ack of check: what is left of the term.
  std::chrono::nanoseconds left{0};
  /// closed
  std::chrono::nanoseconds held{0};
  std::chrono::nanoseconds cleaned{0};
  probe_report probe;
  /// error
  errc code = errc::invalid_input;
  std::string what;
  /// status
  ordered_json status;
};

result<broker_line> parse_broker_line(std::string_view line);
std::string write_broker_line(const broker_line& line);

/// "USER" or "USER/PROJECT" taken apart; the project is "-" where none is given. Errors:
/// `invalid_input` for an empty name, one above 64 bytes, or one with anything but letters, digits
/// and `._-@+`.
result<lease_flow> parse_user_project(std::string_view text);

/// Errors: `invalid_input`, naming the nearest class.
result<lease_class> parse_lease_class(std::string_view text);

} // namespace gristmill
