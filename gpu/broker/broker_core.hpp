#pragma once

#include "gpu/broker/broker_devices.hpp"
#include "gpu/broker/broker_store.hpp"
#include "gpu/broker/wire.hpp"
#include "gpu/lease/policy.hpp"
#include "gpu/lease/table.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Names a connection for as long as the broker lives; 0 names none.
using connection_id = uint64_t;

/// Who is at the other end, as the system says (SO_PEERCRED), not as the client says.
struct broker_peer {
  uid_t user = 0;
  pid_t pid = 0;
  uint64_t started = 0;
  /// Login name, or the number where there is none.
  std::string login;
  /// The user who runs the broker, or root: may ask in anybody's name, drain GPUs and set quotas.
  bool trusted = false;
};

/// What the core has done to the world outside. The loop does it with sockets, files and processes;
/// a test writes it down.
class broker_outside {
public:
  virtual ~broker_outside() = default;

  virtual void send(connection_id to, const broker_line& line) = 0;
  /// After what was sent has gone out.
  virtual void close(connection_id which) = 0;
  virtual result<void> save(const broker_memory& memory, bool durable) = 0;
  virtual void save_lease(const lease_record& record) = 0;
  virtual void forget_lease(const std::string& gpu) = 0;
  virtual void note(event entry) = 0;
  /// End all that is left of the lease; `on_cleaned` follows, never from within this call.
  /// `holder_too`: also the process of the client itself.
  virtual void clean(uint32_t gpu, const lease_record& record, bool holder_too) = 0;
  /// Look at the GPU; `on_probed` follows, never from within this call. What still carries the name
  /// `lease` is ended first.
  virtual void probe(uint32_t gpu, const lease_record* last) = 0;
  /// A name that nobody can guess.
  virtual std::string fresh_lease_name() = 0;
  /// Whether the guard (or the client) of that lease still lives.
  virtual bool keeper_lives(const lease_record& record) = 0;
  /// When the leader of that session was started; 0 unless it is a session of the peer's own making
  /// (led by the peer or by a child of it, and of the same user). What a client says here decides
  /// which processes are ended one day.
  virtual uint64_t session_start(pid_t session, const broker_peer& peer) = 0;
};

struct broker_settings {
  std::vector<broker_device> devices;
  std::unique_ptr<lease_policy> policy;
  /// As the person wrote it; a saved state of another policy is not loaded.
  std::string policy_text;
  lease_table_config table;
  /// A guard renews within this time. After a restart a lease whose guard lives but says nothing
  /// for so long is ended.
  std::chrono::nanoseconds ttl = std::chrono::seconds{30};
  /// How long a keeper that was told to end its work may take before the broker does it.
  std::chrono::nanoseconds revoke_answer_limit = std::chrono::seconds{20};
  /// Weights from the command line; those of `memory` are kept beside them.
  std::map<std::string, uint32_t> weights;
  broker_memory memory;
  std::vector<lease_record> leases;
  std::string boot;
  /// For the status: version of the program, socket.
  std::string about;
};

/// The broker without its sockets: the lease table of the runtime, with connections as holders and
/// itself as the executor of every GPU. Times are of the monotonic clock.
///
/// A lease is kept by its connection: a guard (which ends what it started, then says `ended`) or a
/// client that works under the lease itself. When the connection goes, the broker ends what is left
/// and looks at the GPU; only then does the next one get it.
class broker_core {
public:
  broker_core(broker_settings settings, broker_outside& outside);

  /// Raises the epoch durably and takes up the GPUs; one that was leased when the last broker ended
  /// waits for its keeper. Errors: what `save` answers.
  result<void> start(std::chrono::nanoseconds now);

  void on_connect(connection_id from, const broker_peer& peer, std::chrono::nanoseconds now);
  /// A line from a client, without its line feed. One that cannot be read ends the connection.
  void on_line(connection_id from, std::string_view line, std::chrono::nanoseconds now);
  void on_gone(connection_id from, std::chrono::nanoseconds now);
  void on_cleaned(uint32_t gpu, uint64_t token, const probe_report& found, uint32_t ended,
    std::chrono::nanoseconds now);
  void on_probed(uint32_t gpu, const probe_report& found, std::chrono::nanoseconds now);

  void on_tick(std::chrono::nanoseconds now);
  std::optional<std::chrono::nanoseconds> next_deadline() const;

