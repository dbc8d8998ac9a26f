#include "actors/cluster_words.hpp"
#include "tests/actors/cluster_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

TEST_CASE_FIXTURE(
  cluster, "a compile that is lost with its node is made elsewhere; code comes here first") {
  config.compile_slots_here = 0;
  begin();
  auto n1 = join("n1");
  n1->script = [](const node_task&) { return std::optional<node_answer>{}; };
  auto compiled = ask<compiled_candidate>(hub, compile_of("h1"));
  CHECK(n1->count(node_task_kind::compile) == 1);
  auto n2 = join("n2");
  CHECK_FALSE(answered(compiled));
  end(n1.agent);
  CHECK(answer(compiled)->candidate == "h1");
  CHECK(n2->count(node_task_kind::compile) == 1);
  REQUIRE(keeper->fetches.size() == 1);
  CHECK(keeper->fetches[0].blobs.at(0).sha256 == std::string(64, 'c'));
  CHECK(log->count("compiled") == 1);
}

TEST_CASE_FIXTURE(
  cluster, "a node that cannot compile is passed over, and let go after the third time") {
  config.compile_slots_here = 0;
  begin();
  auto n1 = join("n1");
  auto n2 = join("n2");
  n1->script = failing_at(node_task_kind::compile, errc::io_failed, "the disk is full");
  for (size_t i = 1; i <= 3; ++i) {
    CHECK(status("n1").state == "ready");
    CHECK(answer(ask<compiled_candidate>(hub, compile_of("a" + std::to_string(i)))));
    CHECK(n1->count(node_task_kind::compile) == i);
    CHECK(n2->count(node_task_kind::compile) == i);
  }
  CHECK(status("n1").state == "lost");
  CHECK(status("n1").reason.find("the disk is full") != std::string::npos);
  CHECK(status("n1").tasks_failed == 3);
}

TEST_CASE_FIXTURE(cluster, "too many compiles are refused instead of piled up") {
  config.compile_slots_here = 0;
  config.compiles_waiting_max = 2;
  begin();
  ask<compiled_candidate>(hub, compile_of("a"));
  ask<compiled_candidate>(hub, compile_of("b"));
  CHECK(refusal(ask<compiled_candidate>(hub, compile_of("c"))).code == errc::queue_full);
}

TEST_CASE_FIXTURE(
  cluster, "a problem is prepared here while there is no node, and on every node else") {
  begin();
  auto first = ask<prepared_problem>(hub, prepare_request{"softmax", "", {}});
  CHECK(answer(first)->reason == "here");
  auto n1 = join("n1");
  CHECK(n1->welcomes[0].prepared == std::vector<std::string>{"softmax"});
  CHECK(n1->count(node_task_kind::prepare) == 0);
  auto n2 = join("n2");
  auto second = ask<prepared_problem>(hub, prepare_request{"rmsnorm", "", {}});
  CHECK(answer(second)->reason == "there");
  CHECK(n1->count(node_task_kind::prepare) == 1);
  CHECK(n2->count(node_task_kind::prepare) == 1);
  CHECK(local->prepares.size() == 1);
}

TEST_CASE_FIXTURE(
  cluster, "a preparation is answered when all have answered, and without those that are lost") {
  begin();
  auto n1 = join("n1");
  auto n2 = join("n2");
  n2->script = silent_about(node_task_kind::prepare);
  auto ready = ask<prepared_problem>(hub, prepare_request{"softmax", "", {}});
  CHECK_FALSE(answered(ready));
  end(n2.agent);
  CHECK(answer(ready)->status == verdict_status::passed);
  CHECK(status("n1").state == "ready");
}

TEST_CASE_FIXTURE(cluster, "with all nodes lost the coordinator prepares by itself") {
  begin();
  auto n1 = join("n1");
  n1->script = silent_about(node_task_kind::prepare);
  auto ready = ask<prepared_problem>(hub, prepare_request{"softmax", "", {}});
  end(n1.agent);
  CHECK(answer(ready)->reason == "here");
}

