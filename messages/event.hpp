#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// One line of the journal, event schema 1 (contracts section 8). Empty strings and 0 mean "does
/// not apply".
struct event {
  /// Given by the journal.
  uint64_t seq = 0;
  uint32_t v = 1;
  /// Given by the journal: which start of this run wrote it.
  uint32_t incarnation = 0;
  /// Time since the start of the run, by the actors' clock.
  std::chrono::nanoseconds t{0};
  /// Given by the journal: Unix time in nanoseconds.
  int64_t wall = 0;
  std::string kind{};
  std::string problem{};
  /// `to_string(attempt_id)`.
  std::string attempt{};
  /// Hash of the candidate.
  std::string candidate{};
  /// Name of the GPU, such as "mock:h200#0".
  std::string gpu{};
  uint64_t token = 0;
  std::string reason{};
  /// A JSON object in canonical form; "{}" for none.
  std::string data = "{}";
};

enum class durability : uint8_t {
  /// Acknowledged when stored some time later.
  relaxed = 0,
  /// Acknowledged after it is on disk: verdicts, token blocks, money, start, stop.
  barrier,
};

/// Events of one producer, in order.
struct journal_append {
  std::vector<event> events;
  durability how = durability::relaxed;
};

struct journal_ack {
  /// Sequence number of the last event stored.
  uint64_t seq = 0;
};

} // namespace gristmill
