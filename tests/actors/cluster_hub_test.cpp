#include "tests/actors/cluster_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

TEST_CASE_FIXTURE(cluster, "a node that is ready brings its devices into the broker's table") {
  begin();
  auto n1 = join("n1");
  CHECK(n1->count(node_task_kind::quiet) == 1);
  CHECK(gpu().name == "n1/mock:h200#0");
  CHECK(gpu().phase == gpu_phase::free);
  CHECK(status("n1").state == "ready");
  CHECK(log->last("node_joined").data.find("\"node\":\"n1\"") != std::string::npos);
  CHECK(log->last("gpu_up").data.find("\"boot\":\"3.b1.1\"") != std::string::npos);
}

TEST_CASE_FIXTURE(cluster, "a device is not up before its node says that nothing works on it") {
  begin();
  auto n1 = node();
  n1->script = [](const node_task&) { return std::optional<node_answer>{}; };
  offer(n1, offer_of("n1"));
  say(n1, node_ready{});
  CHECK(gpu().phase == gpu_phase::absent);
  node_answer quiet;
  quiet.id = n1->last(node_task_kind::quiet).id;
  say(n1, quiet);
  CHECK(gpu().phase == gpu_phase::free);
}

TEST_CASE_FIXTURE(cluster, "a measurement goes to the node, and its outputs are judged there") {
  begin();
  auto n1 = join("n1");
  auto holder = make_fake_holder(*this);
  auto lease = granted(holder, 1);
  CHECK(lease.granted.token > 5000);
  auto measured = measure(holder, lease);
  const auto& task = n1->last(node_task_kind::measure);
  CHECK(task.device == "mock:h200#0");
  CHECK(task.measure.candidate.hash == "h1");
  auto got = answer(measured);
  REQUIRE(got);
  CHECK(got->token == lease.granted.token);
  REQUIRE(got->workloads.size() == 1);
  judge_request judge;
  judge.measured = *got;
  CHECK(answer(ask<evaluation>(hub, judge)));
  CHECK(n1->count(node_task_kind::judge) == 1);
  CHECK(local->judges.empty());
  CHECK(book->size() == 0);
  // Once judged they are gone.
  CHECK(refusal(ask<evaluation>(hub, judge)).code == errc::node_lost);
}

TEST_CASE_FIXTURE(cluster, "what was measured here is judged here") {
  begin();
  auto n1 = join("n1");
  judge_request judge;
  judge.measured.gpu = 77;
  judge.measured.output_folder = "/here";
  CHECK(answer(ask<evaluation>(hub, judge)));
  CHECK(local->judges.size() == 1);
  CHECK(n1->count(node_task_kind::judge) == 0);
}

TEST_CASE_FIXTURE(cluster, "with the node a measurement is lost as nobody's fault") {
  begin();
  auto n1 = join("n1");
  n1->script = silent_about(node_task_kind::measure);
  auto holder = make_fake_holder(*this);
  auto lease = granted(holder, 1);
  auto measured = measure(holder, lease);
  end(n1.agent, caf::exit_reason::remote_link_unreachable);
  auto why = refusal(measured);
  CHECK(why.code == errc::node_lost);
  REQUIRE(holder->ended.size() == 1);
  CHECK(holder->ended[0].reason.starts_with("node_lost: node '"));
  CHECK(gpu().phase == gpu_phase::lost);
  CHECK(status("n1").state == "lost");
  CHECK(log->count("node_lost") == 1);
  CHECK(book->size() == 0);
}

TEST_CASE_FIXTURE(cluster, "outputs that were on a lost node are measured anew, not judged") {
  begin();
  auto n1 = join("n1");
  auto holder = make_fake_holder(*this);
  auto got = *answer(measure(holder, granted(holder, 1)));
  end(n1.agent);
  judge_request judge;
  judge.measured = got;
  CHECK(refusal(ask<evaluation>(hub, judge)).code == errc::node_lost);
}

TEST_CASE_FIXTURE(
  cluster, "a node that returns has its devices under their names, with newer tokens") {
  begin();
  auto first = join("n1", "b1");
  auto holder = make_fake_holder(*this);
  auto before = granted(holder, 1);
  answer(measure(holder, before));
  end(first.agent);
  auto second = join("n1", "b2");
  advance(1s);
  CHECK(answer(ask<broker_snapshot>(broker, broker_query{}))->gpus.size() == 1);
  CHECK(gpu().phase == gpu_phase::free);
  CHECK(log->count("node_returned") == 1);
  auto after = granted(holder, 2);
  CHECK(after.granted.token > before.granted.token);
  CHECK(answer(measure(holder, after)));
  CHECK(second->count(node_task_kind::measure) == 1);
  CHECK(status("n1").returns == 1);
}

TEST_CASE_FIXTURE(
  cluster, "who is still heard after its stay is over is told to offer itself anew") {
  begin();
  auto n1 = join("n1");
  n1->script = silent_about(node_task_kind::measure);
  auto holder = make_fake_holder(*this);
  auto measured = measure(holder, granted(holder, 1));
  // The same start connects anew: its old stay is over.
  auto again = node();
  offer(again, offer_of("n1", "b1"));
  CHECK(again->welcomes.at(0).taken);
  CHECK(refusal(measured).code == errc::node_lost);
  auto late = passed_measurement(n1->last(node_task_kind::measure));
  late.id = n1->last(node_task_kind::measure).id;
  auto told = n1->farewells.size();
  say(n1, late);
  CHECK(n1->farewells.size() == told + 1);
}

TEST_CASE_FIXTURE(cluster, "answers that nobody asked for, of others or twice, change nothing") {
  begin();
  auto n1 = join("n1");
  auto n2 = join("n2");
  n1->script = n2->script = silent_about(node_task_kind::measure);
  auto holder = make_fake_holder(*this);
  auto measured = measure(holder, granted(holder, 1));
  auto& has = n1->count(node_task_kind::measure) == 1 ? n1 : n2;
  auto& other = n1->count(node_task_kind::measure) == 1 ? n2 : n1;
  auto right = passed_measurement(has->last(node_task_kind::measure));
  right.id = has->last(node_task_kind::measure).id;
  say(other, right); // Another node's task.
  CHECK_FALSE(answered(measured));
  auto unknown = right;
  unknown.id = 999'999;
  say(has, unknown);
  CHECK_FALSE(answered(measured));
  say(has, right);
  CHECK(answer(measured));
  say(has, right);
  CHECK(status("n1").state == "ready");
  CHECK(status("n2").state == "ready");
}

TEST_CASE_FIXTURE(cluster, "a task without an answer ends the stay some time after its deadline") {
  config.times.compile = 1min;
  config.compile_slots_here = 0;
  begin();
  auto n1 = join("n1");
  n1->script = [](const node_task&) { return std::optional<node_answer>{}; };
  auto compiled = ask<compiled_candidate>(hub, compile_of("h1"));
  advance(89s);
  CHECK(status("n1").state == "ready");
  advance(2s);
  CHECK(status("n1").state == "lost");
  CHECK(n1->farewells.size() == 1);
  CHECK_FALSE(answered(compiled));
  auto n2 = join("n2");
  CHECK(answer(compiled));
  CHECK(n2->count(node_task_kind::compile) == 1);
}