TEST_CASE_FIXTURE(
  cluster, "a node that cannot prepare what another can is let go, with the reason") {
  begin();
  auto n1 = join("n1");
  auto n2 = join("n2");
  n2->script = failing_at(node_task_kind::prepare, errc::io_failed, "no space left");
  auto ready = ask<prepared_problem>(hub, prepare_request{"softmax", "", {}});
  CHECK(answer(ready)->status == verdict_status::passed);
  CHECK(status("n2").state == "lost");
  CHECK(status("n2").reason.find("no space left") != std::string::npos);
  // And it is kept out for a while.
  auto again = node();
  offer(again, offer_of("n2", "b2"));
  CHECK_FALSE(again->welcomes.at(0).taken);
  advance(2s);
  join("n2", "b3");
}

TEST_CASE_FIXTURE(cluster, "a node that joins late makes what was drawn before its devices count") {
  begin();
  auto n1 = join("n1");
  ask<prepared_problem>(hub, prepare_request{"softmax", "softmax/cuda/3#1", {}});
  auto n2 = node();
  n2->script = silent_about(node_task_kind::prepare);
  offer(n2, offer_of("n2"));
  say(n2, node_ready{});
  CHECK(n2->last(node_task_kind::prepare).prepare.draw == "softmax/cuda/3#1");
  CHECK(status("n2").state == "joining");
  node_answer made;
  made.id = n2->last(node_task_kind::prepare).id;
  made.prepared.problem = "softmax";
  made.prepared.status = verdict_status::passed;
  say(n2, made);
  CHECK(status("n2").state == "ready");
  tell(hub, draw_over{"softmax/cuda/3#1"});
  CHECK(n1->last(node_task_kind::end_draw).over.draw == "softmax/cuda/3#1");
  CHECK(n2->count(node_task_kind::end_draw) == 1);
  auto n3 = join("n3");
  CHECK(n3->count(node_task_kind::prepare) == 0);
}

TEST_CASE_FIXTURE(cluster, "a measurement that a node holds is handed in once") {
  begin();
  auto n1 = node();
  n1->script = willing;
  auto what = offer_of("n1");
  what.run = "run-1";
  held_result held;
  held.key = "h1";
  held.device = "mock:h200#0";
  held.measured = passed_measurement({}).measured;
  held.measured.workloads[0].time_ns = 77;
  held.ended.end = child_end::done;
  what.held = {held};
  offer(n1, what);
  say(n1, node_ready{});
  auto holder = make_fake_holder(*this);
  auto got = answer(measure(holder, granted(holder, 1)));
  REQUIRE(got);
  CHECK(got->workloads.at(0).time_ns == 77);
  CHECK(n1->count(node_task_kind::measure) == 0);
  CHECK(log->count("handed_in") == 1);
  judge_request judge;
  judge.measured = *got;
  CHECK(answer(ask<evaluation>(hub, judge)));
  CHECK(n1->count(node_task_kind::judge) == 1);
  CHECK(answer(measure(holder, granted(holder, 2)))->workloads.at(0).time_ns == 1000);
  CHECK(n1->count(node_task_kind::measure) == 1);
  CHECK(status("n1").handed_in == 1);
}

TEST_CASE_FIXTURE(cluster, "so is one that ended after its node had come back") {
  begin();
  auto n1 = join("n1");
  n1->script = [](const node_task& task) {
    auto out = willing(task);
    if (task.kind == node_task_kind::measure)
      out->what = handed_in_answer;
    return out;
  };
  auto holder = make_fake_holder(*this);
  CHECK(answer(measure(holder, granted(holder, 1))));
  CHECK(log->count("handed_in") == 1);
}

TEST_CASE_FIXTURE(cluster, "what is held of another run is not taken") {
  begin();
  auto n1 = node();
  n1->script = willing;
  auto what = offer_of("n1");
  what.run = "another";
  held_result held;
  held.key = "h1";
  what.held = {held};
  offer(n1, what);
  say(n1, node_ready{});
  auto holder = make_fake_holder(*this);
  CHECK(answer(measure(holder, granted(holder, 1))));
  CHECK(n1->count(node_task_kind::measure) == 1);
}

