#include "actors/blob_keeper.hpp"

#include "actors/problem_blobs.hpp"
#include "tests/journal/temporary_folder.hpp"
#include "tests/support/actor_fixture.hpp"

#include <fstream>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

/// A keeper that remembers what it was asked for and answers nothing by itself.
class silent_keeper final : public blob_keeper_actor::base {
public:
  silent_keeper(caf::actor_config& config, std::shared_ptr<std::vector<blob_pull>> pulls)
    : blob_keeper_actor::base(config), pulls_(std::move(pulls)) {}

  behavior_type make_behavior() override {
    return {
      [](const blob_fetch&, const caf::strong_actor_ptr&) { return blobs_fetched{}; },
      [this](const blob_pull& what) { pulls_->push_back(what); },
      [](const blob_piece&) {},
      [](const tick&) {},
    };
  }

private:
  std::shared_ptr<std::vector<blob_pull>> pulls_;
};

struct two_keepers : actor_fixture {
  temporary_folder folder;
  std::shared_ptr<blob_store> here = open_store("here");
  std::shared_ptr<blob_store> there = open_store("there");
  std::shared_ptr<blob_traffic> traffic = std::make_shared<blob_traffic>();
  blob_keeper_actor mine = start(here, traffic);
  blob_keeper_actor theirs = start(there, nullptr);

  ~two_keepers() { end_all(); }

  std::shared_ptr<blob_store> open_store(const char* name) {
    return std::make_shared<blob_store>(*blob_store::open(folder.path / name));
  }

  blob_keeper_actor start(std::shared_ptr<blob_store> store, std::shared_ptr<blob_traffic> counts) {
    blob_keeper_config config;
    config.store = std::move(store);
    config.traffic = std::move(counts);
    return spawn<blob_keeper>(std::move(config));
  }

  reply<blobs_fetched> fetch(std::vector<blob_ref> blobs, const blob_keeper_actor& from,
    std::chrono::nanoseconds deadline = 0ns) {
    return ask<blobs_fetched>(
      mine, blob_fetch{std::move(blobs), deadline}, caf::actor_cast<caf::strong_actor_ptr>(from));
  }
};

TEST_SUITE_BEGIN("blob keeper");

TEST_CASE_FIXTURE(two_keepers, "a keeper brings blobs from its peer, and both sides count") {
  const auto large = *there->put(std::string(3 * blob_piece_max + 17, 'x'));
  const auto small = *there->put("kernel");
  auto both = fetch({large, {}, small}, theirs);
  CHECK(answer(both)->bytes == large.bytes + small.bytes);
  CHECK(*here->get(large) == std::string(large.bytes, 'x'));
  CHECK(*here->get(small) == "kernel");
  CHECK(answer(fetch({small}, theirs))->bytes == 0);
  const auto other = *here->put("the other way");
  auto back = ask<blobs_fetched>(
    theirs, blob_fetch{{other}, 0ns}, caf::actor_cast<caf::strong_actor_ptr>(mine));
  CHECK(answer(back)->bytes == other.bytes);
  CHECK(traffic->with(theirs.address()).in == large.bytes + small.bytes);
  CHECK(traffic->with(theirs.address()).out == other.bytes);
  traffic->forget(theirs.address());
  CHECK(traffic->with(theirs.address()).in == 0);
  CHECK(traffic->in_all().in == large.bytes + small.bytes);
}

TEST_CASE_FIXTURE(
  two_keepers, "what the peer does not have is not found, and no file is named but by hash") {
  CHECK(refusal(fetch({{std::string(64, '0'), 5}}, theirs)).code == errc::not_found);
  CHECK(refusal(fetch({{"../../etc/passwd", 5}}, theirs)).code == errc::invalid_input);
  CHECK(refusal(fetch({{std::string(64, '0'), uint64_t{1} << 40}}, theirs)).code == errc::refused);
  auto nobody =
    ask<blobs_fetched>(mine, blob_fetch{{{std::string(64, '0'), 5}}, 0ns}, caf::strong_actor_ptr{});
  CHECK(refusal(nobody).code == errc::node_lost);
}

TEST_CASE_FIXTURE(
  two_keepers, "a peer that dies ends its fetches with node_lost, and one that is dead at once") {
  auto pulls = std::make_shared<std::vector<blob_pull>>();
  auto mute = spawn<silent_keeper>(pulls);
  const auto ref = *there->put("content");
  auto asked = fetch({ref}, mute);
  CHECK(pulls->size() == 1);
  CHECK_FALSE(answered(asked));
  end(mute, caf::exit_reason::kill);
  CHECK(refusal(asked).code == errc::node_lost);
  CHECK(refusal(fetch({ref}, mute)).code == errc::node_lost);
  CHECK(answer(fetch({ref}, theirs))->bytes == ref.bytes);
}

