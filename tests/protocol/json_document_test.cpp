#include "protocol/json_document.hpp"

#include <cmath>
#include <doctest/doctest.h>

using namespace gristmill;

namespace {

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("keys keep their order, and of a repeated one the last value counts") {
  auto document = parse_json(R"({"z":1,"a":2,"z":3})", "f.json");
  REQUIRE(document);
  CHECK(document->dump() == R"({"z":3,"a":2})");
  json_limits strict;
  strict.unique_keys = true;
  CHECK(
    contains(parse_json(R"({"z":1,"z":3})", "f.json", strict).error().what, "`z` stands twice"));
  CHECK(parse_json(R"({"z":{"z":1},"y":{"z":1}})", "f.json", strict));
}

TEST_CASE("a syntax error names file, line and column") {
  auto broken = parse_json("{\n  \"a\": 1,\n  \"b\" 2\n}", "f.json");
  REQUIRE_FALSE(broken);
  CHECK(contains(broken.error().what, "f.json:3:7: not valid JSON"));
  CHECK_FALSE(parse_json("", "f.json"));
  CHECK_FALSE(parse_json("{\"a\": NaN}", "f.json"));
  CHECK_FALSE(parse_json("{\"a\": 1e999}", "f.json"));
  CHECK_FALSE(parse_json("{\"a\": \"\xff\"}", "f.json"));
  CHECK_FALSE(parse_json("{} {}", "f.json"));
}

TEST_CASE("size, depth and keys are bounded") {
  json_limits limits;
  limits.bytes = 100;
  CHECK_FALSE(parse_json(std::string(101, ' ') + "1", "f.json", limits));
  CHECK(parse_json(std::string(64, '[') + std::string(64, ']'), "f.json"));
  CHECK(contains(
    parse_json(std::string(65, '[') + std::string(65, ']'), "f.json").error().what, "64 levels"));
  CHECK_FALSE(parse_json(std::string(1000000, '['), "f.json"));
  std::string many = "{";
  for (int i = 0; i < 5000; ++i)
    many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  CHECK(contains(parse_json(many + "}", "f.json").error().what, "4096 keys"));
}

TEST_CASE("an int field takes whole numbers in every dress") {
  const auto read = [](const char* text) { return lenient_int(ordered_json::parse(text)); };
  CHECK(*read("16") == 16);
  CHECK(*read("16.0") == 16);
  CHECK(*read("\"16\"") == 16);
  CHECK(*read("\" 16.0 \"") == 16);
  CHECK(*read("\"1_000\"") == 1000);
  CHECK(*read("\"+7\"") == 7);
  CHECK(*read("true") == 1);
  CHECK(*read("-3") == -3);
  CHECK(*read("9223372036854775807") == INT64_MAX);
  for (const char* wrong : {"16.5", "null", "\"x\"", "\"\"", "[1]", "9223372036854775808", "1e30",
         "\"16.5\"", "\"_1\"", "\"1__0\"", "\"+\"", "\"++1\"", "\"1 2\"", "\".\""})
    CHECK_FALSE(read(wrong));
}

TEST_CASE("a float field takes numbers, bools and numeric strings") {
  const auto read = [](const char* text) { return lenient_float(ordered_json::parse(text)); };
  CHECK(*read("1") == 1);
  CHECK(*read("true") == 1);
  CHECK(*read("\"1e-3\"") == 1e-3);
  CHECK(std::isinf(*read("\"inf\"")));
  CHECK_FALSE(read("\"x\""));
  CHECK_FALSE(read("null"));
  CHECK_FALSE(read("\"1e-3x\""));
}

TEST_CASE("a bool field takes the words for yes and no in any case") {
  const auto read = [](const char* text) { return lenient_bool(ordered_json::parse(text)); };
  for (const char* yes : {"true", "1", "1.0", "\"Yes\"", "\"ON\"", "\"t\"", "\"y\"", "\"1\""})
    CHECK(read(yes).value_or(false));
  for (const char* no : {"false", "0", "\"No\"", "\"off\"", "\"F\"", "\"n\"", "\"0\""})
    CHECK_FALSE(read(no).value_or(true));
  for (const char* wrong : {"2", "0.5", "null", "\"\"", "\"maybe\"", "[]"})
    CHECK_FALSE(read(wrong));
}

TEST_CASE("a text from outside cannot break a message") {
  CHECK(excerpt("a\nb") == "`a\\nb`");
  CHECK(excerpt(std::string(1, '\x1b')) == "`\\x1b`");
  CHECK(excerpt(std::string(100, 'a'), 5) == "`aaaaa…`");
  CHECK(excerpt("ab€", 4) == "`ab…`");
}

TEST_CASE("a missing file and a folder are told apart") {
  CHECK(read_text_file("/no/such/file", 10).error().code == errc::not_found);
  CHECK(read_text_file("/", 10).error().code == errc::invalid_input);
}
