// A stream of server-sent events: the first byte says how the rest is cut into pieces, and the
// events must not depend on it.

#include "fuzz/require.hpp"
#include "llm/transport/sse_parser.hpp"

#include <algorithm>

using namespace gristmill;

namespace {

struct read_stream {
  std::vector<sse_event> events;
  bool broken = false;
};

constexpr sse_limits limits{.line_max = 4000, .event_max = 6000};

read_stream read(std::string_view text, size_t piece) {
  sse_parser parser(limits);
  read_stream out;
  while (!text.empty()) {
    const auto part = text.substr(0, piece);
    parser.take(part, out.events);
    text.remove_prefix(part.size());
  }
  parser.finish(out.events);
  out.broken = !parser.broken().empty();
  return out;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0)
    return 0;
  const auto text = fuzz::text_of(data + 1, size - 1);
  const auto whole = read(text, std::max<size_t>(text.size(), 1));
  const auto pieces = read(text, size_t{1} + data[0] % 16);
  fuzz::require(whole.events == pieces.events, "pieces make no difference to the events");
  fuzz::require(whole.broken == pieces.broken, "pieces make no difference to the limits");
  size_t bytes = 0;
  for (const auto& each : whole.events) {
    bytes += each.data.size();
    fuzz::require(each.data.size() <= limits.event_max, "no event is above the limit");
    fuzz::require(each.name.find_first_of("\r\n") == std::string::npos, "a name is one line");
    fuzz::require(each.data.find('\r') == std::string::npos, "no line end is left in an event");
  }
  fuzz::require(bytes <= text.size(), "no byte comes out twice");
  return 0;
}
