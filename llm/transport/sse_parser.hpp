#pragma once

#include "llm/transport/http_port.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// In bytes. A line without an end and an event without a blank line are where a server could make
/// us keep whatever it likes.
struct sse_limits {
  size_t line_max = size_t{4} << 20;
  /// All data lines of one event together.
  size_t event_max = size_t{8} << 20;
};

/// Reads server-sent events (WHATWG HTML, "Interpreting an event stream") from bytes that come in
/// any pieces. A line ends with \n, \r\n or \r; several data lines are joined by \n; lines that
/// begin with a colon are comments; `id`, `retry` and unknown fields are read over. Bytes are
/// handed on as they are: a character that is split over two pieces is whole again in its event.
///
/// As that text says, an event without data is none. One thing is different: what ends with the
/// stream instead of a blank line counts as well, because servers forget the last one.
class sse_parser {
public:
  explicit sse_parser(sse_limits limits = {}) : limits_(limits) {}

  /// Appends the events that `bytes` end. False once a limit is broken: the rest of the stream is
  /// then ignored.
  bool take(std::string_view bytes, std::vector<sse_event>& events);
  /// The stream came to its proper end: gives what lacks only its last line end or blank line.
  void finish(std::vector<sse_event>& events);

  /// Empty, or which limit is broken, for a person.
  const std::string& broken() const { return broken_; }

private:
  void end_line(std::vector<sse_event>& events);
  void end_event(std::vector<sse_event>& events);
  void read_field(std::string_view line);

  sse_limits limits_;
  std::string line_;
  sse_event event_;
  bool has_data_ = false;
  /// The last byte was \r, so that a \n now belongs to it.
  bool after_return_ = false;
  bool at_start_ = true;
  std::string broken_;
};

} // namespace gristmill
