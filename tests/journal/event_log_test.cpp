#include "journal/event_log.hpp"

#include "journal/event_line.hpp"
#include "tests/journal/temporary_folder.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <doctest/doctest.h>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace gristmill;

namespace {

using mode = event_log::mode;

event named(const std::string& kind) {
  event e;
  e.kind = kind;
  e.t = std::chrono::nanoseconds{5};
  e.problem = "p";
  e.attempt = "p/cuda/1";
  e.candidate = "c";
  e.gpu = "g";
  e.token = 9;
  e.reason = "because";
  e.data = R"({"x":1})";
  return e;
}

struct log_fixture {
  temporary_folder folder;
  std::filesystem::path file = folder.path / "run.db";
};

} // namespace

TEST_CASE_FIXTURE(log_fixture, "events come back whole, numbered from 1") {
  auto log = event_log::open(file, mode::create);
  REQUIRE(log);
  CHECK(*log->last_seq() == 0);
  CHECK(*log->append(std::vector{named("a"), named("b")}, durability::barrier, 77) == 2);
  CHECK(*log->append(std::vector{named("c")}, durability::relaxed, 78) == 3);
  auto all = log->read(1, 100);
  REQUIRE(all);
  REQUIRE(all->size() == 3);
  auto expected = named("b");
  expected.seq = 2;
  expected.incarnation = 1;
  expected.wall = 77;
  CHECK(canonical_line((*all)[1]) == canonical_line(expected));
  CHECK((*all)[2].wall == 78);
  CHECK(*log->count() == 3);
}

TEST_CASE_FIXTURE(log_fixture, "reading is limited and starts where it is told to") {
  auto log = event_log::open(file, mode::create);
  std::vector<event> many(10, named("x"));
  many[4].kind = "y";
  REQUIRE(log->append(many, durability::relaxed, 0));
  CHECK(log->read(1, 3)->size() == 3);
  CHECK(log->read(9, 100)->size() == 2);
  CHECK(log->read(11, 100)->empty());
  CHECK(log->read(1, 0)->empty());
  auto y = log->read_kind("y", 1, 10);
  REQUIRE(y->size() == 1);
  CHECK(y->front().seq == 5);
}

TEST_CASE_FIXTURE(log_fixture, "a reader sees events while the writer has the log open") {
  auto writer = event_log::open(file, mode::create);
  auto reader = event_log::open(file, mode::read);
  REQUIRE(reader);
  REQUIRE(writer->append(std::vector{named("a")}, durability::relaxed, 0));
  CHECK(*reader->last_seq() == 1);
  CHECK(reader->read(1, 10)->size() == 1);
}

TEST_CASE_FIXTURE(log_fixture, "each start of writing is the next incarnation, numbering goes on") {
  {
    auto log = event_log::open(file, mode::create);
    CHECK(log->incarnation() == 1);
    REQUIRE(log->append(std::vector{named("a")}, durability::barrier, 0));
  }
  auto log = event_log::open(file, mode::append);
  REQUIRE(log);
  CHECK(log->incarnation() == 2);
  CHECK(*log->append(std::vector{named("b")}, durability::barrier, 0) == 2);
  CHECK(log->read(2, 1)->front().incarnation == 2);
  CHECK(event_log::open(file, mode::read)->incarnation() == 2);
}

TEST_CASE_FIXTURE(log_fixture, "a batch with one bad event stores nothing") {
  auto log = event_log::open(file, mode::create);
  auto bad = named("bad");
  bad.data = "[not an object]";
  auto stored = log->append(std::vector{named("good"), bad}, durability::barrier, 0);
  REQUIRE_FALSE(stored);
  CHECK(stored.error().code == errc::invalid_input);
  CHECK(stored.error().what.find("'bad'") != std::string::npos);
  CHECK(*log->count() == 0);
  auto other_version = named("a");
  other_version.v = 2;
  CHECK_FALSE(log->append(std::vector{other_version}, durability::relaxed, 0));
  auto huge = named("a");
  huge.reason = std::string(event_line_bytes_max, 'x');
  CHECK_FALSE(log->append(std::vector{huge}, durability::relaxed, 0));
  CHECK(*log->append(std::vector{named("good")}, durability::barrier, 0) == 1);
}