TEST_CASE_FIXTURE(
  cluster, "a candidate that cannot be run is a failed measurement, not a failed node") {
  begin();
  auto n1 = join("n1");
  n1->script = failing_at(node_task_kind::measure, errc::not_found, "its code is gone");
  auto holder = make_fake_holder(*this);
  auto got = answer(measure(holder, granted(holder, 1)));
  REQUIRE(got);
  CHECK(got->failure_text.find("its code is gone") != std::string::npos);
  CHECK(status("n1").state == "ready");
}

TEST_CASE_FIXTURE(
  cluster, "a node whose disk is full loses its stay, and the measurement is nobody's fault") {
  begin();
  auto n1 = join("n1");
  n1->script = failing_at(node_task_kind::measure, errc::io_failed, "no space left");
  auto holder = make_fake_holder(*this);
  CHECK(refusal(measure(holder, granted(holder, 1))).code == errc::node_lost);
  CHECK(status("n1").state == "lost");
}

TEST_CASE_FIXTURE(cluster, "what a node cannot end takes its device out, and not the node") {
  begin();
  auto n1 = join("n1");
  n1->script = failing_at(node_task_kind::measure, errc::timed_out, "its runner does not die");
  auto quiet = n1->count(node_task_kind::quiet);
  auto holder = make_fake_holder(*this);
  // Counted as on a device of the coordinator's own: it may be the candidate that hangs it.
  auto why = refusal(measure(holder, granted(holder, 1)));
  CHECK(why.code == errc::child_failed);
  CHECK(why.what.find("its runner does not die") != std::string::npos);
  CHECK(gpu().phase == gpu_phase::lost);
  CHECK(status("n1").state == "ready");
  CHECK(n1->farewells.empty());
  advance(1s);
  CHECK(n1->count(node_task_kind::quiet) > quiet);
  CHECK_MESSAGE(gpu().phase == gpu_phase::free, "now it is quiet");
}

TEST_CASE_FIXTURE(cluster, "a device that does not become quiet waits, and its neighbour works") {
  begin();
  auto n1 = node();
  int hung = 2;
  n1->script = [&hung](const node_task& task) {
    auto out = willing(task);
    if (task.kind == node_task_kind::quiet && task.device == "mock:h200#1" && hung != 0) {
      --hung;
      out->failed = true;
      out->code = errc::timed_out;
    } else if (task.kind == node_task_kind::quiet && task.device == "mock:h200#1") {
      out.reset();
    }
    return out;
  };
  auto what = offer_of("n1");
  what.devices.push_back(what.devices[0]);
  what.devices[1].name = "mock:h200#1";
  offer(n1, what);
  say(n1, node_ready{});
  CHECK_MESSAGE(n1->count(node_task_kind::quiet) == 2, "each device once, and not without a pause");
  advance(1s);
  CHECK(n1->count(node_task_kind::quiet) == 3);
  advance(1s);
  CHECK(n1->count(node_task_kind::quiet) == 4);
  CHECK(gpu(0).phase == gpu_phase::free);
  CHECK(gpu(1).phase == gpu_phase::absent);
  CHECK(status("n1").state == "ready");
  node_answer quiet;
  quiet.id = n1->last(node_task_kind::quiet).id;
  say(n1, quiet);
  CHECK(gpu(1).phase == gpu_phase::free);
}

TEST_CASE_FIXTURE(cluster, "a name that its certificate does not cover is refused for good") {
  failure why{errc::refused, "its certificate is of another"};
  config.admit = [&why](const caf::strong_actor_ptr&, const std::string&) -> result<void> {
    return tl::unexpected<failure>(why);
  };
  begin();
  auto n1 = node();
  offer(n1, offer_of("n1"));
  CHECK_FALSE(n1->welcomes.at(0).taken);
  CHECK(n1->welcomes[0].reason == std::string(refused_for_good) + why.what);
  // A connection that has just broken may be a better one the next time.
  why.code = errc::node_lost;
  offer(n1, offer_of("n1"));
  CHECK_FALSE(n1->welcomes.at(1).taken);
  CHECK(n1->welcomes[1].reason == why.what);
}

