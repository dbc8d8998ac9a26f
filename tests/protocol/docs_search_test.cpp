#include "protocol/docs_search.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace gristmill;
namespace fs = std::filesystem;

namespace {

struct folder {
  fs::path path;

  folder() {
    static int count = 0;
    path = fs::temp_directory_path()
      / ("gristmill-docs-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    fs::create_directories(path);
  }
  ~folder() { fs::remove_all(path); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
};

/// A small library that nobody has ever seen.
void write_quern(const folder& docs) {
  docs.write("guide.md",
    "# Quern\n\nQuern moves grain between millstones.\n\n"
    "## Moving data\n\n"
    "A plain `qn_pour` copies one element a thread.\n\n"
    "### Asynchronous copies\n\n"
    "`qn_sluice(hopper, bed, stages)` copies a tile from global to shared memory in the background "
    "and returns a ticket. Wait for it with `qn_settle(ticket)`.\n\n"
    "## Arithmetic\n\n"
    "`qn_grind(a, b, acc)` multiplies two tiles on the matrix units.\n");
  docs.write("api/hopper.py",
    "def make_hopper(width):\n    \"\"\"Allocates a hopper.\"\"\"\n\n\n"
    "class MillStone:\n    \"\"\"Holds accumulators.\"\"\"\n");
  docs.write("install.rst",
    "Installing\n==========\n\nRun the setup script of the package.\n\n"
    "Uninstalling\n------------\n\nRemove the folder.\n");
  docs.write("page.html",
    "<html><head><script>var qn_hidden = 1;</script></head><body>\n<h2>Swizzles</h2>\n"
    "<p>Use <code>qn_braid</code> against bank conflicts &amp; stalls.</p>\n</body></html>\n");
}

} // namespace

TEST_CASE("an API that nobody has seen is found by a question in plain words") {
  folder docs;
  write_quern(docs);
  auto index = docs_index::read(docs.path);
  REQUIRE(index);
  CHECK(index->file_count() == 4);
  auto hits = index->search("how do I copy a tile to shared memory asynchronously?");
  REQUIRE_FALSE(hits.empty());
  CHECK(hits[0].file == "guide.md");
  CHECK(hits[0].text.find("qn_sluice") != std::string::npos);
  CHECK(hits[0].heading == "Quern > Moving data > Asynchronous copies");
  CHECK(index->search("matrix units multiply")[0].text.find("qn_grind") != std::string::npos);
  CHECK(index->search("avoid bank conflicts")[0].text.find("qn_braid") != std::string::npos);
  CHECK(index->search("accumulator class")[0].text.find("MillStone") != std::string::npos);
  CHECK(index->search("uninstall: remove")[0].heading.find("Uninstalling") != std::string::npos);
}

TEST_CASE("a name is found by its parts, and a passage is cited with its file and line") {
  folder docs;
  write_quern(docs);
  auto index = docs_index::read(docs.path);
  REQUIRE(index);
  auto hits = index->search("hopper make");
  REQUIRE_FALSE(hits.empty());
  CHECK(hits[0].file == "api/hopper.py");
  CHECK(hits[0].line == 1);
  CHECK(index->search("settle").at(0).line == 9);
  auto text = to_text(hits);
  CHECK(text.find("api/hopper.py:1") != std::string::npos);
  CHECK(to_text(hits, 60).size() <= 80);
}

TEST_CASE("markup is no text: scripts and tags are not found") {
  folder docs;
  write_quern(docs);
  auto index = docs_index::read(docs.path);
  REQUIRE(index);
  CHECK(index->search("hidden").empty());
  CHECK(
    index->search("conflicts & stalls")[0].text.find("conflicts & stalls") != std::string::npos);
}

TEST_CASE("a question without a known word finds nothing, and an answer says so") {
  folder docs;
  write_quern(docs);
  auto index = docs_index::read(docs.path);
  REQUIRE(index);
  CHECK(index->search("").empty());
  CHECK(index->search("zzz yyy").empty());
  CHECK(to_text({}).find("nothing") != std::string::npos);
  CHECK(index->search(std::string(100'000, 'x')).empty());
  CHECK(index->search("qn_sluice", 0).empty());
  CHECK(index->search("copy tile memory matrix units", 2).size() == 2);
}

TEST_CASE("no link leads out of the folder, and no hidden file is read") {
  folder outside;
  outside.write("secret.md", "# Secret\n\nthe word is xyzzy\n");
  folder docs;
  write_quern(docs);
  fs::create_symlink(outside.path / "secret.md", docs.path / "link.md");
  fs::create_directory_symlink(outside.path, docs.path / "more");
  fs::create_symlink("guide.md", docs.path / "inside.md");
  docs.write(".git/notes.md", "# Hidden\n\nxyzzy\n");
  auto index = docs_index::read(docs.path);
  REQUIRE(index);
  CHECK(index->search("xyzzy").empty());
  CHECK(index->left_out().size() == 2);
  CHECK(index->file_count() == 5);
}

TEST_CASE("limits are kept and told, and an empty folder is refused") {
  folder docs;
  auto none = docs_index::read(docs.path);
  REQUIRE_FALSE(none);
  CHECK(none.error().code == errc::invalid_input);
  auto missing = docs_index::read(docs.path / "nowhere");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == errc::not_found);
  docs.write("big.md", std::string(5000, 'a'));
  docs.write("small.md", "# Small\n\nfine\n");
  docs_limits limits;
  limits.file_bytes = 4000;
  auto index = docs_index::read(docs.path, limits);
  REQUIRE(index);
  CHECK(index->file_count() == 1);
  REQUIRE(index->left_out().size() == 1);
  CHECK(index->left_out()[0].starts_with("big.md"));
  limits.files = 1;
  CHECK_FALSE(docs_index::read(docs.path, limits));
  limits = {};
  limits.total_bytes = 100;
  CHECK_FALSE(docs_index::read(docs.path, limits));
}

TEST_CASE(
  "hostile texts are read without harm: no line ends, no tag ends, bytes that are no text") {
  folder docs;
  docs.write("a.html", "<h1" + std::string(3000, 'x'));
  docs.write("b.html", "<script>" + std::string(3000, '<'));
  docs.write("c.md", std::string(200'000, '#'));
  docs.write("d.txt", std::string("\0\xff\xfe word \xc3", 10));
  docs.write("e.rst", "=====\n=====\n=====\n");
  docs.write("f.md", "```\n# no heading\n\nnever closed");
  auto index = docs_index::read(docs.path);
  REQUIRE(index);
  CHECK(index->search("heading").size() == 1);
  for (const auto& hit : index->search("word heading closed", 10))
    CHECK(hit.text.size() <= 2000);
}

TEST_CASE("equal folders and questions give equal answers, whatever order files were written in") {
  folder one;
  folder two;
  for (int i = 0; i < 20; ++i)
    one.write("f" + std::to_string(i) + ".md", "# Title\n\nthe same words everywhere\n");
  for (int i = 19; i >= 0; --i)
    two.write("f" + std::to_string(i) + ".md", "# Title\n\nthe same words everywhere\n");
  auto a = docs_index::read(one.path);
  auto b = docs_index::read(two.path);
  REQUIRE(a);
  REQUIRE(b);
  CHECK(to_text(a->search("same words", 20)) == to_text(b->search("same words", 20)));
}