TEST_CASE_FIXTURE(two_keepers, "a peer that never answers ends the fetch at a deadline") {
  auto pulls = std::make_shared<std::vector<blob_pull>>();
  auto mute = spawn<silent_keeper>(pulls);
  const auto ref = *there->put("content");
  auto brief = fetch({ref}, mute, 5s);
  advance(4s);
  CHECK_FALSE(answered(brief));
  advance(1s);
  CHECK(refusal(brief).code == errc::timed_out);
  auto patient = fetch({ref}, mute, 1h);
  advance(29s);
  CHECK_FALSE(answered(patient));
  advance(1s);
  CHECK(refusal(patient).code == errc::timed_out);
}

TEST_CASE_FIXTURE(two_keepers, "a piece from a stranger changes nothing") {
  auto pulls = std::make_shared<std::vector<blob_pull>>();
  auto mute = spawn<silent_keeper>(pulls);
  const auto ref = *there->put("content");
  auto asked = fetch({ref}, mute);
  tell(mine, blob_piece{ref.sha256, 0, 7, "CONTENT", {}});
  auto stranger = spawn<silent_keeper>(pulls);
  self_of(stranger)->send(mine, blob_piece{ref.sha256, 0, 7, "CONTENT", {}});
  settle();
  CHECK_FALSE(answered(asked));
  CHECK_FALSE(here->has(ref));
  tell(mine, blob_pull{ref.sha256, 0, 7});
  CHECK(alive(mine));
}

TEST_CASE_FIXTURE(
  two_keepers, "at its end a keeper answers who waits and leaves nothing unfinished") {
  auto pulls = std::make_shared<std::vector<blob_pull>>();
  auto mute = spawn<silent_keeper>(pulls);
  const auto ref = *there->put(std::string(blob_piece_max + 1, 'x'));
  auto asked = fetch({ref}, mute);
  end(mine);
  CHECK(refusal(asked).code == errc::shutting_down);
  CHECK(std::filesystem::is_empty(here->root()));
}

TEST_CASE_FIXTURE(
  two_keepers, "a keeper with a cache deletes what is old to make room, never what is pinned") {
  auto small = open_store("small");
  blob_keeper_config config;
  config.store = small;
  config.cache = *blob_cache::open(small, 250);
  auto cached = spawn<blob_keeper>(config);
  std::vector<blob_ref> refs;
  for (char c = 'a'; c < 'e'; ++c)
    refs.push_back(*there->put(std::string(100, c)));
  auto bring = [&](size_t n) {
    return ask<blobs_fetched>(
      cached, blob_fetch{{refs[n]}, 0ns}, caf::actor_cast<caf::strong_actor_ptr>(theirs));
  };
  const std::vector<blob_ref> first{refs[0]};
  auto pins = config.cache->pin(first);
  for (size_t n = 0; n < 3; ++n)
    CHECK(answer(bring(n))->bytes == 100);
  CHECK(small->has(refs[0]));
  CHECK_FALSE(small->has(refs[1]));
  CHECK(small->has(refs[2]));
  const std::vector<blob_ref> third{refs[2]};
  auto more = config.cache->pin(third);
  CHECK(refusal(bring(3)).code == errc::io_failed);
  more.release();
  CHECK(answer(bring(3))->bytes == 100);
  // What another part of the node puts into the store is counted in, and makes others go.
  small->put(std::string(100, 'z'));
  advance(config.refresh_every);
  advance(config.refresh_every);
  CHECK(config.cache->counters().bytes == 200);
  CHECK(small->has(refs[0]));
}

TEST_CASE_FIXTURE(two_keepers, "a problem folder travels as blobs and loads as the same problem") {
  const auto original = folder.path / "an op";
  std::filesystem::create_directories(original);
  std::ofstream(original / "definition.json") << R"({"name":"op","axes":{"N":{}},
  "inputs":{"x":{"shape":["N"],"dtype":"float32"}},
  "outputs":{"y":{"shape":["N"],"dtype":"float32"}},"reference":"def run(x): return x"})";
  std::ofstream(original / "workload.jsonl") << R"({"uuid":"u","axes":{"N":4},"inputs":{}})";
  const auto loaded = *load_problem(original);
  const auto listing = *store_problem(*there, loaded);
  REQUIRE(listing.files.size() == 2);
  CHECK(restore_problem(*here, folder.path / "node", listing).error().code == errc::not_found);
  CHECK(answer(fetch(blobs_of(listing), theirs))->bytes > 0);
  const auto copy = restore_problem(*here, folder.path / "node", listing);
  REQUIRE(copy);
  CHECK(copy->name == "an op");
  CHECK(copy->def == loaded.def);
  CHECK(copy->workloads == loaded.workloads);
}

TEST_SUITE_END();

} // namespace
