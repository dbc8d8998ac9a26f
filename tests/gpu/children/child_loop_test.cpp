#include "tests/gpu/children/child_fixture.hpp"

#include <algorithm>
#include <csignal>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <poll.h>
#include <unistd.h>

using namespace gristmill;
using namespace std::chrono_literals;

TEST_CASE_FIXTURE(child_fixture, "a child that says done is done, with its lines in order") {
  const auto answer = run(fake("good"));
  CHECK(answer.end == child_end::done);
  CHECK(answer.status == 0);
  REQUIRE(answer.lines.size() == 4);
  CHECK(lines_of(answer, child_line_kind::hello)[0].at("program") == "fake-child");
  CHECK(lines_of(answer, child_line_kind::sample)[0].at("answer") == 42);
  CHECK(parse_child_line(answer.lines[3], nonce)->kind == child_line_kind::done);
  CHECK(answer.wall > 0ns);
}

TEST_CASE_FIXTURE(child_fixture, "without done a child has failed, whatever its exit status") {
  const auto quiet = run(fake("no_done"));
  CHECK(quiet.end == child_end::no_done);
  CHECK(quiet.status == 0);
  const auto killed = run(fake("killed"));
  CHECK(killed.end == child_end::no_done);
  CHECK(killed.status == 128 + SIGKILL);
}

TEST_CASE_FIXTURE(child_fixture, "with done a child has not failed, and its exit status is kept") {
  const auto answer = run(fake("done_status_3"));
  CHECK(answer.end == child_end::done);
  CHECK(answer.status == 3);
}

TEST_CASE_FIXTURE(
  child_fixture, "a child past its deadline is killed, though it gives signs of life") {
  auto request = fake("hang");
  request.deadline = 300ms;
  const auto answer = run(request);
  CHECK(answer.end == child_end::deadline);
  CHECK(answer.status == 128 + SIGKILL);
  CHECK(answer.wall >= 300ms);
}

TEST_CASE_FIXTURE(child_fixture, "a child that goes silent is killed, one that beats is not") {
  auto mute = fake("mute");
  mute.silence_limit = 400ms;
  CHECK(run(mute).end == child_end::silent);
  // Heartbeats come every 250 ms, so only the deadline ends this one.
  auto beating = fake("hang");
  beating.silence_limit = 1s;
  beating.deadline = 1500ms;
  CHECK(run(beating).end == child_end::deadline);
}

TEST_CASE_FIXTURE(child_fixture, "heartbeats are no lines of the answer") {
  auto request = fake("hang");
  request.deadline = 800ms;
  const auto answer = run(request);
  REQUIRE(answer.lines.size() == 1);
  CHECK(parse_child_line(answer.lines[0], nonce)->kind == child_line_kind::hello);
}

TEST_CASE_FIXTURE(child_fixture, "a child that is cancelled is killed and answered") {
  auto request = fake("hang");
  auto answer = start(request);
  loop.cancel(request.id);
  CHECK(answer_of(answer).end == child_end::cancelled);
}

TEST_CASE_FIXTURE(
  child_fixture, "a child that is terminated gets SIGTERM, and its end is its own") {
  auto request = fake("hang");
  auto answer = start(request);
  loop.terminate(request.id);
  auto ended = answer_of(answer);
  // Still in the queue, it is taken out of it.
  if (ended.end != child_end::cancelled) {
    CHECK(ended.end == child_end::no_done);
    CHECK(ended.status == 128 + 15);
  }
  CHECK_FALSE(ended.group_left);
  loop.terminate(4711);
  CHECK(run(fake("good")).end == child_end::done);
}

TEST_CASE_FIXTURE(child_fixture, "to cancel a child that does not exist is no error") {
  loop.cancel(4711);
  CHECK(run(fake("good")).end == child_end::done);
}

TEST_CASE_FIXTURE(child_fixture, "a line with another nonce ends the child") {
  const auto answer = run(fake("wrong_nonce"));
  CHECK(answer.end == child_end::protocol_error);
  CHECK(answer.lines.empty());
  CHECK(answer.log.find("nonce") != std::string::npos);
}

