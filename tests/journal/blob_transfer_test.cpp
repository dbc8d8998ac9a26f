#include "journal/blob_transfer.hpp"

#include "journal/hash.hpp"
#include "tests/journal/temporary_folder.hpp"

#include <algorithm>
#include <csignal>
#include <doctest/doctest.h>
#include <fstream>
#include <memory>
#include <optional>
#include <sys/resource.h>

using namespace gristmill;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t piece_bytes = blob_piece_max;

std::string content_of(size_t bytes, char seed = 'a') {
  std::string out(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i)
    out[i] = static_cast<char>(seed + static_cast<char>((i * 31 + i / 977) % 64));
  return out;
}

/// A real store on this side, and one for each peer.
struct transfer_fixture {
  temporary_folder folder;
  std::shared_ptr<blob_store> here = open_store("here");
  std::shared_ptr<blob_store> there = open_store("there");
  store_inbox inbox{here, nullptr};
  blob_transfer_limits limits;
  std::optional<blob_transfer> made;
  std::vector<blob_transfer::pull> pulls;
  std::vector<blob_transfer::ending> ended;
  std::chrono::nanoseconds now{1s};

  std::shared_ptr<blob_store> open_store(const char* name) {
    return std::make_shared<blob_store>(*blob_store::open(folder.path / name));
  }

  blob_transfer& transfer() {
    if (!made)
      made.emplace(inbox, limits);
    return *made;
  }

  void take(blob_transfer::steps what) {
    std::move(what.pulls.begin(), what.pulls.end(), std::back_inserter(pulls));
    std::move(what.ended.begin(), what.ended.end(), std::back_inserter(ended));
  }

  void fetch(uint64_t id, std::vector<blob_ref> blobs, uint64_t peer = 1,
    std::chrono::nanoseconds deadline = 0ns) {
    take(transfer().fetch(id, peer, {std::move(blobs), deadline}, now));
  }

  /// The peer answers the pull at this place of the list.
  void answer(size_t n = 0) {
    auto asked = pulls.at(n);
    pulls.erase(pulls.begin() + static_cast<std::ptrdiff_t>(n));
    take(transfer().piece(asked.peer, read_piece(*there, asked.what), now));
  }

  void answer_all() {
    while (!pulls.empty())
      answer();
  }

  void wait(std::chrono::nanoseconds time) {
    now += time;
    take(transfer().due(now));
  }

  const failure& error(size_t n = 0) {
    REQUIRE(ended.size() > n);
    REQUIRE_FALSE(ended[n].outcome);
    return ended[n].outcome.error();
  }

  uint64_t bytes(size_t n = 0) {
    REQUIRE(ended.size() > n);
    REQUIRE(ended[n].outcome);
    return ended[n].outcome->bytes;
  }

  size_t unfinished() const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(here->root()))
      count += entry.path().extension() == ".new" ? 1 : 0;
    return count;
  }
};

TEST_SUITE_BEGIN("blob transfer");

TEST_CASE_FIXTURE(transfer_fixture, "a blob of any size arrives byte for byte") {
  uint64_t id = 0;
  for (size_t size :
    {size_t{1}, piece_bytes - 1, piece_bytes, piece_bytes + 1, 11 * piece_bytes + 7}) {
    CAPTURE(size);
    const auto ref = *there->put(content_of(size));
    fetch(++id, {ref});
    answer_all();
    CHECK(bytes(id - 1) == size);
    CHECK(*here->get(ref) == content_of(size));
  }
  CHECK(unfinished() == 0);
  CHECK(transfer().fetches_open() == 0);
  CHECK_FALSE(transfer().wants(1));
  CHECK_FALSE(transfer().next_due());
}

TEST_CASE_FIXTURE(
  transfer_fixture, "what is here, what is empty and what is no blob do not travel") {
  const auto ref = *here->put("known");
  fetch(1, {ref, {}, {sha256_hex(""), 0}});
  CHECK(pulls.empty());
  CHECK(bytes() == 0);
  CHECK(here->has({sha256_hex(""), 0}));
}

TEST_CASE_FIXTURE(transfer_fixture, "a peer never has more than four pieces to send") {
  const auto big = *there->put(content_of(9 * piece_bytes));
  const auto small = *there->put(content_of(3 * piece_bytes, 'b'));
  fetch(1, {big, small});
  CHECK(pulls.size() == 4);
  size_t most = 0;
  size_t pieces = 0;
  while (!pulls.empty()) {
    answer();
    ++pieces;
    most = std::max(most, pulls.size());
  }
  CHECK(pieces == 12);
  CHECK(most == 4);
  CHECK(bytes() == 12 * piece_bytes);
}

