#include "llm/transport/sse_parser.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

using events = std::vector<sse_event>;

events read(std::string_view text, size_t piece = std::string_view::npos) {
  sse_parser parser;
  events out;
  for (size_t at = 0; at < text.size();) {
    const auto part = text.substr(at, piece);
    CHECK(parser.take(part, out));
    at += part.size();
  }
  parser.finish(out);
  return out;
}

std::string shown(const events& all) {
  std::string out;
  for (const auto& each : all)
    out += "[" + each.name + "/" + each.data + "]";
  return out;
}

} // namespace

TEST_CASE("every kind of line end ends a line, and a blank line ends an event") {
  CHECK(shown(read("data: a\n\ndata: b\n\n")) == "[/a][/b]");
  CHECK(shown(read("data: a\r\n\r\ndata: b\r\n\r\n")) == "[/a][/b]");
  CHECK(shown(read("data: a\r\rdata: b\r\r")) == "[/a][/b]");
  CHECK(shown(read("data: a\r\n\rdata: b\n\r\n")) == "[/a][/b]");
}

TEST_CASE("data lines of one event are joined by a line end") {
  CHECK(shown(read("data: a\ndata:\ndata: b\n\n")) == "[/a\n\nb]");
}

TEST_CASE("an empty data line is an event with empty data, and no data line is no event") {
  CHECK(shown(read("data\n\n")) == "[/]");
  CHECK(shown(read("data:\n\n")) == "[/]");
  CHECK(shown(read("event: ping\n\n")) == "");
  CHECK(shown(read("\n\n\n")) == "");
}

TEST_CASE("a name belongs to its own event only") {
  CHECK(shown(read("event: delta\ndata: a\n\ndata: b\n\n")) == "[delta/a][/b]");
  CHECK(shown(read("event: lost\n\ndata: b\n\n")) == "[/b]");
}

TEST_CASE("comments, ids, retry times and unknown fields are read over") {
  CHECK(shown(read(": OPENROUTER PROCESSING\n\nid: 7\nretry: 10\nfoo: bar\ndata: a\n: c\n\n"))
    == "[/a]");
}

TEST_CASE("exactly one blank after the colon is dropped") {
  CHECK(shown(read("data:a\n\ndata:  b\n\ndata: c: d\n\n")) == "[/a][/ b][/c: d]");
}

TEST_CASE("a byte order mark is dropped at the very start and nowhere else") {
  CHECK(shown(read("\xEF\xBB\xBF"
                   "data: a\n\n"))
    == "[/a]");
  CHECK(shown(read("\xEF\xBB\xBF"
                   "data: a\n\n",
          1))
    == "[/a]");
  CHECK(shown(read("data: a\n\n\xEF\xBB\xBF"
                   "data: b\n\n"))
    == "[/a]");
}

TEST_CASE("how the bytes are cut makes no difference") {
  const std::string text = "\xEF\xBB\xBF: hello\r\nevent: x\r\ndata: gr\xC3\xBC\xC3\x9F\xF0\x9F\x8C"
                           "\xBE\r\ndata: zwei\r\n\r\ndata: [DONE]\r\r";
  const auto whole = read(text);
  CHECK(shown(whole) == "[x/gr\xC3\xBC\xC3\x9F\xF0\x9F\x8C\xBE\nzwei][/[DONE]]");
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    CAPTURE(piece);
    CHECK(read(text, piece) == whole);
  }
}

TEST_CASE("a stream that ends without its last blank line or line end loses nothing") {
  CHECK(shown(read("data: a\n\ndata: [DONE]\n")) == "[/a][/[DONE]]");
  CHECK(shown(read("data: a\n\ndata: [DONE]")) == "[/a][/[DONE]]");
}

TEST_CASE("a line may be as long as the limit and no longer") {
  const std::string eight = "data:123";
  events out;
  sse_parser enough({.line_max = 8, .event_max = 100});
  CHECK(enough.take(eight + "\n\n", out));
  CHECK(shown(out) == "[/123]");
  out.clear();
  sse_parser endless({.line_max = 8, .event_max = 100});
  CHECK(endless.take(eight, out));
  CHECK_FALSE(endless.take("4", out));
  CHECK(endless.broken() == "a line of the answer is longer than 8 bytes");
}

TEST_CASE("many short lines do not get round the limit of an event") {
  events out;
  sse_parser parser({.line_max = 100, .event_max = 10});
  CHECK(parser.take("data: 1234\ndata: 1234\n\n", out));
  CHECK(shown(out) == "[/1234\n1234]");
  CHECK_FALSE(parser.take("data: 1234\ndata: 1234\ndata: 1\n", out));
  CHECK(parser.broken() == "an event of the answer is larger than 10 bytes");
}

TEST_CASE("nothing is read after a broken limit") {
  events out;
  sse_parser parser({.line_max = 8, .event_max = 100});
  CHECK_FALSE(parser.take("data: far too long\n\ndata: b\n\n", out));
  CHECK_FALSE(parser.take("data: b\n\n", out));
  parser.finish(out);
  CHECK(out.empty());
}