TEST_CASE_FIXTURE(log_fixture, "data is stored in canonical form and unknown kinds are kept") {
  auto log = event_log::open(file, mode::create);
  auto e = named("from_the_future");
  e.data = "{ \"b\":1, \"a\":2 }";
  REQUIRE(log->append(std::vector{e}, durability::relaxed, 0));
  auto back = log->read(1, 1)->front();
  CHECK(back.kind == "from_the_future");
  CHECK(back.data == R"({"a":2,"b":1})");
}

TEST_CASE_FIXTURE(log_fixture, "appending nothing answers the last number, also as a barrier") {
  auto log = event_log::open(file, mode::create);
  CHECK(*log->append({}, durability::barrier, 0) == 0);
  REQUIRE(log->append(std::vector{named("a")}, durability::relaxed, 0));
  CHECK(*log->append({}, durability::barrier, 0) == 1);
}

TEST_CASE_FIXTURE(log_fixture, "a log opened to read takes nothing") {
  REQUIRE(event_log::open(file, mode::create));
  auto log = event_log::open(file, mode::read);
  auto stored = log->append(std::vector{named("a")}, durability::relaxed, 0);
  REQUIRE_FALSE(stored);
  CHECK(stored.error().code == errc::refused);
}

TEST_CASE_FIXTURE(log_fixture, "opening says what is wrong with the file") {
  CHECK(event_log::open(file, mode::read).error().code == errc::not_found);
  CHECK(event_log::open(file, mode::append).error().code == errc::not_found);
  REQUIRE(event_log::open(file, mode::create));
  CHECK(event_log::open(file, mode::create).error().code == errc::io_failed);
  CHECK(event_log::open(folder.path / "no" / "x.db", mode::create).error().code == errc::io_failed);
  auto junk = folder.path / "junk.db";
  std::ofstream(junk) << std::string(5000, 'j');
  CHECK(event_log::open(junk, mode::append).error().code == errc::io_failed);
  SQLite::Database(junk.string() + "2", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
    .exec("CREATE TABLE t (x)");
  CHECK(event_log::open(junk.string() + "2", mode::append).error().what.find("not an event log")
    != std::string::npos);
}

TEST_CASE_FIXTURE(log_fixture, "a log of a later schema is not read") {
  REQUIRE(event_log::open(file, mode::create));
  SQLite::Database(file.string(), SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 2");
  auto log = event_log::open(file, mode::read);
  REQUIRE_FALSE(log);
  CHECK(log.error().code == errc::unsupported);
}

TEST_CASE_FIXTURE(log_fixture, "what was appended is there after the process was killed") {
  pid_t child = ::fork();
  if (child == 0) {
    auto log = event_log::open(file, mode::create);
    bool stored = log && log->append(std::vector{named("a")}, durability::barrier, 0)
      && log->append(std::vector{named("b")}, durability::relaxed, 0);
    // Ends like a kill: no destructor runs.
    ::_exit(stored ? 0 : 1);
  }
  int status = 1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  auto log = event_log::open(file, mode::append);
  REQUIRE(log);
  CHECK(log->read(1, 10)->size() == 2);
}

TEST_CASE("network file systems are known by their magic number, sshfs by its mount type") {
  CHECK(network_file_system(0x6969, "") == "NFS");
  CHECK(network_file_system(0x517b, "") == "SMB");
  CHECK(network_file_system(0xff534d42, "") == "CIFS");
  // statfs hands the number out as a signed long on some machines.
  CHECK(network_file_system(0xffffffffff534d42, "") == "CIFS");
  CHECK(network_file_system(0xfe534d42, "") == "SMB2");
  CHECK(network_file_system(0x65735546, "fuse.sshfs") == "fuse.sshfs");
  CHECK_FALSE(network_file_system(0x65735546, "fuse.fuse-overlayfs"));
  CHECK_FALSE(network_file_system(0xef53, "ext4"));
}

TEST_CASE("a local folder is not taken for a network file system, even before it exists") {
  temporary_folder folder;
  CHECK_FALSE(network_file_system(folder.path));
  CHECK_FALSE(network_file_system(folder.path / "not" / "yet"));
}
