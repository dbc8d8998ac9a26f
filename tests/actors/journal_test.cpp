#include "actors/journal.hpp"
#include "tests/support/actor_fixture.hpp"

#include <filesystem>
#include <unistd.h>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

struct sink_memory {
  struct commit {
    size_t events = 0;
    durability how = durability::relaxed;
    caf::timespan when{0};
  };
  std::vector<commit> commits;
  uint64_t seq = 0;
  std::optional<failure> fails;
  bool closed = false;
};

/// Refuses an event of the kind "malformed", as the log refuses data that is no JSON.
class scripted_sink final : public event_sink {
public:
  scripted_sink(std::shared_ptr<sink_memory> memory, std::function<caf::timespan()> now)
    : memory_(std::move(memory)), now_(std::move(now)) {}
  ~scripted_sink() override { memory_->closed = true; }

  result<uint64_t> append(std::span<const event> events, durability how) override {
    if (memory_->fails)
      return tl::unexpected<failure>(*memory_->fails);
    for (const auto& e : events)
      if (e.kind == "malformed")
        return fail(errc::invalid_input, "data is no JSON object");
    memory_->commits.push_back({events.size(), how, now_()});
    memory_->seq += events.size();
    return memory_->seq;
  }

private:
  std::shared_ptr<sink_memory> memory_;
  std::function<caf::timespan()> now_;
};

journal_append events_of(size_t count, durability how, const char* kind = "e") {
  return {std::vector<event>(count, event{.kind = kind}), how};
}

struct one_journal : actor_fixture {
  std::shared_ptr<sink_memory> sink = std::make_shared<sink_memory>();
  journal_actor log = start_one();

  journal_actor start_one() {
    journal_config config;
    config.sink = std::make_unique<scripted_sink>(sink, [this] { return now(); });
    config.waiting_max = 100;
    return spawn<journal>(std::move(config));
  }
};

TEST_SUITE_BEGIN("journal");

TEST_CASE_FIXTURE(one_journal, "a barrier is acknowledged within 5 ms, after the commit") {
  auto kept = ask<journal_ack>(log, events_of(2, durability::barrier));
  CHECK_FALSE(answered(kept));
  CHECK(sink->commits.empty());
  advance(5ms);
  REQUIRE(answered(kept));
  CHECK(answer(kept)->seq == 2);
  REQUIRE(sink->commits.size() == 1);
  CHECK(sink->commits[0].how == durability::barrier);
}

TEST_CASE_FIXTURE(
  one_journal, "a relaxed append is acknowledged with its commit, some time later") {
  auto noted = ask<journal_ack>(log, events_of(1, durability::relaxed));
  advance(5ms);
  CHECK_FALSE(answered(noted));
  advance(15ms);
  CHECK(answer(noted)->seq == 1);
  CHECK(sink->commits[0].how == durability::relaxed);
}

TEST_CASE_FIXTURE(one_journal, "one commit serves all who wait, and each hears its own number") {
  auto first = ask<journal_ack>(log, events_of(3, durability::relaxed));
  auto second = ask<journal_ack>(log, events_of(1, durability::barrier));
  auto third = ask<journal_ack>(log, events_of(2, durability::barrier));
  advance(2ms);
  CHECK(answer(first)->seq == 3);
  CHECK(answer(second)->seq == 4);
  CHECK(answer(third)->seq == 6);
  CHECK(sink->commits.size() == 1);
  // The timer of the relaxed append is stale now.
  auto later = ask<journal_ack>(log, events_of(1, durability::relaxed));
  advance(18ms);
  CHECK_FALSE(answered(later));
  advance(2ms);
  CHECK(answered(later));
}

TEST_CASE_FIXTURE(one_journal, "a full batch is committed without waiting for the timer") {
  auto noted = ask<journal_ack>(log, events_of(100, durability::relaxed));
  CHECK(answer(noted)->seq == 100);
}

TEST_CASE_FIXTURE(one_journal, "an append without events is acknowledged like any other") {
  auto nothing = ask<journal_ack>(log, journal_append{});
  auto kept = ask<journal_ack>(log, events_of(1, durability::barrier));
  advance(2ms);
  CHECK(answer(nothing)->seq == 0);
  CHECK(answer(kept)->seq == 1);
}

TEST_CASE_FIXTURE(one_journal, "a malformed event is refused; the others of its batch are stored") {
  auto good = ask<journal_ack>(log, events_of(1, durability::barrier));
  auto bad = ask<journal_ack>(log, events_of(1, durability::barrier, "malformed"));
  auto also_good = ask<journal_ack>(log, events_of(1, durability::barrier));
  advance(2ms);
  CHECK(answer(good)->seq == 1);
  CHECK(refusal(bad).code == errc::invalid_input);
  CHECK(answer(also_good)->seq == 2);
  CHECK(alive(log));
}

TEST_CASE_FIXTURE(one_journal, "a log that cannot be written ends the journal with io_failed") {
  sink->fails = failure{errc::io_failed, "disk full"};
  auto first = ask<journal_ack>(log, events_of(1, durability::barrier));
  auto second = ask<journal_ack>(log, events_of(1, durability::relaxed));
  advance(2ms);
  CHECK(refusal(first) == failure{errc::io_failed, "disk full"});
  CHECK(refusal(second).code == errc::io_failed);
  CHECK_FALSE(alive(log));
  CHECK(sink->closed);
}

TEST_CASE_FIXTURE(one_journal, "at its end the journal stores and acknowledges what waits") {
  auto noted = ask<journal_ack>(log, events_of(1, durability::relaxed));
  end(log);
  CHECK(answer(noted)->seq == 1);
  CHECK(sink->seq == 1);
  CHECK(sink->closed);
}

TEST_CASE_FIXTURE(actor_fixture, "events reach the log on disk") {
  auto folder = std::filesystem::temp_directory_path()
    / ("gristmill-journal-test-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  auto file = folder / "run.db";
  {
    auto opened = event_log::open(file, event_log::mode::create);
    REQUIRE(opened);
    journal_config config;
    config.sink = make_event_sink(std::move(*opened), [] { return int64_t{42}; });
    auto log = spawn<journal>(std::move(config));
    auto kept = ask<journal_ack>(log, events_of(2, durability::barrier, "seen"));
    advance(2ms);
    CHECK(answer(kept)->seq == 2);
    end(log);
  }
  auto opened = event_log::open(file, event_log::mode::read);
  REQUIRE(opened);
  auto events = opened->read(1, 10);
  REQUIRE(events);
  REQUIRE(events->size() == 2);
  CHECK(events->back().kind == "seen");
  CHECK(events->back().wall == 42);
  std::filesystem::remove_all(folder);
}

TEST_SUITE_END();

} // namespace
