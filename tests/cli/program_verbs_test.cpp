// `gristmill program check` and `program show` as a user starts them.

#include "tests/cli/document_files.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

using namespace gristmill::test;

namespace {

std::string default_file() {
  const auto shown = ended({"program", "show"});
  CHECK(shown.code == 0);
  std::ifstream in(source_file("protocol/program.md"), std::ios::binary);
  REQUIRE(in);
  const bool same = shown.out == std::string(std::istreambuf_iterator<char>(in), {});
  CHECK(same);
  return shown.out;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  REQUIRE_MESSAGE(at != std::string::npos, what);
  return text.replace(at, what.size(), with);
}

} // namespace

TEST_CASE("the file that comes along can be printed, checked and told by its hash") {
  scratch root;
  const auto file = (root / "mine.md").string();
  write_file(file, default_file());
  const auto own = ended({"program", "check", "--json"});
  const auto copy = ended({"program", "check", file, "--json"});
  CHECK(own.code == 0);
  CHECK(copy.code == 0);
  const auto a = nlohmann::json::parse(own.out), b = nlohmann::json::parse(copy.out);
  CHECK(a.at("schema") == "gristmill.program-check/1");
  CHECK(a.at("sha256") == b.at("sha256"));
  CHECK(a.at("sha256").get<std::string>().size() == 64);
  CHECK(a.at("rules") == b.at("rules"));
  CHECK(a.at("rules").size() > 25);
  for (const auto& rule : a.at("rules"))
    for (const char* part : {"rule", "says", "enforced_by", "violated_by"})
      CHECK_FALSE(rule.at(part).get<std::string>().empty());
  CHECK(a.at("cards").size() >= 14);
  CHECK(a.at("advisory").size() > 10);
}

TEST_CASE("an edit changes the table and the hash, and a card that breaks it is named") {
  scratch root;
  const auto file = (root / "mine.md").string();
  write_file(file, replaced(default_file(), "inline_ptx = true", "inline_ptx = false"));
  const auto done = ended({"program", "check", file});
  CHECK(done.code == 0);
  CHECK(done.out.find("Inline PTX is not allowed.") != std::string::npos);
  CHECK(
    done.out.find("cp-async-pipeline (problem gemm_float32); NOT OFFERED") != std::string::npos);
  CHECK(done.out.find("advisory: read by the model, enforced by nobody") != std::string::npos);
  const auto before = nlohmann::json::parse(ended({"program", "check", "--json"}).out);
  const auto after = nlohmann::json::parse(ended({"program", "check", file, "--json"}).out);
  CHECK(before.at("sha256") != after.at("sha256"));
}

TEST_CASE("a file that is wrong ends the command with 2 and says file, line, field and cure") {
  scratch root;
  const auto file = (root / "mine.md").string();
  write_file(file, replaced(default_file(), "inline_ptx", "inline_pxt"));
  const auto done = ended({"program", "check", file});
  CHECK(done.code == 2);
  CHECK(done.err.find(file + ":22: candidate.inline_pxt: unknown rule; did you mean `inline_ptx`?")
    != std::string::npos);
  CHECK(ended({"program", "check", (root / "nothing.md").string()}).code == 2);
}
