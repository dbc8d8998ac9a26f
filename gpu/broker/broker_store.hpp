#pragma once

#include "messages/event.hpp"
#include "messages/lease.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gristmill {

/// A lease that is out, as a broker that starts anew needs to know it: who keeps it, and how to end
/// it if nobody does. Times are of the monotonic clock, which counts on while a broker is down.
struct lease_record {
  std::string gpu;
  uint64_t token = 0;
  /// Names the lease; only its holder knows it.
  std::string lease;
  std::string boot;
  std::chrono::nanoseconds granted_at{0};
  std::chrono::nanoseconds term{0};
  lease_request request;
  bool guarded = false;
  uid_t user = 0;
  /// The client and when it was started (process_tree.hpp).
  pid_t pid = 0;
  uint64_t started = 0;
  /// Session of the work, and when its leader was started; 0 before it is known.
  pid_t session = 0;
  uint64_t session_started = 0;
};

std::string lease_record_text(const lease_record& record);
/// Errors: `invalid_input`, naming the field.
result<lease_record> parse_lease_record(std::string_view text, const std::string& file);

/// What a broker must remember.
struct broker_memory {
  /// Starts of the broker so far.
  uint64_t epoch = 0;
  /// Highest token reserved, by GPU name. Kept also for GPUs that are not lent at present.
  std::map<std::string, uint64_t> tokens;
  /// Why drained, by GPU name.
  std::map<std::string, std::string> drained;
  std::map<std::string, uint32_t> weights;
  /// `lease_policy::save` of the policy of this text.
  std::string policy;
  std::string policy_state;
};

std::string broker_memory_text(const broker_memory& memory);
result<broker_memory> parse_broker_memory(std::string_view text, const std::string& file);

/// The folder of a broker: `state.json`, a `lease-N.json` for each lease that is out, and
/// `journal.jsonl` with one line for every transition (the format of docs/events.md). One broker
/// at a time.
class broker_store {
public:
  /// Creates the folder (mode 0700) when it is missing, locks it and reads it. Errors: `refused`
  /// when another broker works in it, `io_failed`, `invalid_input` for a damaged file.
  static result<std::unique_ptr<broker_store>> open(const std::filesystem::path& folder);
  broker_store(const broker_store&) = delete;
  broker_store& operator=(const broker_store&) = delete;
  ~broker_store();

  const broker_memory& memory() const { return memory_; }
  /// The leases that were out when the last broker ended.
  const std::vector<lease_record>& leases() const { return leases_; }

  /// Replaces the memory. `durable`: on the disk when this returns, also after a loss of power.
  result<void> save(const broker_memory& memory, bool durable);
  /// Survives the death of the broker, not a loss of power: after that nothing runs any more.
  result<void> save_lease(const lease_record& record);
  void forget_lease(const std::string& gpu);
  /// One line of the journal, not forced to the disk. It is cut over to `journal.1.jsonl` at 64
  /// MiB, so the two together hold the last 64 MiB at least.
  void note(event entry);

private:
  broker_store(std::filesystem::path folder, int lock);
  std::filesystem::path lease_file(const std::string& gpu) const;
  result<void> replace(
    const std::filesystem::path& file, std::string_view text, bool durable) const;
  void open_journal();

  std::filesystem::path folder_;
  int lock_ = -1;
  int journal_ = -1;
  uint64_t journal_bytes_ = 0;
  uint64_t seq_ = 0;
  broker_memory memory_;
  std::vector<lease_record> leases_;
};

} // namespace gristmill