TEST_CASE_FIXTURE(child_fixture, "a line that is no JSON ends the child") {
  CHECK(run(fake("not_json")).end == child_end::protocol_error);
}

TEST_CASE_FIXTURE(child_fixture, "a line of more than 1 MiB ends the child") {
  CHECK(run(fake("long_line")).end == child_end::protocol_error);
}

TEST_CASE_FIXTURE(child_fixture, "lines of more than 1 MiB together end the child") {
  const auto answer = run(fake("many_lines"));
  CHECK(answer.end == child_end::protocol_error);
  size_t bytes = 0;
  for (const auto& line : answer.lines)
    bytes += line.size() + 1;
  CHECK(bytes <= child_line_bytes_max);
}

TEST_CASE_FIXTURE(child_fixture, "a child that talks after done broke the protocol") {
  CHECK(run(fake("talks_after_done")).end == child_end::protocol_error);
}

TEST_CASE_FIXTURE(child_fixture, "only the first 64 KiB of what a child prints are kept") {
  const auto answer = run(fake("loud"));
  CHECK(answer.end == child_end::done);
  CHECK(answer.log.size() == 64 * 1024);
}

TEST_CASE_FIXTURE(child_fixture, "a program that does not exist could not start") {
  auto request = fake("good");
  request.argv[0] = "gristmill-no-such-program";
  const auto answer = run(request);
  CHECK(answer.end == child_end::could_not_start);
  CHECK(answer.log.find("gristmill-no-such-program") != std::string::npos);
}

TEST_CASE_FIXTURE(child_fixture, "a job directory that does not exist means could not start") {
  auto request = fake("good");
  request.job_directory += "/nowhere";
  CHECK(run(request).end == child_end::could_not_start);
}

TEST_CASE("without a jail nothing starts") {
  child_loop_limits limits;
  limits.program_folder = "/nowhere";
  child_loop loop(limits);
  std::promise<child_result> promise;
  child_request request;
  request.argv = {"gristmill-runner"};
  request.job_directory = "/tmp";
  request.nonce = child_fixture::nonce;
  request.deadline = 1s;
  REQUIRE(loop.submit(request, [&](child_result result) { promise.set_value(result); }));
  CHECK(promise.get_future().get().end == child_end::could_not_start);
}

TEST_CASE("a profile of which none may run is refused, not left waiting for ever") {
  child_loop_limits limits;
  limits.program_folder = program_folder();
  limits.parallel = {1, 1, 1, 0};
  child_loop loop(limits);
  child_request request;
  request.profile = child_profile::judge;
  request.argv = {"gristmill-judge"};
  request.job_directory = "/tmp";
  request.nonce = child_fixture::nonce;
  request.deadline = 1s;
  auto accepted = loop.submit(request, [](const child_result&) {});
  REQUIRE_FALSE(accepted);
  CHECK(accepted.error().code == errc::invalid_input);
}

TEST_CASE_FIXTURE(child_fixture, "the queue is bounded, and a full one says so") {
  std::vector<std::future<child_result>> answers;
  std::vector<uint64_t> ids;
  // Two run and four wait. The loop may not have taken the first two out of the queue yet.
  result<void> refused;
  for (int i = 0; i < 20 && refused; ++i) {
    auto request = fake("hang");
    ids.push_back(request.id);
    auto promise = std::make_shared<std::promise<child_result>>();
    auto answer = promise->get_future();
    refused = loop.submit(
      request, [promise](child_result result) { promise->set_value(std::move(result)); });
    if (refused)
      answers.push_back(std::move(answer));
  }
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::queue_full);
  CHECK(answers.size() >= 4);
  CHECK(answers.size() <= 6);
  for (uint64_t id : ids)
    loop.cancel(id);
  for (auto& answer : answers)
    CHECK(answer_of(answer).end == child_end::cancelled);
}