  /// No grants from now on; who waits goes on waiting, for the next start of the broker.
  void drain(std::chrono::nanoseconds now);
  /// No lease is out and no GPU is being looked at.
  bool at_rest() const;
  /// Stores what a restart needs, for the end.
  void save_all();

  ordered_json status(uint32_t waiters_max, std::chrono::nanoseconds now) const;

private:
  enum class work : uint8_t {
    none = 0,
    /// Out before a restart, not yet claimed.
    orphaned,
    /// The keeper has it.
    out,
    /// Its keeper was told to end it.
    ending,
    /// The broker ends what is left of it.
    cleaning,
    probing,
  };

  struct slot {
    broker_device device;
    work state = work::none;
    /// The lease that is out, or was until the GPU has been looked at.
    std::optional<lease_record> record;
    connection_id keeper = 0;
    /// The table knows of this lease; not so for an orphan that nobody has claimed.
    bool in_table = false;
    std::chrono::nanoseconds ended_at{0};
    /// When the broker ends it by itself.
    std::optional<std::chrono::nanoseconds> deadline;
    /// What the cleaning found, when it was not all well.
    probe_report cleaned;
    /// The table has ordered a look outside any lease.
    bool probe_ordered = false;
  };

  struct waiting {
    lease_request ask;
    bool guarded = false;
    uint64_t ticket = 0;
    std::chrono::nanoseconds watch{0};
    std::chrono::nanoseconds told_at{0};
    uint32_t ahead = 0;
  };

  struct connection {
    broker_peer peer;
    bool greeted = false;
    lease_flow flow;
    /// By request number.
    std::map<uint64_t, waiting> waits;
  };

  void obey(connection_id from, const client_line& line, std::chrono::nanoseconds now);
  void on_hello(connection_id from, const client_line& line);
  void on_request(connection_id from, const client_line& line, std::chrono::nanoseconds now);
  void on_started(connection_id from, const client_line& line, std::chrono::nanoseconds now);
  void on_renew(connection_id from, const client_line& line, std::chrono::nanoseconds now);
  void on_ended(connection_id from, const client_line& line, std::chrono::nanoseconds now);
  void on_adopt(connection_id from, const client_line& line, std::chrono::nanoseconds now);
  void on_check(connection_id from, const client_line& line, std::chrono::nanoseconds now);
  void on_admin(connection_id from, const client_line& line, std::chrono::nanoseconds now);
  void set_quota(connection_id from, const client_line& line);

  void perform(lease_actions& actions, std::chrono::nanoseconds now);
  void on_grant(const lease_action& action, std::chrono::nanoseconds now);
  void on_over(const lease_action& action);
  void on_revoke(const lease_revoke& what, std::chrono::nanoseconds now);
  void start_cleaning(uint32_t gpu, bool holder_too, std::chrono::nanoseconds now);
  lease_ack report(uint32_t gpu, device_state state, uint64_t token, std::chrono::nanoseconds now,
    const probe_report& probe = {});
  void close_lease(uint32_t gpu, const probe_report& found, std::chrono::nanoseconds now);
  void tell_places(std::chrono::nanoseconds now);
  void keep_connections_alive(std::chrono::nanoseconds now);
  void note(const std::string& kind, const std::string& reason, std::chrono::nanoseconds now);
  result<void> save_memory(bool durable);
  broker_line grant_line(broker_say say, uint32_t gpu, uint64_t request) const;
  void answer(connection_id to, bool applied, const std::string& note,
    std::chrono::nanoseconds left = std::chrono::nanoseconds{0});
  void refuse(connection_id to, uint64_t request, const failure& why);
  /// The GPU with that lease out; nothing when there is none.
  std::optional<uint32_t> find(const client_line& line) const;
  uint32_t weight_of(const std::string& user) const;
  bool may_speak_for(const broker_peer& peer, const lease_record& record) const;

  broker_settings settings_;
  broker_outside& outside_;
  lease_table table_;
  broker_memory memory_;
  std::vector<slot> slots_;
  std::map<connection_id, connection> connections_;
  std::chrono::nanoseconds started_at_{0};
  std::chrono::nanoseconds save_at_{0};
  std::chrono::nanoseconds renew_at_{0};
  std::optional<std::chrono::nanoseconds> tell_at_;
  bool changed_ = false;
  bool draining_ = false;
};

} // namespace gristmill
