#include "protocol/proposer_text.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

TEST_CASE("every proposer by name, and a command with its line") {
  for (auto kind :
    {proposer_kind::template_search, proposer_kind::random, proposer_kind::exhaustive,
      proposer_kind::scripted, proposer_kind::sleep, proposer_kind::llm, proposer_kind::replay}) {
    auto read = parse_proposer(to_string(kind));
    REQUIRE(read);
    REQUIRE(read->size() == 1);
    CHECK(read->front().kind == kind);
  }
  auto command = parse_proposer("command: python3 agent.py --fast, now");
  REQUIRE(command);
  CHECK(command->front().kind == proposer_kind::command);
  CHECK(command->front().command == "python3 agent.py --fast, now");
  CHECK(asks_models(*parse_proposer("llm")));
  CHECK(asks_models(*parse_proposer("mixed(template=1, replay=1)")));
  CHECK_FALSE(asks_models(*command));
}

TEST_CASE("a mixture gives each its share, and the same to the same worker") {
  auto mix = parse_proposer("mixed(llm=3, template=1)");
  REQUIRE(mix);
  std::string order;
  for (uint32_t worker = 0; worker < 8; ++worker)
    order += proposer_of_worker(*mix, worker).kind == proposer_kind::llm ? 'l' : 't';
  CHECK(order
    == "lltlllt"
       "l");
  auto one = parse_proposer("llm");
  CHECK(proposer_of_worker(*one, 77).kind == proposer_kind::llm);
}

TEST_CASE("a command in a mixture stands in quotes, commas and all") {
  auto mix = parse_proposer("mixed(llm=1, 'command: a, b=2'=2)");
  REQUIRE(mix);
  REQUIRE(mix->size() == 2);
  CHECK(mix->back().command == "a, b=2");
  CHECK(mix->back().share == 2);
}

TEST_CASE("what is wrong is named with the nearest right word") {
  const std::pair<const char*, const char*> wrong[] = {{"lmm", "llm"}, {"templte", "template"},
    {"", "known"}, {"command:", "names no command"}, {"mixed(llm=3", "left open"},
    {"mixed(llm)", "NAME=COUNT"}, {"mixed(llm=0)", "from 1"}, {"mixed(llm=x)", "from 1"},
    {"mixed(llm=1, llm=2)", "twice"}, {"mixed(sleep=1)", "does not mix"},
    {"mixed('command: a=1)", "left open"}, {"mixed()", "NAME=COUNT"},
    {"mixed(mixed(llm=1)=1)", "unknown"}};
  for (const auto& [text, part] : wrong) {
    CAPTURE(text);
    auto read = parse_proposer(text);
    REQUIRE_FALSE(read);
    CHECK_MESSAGE(read.error().what.find(part) != std::string::npos, read.error().what);
  }
}
