#include "protocol/json_lines.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

using list = std::vector<size_t>;

TEST_CASE("each field has the line of its key, each element the line where it begins") {
  const char* text = "{\n"
                     "  \"axes\": {\n"
                     "    \"N\": {\"type\": \"var\",\n"
                     "      \"description\": \"{[,:\\\"\\n\"},\n"
                     "    \"K\":\n"
                     "      5\n"
                     "  },\n"
                     "  \"list\": [1,\n"
                     "    \"b\", [\n"
                     "      true], {\n"
                     "      \"x\": null}],\n"
                     "  \"\\u0041\\n\": 1\n"
                     "}\n";
  CHECK(lines_of_fields(text,
          {"", "axes", "axes.N.description", "axes.K", "list.0", "list.1", "list.2.0", "list.3",
            "list.3.x", "A\n"})
    == list{1, 2, 4, 5, 8, 9, 10, 10, 11, 12});
}

TEST_CASE("a field that is missing has the line of what should hold it") {
  const char* text = "\n{\n\"spec\": {\n\"a\": 1}}";
  CHECK(lines_of_fields(text, {"spec.languages", "spec.a.b.c", "name", "x.y"}) == list{3, 4, 2, 2});
}

TEST_CASE("of a key that is written twice the last one counts") {
  CHECK(lines_of_fields("{\"a\": 1,\n\"a\": 2}", {"a"}) == list{2});
}

TEST_CASE("a text that is no JSON, or a path of a million dots, ends all the same") {
  for (const char* text : {"", "}", "]]", "{\"", "{\"a\\", "[,", "\"", "{,,}", "5"})
    CHECK(lines_of_fields(text, {"a", "0"}).size() == 2);
  CHECK(lines_of_fields("{}", {std::string(1'000'000, '.')}) == list{1});
  CHECK(lines_of_fields("{}", {}).empty());
}