TEST_CASE_FIXTURE(child_fixture, "children of one profile wait for each other, others do not") {
  auto first = fake("hang"), second = fake("hang"), third = fake("good"), other = fake("good");
  other.profile = child_profile::judge;
  auto first_answer = start(first), second_answer = start(second), third_answer = start(third);
  CHECK(run(other).end == child_end::done);
  CHECK(third_answer.wait_for(0s) != std::future_status::ready);
  loop.cancel(first.id);
  CHECK(answer_of(first_answer).end == child_end::cancelled);
  CHECK(answer_of(third_answer).end == child_end::done);
  loop.cancel(second.id);
  CHECK(answer_of(second_answer).end == child_end::cancelled);
}

TEST_CASE_FIXTURE(
  child_fixture, "an id that is in use is refused, and free again after the answer") {
  auto request = fake("hang");
  auto answer = start(request);
  auto again = loop.submit(request, [](const child_result&) {});
  REQUIRE_FALSE(again);
  CHECK(again.error().code == errc::invalid_input);
  loop.cancel(request.id);
  answer_of(answer);
  request.argv[1] = "good";
  CHECK(run(request).end == child_end::done);
}

TEST_CASE_FIXTURE(
  child_fixture, "a request without a command, nonce, folder or deadline is refused") {
  for (int missing = 0; missing < 4; ++missing) {
    CAPTURE(missing);
    auto request = fake("good");
    if (missing == 0)
      request.argv.clear();
    if (missing == 1)
      request.nonce.clear();
    if (missing == 2)
      request.job_directory.clear();
    if (missing == 3)
      request.deadline = 0ns;
    auto accepted = loop.submit(request, [](const child_result&) {});
    REQUIRE_FALSE(accepted);
    CHECK(accepted.error().code == errc::invalid_input);
  }
}

TEST_CASE_FIXTURE(child_fixture, "stop kills what runs, answers everybody and takes nothing more") {
  std::vector<std::future<child_result>> answers;
  for (int i = 0; i < 4; ++i)
    answers.push_back(start(fake("hang")));
  loop.stop();
  for (auto& answer : answers)
    CHECK(answer_of(answer).end == child_end::cancelled);
  auto refused = loop.submit(fake("good"), [](const child_result&) {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::shutting_down);
  loop.stop(); // A second time does no harm.
}

TEST_CASE_FIXTURE(child_fixture, "when the callback is called no process of the group is left") {
  auto request = fake("leaves_process");
  // Numbers of processes differ inside a jail; this marks them.
  request.argv.push_back(request.job_directory);
  const auto answer = run(request);
  CHECK(answer.end == child_end::done);
  CHECK(lines_of(answer, child_line_kind::sample).at(0).at("left").get<int>() > 0);
  CHECK(processes_with(request.job_directory).empty());
  pid_t group = -1;
  std::ifstream(request.job_directory + "/pgid") >> group;
  REQUIRE(group > 1);
  CHECK(kill(-group, 0) == -1);
}

TEST_CASE_FIXTURE(child_fixture, "a callback may submit the next child") {
  auto first = fake("good"), second = fake("good");
  std::promise<child_result> promise;
  REQUIRE(loop.submit(first, [&](const child_result&) {
    (void)loop.submit(second, [&](child_result result) { promise.set_value(result); });
  }));
  auto answer = promise.get_future();
  CHECK(answer_of(answer).end == child_end::done);
}

TEST_CASE_FIXTURE(child_fixture, "the job directory names the process group") {
  auto request = fake("hang");
  auto answer = start(request);
  pid_t group = -1;
  const auto end = std::chrono::steady_clock::now() + patience;
  while (group < 0 && std::chrono::steady_clock::now() < end) {
    std::ifstream(request.job_directory + "/pgid") >> group;
    poll(nullptr, 0, 5);
  }
  REQUIRE(group > 1);
  CHECK(getpgid(group) == group);
  CHECK(kill(-group, 0) == 0);
  loop.cancel(request.id);
  CHECK(answer_of(answer).end == child_end::cancelled);
  CHECK(kill(-group, 0) == -1);
}
