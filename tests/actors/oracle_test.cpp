#include "actors/candidate.hpp"
#include "actors/oracle.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/small_run.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

struct one_oracle : actor_fixture {
  small_run run;
  fake_child_front children = make_fake_child_front(*this);
  oracle_actor whom;
  child_manner manner;

  one_oracle() {
    children->script = [this](const child_request& what) {
      return scripted_child{child_that_says(child_lines(what, manner)), 1s, {}};
    };
  }

  void begin() {
    oracle_config config;
    config.context = run.context;
    config.child_front = children.handle;
    whom = spawn<oracle>(std::move(config));
  }

  reply<prepared_problem> prepare(const std::string& name = "softmax") {
    auto asked = ask<prepared_problem>(whom, prepare_request{name, {}, {}});
    advance(1s);
    return asked;
  }
};

} // namespace

TEST_CASE_FIXTURE(one_oracle, "a prepared problem has floors and its graph") {
  begin();
  auto made = answer(prepare());
  REQUIRE(made);
  CHECK_MESSAGE(made->status == verdict_status::passed, made->reason);
  REQUIRE(made->workloads.size() == 2);
  CHECK(made->workloads[0].uuid == "even-4x8");
  CHECK(made->workloads[0].floor_ns > 0);
  CHECK_FALSE(made->workloads[0].shrunken);
  CHECK(run.context->blobs->has(made->graph));
  CHECK_FALSE(made->has_bounds);
  CHECK(children->requests[0].profile == child_profile::oracle);
  CHECK(std::filesystem::is_empty(run.context->jobs()));
}

TEST_CASE_FIXTURE(one_oracle, "a reference that raises is an answer") {
  manner.prepare = verdict_status::invalid_reference;
  begin();
  auto made = answer(prepare());
  REQUIRE(made);
  CHECK(made->status == verdict_status::invalid_reference);
  CHECK(made->reason.find("raised") != std::string::npos);
}

TEST_CASE_FIXTURE(
  one_oracle, "a child that dies, answers too little or failed by itself is child_failed") {
  SUBCASE("dies") {
    children->script = [](const child_request&) {
      return scripted_child{child_that_says({}, child_end::no_done), {}, {}};
    };
  }
  SUBCASE("answers for no workload") {
    children->script = [](const child_request& what) {
      return scripted_child{child_that_says({child_line_text(what.nonce, "done")}), {}, {}};
    };
  }
  SUBCASE("has another nonce") {
    children->script = [](const child_request& what) {
      auto lines = child_lines(what);
      lines.back() = child_line_text("0123456789abcdef", "done");
      return scripted_child{child_that_says(lines), {}, {}};
    };
  }
  SUBCASE("says that it is not the reference's fault") {
    manner.prepare = verdict_status::infrastructure;
  }
  begin();
  CHECK(refusal(prepare()).code == errc::child_failed);
}

TEST_CASE_FIXTURE(one_oracle, "an unknown problem is not found") {
  begin();
  CHECK(refusal(prepare("max")).code == errc::not_found);
}

TEST_CASE_FIXTURE(one_oracle, "a problem that cannot be prepared here is an answer that says why") {
  auto other = std::make_shared<run_context>(*run.context);
  other->oracle = "torch"; // And there is no Python.
  run.context = other;
  begin();
  auto made = answer(prepare());
  REQUIRE(made);
  CHECK(made->status == verdict_status::not_checked);
  CHECK(made->reason.find("torch") != std::string::npos);
  CHECK(children->requests.empty());
}

TEST_CASE_FIXTURE(one_oracle, "a blob that is missing is an answer too, and nobody's failure") {
  auto other = std::make_shared<run_context>(*run.context);
  auto& target = other->problems.at("softmax");
  target.workloads[0].inputs[0].kind = input_kind::safetensors;
  target.workloads[0].inputs[0].path = "nowhere/logits.safetensors";
  target.workloads[0].inputs[0].tensor_key = "logits";
  run.context = other;
  begin();
  auto made = answer(prepare());
  REQUIRE(made);
  CHECK(made->status == verdict_status::infrastructure);
  CHECK(made->reason.find("blob missing: nowhere/logits.safetensors") == 0);
  CHECK(children->requests.empty());
}

TEST_CASE_FIXTURE(
  one_oracle, "whoever waits when the oracle ends is told, and its child is cancelled") {
  children->script = [](const child_request&) { return std::nullopt; };
  begin();
  auto asked = prepare();
  CHECK_FALSE(answered(asked));
  end(whom, caf::exit_reason::kill);
  CHECK(refusal(asked).code == errc::shutting_down);
  CHECK(children->cancelled.size() == 1);
}

TEST_CASE_FIXTURE(one_oracle, "a front that is gone fails the request") {
  begin();
  end(children.handle, caf::exit_reason::kill);
  CHECK(refusal(prepare()).code == errc::child_failed);
}

namespace {

struct one_draw : one_oracle {
  prepare_request request{"softmax", "softmax/cuda/3#1", {}};

  one_draw() {
    auto stored = store_candidate(*run.context->blobs, "// device code",
      R"({"schema":"gristmill.plan/1","variants":[{"steps":[{"op":"launch","entry":"f",
        "grid":[1,1,1],"block":[32,1,1],"args":["logits","probabilities"]}]}]})",
      "k", "", "");
    REQUIRE(stored);
    request.candidate = *stored;
  }

  reply<prepared_problem> draw() {
    auto asked = ask<prepared_problem>(whom, request);
    advance(1s);
    return asked;
  }

  bool has_files() const {
    const auto folders = run.context->draw_folders(request.draw);
    return std::filesystem::exists(folders[0]) || std::filesystem::exists(folders[1]);
  }
};

} // namespace

TEST_CASE_FIXTURE(one_draw, "a draw has files of its own, which go when it is over") {
  begin();
  auto made = answer(draw());
  REQUIRE(made);
  CHECK_MESSAGE(made->status == verdict_status::passed, made->reason);
  CHECK(made->workloads.at(0).sets > 3);
  CHECK(has_files());
  tell(whom, draw_over{"softmax/cuda/4#1"});
  advance(0s);
  CHECK(has_files());
  tell(whom, draw_over{request.draw});
  advance(0s);
  CHECK_FALSE(has_files());
}

TEST_CASE_FIXTURE(one_draw, "a draw that is over before it is made leaves nothing behind") {
  children->script = [](const child_request&) { return std::nullopt; };
  begin();
  auto asked = draw();
  CHECK(has_files());
  tell(whom, draw_over{request.draw});
  advance(0s);
  CHECK(children->cancelled.size() == 1);
  CHECK(refusal(asked).code == errc::shutting_down);
  CHECK_FALSE(has_files());
}

TEST_CASE_FIXTURE(one_draw, "a draw whose child dies leaves nothing behind, either") {
  children->script = [](const child_request&) {
    return scripted_child{child_that_says({}, child_end::no_done), {}, {}};
  };
  begin();
  CHECK(refusal(draw()).code == errc::child_failed);
  CHECK_FALSE(has_files());
}

TEST_CASE_FIXTURE(one_draw, "a draw of which no reference could be made is not checked") {
  manner.prepare = verdict_status::invalid_reference;
  children->script = [this](const child_request& what) {
    auto lines = child_lines(what, manner);
    for (const auto& folder : run.context->draw_folders(request.draw))
      std::filesystem::remove_all(folder);
    return scripted_child{child_that_says(lines), {}, {}};
  };
  begin();
  auto made = answer(draw());
  REQUIRE(made);
  CHECK(made->status == verdict_status::not_checked);
  CHECK(made->reason.find("raised") != std::string::npos);
}
