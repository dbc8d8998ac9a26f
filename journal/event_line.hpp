#pragma once

#include "messages/event.hpp"
#include "messages/result.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace gristmill {

/// The version of the event schema that this program writes.
inline constexpr uint32_t event_schema_version = 1;

/// The longest line that `parse_line` accepts, in bytes.
inline constexpr size_t event_line_bytes_max = size_t{1} << 20;

/// Keys of `data`, at any depth, whose values a clock, a machine or the interleaving of independent
/// actors decides. A digest leaves them out (docs/decisions/0003-digest.md). An event that carries
/// another such value adds its key here.
inline constexpr std::array<std::string_view, 30> wall_clock_keys = {"agent", "ahead", "boot",
  "build_ns", "cached", "cleanup_ns", "compile_ns", "cpu_ns", "deadline_ns", "epoch", "evidence",
  "execution_ns", "gpu_ns", "held_ns", "holder", "host", "job", "judge_ns", "pid", "propose_ns",
  "queue_ns", "request", "run_directory", "started_ns", "ticket", "took_ns", "utc", "waiting",
  "wall_ns", "worker"};

/// Kinds of events whose very number depends on the interleaving; no line of them enters a digest.
inline constexpr std::array<std::string_view, 16> kinds_outside_digest = {"alarm", "alarm_over",
  "attempt_interrupted", "gpu_free", "gpu_probe", "gpu_suspect", "handed_in", "node_joined",
  "node_left", "node_lost", "node_returned", "progress", "run_resumed", "token_block",
  "worker_moved", "worker_placed"};

/// JSON with sorted keys and no white space, numbers as nlohmann/json prints them: the form in
/// which `event::data` is stored. Errors: `invalid_input` for what is not a JSON object, is nested
/// deeper than 64 levels or is longer than `event_line_bytes_max`.
result<std::string> canonical_data(std::string_view json);

/// One event as one line of JSON, without the line feed: the exchange format. Key order: seq, v,
/// incarnation, t, wall, kind, problem, attempt, candidate, gpu, token, reason, data. Empty fields
/// are written too. `data` must be canonical already; an empty text is written as `{}`.
std::string canonical_line(const event& e);

/// The inverse of `canonical_line`. A key that is not in the schema is an error; an unknown `kind`
/// is kept. Errors: `invalid_input`, with the field named; `unsupported` for another `v`.
result<event> parse_line(std::string_view line);

/// SHA-256, as 64 hexadecimal characters, of what happened in a run regardless of when: the
/// canonical lines without `seq`, `t`, `wall`, `incarnation`, `gpu`, `token` and the
/// `wall_clock_keys` of the data, sorted bytewise, each followed by a line feed. The order of
/// independent actors does not show, nor which of several free GPUs an attempt got.
std::string digest(std::span<const event> events);

/// The line of an event that enters the digest, for whoever looks for the first difference.
std::string digest_line(const event& e);

} // namespace gristmill
