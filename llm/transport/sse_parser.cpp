#include "llm/transport/sse_parser.hpp"

#include <fmt/format.h>
#include <utility>

namespace gristmill {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

} // namespace

bool sse_parser::take(std::string_view bytes, std::vector<sse_event>& events) {
  while (!bytes.empty() && broken_.empty()) {
    if (std::exchange(after_return_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const auto end = bytes.find_first_of("\r\n");
    const auto piece = bytes.substr(0, end);
    if (piece.size() > limits_.line_max - line_.size()) {
      broken_ = fmt::format("a line of the answer is longer than {} bytes", limits_.line_max);
      break;
    }
    line_ += piece;
    if (end == std::string_view::npos)
      break;
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(events);
  }
  return broken_.empty();
}

void sse_parser::finish(std::vector<sse_event>& events) {
  if (!broken_.empty())
    return;
  if (!line_.empty())
    end_line(events);
  if (broken_.empty())
    end_event(events);
}

void sse_parser::end_line(std::vector<sse_event>& events) {
  std::string_view line = line_;
  if (std::exchange(at_start_, false) && line.starts_with(byte_order_mark))
    line.remove_prefix(byte_order_mark.size());
  if (line.empty())
    end_event(events);
  else if (line.front() != ':')
    read_field(line);
  line_.clear();
}

void sse_parser::end_event(std::vector<sse_event>& events) {
  if (has_data_)
    events.push_back(std::move(event_));
  event_ = {};
  has_data_ = false;
}

void sse_parser::read_field(std::string_view line) {
  const auto colon = line.find(':');
  const auto field = line.substr(0, colon);
  auto value = colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
  if (value.starts_with(' '))
    value.remove_prefix(1);
  if (field == "event") {
    event_.name = value;
  } else if (field == "data") {
    if (value.size() + 1 > limits_.event_max - event_.data.size()) {
      broken_ = fmt::format("an event of the answer is larger than {} bytes", limits_.event_max);
      return;
    }
    if (std::exchange(has_data_, true))
      event_.data += '\n';
    event_.data += value;
  }
}

} // namespace gristmill