TEST_CASE_FIXTURE(transfer_fixture, "a small blob need not wait for the end of a large one") {
  const auto large = *there->put(content_of(40 * piece_bytes));
  const auto small = *there->put("source");
  fetch(1, {large});
  fetch(2, {small});
  for (int i = 0; i < 8; ++i)
    answer();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].fetch == 2);
}

TEST_CASE_FIXTURE(transfer_fixture, "pieces may come in any order, doubled and unasked") {
  const auto text = content_of(6 * piece_bytes + 5);
  const auto ref = *there->put(text);
  fetch(1, {ref});
  while (!pulls.empty()) {
    auto last = pulls.back();
    auto forged = read_piece(*there, last.what);
    forged.data[0] = '!';
    take(transfer().piece(7, forged, now));
    answer(pulls.size() - 1);
    take(transfer().piece(last.peer, forged, now));
    take(transfer().piece(1, {"nobody knows it", 0, 5, "words", {}}, now));
    CHECK(pulls.size() <= 4);
  }
  CHECK(bytes() == text.size());
  CHECK(*here->get(ref) == text);
}

TEST_CASE_FIXTURE(
  transfer_fixture, "nothing is asked for that would wait in memory for what is missing") {
  const auto ref = *there->put(content_of(20 * piece_bytes));
  fetch(1, {ref});
  // The first piece is late.
  while (pulls.size() > 1)
    answer(1);
  CHECK(pulls.at(0).what.offset == 0);
  answer();
  CHECK(pulls.size() == 4);
  CHECK(pulls.at(0).what.offset == 4 * piece_bytes);
  answer_all();
  CHECK(bytes() == ref.bytes);
}

TEST_CASE_FIXTURE(
  transfer_fixture, "what was under way with a damaged piece is not trusted either") {
  const auto ref = *there->put(content_of(3 * piece_bytes));
  fetch(1, {ref});
  REQUIRE(pulls.size() == 3);
  const auto first_try = std::exchange(pulls, {});
  for (const auto& asked : first_try) {
    CHECK(pulls.empty());
    auto bad = read_piece(*there, asked.what);
    bad.data[0] = '!';
    if (asked.what.offset == 0)
      bad.data.pop_back();
    take(transfer().piece(1, bad, now));
  }
  CHECK(pulls.size() == 3);
  answer_all();
  CHECK(bytes() == ref.bytes);
}

TEST_CASE_FIXTURE(transfer_fixture, "a blob that several want travels once") {
  const auto ref = *there->put(content_of(2 * piece_bytes));
  const auto other = *there->put("other");
  fetch(1, {ref});
  fetch(2, {ref, ref, other});
  fetch(3, {ref}, 2);
  CHECK(pulls.size() == 3);
  answer_all();
  REQUIRE(ended.size() == 3);
  uint64_t all = 0;
  for (size_t n = 0; n < 3; ++n)
    all += bytes(n);
  CHECK(all == ref.bytes + other.bytes);
}

TEST_CASE_FIXTURE(transfer_fixture, "a blob that comes damaged is fetched once more") {
  const auto ref = *there->put(content_of(2 * piece_bytes));
  fetch(1, {ref});
  auto bad = read_piece(*there, pulls.at(0).what);
  SUBCASE("another byte") {
    bad.data[7] = '!';
  }
  SUBCASE("a piece that is too short") {
    bad.data.pop_back();
  }
  SUBCASE("a piece that is too long") {
    bad.data += "more";
  }
  SUBCASE("another size of the whole") {
    bad.total += 1;
  }
  pulls.erase(pulls.begin());
  take(transfer().piece(1, bad, now));
  answer_all();
  CHECK(bytes() == ref.bytes);
  CHECK(transfer().fetched_again() == 1);
  CHECK(*here->get(ref) == content_of(2 * piece_bytes));
}

TEST_CASE_FIXTURE(
  transfer_fixture, "a blob that comes damaged twice is an error and leaves nothing") {
  const auto ref = *there->put(content_of(3 * piece_bytes));
  std::ofstream(*there->path(ref), std::ios::binary | std::ios::in) << "!";
  fetch(1, {ref});
  answer_all();
  CHECK(error().code == errc::io_failed);
  CHECK(error().what.find("damaged twice") != std::string::npos);
  CHECK_FALSE(here->has(ref));
  CHECK(unfinished() == 0);
  CHECK_FALSE(transfer().wants(1));
}

TEST_CASE_FIXTURE(transfer_fixture, "what the peer does not have is not found") {
  const blob_ref absent{sha256_hex("nowhere"), 7};
  const auto other = *there->put("other");
  fetch(1, {absent, other});
  fetch(2, {other});
  answer_all();
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].fetch == 1);
  CHECK(error(0).code == errc::not_found);
  CHECK(error(0).what.find(absent.sha256) != std::string::npos);
  CHECK(bytes(1) == other.bytes);
  CHECK(unfinished() == 0);
}

