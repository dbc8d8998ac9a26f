#include "llm/mind/idea_book.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

TEST_CASE("insights replace those before them, each problem for itself") {
  idea_book book;
  book.set_insights("p", {"a", "b"});
  book.set_insights("p", {"c"});
  CHECK(book.insights("p") == std::vector<std::string>{"c"});
  CHECK(book.insights("q").empty());
}

TEST_CASE("a reflection is taken once for so many attempts") {
  idea_book book;
  CHECK(book.take_reflection("p", 8));
  CHECK_FALSE(book.take_reflection("p", 8));
  CHECK_FALSE(book.take_reflection("p", 7));
  CHECK(book.take_reflection("p", 16));
  CHECK(book.take_reflection("q", 8));
}

TEST_CASE("of notes and failures the newest few stay, each once") {
  idea_book book;
  for (int i = 0; i < 20; ++i) {
    book.note_handoff("p", "note " + std::to_string(i));
    book.note_failure("p", "failure " + std::to_string(i));
  }
  book.note_failure("p", "failure 19");
  CHECK(book.handoffs("p").size() == 4);
  CHECK(book.handoffs("p").back() == "note 19");
  CHECK(book.failures("p").size() == 6);
  CHECK(book.failures("p").back() == "failure 19");
}

TEST_CASE(
  "knowledge goes to problems of equal structure first, and to those that share an operator") {
  idea_book book;
  book.note_lesson("same-slow", "s", {}, {"loads", "h", 1.5});
  book.note_lesson("same-fast", "s", {}, {"split", "h", 3.0});
  book.note_lesson("shares", "other", {"matmul"}, {"tma", "h", 9.0});
  book.note_lesson("stranger", "else", {"softmax"}, {"online", "h", 9.0});
  book.note_lesson("nothing-yet", "s", {}, {"x", "h", 0});
  auto told = book.knowledge("me", "s", {"matmul"});
  REQUIRE(told.size() == 3);
  CHECK(told[0].starts_with("same-fast"));
  CHECK(told[1].starts_with("same-slow"));
  CHECK(told[2].starts_with("shares"));
  CHECK_MESSAGE(book.knowledge("same-fast", "s", {}).size() == 1, "never of itself");
  CHECK_MESSAGE(book.knowledge("me", "", {}).empty(), "an unknown structure is no structure");
}

TEST_CASE("calls have numbers of their own") {
  idea_book book;
  auto first = book.next_call();
  CHECK(first != 0);
  CHECK(book.next_call() == first + 1);
}
