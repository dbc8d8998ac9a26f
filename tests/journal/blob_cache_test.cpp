#include "journal/blob_cache.hpp"

#include "journal/blob_inbox.hpp"
#include "journal/hash.hpp"
#include "tests/journal/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <sys/stat.h>
#include <thread>

using namespace gristmill;
namespace fs = std::filesystem;

namespace {

struct cache_fixture {
  temporary_folder folder;
  std::shared_ptr<blob_store> store =
    std::make_shared<blob_store>(*blob_store::open(folder.path / "blobs"));

  std::shared_ptr<blob_cache> open(uint64_t bytes_max) {
    auto cache = blob_cache::open(store, bytes_max);
    REQUIRE(cache);
    return *cache;
  }

  /// 100 bytes that say which they are, last used at this second.
  blob_ref put(char which, long second = 0) {
    auto ref = *store->put(std::string(100, which));
    if (second > 0)
      use(ref, second);
    return ref;
  }

  void use(const blob_ref& ref, long second) {
    const timespec times[2] = {{second, 0}, {second, 0}};
    REQUIRE(utimensat(AT_FDCWD, store->path(ref)->c_str(), times, 0) == 0);
  }
};

TEST_SUITE_BEGIN("blob cache");

TEST_CASE_FIXTURE(cache_fixture, "what was used least recently is deleted first") {
  auto a = put('a', 10);
  auto b = put('b', 30);
  auto c = put('c', 20);
  auto cache = open(300);
  CHECK(cache->counters().bytes == 300);
  REQUIRE(cache->make_room(100));
  CHECK_FALSE(store->has(a));
  CHECK(store->has(b));
  CHECK(store->has(c));
  cache->cancelled(100);
  cache->used(c);
  auto d = put('d');
  cache->refresh();
  cache->refresh();
  REQUIRE(cache->make_room(100));
  CHECK_FALSE(store->has(b));
  CHECK(store->has(c));
  CHECK(store->has(d));
  CHECK(cache->counters().evictions == 2);
  CHECK(cache->counters().evicted_bytes == 200);
}

TEST_CASE_FIXTURE(cache_fixture, "what is in use stays, whatever else has to go") {
  auto a = put('a', 10);
  auto b = put('b', 20);
  auto cache = open(200);
  const std::vector<blob_ref> needed{a, {}, {"not a name", 3}};
  auto pins = cache->pin(needed);
  auto again = cache->pin(needed);
  CHECK(cache->counters().pinned_bytes == 100);
  // The pinned one is the older one.
  cache->used(b);
  REQUIRE(cache->make_room(100));
  CHECK(store->has(a));
  CHECK_FALSE(store->has(b));
  // The room of the first is reserved still, and the pinned one stays.
  const auto full = cache->make_room(1);
  REQUIRE_FALSE(full);
  CHECK(full.error().code == errc::io_failed);
  CHECK(full.error().what.find("--cache-max") != std::string::npos);
  CHECK(store->has(a));
  cache->cancelled(100);
  pins.release();
  CHECK_FALSE(cache->make_room(200));
  CHECK(store->has(a));
  auto moved = std::move(again);
  again = blob_pins{};
  CHECK_FALSE(cache->make_room(200));
  moved = blob_pins{};
  CHECK(cache->make_room(200));
  CHECK_FALSE(store->has(a));
}

TEST_CASE_FIXTURE(cache_fixture, "a blob can be pinned before it is here") {
  auto cache = open(200);
  const blob_ref expected{sha256_hex(std::string(100, 'x')), 100};
  const std::vector<blob_ref> needed{expected};
  auto pins = cache->pin(needed);
  store_inbox inbox{store, cache};
  REQUIRE(inbox.begin(expected));
  REQUIRE(inbox.append(expected.sha256, std::string(100, 'x')));
  REQUIRE(*inbox.finish(expected.sha256));
  CHECK(cache->counters().pinned_bytes == 100);
  CHECK_FALSE(cache->make_room(150));
  CHECK(store->has(expected));
}

TEST_CASE_FIXTURE(cache_fixture, "the order of use survives a restart") {
  auto a = put('a', 10);
  auto b = put('b', 20);
  auto c = put('c', 30);
  open(300)->used(a);
  auto cache = open(300);
  REQUIRE(cache->make_room(200));
  CHECK(store->has(a));
  CHECK_FALSE(store->has(b));
  CHECK_FALSE(store->has(c));
}

TEST_CASE_FIXTURE(
  cache_fixture, "opening deletes what is above the cap and what was left unfinished") {
  auto a = put('a', 10);
  auto b = put('b', 20);
  std::ofstream(store->root() / (sha256_hex("x") + ".1.in1.new")) << "half";
  std::ofstream(store->root() / "README") << "a stranger's";
  auto cache = open(150);
  CHECK_FALSE(store->has(a));
  CHECK(store->has(b));
  CHECK_FALSE(fs::exists(store->root() / (sha256_hex("x") + ".1.in1.new")));
  CHECK(fs::exists(store->root() / "README"));
  CHECK(cache->counters().blobs == 1);
  CHECK(blob_cache::open(store, 0).error().code == errc::invalid_input);
}

TEST_CASE_FIXTURE(cache_fixture, "what others put into the store counts after a refresh") {
  auto cache = open(250);
  auto a = put('a', 10);
  put('b', 20);
  put('c', 30);
  CHECK(cache->counters().blobs == 0);
  cache->refresh();
  CHECK(cache->counters().blobs == 2);
  CHECK(cache->counters().bytes == 200);
  CHECK_FALSE(store->has(a));
}

TEST_CASE_FIXTURE(
  cache_fixture, "a blob larger than the cap gets no room, and nothing is deleted for it") {
  auto a = put('a');
  auto cache = open(300);
  CHECK(cache->make_room(301).error().code == errc::io_failed);
  CHECK(store->has(a));
}

TEST_CASE_FIXTURE(cache_fixture, "room that is not used is given back") {
  auto cache = open(100);
  store_inbox inbox{store, cache};
  const blob_ref first{sha256_hex(std::string(100, 'x')), 100};
  const blob_ref second{sha256_hex(std::string(100, 'y')), 100};
  REQUIRE(inbox.begin(first));
  CHECK_FALSE(inbox.begin(second));
  inbox.drop(first.sha256);
  REQUIRE(inbox.begin(second));
  REQUIRE(inbox.append(second.sha256, std::string(100, 'x')));
  CHECK_FALSE(*inbox.finish(second.sha256));
  CHECK(cache->make_room(100));
}

TEST_CASE_FIXTURE(cache_fixture, "threads may pin, use and make room at the same time") {
  std::vector<blob_ref> all;
  for (char c = 'a'; c < 'k'; ++c)
    all.push_back(put(c));
  auto cache = open(1000);
  const std::vector<blob_ref> kept{all[0]};
  auto pins = cache->pin(kept);
  auto pinner = std::jthread([&] {
    for (int i = 0; i < 200; ++i) {
      auto mine = cache->pin(all);
      cache->used(all[1]);
    }
  });
  auto evicter = std::jthread([&] {
    for (int i = 0; i < 200; ++i)
      if (cache->make_room(100))
        cache->cancelled(100);
  });
  pinner.join();
  evicter.join();
  CHECK(store->has(all[0]));
  CHECK(cache->counters().pinned_bytes == 100);
}

TEST_SUITE_END();

} // namespace