TEST_CASE_FIXTURE(
  transfer_fixture, "when one peer does not have it, the peer of another fetch is asked") {
  auto third = open_store("third");
  const auto ref = *there->put(content_of(2 * piece_bytes));
  fetch(1, {ref}, 3);
  fetch(2, {ref}, 1);
  auto asked = pulls.at(0);
  pulls.clear();
  take(transfer().piece(3, read_piece(*third, asked.what), now));
  CHECK(error(0).code == errc::not_found);
  answer_all();
  REQUIRE(ended.size() == 2);
  CHECK(ended[1].fetch == 2);
  CHECK(bytes(1) == ref.bytes);
  CHECK_FALSE(transfer().wants(3));
}

TEST_CASE_FIXTURE(
  transfer_fixture, "a peer that never answers is given up after the piece's deadline") {
  const auto ref = *there->put(content_of(2 * piece_bytes));
  fetch(1, {ref}, 1, 1h);
  CHECK(transfer().next_due() == now + limits.piece_deadline);
  wait(29s);
  CHECK(ended.empty());
  wait(1s);
  CHECK(error().code == errc::timed_out);
  CHECK(unfinished() == 0);
  CHECK_FALSE(transfer().wants(1));
}

TEST_CASE_FIXTURE(
  transfer_fixture, "a fetch ends at its own deadline, others of the same blob go on") {
  const auto ref = *there->put(content_of(2 * piece_bytes));
  fetch(1, {ref}, 1, 5s);
  fetch(2, {ref}, 1, 20s);
  wait(5s);
  REQUIRE(ended.size() == 1);
  CHECK(error().code == errc::timed_out);
  answer_all();
  CHECK(ended[1].fetch == 2);
  CHECK(bytes(1) == ref.bytes);
}

TEST_CASE_FIXTURE(transfer_fixture, "nothing more is asked of a peer for a fetch that has ended") {
  const auto ref = *there->put(content_of(9 * piece_bytes));
  fetch(1, {ref}, 1, 5s);
  wait(5s);
  CHECK(error().code == errc::timed_out);
  CHECK_FALSE(transfer().wants(1));
  CHECK_FALSE(transfer().next_due());
  CHECK(unfinished() == 0);
  answer_all();
  CHECK_FALSE(here->has(ref));
}

TEST_CASE_FIXTURE(transfer_fixture, "a transfer goes on where it was when its peer was lost") {
  const auto text = content_of(8 * piece_bytes);
  const auto ref = *there->put(text);
  fetch(1, {ref});
  for (int i = 0; i < 5; ++i)
    answer();
  take(transfer().peer_gone(1, now));
  CHECK(error().code == errc::node_lost);
  CHECK(unfinished() == 1);
  pulls.clear();
  fetch(2, {ref}, 2);
  CHECK(pulls.at(0).what.offset == 5 * piece_bytes);
  CHECK(pulls.at(0).peer == 2);
  answer_all();
  CHECK(bytes(1) == ref.bytes);
  CHECK(*here->get(ref) == text);
  CHECK(unfinished() == 0);
}

TEST_CASE_FIXTURE(
  transfer_fixture, "half a blob that nobody asks for again is deleted after a while") {
  const auto ref = *there->put(content_of(8 * piece_bytes));
  fetch(1, {ref});
  answer();
  take(transfer().peer_gone(1, now));
  CHECK(unfinished() == 1);
  CHECK(transfer().next_due() == now + limits.parked_for);
  wait(limits.parked_for);
  CHECK(unfinished() == 0);
  CHECK_FALSE(transfer().next_due());
}

TEST_CASE_FIXTURE(transfer_fixture, "few half blobs are kept, and none after the end") {
  for (uint64_t id = 1; id <= 6; ++id) {
    const auto ref = *there->put(content_of(3 * piece_bytes, static_cast<char>('a' + id)));
    fetch(id, {ref}, id);
    answer();
    take(transfer().peer_gone(id, now));
    pulls.clear();
  }
  CHECK(unfinished() == limits.parked_max);
  const auto ref = *there->put(content_of(3 * piece_bytes, 'z'));
  fetch(9, {ref});
  take(transfer().end({errc::shutting_down, "over"}));
  CHECK(error(6).code == errc::shutting_down);
  CHECK(unfinished() == 0);
}

TEST_CASE_FIXTURE(transfer_fixture, "only a SHA-256 names a blob, on both sides") {
  for (const std::string name : {"../../etc/passwd", "/etc/passwd", "ab", "run.db"}) {
    CAPTURE(name);
    ended.clear();
    fetch(1, {{name, 5}});
    CHECK(error().code == errc::invalid_input);
    CHECK(pulls.empty());
    const auto refused = read_piece(*there, {name, 0, 5});
    CHECK(refused.data.empty());
    CHECK(refused.failure_text.find("does not name a blob") != std::string::npos);
  }
  CHECK_FALSE(read_piece(*there, {std::string(64, 'A'), 0, 5}).failure_text.empty());
}

