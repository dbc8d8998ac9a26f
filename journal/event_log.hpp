#pragma once

#include "messages/event.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gristmill {

/// The event log of a run: one SQLite file (WAL), the only stored truth. One process writes; any
/// number read at the same time. Not for use by two threads at once.
class event_log {
public:
  enum class mode : uint8_t {
    /// The file must not exist.
    create,
    /// The file must exist; nothing can be appended.
    read,
    /// The file must exist; the numbering goes on.
    append,
  };

  /// A new or re-opened log starts the next incarnation: every event appended carries its number.
  /// Errors: `refused` for a file on a network file system (SQLite's locks do not hold there),
  /// `not_found`, `io_failed` (also: exists already, not an event log), `unsupported` for a log
  /// that a later schema wrote.
  static result<event_log> open(const std::filesystem::path& file, mode how);

  event_log(event_log&&) noexcept;
  event_log& operator=(event_log&&) noexcept;
  ~event_log();

  /// Appends all events or none, in one transaction; `wall` (Unix time in ns, of the caller's
  /// clock) stamps them all. The log numbers them: `seq`, `incarnation` and `wall` of the arguments
  /// are not read. `barrier`: on the disk when this returns; `relaxed`: a power cut may lose the
  /// last ones, a crash of the process does not. Returns the sequence number of the last one
  /// (numbers start at 1); with no events, that of the log's last. Errors: `invalid_input` when
  /// `data` is not a JSON object, `refused` for a log opened to read, `io_failed`.
  result<uint64_t> append(std::span<const event> events, durability how, int64_t wall);

  /// At most `limit` events with `seq >= from`, in order. Errors: `io_failed`.
  result<std::vector<event>> read(uint64_t from, size_t limit) const;

  /// As `read`, of one kind only.
  result<std::vector<event>> read_kind(const std::string& kind, uint64_t from, size_t limit) const;

  /// 0 for a log with no events. Errors: `io_failed`.
  result<uint64_t> last_seq() const;

  /// Number of events. Errors: `io_failed`.
  result<uint64_t> count() const;

  /// Counts the times that the log was opened to write, this one included; from 1.
  uint32_t incarnation() const;

private:
  struct state;
  explicit event_log(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

/// Names a file system over the network by the magic number of `statfs` and, for FUSE, the type in
/// the mount table; nothing for a local or unknown one.
std::optional<std::string> network_file_system(uint64_t magic, const std::string& mount_type);

/// As above, for the file system on which `path` (or its nearest existing parent) lies.
std::optional<std::string> network_file_system(const std::filesystem::path& path);

} // namespace gristmill
