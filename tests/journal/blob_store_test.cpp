#include "journal/blob_store.hpp"

#include "journal/hash.hpp"
#include "tests/journal/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <fstream>

using namespace gristmill;
namespace fs = std::filesystem;

namespace {

struct store_fixture {
  temporary_folder folder;
  blob_store store = *blob_store::open(folder.path / "blobs");

  size_t files() const {
    size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(store.root()))
      count += entry.is_regular_file() ? 1 : 0;
    return count;
  }
};

} // namespace

TEST_CASE_FIXTURE(store_fixture, "what was put comes back byte for byte") {
  std::string text = "kernel\0with\nzeros";
  for (const auto& t : {text, std::string{}, std::string(100'000, 'x')}) {
    auto ref = store.put(t);
    REQUIRE(ref);
    CHECK(ref->bytes == t.size());
    CHECK(ref->sha256 == sha256_hex(t));
    CHECK(store.has(*ref));
    CHECK(*store.get(*ref) == t);
  }
}

TEST_CASE_FIXTURE(store_fixture, "content lies under its hash, split after two characters") {
  auto ref = *store.put("abc");
  auto file = store.root() / "ba" / ref.sha256.substr(2);
  CHECK(*store.path(ref) == file);
  CHECK(fs::is_regular_file(file));
}

TEST_CASE_FIXTURE(
  store_fixture, "putting the same text twice stores one file and leaves no other") {
  auto first = store.put("same");
  auto second = store.put("same");
  CHECK(*first == *second);
  CHECK(files() == 1);
}

TEST_CASE_FIXTURE(store_fixture, "a blob that is not there is not found") {
  blob_ref ref{sha256_hex("never stored"), 12};
  CHECK_FALSE(store.has(ref));
  auto got = store.get(ref);
  REQUIRE_FALSE(got);
  CHECK(got.error().code == errc::not_found);
}

TEST_CASE_FIXTURE(store_fixture, "a reference that could leave the folder is refused") {
  for (const auto& name : {std::string{"../../etc/passwd"}, std::string{}, std::string(64, 'Z')}) {
    auto got = store.get({name, 1});
    REQUIRE_FALSE(got);
    CHECK(got.error().code == errc::invalid_input);
    CHECK_FALSE(store.has({name, 1}));
  }
}

TEST_CASE_FIXTURE(store_fixture, "a damaged blob is an error and never an answer") {
  auto ref = *store.put("the truth");
  std::ofstream(*store.path(ref), std::ios::binary) << "the trutH";
  auto got = store.get(ref);
  REQUIRE_FALSE(got);
  CHECK(got.error().code == errc::io_failed);
  CHECK(got.error().what.find("damaged") != std::string::npos);
}

TEST_CASE_FIXTURE(store_fixture, "a blob of another size than its reference is an error") {
  auto ref = *store.put("twelve bytes");
  ref.bytes = 11;
  CHECK_FALSE(store.has(ref));
  CHECK(store.get(ref).error().code == errc::io_failed);
}

TEST_CASE_FIXTURE(store_fixture, "a truncated blob is stored anew by the next put") {
  auto ref = *store.put("complete");
  std::ofstream(*store.path(ref), std::ios::binary | std::ios::trunc) << "comp";
  REQUIRE(store.put("complete"));
  CHECK(*store.get(ref) == "complete");
}

TEST_CASE("a blob folder that cannot be made is an error") {
  temporary_folder folder;
  std::ofstream(folder.path / "file") << "in the way";
  auto store = blob_store::open(folder.path / "file" / "blobs");
  REQUIRE_FALSE(store);
  CHECK(store.error().code == errc::io_failed);
}
