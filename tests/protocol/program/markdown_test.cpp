#include "protocol/program/markdown.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

using kind = markdown_block::kind;

std::vector<markdown_block> code_blocks(const std::string& text) {
  auto out = markdown_blocks(text);
  std::erase_if(out, [](const markdown_block& b) { return b.what != kind::code; });
  return out;
}

} // namespace

TEST_CASE("a fence ends with the same mark, at least as long, on a line of its own") {
  for (const char* text :
    {"```cuda\nint a;\n```\n", "```cuda\nint a;\n```", "~~~cuda\nint a;\n~~~~~\n",
      "```cuda\nint a;\n   ```  \n", "````cuda x=1\nint a;\n````\n"}) {
    CAPTURE(text);
    const auto found = code_blocks(text);
    REQUIRE(found.size() == 1);
    CHECK(found[0].info == "cuda");
    CHECK(found[0].text == "int a;\n");
    CHECK(found[0].fenced);
    CHECK(found[0].closed);
    CHECK(found[0].first_line == 1);
    CHECK(found[0].last_line == 3);
  }
}

TEST_CASE("a fence that has no end is told from one that has") {
  for (const char* text :
    {"```cuda", "```cuda\n", "```cuda\nint a;", "```cuda\nint a;\n\n\n", "```cuda\nint a;\n~~~\n",
      "````cuda\nint a;\n```\n", "```cuda\nint a;\n     ```\n", "```cuda\nint a;\n``` x\n"}) {
    CAPTURE(text);
    const auto found = code_blocks(text);
    REQUIRE(found.size() == 1);
    CHECK(found[0].fenced);
    CHECK_FALSE(found[0].closed);
  }
  // The list ends, and with it the block that was open in it.
  const auto cut = code_blocks("- x\n  ```cuda\n  int a;\nprose\n");
  REQUIRE(cut.size() == 1);
  CHECK_FALSE(cut[0].closed);
}

TEST_CASE("an empty block is closed and empty") {
  const auto found = code_blocks("```cuda\n```\n");
  REQUIRE(found.size() == 1);
  CHECK(found[0].closed);
  CHECK(found[0].text.empty());
}

TEST_CASE("a longer fence carries shorter ones as content") {
  const auto found = code_blocks("~~~~cuda\n```\nint a;\n```\n~~~\n~~~~\n");
  REQUIRE(found.size() == 1);
  CHECK(found[0].text == "```\nint a;\n```\n~~~\n");
  CHECK(found[0].closed);
}

TEST_CASE("indented code is no fenced block") {
  const auto found = code_blocks("text\n\n    int a;\n    ```\n\nmore\n");
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found[0].fenced);
}

TEST_CASE("blocks within lists and quotations are seen, without their marks") {
  const auto found =
    code_blocks("1. x\n\n   ```cuda\n   int a;\n   ```\n\n> ```json\n> {}\n> ```\n");
  REQUIRE(found.size() == 2);
  CHECK(found[0].text == "int a;\n");
  CHECK_FALSE(found[0].top);
  CHECK(found[0].closed);
  CHECK(found[1].info == "json");
  CHECK(found[1].text == "{}\n");
  CHECK(found[1].closed);
}

TEST_CASE("headings give their words and paragraphs their lines as written") {
  const auto found = markdown_blocks("## A `b` *c*\n\none\n**two** three\n");
  REQUIRE(found.size() == 2);
  CHECK(found[0].what == kind::heading);
  CHECK(found[0].level == 2);
  CHECK(found[0].text == "A b c");
  CHECK(found[1].text == "one\n**two** three");
  CHECK(found[1].first_line == 3);
}

TEST_CASE("all line ends become one kind") {
  CHECK(plain_line_ends("a\r\nb\rc\n\r") == "a\nb\nc\n\n");
  CHECK(markdown_blocks("").empty());
}