TEST_CASE_FIXTURE(cluster, "a drained node gets nothing new and is let go when it is idle") {
  begin();
  auto n1 = join("n1");
  auto n2 = join("n2");
  n1->script = silent_about(node_task_kind::measure);
  auto holder = make_fake_holder(*this);
  // n1's device is the first.
  auto measured = measure(holder, granted(holder, 1));
  auto ack = *answer(ask<cluster_ack>(hub, cluster_command{cluster_verb::drain, "n1", "fans"}));
  CHECK(ack.applied);
  CHECK(n1->drains == std::vector<std::string>{"fans"});
  advance(5s);
  CHECK(status("n1").state == "draining");
  auto last = passed_measurement(n1->last(node_task_kind::measure));
  last.id = n1->last(node_task_kind::measure).id;
  say(n1, last);
  auto got = answer(measured);
  REQUIRE(got);
  advance(2s);
  CHECK(status("n1").state == "draining"); // Its outputs are to be judged yet.
  judge_request judge;
  judge.measured = *got;
  CHECK(answer(ask<evaluation>(hub, judge)));
  advance(1s);
  CHECK(status("n1").state == "lost");
  CHECK(n1->farewells.size() == 1);
  CHECK(log->count("node_left") == 1);
  CHECK(log->count("node_lost") == 0);
  auto again = node();
  offer(again, offer_of("n1", "b2"));
  CHECK_FALSE(again->welcomes.at(0).taken);
  CHECK(answer(ask<cluster_ack>(hub, cluster_command{cluster_verb::undrain, "n1", ""}))->applied);
  join("n1", "b3");
  advance(1s);
  CHECK(gpu().phase == gpu_phase::free);
}

TEST_CASE_FIXTURE(cluster, "a command for an unknown node names the nearest") {
  begin();
  join("node-1");
  auto ack = *answer(ask<cluster_ack>(hub, cluster_command{cluster_verb::drain, "node-2", ""}));
  CHECK_FALSE(ack.applied);
  CHECK(ack.note.find("node-1") != std::string::npos);
}

TEST_CASE_FIXTURE(cluster, "a worker lives on a node with room, and here when there is none") {
  begin();
  auto here = ask<caf::strong_actor_ptr>(hub, place_worker{0}, worker_peers{});
  CHECK(*answer(here) == nullptr);
  auto n1 = join("n1");
  auto somebody = caf::actor_cast<caf::strong_actor_ptr>(make_fake_holder(*this).handle);
  n1->start_worker = [somebody](uint32_t) { return somebody; };
  CHECK(*answer(ask<caf::strong_actor_ptr>(hub, place_worker{0}, worker_peers{})) == somebody);
  CHECK(*answer(ask<caf::strong_actor_ptr>(hub, place_worker{1}, worker_peers{})) == somebody);
  CHECK(*answer(ask<caf::strong_actor_ptr>(hub, place_worker{2}, worker_peers{})) == nullptr);
  CHECK(log->count("worker_placed") == 2);
  CHECK(status("n1").workers == 2);
}

TEST_CASE_FIXTURE(
  cluster, "workers that live here may go to a node that joins later, as many as fit") {
  config.places = std::make_shared<worker_places>();
  begin();
  CHECK(*answer(ask<caf::strong_actor_ptr>(hub, place_worker{0}, worker_peers{})) == nullptr);
  CHECK_FALSE(config.places->take());
  auto n1 = join("n1"); // Two places.
  auto somebody = caf::actor_cast<caf::strong_actor_ptr>(make_fake_holder(*this).handle);
  n1->start_worker = [somebody](uint32_t) { return somebody; };
  CHECK(config.places->take());
  CHECK(config.places->take());
  CHECK_MESSAGE(!config.places->take(), "a third has no room there");
  CHECK(*answer(ask<caf::strong_actor_ptr>(hub, place_worker{0}, worker_peers{})) == somebody);
  advance(1s);
  CHECK(config.places->take());
  CHECK_FALSE(config.places->take());
  end(n1.agent);
  CHECK_FALSE(config.places->take());
}

