#include "simulation/replay/trace_file.hpp"

#include "tests/simulation/replay/journals.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace gristmill;
using namespace gristmill::test;

namespace {

namespace fs = std::filesystem;

/// A folder of this test.
struct folder {
  folder() {
    std::string name = (fs::temp_directory_path() / "gristmill-replay-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    root = name;
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  ~folder() { fs::remove_all(root); }

  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(root / name, std::ios::binary) << text;
    return root / name;
  }
  fs::path root;
};

std::string journal_text() {
  hand_journal j;
  j.head("fifo").up("g#0");
  j.request(0, 1, "a").grant(0, 1, "a", "g#0", 1, 0).free(5, "g#0", 1);
  return j.text();
}

std::string trouble(const fs::path& file) {
  auto trace = read_lease_trace(file);
  REQUIRE_FALSE(trace);
  return trace.error().what;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a file is read line by line, with any line ends and with empty lines") {
  folder f;
  auto text = journal_text();
  CHECK(read_lease_trace(f.write("a.jsonl", text)));
  text.pop_back();
  CHECK(read_lease_trace(f.write("b.jsonl", text)));
  std::string dos;
  for (char c : text)
    dos += c == '\n' ? std::string("\r\n\r\n") : std::string(1, c);
  auto trace = read_lease_trace(f.write("c.jsonl", dos));
  REQUIRE(trace);
  CHECK(trace->grants.size() == 1);
}

TEST_CASE("the state folder of a broker is read, the older half first") {
  folder f;
  hand_journal first;
  first.up("g#0").request(0, 1, "a").grant(0, 1, "a", "g#0", 1, 0);
  auto text = first.text();
  hand_journal all;
  all.up("g#0").request(0, 1, "a").grant(0, 1, "a", "g#0", 1, 0).free(5, "g#0", 1);
  f.write("journal.1.jsonl", text);
  f.write("journal.jsonl", all.text().substr(text.size()));
  auto trace = read_lease_trace(f.root);
  REQUIRE_MESSAGE(trace, trace.error().what);
  CHECK(trace->requests.at(0).freed == std::chrono::milliseconds{5});
  CHECK(trace->lines == 4);
}

TEST_CASE("what is no journal is refused with file and line") {
  folder f;
  auto text = journal_text();
  CHECK(says(trouble(f.root / "nowhere"), "no such file"));
  CHECK(says(trouble(f.root), "neither a run directory"));
  CHECK(says(trouble(f.write("empty", "")), "nothing in it"));
  CHECK(says(trouble(f.write("words", "hello\n")), "words: line 1:"));
  CHECK(says(trouble(f.write("cut", text.substr(0, text.size() - 40))), "cut: line 5:"));
  CHECK(says(trouble(f.write("list", text + "[]\n")), "line 6:"));
  CHECK(says(trouble(f.write("binary", std::string(500, '\0') + "\n")), "line 1:"));
  CHECK(says(trouble(f.write("long", text + std::string(1 << 21, 'x') + "\n")), "line 6: longer"));
  CHECK(says(trouble(f.write("deep", text + std::string(100'000, '[') + "\n")), "line 6:"));
  auto other = text;
  other.replace(other.find("\"v\":1"), 5, "\"v\":2");
  CHECK(says(trouble(f.write("other", other)), "line 1: event: this program reads schema 1"));
  CHECK(read_lease_trace(f.root / "other").error().code == errc::unsupported);
  CHECK(says(
    trouble(f.write("sqlite", std::string("SQLite format 3\0", 16) + "nothing more")), "sqlite"));
}

TEST_CASE("a check reads on and lists every fault with its line") {
  folder f;
  hand_journal j;
  j.head("fifo").up("g#0");
  j.request(0, 1, "a").grant(0, 1, "a", "g#0", 1, 0).grant(1, 2, "b", "g#0", 2, 0);
  j.free(5, "g#0", 1);
  j.add({.t = std::chrono::milliseconds{6}, .kind = "lease_request"});
  auto found = check_lease_trace(f.write("j", j.text() + "rubbish\n"));
  REQUIRE(found);
  REQUIRE(found->faults_total == 3);
  CHECK(says(found->faults[0], "line 5 (lease_grant)"));
  CHECK(says(found->faults[1], "line 7 (lease_request)"));
  CHECK(says(found->faults[2], "line 8:"));
  CHECK(found->trace.grants.size() == 1);

  auto good = check_lease_trace(f.write("good", journal_text()));
  REQUIRE(good);
  CHECK(good->faults_total == 0);

  std::string many;
  for (int i = 0; i < 500; ++i)
    many += "x\n";
  auto bad = check_lease_trace(f.write("many", many));
  REQUIRE(bad);
  CHECK(bad->faults.size() == 100);
  CHECK(bad->faults_total == 501);
}
