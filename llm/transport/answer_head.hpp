#pragma once

#include "llm/transport/http_port.hpp"

#include <cstdint>
#include <string_view>

namespace gristmill {

/// Whether a header of an answer is passed on and recorded; the name in lower case. Everything else
/// (cookies, names of machines) is dropped where it comes in.
bool passes_on_header(std::string_view lower_case_name);

/// Status and headers of an answer, line by line.
class answer_head {
public:
  /// False when the headers to keep are larger than allowed.
  bool take_line(std::string_view line);

  /// The final status and all its headers are there; interim answers (1xx) are none.
  bool complete() const { return complete_; }
  uint32_t status() const { return status_; }
  const http_headers& headers() const { return headers_; }
  /// A success of type text/event-stream. An error keeps its body as it is, whatever it claims.
  bool is_event_stream() const { return event_stream_; }

private:
  uint32_t status_ = 0;
  http_headers headers_;
  size_t bytes_ = 0;
  bool complete_ = false;
  bool event_stream_ = false;
};

} // namespace gristmill