TEST_CASE_FIXTURE(
  cluster, "a worker whose node is lost while it starts is placed elsewhere; late ones go home") {
  begin();
  auto n1 = join("n1");
  auto asked = ask<caf::strong_actor_ptr>(hub, place_worker{0}, worker_peers{});
  CHECK(n1->orders.size() == 1);
  auto n2 = join("n2");
  auto somebody = caf::actor_cast<caf::strong_actor_ptr>(make_fake_holder(*this).handle);
  n2->start_worker = [somebody](uint32_t) { return somebody; };
  advance(11s); // n1 does not answer.
  CHECK(*answer(asked) == somebody);
  auto orders = n1->orders.size();
  say(n1, worker_started{0, true, ""}, somebody);
  REQUIRE(n1->orders.size() == orders + 1);
  CHECK(n1->orders.back().end);
}

TEST_CASE_FIXTURE(cluster, "without a device here workers wait for the nodes, but not for ever") {
  config.workers_wait = true;
  begin();
  auto first = ask<caf::strong_actor_ptr>(hub, place_worker{0}, worker_peers{});
  advance(20s);
  CHECK_FALSE(answered(first));
  auto n1 = node();
  auto somebody = caf::actor_cast<caf::strong_actor_ptr>(make_fake_holder(*this).handle);
  n1->start_worker = [somebody](uint32_t) { return somebody; };
  n1->script = willing;
  offer(n1, offer_of("n1"));
  say(n1, node_ready{});
  CHECK(*answer(first) == somebody);
  ask<caf::strong_actor_ptr>(hub, place_worker{1}, worker_peers{});
  auto third = ask<caf::strong_actor_ptr>(hub, place_worker{2}, worker_peers{});
  CHECK_FALSE(answered(third));
  advance(3s);
  CHECK(*answer(third) == nullptr);
}

TEST_CASE_FIXTURE(
  cluster, "a compiler of the coordinator that dies is started again, and its work with it") {
  begin();
  CHECK(answer(ask<compiled_candidate>(hub, compile_of("a"))));
  caf::anon_send_exit(local->compiler, caf::exit_reason::kill);
  settle();
  auto b = ask<compiled_candidate>(hub, compile_of("b"));
  CHECK_FALSE(answered(b));
  advance(1s);
  CHECK(answer(b));
  CHECK(log->count("actor_died") == 1);
}

TEST_CASE_FIXTURE(cluster, "an offer that is not its agent's own, or of nobody, is not heard") {
  begin();
  auto n1 = node();
  auto n2 = node();
  say(n2, offer_of("n1"), caf::actor_cast<caf::strong_actor_ptr>(n1.agent), n1.keeper);
  say(n1, offer_of("n1"), caf::strong_actor_ptr{}, caf::strong_actor_ptr{});
  CHECK(n1->welcomes.empty());
  CHECK(answer(ask<cluster_snapshot>(hub, cluster_query{}))->nodes.empty());
}

TEST_CASE_FIXTURE(cluster, "blobs are offered by nodes of the run alone") {
  begin();
  auto n1 = join("n1");
  blobs_offered what{{{std::string(64, 'a'), 1}}};
  CHECK(answer(ask<blobs_fetched>(hub, what, n1.keeper)));
  CHECK(keeper->fetches.size() == 1);
  auto stranger =
    caf::actor_cast<caf::strong_actor_ptr>(spawn<fake_keeper>(std::make_shared<keeper_memory>()));
  CHECK(refusal(ask<blobs_fetched>(hub, what, stranger)).code == errc::refused);
}

TEST_CASE_FIXTURE(cluster, "at its end the hub says farewell and ends all who are its own") {
  begin();
  auto n1 = join("n1");
  auto holder = make_fake_holder(*this);
  auto executor = [&] {
    granted(holder, 1);
    return holder->grants.back().executor;
  }();
  end(hub);
  advance(2s);
  CHECK_FALSE(alive(hub));
  CHECK(n1->farewells == std::vector<std::string>{"the run is over"});
  CHECK_FALSE(alive(executor));
  CHECK_FALSE(alive(local->compiler));
}