TEST_CASE_FIXTURE(
  transfer_fixture, "a piece beyond the end, of no bytes, or above the limit is refused") {
  const auto ref = *there->put(content_of(10));
  CHECK(read_piece(*there, {ref.sha256, 0, 4}).data == content_of(10).substr(0, 4));
  CHECK(read_piece(*there, {ref.sha256, 4, 100}).data == content_of(10).substr(4));
  for (const blob_pull& bad : {blob_pull{ref.sha256, 10, 1}, blob_pull{ref.sha256, UINT64_MAX, 1},
         blob_pull{ref.sha256, 0, 0}, blob_pull{ref.sha256, 0, blob_piece_max + 1}}) {
    CAPTURE(bad.offset);
    CAPTURE(bad.bytes);
    const auto refused = read_piece(*there, bad);
    CHECK_FALSE(refused.failure_text.empty());
    CHECK(refused.data.empty());
  }
}

TEST_CASE_FIXTURE(transfer_fixture, "a link in the store is not followed") {
  const auto name = sha256_hex("link");
  fs::create_directories(there->root() / name.substr(0, 2));
  fs::create_symlink("/etc/passwd", there->root() / name.substr(0, 2) / name.substr(2));
  CHECK(read_piece(*there, {name, 0, 5}).failure_text.find("is not here") != std::string::npos);
}

TEST_CASE_FIXTURE(transfer_fixture, "a size above the cap is refused before anything is made") {
  limits.blob_bytes_max = 1 << 20;
  fetch(1, {{sha256_hex("large"), (1 << 20) + 1}});
  CHECK(error().code == errc::refused);
  CHECK(pulls.empty());
  CHECK(unfinished() == 0);
}

TEST_CASE_FIXTURE(transfer_fixture, "a blob has one size, and an empty one the hash of nothing") {
  const auto ref = *there->put(content_of(100));
  fetch(1, {ref, {ref.sha256, 99}});
  CHECK(error(0).code == errc::invalid_input);
  fetch(2, {ref});
  fetch(3, {{ref.sha256, 101}});
  CHECK(error(1).code == errc::invalid_input);
  fetch(4, {{sha256_hex("something"), 0}});
  CHECK(error(2).code == errc::invalid_input);
}

TEST_CASE_FIXTURE(
  transfer_fixture, "what is too much for the queue is refused, and nothing of it waits") {
  limits.blobs_waiting_max = 5;
  limits.fetches_max = 2;
  std::vector<blob_ref> many;
  for (char c = 'a'; c < 'g'; ++c)
    many.push_back(*there->put(content_of(100, c)));
  fetch(1, many);
  CHECK(error(0).code == errc::queue_full);
  CHECK(pulls.empty());
  fetch(2, {many[0]});
  fetch(3, {many[1]});
  fetch(4, {many[0]});
  CHECK(error(1).code == errc::queue_full);
  answer_all();
  CHECK(ended.size() == 4);
}

TEST_CASE_FIXTURE(transfer_fixture, "many blobs of one peer all arrive, four files at a time") {
  std::vector<blob_ref> many;
  for (int n = 0; n < 40; ++n)
    many.push_back(*there->put(content_of(1000 + static_cast<size_t>(n))));
  fetch(1, many);
  size_t most = 0;
  while (!pulls.empty()) {
    answer();
    most = std::max(most, unfinished());
  }
  CHECK(ended.size() == 1);
  CHECK(most <= 4);
  for (const auto& ref : many)
    CHECK(here->has(ref));
}

TEST_CASE_FIXTURE(transfer_fixture, "a full disk is an error, and nothing is left behind") {
  const auto ref = *there->put(content_of(4 * piece_bytes));
  const auto small = *there->put("small");
  // A file of this process may have so many bytes, as if the disk had no more.
  auto was = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit tight = before;
  tight.rlim_cur = 2 * piece_bytes + 100;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &tight) == 0);
  fetch(1, {ref});
  fetch(2, {small});
  answer_all();
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, was);
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].fetch == 1);
  CHECK(error(0).code == errc::io_failed);
  CHECK(error(0).what.find("cannot write") != std::string::npos);
  CHECK(bytes(1) == small.bytes);
  CHECK_FALSE(here->has(ref));
  CHECK(unfinished() == 0);
  CHECK_FALSE(transfer().wants(1));
  fetch(3, {ref});
  answer_all();
  CHECK(bytes(2) == ref.bytes);
}

TEST_SUITE_END();

} // namespace
