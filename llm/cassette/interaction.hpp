#pragma once

#include "llm/cassette/canonical_request.hpp"
#include "llm/transport/http_port.hpp"
#include "llm/transport/redactor.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

struct recorded_event {
  /// After the call was started.
  std::chrono::microseconds at{0};
  sse_event event;

  friend bool operator==(const recorded_event&, const recorded_event&) = default;
};

/// A request and what came back, without secrets: one line of a cassette.
struct interaction {
  canonical_request request;
  /// Counts the calls with this request, from 0, in the order in which they were started.
  uint64_t ordinal = 0;
  uint32_t status = 0;
  http_headers headers;
  std::vector<recorded_event> events;
  std::string body;
  http_end how = http_end::complete;
  std::string why;
  std::chrono::microseconds took{0};
  redaction_count redacted;
};

/// One line with its line end. Equal interactions make equal lines.
std::string write_interaction(const interaction& what);

/// Of a line without its end. `invalid_input` says what is wrong with which field; the hash must be
/// that of the request, so that a file edited by hand is noticed.
result<interaction> read_interaction(std::string_view line, const std::string& where);

/// A whole cassette.
struct tape {
  std::vector<interaction> all;
  /// How far the file is well formed: up to a torn last line.
  size_t whole_bytes = 0;
  /// The last line was torn, as by a crash while it was written, and is left out.
  bool torn = false;
  /// The last line has its end.
  bool ends_with_line = true;
};

/// A later line for the same request and ordinal stands in the place of an earlier one.
/// `invalid_input` names file and line.
result<tape> read_tape(std::string_view text, const std::string& file);

} // namespace gristmill
