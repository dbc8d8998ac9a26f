#include "actors/child_front.hpp"
#include "tests/support/actor_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;

namespace {

/// Starts nothing; the test calls back.
class scripted_starter final : public child_starter {
public:
  result<void> submit(child_request request, std::function<void(child_result)> answer) override {
    if (refuses)
      return tl::unexpected<failure>(*refuses);
    started.push_back(request);
    open[request.id] = std::move(answer);
    return {};
  }
  void cancel(uint64_t id) override { cancelled.push_back(id); }
  void terminate(uint64_t id) override { terminated.push_back(id); }

  void end(uint64_t id, child_end how, bool group_left = false) {
    auto call = std::move(open[id]);
    open.erase(id);
    child_result result;
    result.id = id;
    result.end = how;
    result.group_left = group_left;
    call(std::move(result));
  }

  std::optional<failure> refuses;
  std::vector<child_request> started;
  std::vector<uint64_t> cancelled;
  std::vector<uint64_t> terminated;
  std::map<uint64_t, std::function<void(child_result)>> open;
};

child_request child(uint64_t id) {
  child_request out;
  out.id = id;
  out.argv = {"gristmill-runner"};
  out.nonce = "0123456789abcdef";
  return out;
}

struct one_front : actor_fixture {
  scripted_starter starter;
  child_front_actor front = spawn<child_front>(child_front_config{&starter, 2});
  ~one_front() {
    // The callbacks hold the front's handle, as those of a loop do until it is stopped.
    end(front); // Before the starter that it uses.
    starter.open.clear();
  }
};

TEST_SUITE_BEGIN("child front");

TEST_CASE_FIXTURE(one_front, "whoever asks gets the result of its own child") {
  auto first = ask<child_result>(front, child(1));
  auto second = ask<child_result>(front, child(2));
  REQUIRE(starter.started.size() == 2);
  starter.end(2, child_end::no_done);
  settle();
  CHECK_FALSE(answered(first));
  CHECK(answer(second)->end == child_end::no_done);
  starter.end(1, child_end::done);
  settle();
  CHECK(answer(first)->end == child_end::done);
}

TEST_CASE_FIXTURE(one_front, "more open children than allowed are refused with queue_full") {
  auto first = ask<child_result>(front, child(1));
  auto second = ask<child_result>(front, child(2));
  CHECK(refusal(ask<child_result>(front, child(3))).code == errc::queue_full);
  starter.end(1, child_end::done);
  settle();
  CHECK_FALSE(answered(ask<child_result>(front, child(3))));
  CHECK(starter.started.size() == 3);
}

TEST_CASE_FIXTURE(one_front, "an id that is open already is refused, and the first child goes on") {
  auto first = ask<child_result>(front, child(1));
  CHECK(refusal(ask<child_result>(front, child(1))).code == errc::invalid_input);
  starter.end(1, child_end::done);
  settle();
  CHECK(answered(first));
}

TEST_CASE_FIXTURE(one_front, "what the loop refuses is passed on as it is") {
  starter.refuses = failure{errc::queue_full, "256 children wait"};
  CHECK(refusal(ask<child_result>(front, child(1))) == *starter.refuses);
  starter.refuses.reset();
  CHECK_FALSE(answered(ask<child_result>(front, child(1))));
}

TEST_CASE_FIXTURE(
  one_front, "a cancelled child answers when it has ended, an unknown one is ignored") {
  auto first = ask<child_result>(front, child(1));
  tell(front, child_cancel{7});
  CHECK(starter.cancelled.empty());
  tell(front, child_cancel{1});
  CHECK(starter.cancelled == std::vector<uint64_t>{1});
  CHECK_FALSE(answered(first));
  starter.end(1, child_end::cancelled);
  settle();
  CHECK(answer(first)->end == child_end::cancelled);
}

TEST_CASE_FIXTURE(one_front, "a child that is ended gently is only asked to end") {
  auto first = ask<child_result>(front, child(1));
  tell(front, child_cancel{1, true});
  CHECK(starter.terminated == std::vector<uint64_t>{1});
  CHECK(starter.cancelled.empty());
}

TEST_CASE_FIXTURE(
  one_front, "a device is quiet when its last child has ended, whoever asked for it") {
  auto on_device = child(1);
  on_device.device = "mock:h200#0";
  CHECK(answered(ask<device_quiet>(front, device_quiet_query{"mock:h200#0"})));
  ask<child_result>(front, on_device);
  auto waits = ask<device_quiet>(front, device_quiet_query{"mock:h200#0"});
  CHECK_FALSE(answered(waits));
  CHECK(answered(ask<device_quiet>(front, device_quiet_query{"mock:h200#1"})));
  starter.end(1, child_end::cancelled);
  settle();
  CHECK(answer(waits)->device == "mock:h200#0");
}

TEST_CASE_FIXTURE(one_front, "a device whose processes outlived SIGKILL is never quiet again") {
  auto on_device = child(1);
  on_device.device = "mock:h200#0";
  auto asked = ask<child_result>(front, on_device);
  starter.end(1, child_end::no_done, true);
  settle();
  CHECK(answer(asked)->group_left);
  CHECK_FALSE(answered(ask<device_quiet>(front, device_quiet_query{"mock:h200#0"})));
}

TEST_CASE_FIXTURE(one_front, "a result that nobody waits for is ignored") {
  child_result stray;
  stray.id = 9;
  tell(front, stray);
  CHECK(alive(front));
}

TEST_CASE_FIXTURE(one_front, "at its end every child is cancelled and everybody is answered") {
  auto first = ask<child_result>(front, child(1));
  auto second = ask<child_result>(front, child(2));
  end(front);
  CHECK(refusal(first).code == errc::shutting_down);
  CHECK(refusal(second).code == errc::shutting_down);
  CHECK(starter.cancelled == std::vector<uint64_t>{1, 2});
}

TEST_SUITE_END();

} // namespace
