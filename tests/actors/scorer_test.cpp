#include "actors/input_cases.hpp"
#include "actors/judge.hpp"
#include "actors/run_jobs.hpp"
#include "actors/scorer.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/small_run.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

struct one_scorer : actor_fixture {
  small_run run;
  fake_journal journal = make_fake_journal(*this);
  fake_child_front children = make_fake_child_front(*this);
  judge_actor comparer = spawn<gristmill::judge>(judge_config{run.context, children.handle});
  scorer_actor whom;
  child_manner manner;

  one_scorer() {
    children->script = [this](const child_request& what) {
      return scripted_child{child_that_says(child_lines(what, manner)), {}, {}};
    };
  }

  void begin() {
    scorer_config config;
    config.context = run.context;
    config.judge = comparer;
    config.events = event_port{journal.handle, start};
    whom = spawn<scorer>(std::move(config));
    prepared_problem ready;
    ready.problem = "softmax";
    ready.status = verdict_status::passed;
    ready.has_bounds = run.context->bounds.has_value();
    for (auto uuid : {"even-4x8", "odd-3x5"})
      ready.workloads.push_back({uuid, false, {}, 1, "", 1'000, "stated"});
    tell(whom, ready);
  }

  judge_request about(attempt_kind kind, uint64_t time_ns, uint64_t token) {
    judge_request out;
    out.attempt = {"softmax", "cuda", static_cast<uint32_t>(token)};
    out.kind = kind;
    out.candidate.hash = "c" + std::to_string(token);
    out.measured.token = token;
    out.measured.origin = time_origin::modelled;
    out.measured.output_folder =
      (run.context->jobs() / ("outputs-" + std::to_string(token))).string();
    std::filesystem::create_directories(out.measured.output_folder);
    for (auto uuid : {"even-4x8", "odd-3x5"}) {
      workload_measurement w;
      w.uuid = uuid;
      w.status = verdict_status::passed;
      w.time_ns = time_ns;
      w.bound = "dram";
      w.terms = {{"launch", static_cast<double>(time_ns) * 0.6}};
      w.written = {{0, "check"}};
      out.measured.workloads.push_back(w);
    }
    return out;
  }

  reply<verdict> judge(const judge_request& what) {
    auto asked = ask<verdict>(whom, what);
    advance(0s);
    return asked;
  }

  verdict judged(const judge_request& what) {
    auto got = answer(judge(what));
    REQUIRE(got);
    CHECK_FALSE(std::filesystem::exists(what.measured.output_folder));
    return *got;
  }
};

} // namespace

TEST_CASE_FIXTURE(one_scorer, "the baseline sets T_b, and candidates are held against it") {
  begin();
  auto baseline = judged(about(attempt_kind::baseline, 8'000, 1));
  CHECK(baseline.status == verdict_status::passed);
  auto better = judged(about(attempt_kind::search, 4'000, 2));
  CHECK(better.status == verdict_status::passed);
  CHECK(double(better.speedup) == doctest::Approx(2.0));
  CHECK(better.workloads.at(0).baseline_ns == 8'000);
  CHECK(better.workloads.at(0).floor_ns == 1'000);
  CHECK(double(better.sol_score) > 0.5);
  CHECK(children->requests.at(0).profile == child_profile::judge);
  const auto& e = journal->last("verdict");
  CHECK(e.token == 2);
  CHECK(e.candidate == "c2");
  auto data = nlohmann::json::parse(e.data);
  CHECK(data.at("status") == "PASSED");
  CHECK(data.at("kind") == "search");
  CHECK_MESSAGE(data.at("workloads").at(0).at("bound") == "launch", "half of the time or more");
  CHECK(std::filesystem::is_empty(run.context->jobs()));
}

TEST_CASE_FIXTURE(one_scorer, "a wrong output is no baseline and no success") {
  manner.judge = verdict_status::incorrect_numerical;
  begin();
  CHECK(
    judged(about(attempt_kind::baseline, 8'000, 1)).status == verdict_status::incorrect_numerical);
  manner.judge = verdict_status::passed;
  CHECK(judged(about(attempt_kind::search, 4'000, 2)).workloads.at(0).baseline_ns == 0);
}

TEST_CASE_FIXTURE(one_scorer, "a verdict is told only after it is on the disk") {
  begin();
  journal->withhold = true;
  auto asked = judge(about(attempt_kind::search, 4'000, 1));
  CHECK(journal->count("verdict") == 1);
  CHECK(journal->how.back() == durability::barrier);
  CHECK_FALSE(answered(asked));
  journal->acknowledge();
  settle();
  CHECK(answer(asked));
}

TEST_CASE_FIXTURE(one_scorer, "a verdict that cannot be stored is none") {
  begin();
  journal->fails = failure{errc::io_failed, "the disk is full"};
  CHECK(refusal(judge(about(attempt_kind::search, 4'000, 1))).code == errc::io_failed);
}

TEST_CASE_FIXTURE(one_scorer, "a token is judged once, and 0 is no token") {
  begin();
  judged(about(attempt_kind::search, 4'000, 5));
  CHECK(refusal(judge(about(attempt_kind::search, 1, 5))).code == errc::lease_expired);
  CHECK(refusal(judge(about(attempt_kind::search, 1, 0))).code == errc::lease_expired);
  auto other_gpu = about(attempt_kind::search, 4'000, 5);
  other_gpu.measured.gpu = 1;
  CHECK(judged(other_gpu).status == verdict_status::passed);
  CHECK(journal->count("verdict") == 2);
}

TEST_CASE_FIXTURE(one_scorer, "a result that was overtaken by a newer token is never scored") {
  begin();
  auto late = about(attempt_kind::search, 1'000, 5);
  judged(about(attempt_kind::search, 4'000, 6));
  CHECK(refusal(judge(late)).code == errc::lease_expired);
  CHECK_FALSE(std::filesystem::exists(late.measured.output_folder));
  CHECK(journal->count("verdict") == 1);
  auto other_gpu = about(attempt_kind::search, 4'000, 5);
  other_gpu.measured.gpu = 1;
  CHECK_MESSAGE(judged(other_gpu).status == verdict_status::passed, "each GPU has its own tokens");
}

TEST_CASE_FIXTURE(one_scorer, "the parts of one lease are all scored, each once and in order") {
  begin();
  auto part = [this](uint32_t number) {
    auto out = about(attempt_kind::search, 4'000, 5);
    out.measured.part = number;
    out.measured.output_folder += "-" + std::to_string(number);
    std::filesystem::create_directories(out.measured.output_folder);
    return out;
  };
  CHECK(judged(part(0)).status == verdict_status::passed);
  CHECK(judged(part(2)).status == verdict_status::passed);
  CHECK(refusal(judge(part(2))).code == errc::lease_expired);
  auto late = part(1);
  CHECK(refusal(judge(late)).code == errc::lease_expired);
  CHECK_FALSE(std::filesystem::exists(late.measured.output_folder));
  CHECK(journal->count("verdict") == 2);
  judged(about(attempt_kind::search, 4'000, 6));
  CHECK_MESSAGE(refusal(judge(part(3))).code == errc::lease_expired, "a newer token has been seen");
}

TEST_CASE_FIXTURE(one_scorer, "0 is no token, whatever the part") {
  begin();
  auto what = about(attempt_kind::search, 4'000, 0);
  what.measured.part = 1;
  CHECK(refusal(judge(what)).code == errc::lease_expired);
}

TEST_CASE_FIXTURE(one_scorer, "a doubled result is refused while the first is being judged") {
  begin();
  children->script = [](const child_request&) { return std::nullopt; };
  auto what = about(attempt_kind::search, 4'000, 5);
  auto first = judge(what);
  CHECK(refusal(judge(what)).code == errc::lease_expired);
  CHECK_MESSAGE(std::filesystem::exists(what.measured.output_folder), "the first needs them");
  CHECK_FALSE(answered(first));
}

TEST_CASE_FIXTURE(one_scorer, "a judge that dies, or whose lines do not hold, is child_failed") {
  SUBCASE("dies") {
    children->script = [](const child_request&) {
      auto dead = child_that_says({}, child_end::no_done);
      dead.status = 128 + 9;
      dead.log = "last words \xff\xfe\n";
      return scripted_child{dead, {}, {}};
    };
  }
  SUBCASE("nonsense") {
    children->script = [](const child_request&) {
      return scripted_child{child_that_says({"{}"}), {}, {}};
    };
  }
  begin();
  auto what = about(attempt_kind::search, 4'000, 1);
  CHECK(refusal(judge(what)).code == errc::child_failed);
  CHECK_FALSE(std::filesystem::exists(what.measured.output_folder));
  CHECK(journal->count("verdict") == 0);
}

TEST_CASE_FIXTURE(
  one_scorer, "a folder that no runner of the run has made is neither read nor removed") {
  begin();
  auto what = about(attempt_kind::search, 4'000, 1);
  for (const auto& folder : {run.folder.path / "elsewhere", run.context->jobs() / "a" / "b",
         run.context->jobs() / "..", run.context->jobs() / ""}) {
    CAPTURE(folder);
    std::filesystem::create_directories(folder);
    what.measured.output_folder = folder.string();
    what.measured.token += 1;
    CHECK(refusal(judge(what)).code == errc::invalid_input);
    CHECK(std::filesystem::exists(folder));
  }
  CHECK(children->requests.empty());
}

TEST_CASE_FIXTURE(one_scorer, "a judge that is ended ends its child and answers") {
  begin();
  children->script = [](const child_request&) { return std::nullopt; };
  auto asked = judge(about(attempt_kind::search, 4'000, 1));
  end(comparer);
  CHECK(refusal(asked).code == errc::shutting_down);
  CHECK(children->cancelled.size() == 1);
}

TEST_CASE_FIXTURE(one_scorer, "what no runner ended is not judged by a child") {
  begin();
  auto what = about(attempt_kind::search, 4'000, 1);
  for (auto& w : what.measured.workloads)
    w.status = verdict_status::runtime_error;
  CHECK(judged(what).status == verdict_status::runtime_error);
  CHECK(children->requests.empty());
}

TEST_CASE_FIXTURE(one_scorer, "what the house broke is kept, but as no verdict") {
  begin();
  auto what = about(attempt_kind::search, 4'000, 1);
  for (auto& w : what.measured.workloads)
    w.status = verdict_status::infrastructure;
  CHECK(judged(what).status == verdict_status::infrastructure);
  CHECK(journal->count("verdict") == 0);
  CHECK(journal->count("no_verdict") == 1);
}

TEST_CASE_FIXTURE(one_scorer, "what the compiler refused has a verdict without a measurement") {
  begin();
  refused_request what;
  what.attempt = {"softmax", "cuda", 1};
  what.candidate.hash = "c";
  what.compiled.status = verdict_status::compile_error;
  what.compiled.log = "expected ';'";
  auto got = answer(ask<verdict>(whom, what));
  REQUIRE(got);
  CHECK(got->status == verdict_status::compile_error);
  CHECK(got->workloads.size() == 2);
  CHECK(journal->count("verdict") == 1);
}

TEST_CASE_FIXTURE(one_scorer, "a fatal finding of the runner refuses the candidate") {
  begin();
  auto what = about(attempt_kind::search, 4'000, 1);
  what.measured.findings.push_back({"changes_global", "", "a table was written", true});
  CHECK(judged(what).status == verdict_status::reward_hack);
  auto data = nlohmann::json::parse(journal->last("verdict").data);
  CHECK(data.at("findings").at(0).at("rule") == "changes_global");
}

TEST_CASE_FIXTURE(one_scorer, "a problem that nobody prepared passes nothing") {
  begin();
  auto what = about(attempt_kind::search, 4'000, 1);
  what.attempt.problem = "unknown";
  CHECK(refusal(judge(what)).code == errc::not_found);
}

TEST_CASE_FIXTURE(
  one_scorer, "a probe has a verdict over its workloads, which is none on the problem") {
  begin();
  judged(about(attempt_kind::baseline, 8'000, 1));
  auto what = about(attempt_kind::search, 4'000, 2);
  what.effort = attempt_effort::probe;
  what.workloads = {"odd-3x5"};
  what.measured.workloads.erase(what.measured.workloads.begin());
  auto v = judged(what);
  CHECK(v.status == verdict_status::passed);
  REQUIRE(v.workloads.size() == 1);
  CHECK(v.workloads[0].uuid == "odd-3x5");
  CHECK(v.objective_ns == 4'000);
  CHECK(double(v.speedup) == doctest::Approx(2.0));
  CHECK(journal->count("verdict") == 1);
  CHECK(journal->count("probe_verdict") == 1);
  CHECK(nlohmann::json::parse(journal->last("probe_verdict").data).at("effort") == "probe");
}

TEST_CASE_FIXTURE(one_scorer, "a probe is never T_b") {
  begin();
  auto what = about(attempt_kind::baseline, 8'000, 1);
  what.effort = attempt_effort::probe;
  what.workloads = {"odd-3x5"};
  what.measured.workloads.erase(what.measured.workloads.begin());
  judged(what);
  CHECK(judged(about(attempt_kind::search, 4'000, 2)).workloads.at(1).baseline_ns == 0);
}

TEST_CASE_FIXTURE(
  one_scorer, "a verdict comes with feedback for agents, in the store and in the log") {
  begin();
  auto passed = judged(about(attempt_kind::search, 4'000, 1));
  auto text = run.context->blobs->get(passed.feedback);
  REQUIRE(text);
  CHECK(text->find("gristmill.feedback/1") != std::string::npos);
  CHECK(text->find("\"class\":\"slow\"") != std::string::npos);
  CHECK(text->find("\"limiter\":\"dram\"") != std::string::npos);
  CHECK(nlohmann::json::parse(journal->last("verdict").data).at("feedback").at("sha256")
    == passed.feedback.sha256);
  refused_request refused;
  refused.attempt = {"softmax", "cuda", 2};
  refused.compiled.status = verdict_status::compile_error;
  refused.compiled.log = "candidate.cu:1:1: error: what is this";
  auto asked = ask<verdict>(whom, refused);
  advance(0s);
  auto said = run.context->blobs->get(answer(asked)->feedback);
  REQUIRE(said);
  CHECK(said->find("what is this") != std::string::npos);
}

TEST_CASE_FIXTURE(one_scorer, "the failure of the house is no feedback for anybody") {
  begin();
  auto broken = about(attempt_kind::search, 4'000, 1);
  for (auto& w : broken.measured.workloads)
    w.status = verdict_status::infrastructure;
  CHECK(judged(broken).feedback.sha256.empty());
}

TEST_CASE_FIXTURE(
  one_scorer, "what a verdict rests on is kept in the store, and named in the log") {
  begin();
  auto v = judged(about(attempt_kind::search, 4'000, 1));
  auto text = run.context->blobs->get(v.evidence);
  REQUIRE(text);
  CHECK(text->find("gristmill.evidence/1") != std::string::npos);
  CHECK(nlohmann::json::parse(journal->last("verdict").data).at("evidence") == v.evidence.sha256);
}

namespace {

/// A scorer of a run with promotions.
struct promoting : one_scorer {
  promoting() {
    auto other = std::make_shared<run_context>(*run.context);
    other->promote = true;
    run.context = other;
    begin();
    CHECK_FALSE(judged(screened("baseline", attempt_kind::baseline, 8'000, 1)).wants_promotion);
  }

  candidate_ref candidate(const std::string& key) {
    auto stored = store_candidate(*run.context->blobs, "// " + key,
      R"({"schema":"gristmill.plan/1","domain":"rows > 2 and rows < 5","variants":[{"steps":[
        {"op":"launch","entry":"f","grid":[1,1,1],"block":[32,1,1],"args":["logits","probabilities"]}]}]})",
      key, "", "");
    REQUIRE(stored);
    return *stored;
  }

  judge_request screened(
    const std::string& key, attempt_kind kind, uint64_t time_ns, uint64_t token) {
    auto out = about(kind, time_ns, token);
    out.candidate = candidate(key);
    out.attempt.ordinal = static_cast<uint32_t>(std::hash<std::string>{}(key) % 1000);
    return out;
  }

  /// The promotion of a candidate that takes `ratio` of its rival's time in the blocks.
  judge_request promoted(const std::string& key, uint64_t time_ns, uint64_t token,
    const candidate_ref& rival_ref, double ratio) {
    auto out = screened(key, attempt_kind::search, time_ns, token);
    out.purpose = measure_purpose::promotion;
    out.draw = to_string(out.attempt) + "#1";
    out.against = rival{rival_ref, {}};
    const auto& of = run.context->problems.at("softmax");
    auto resolved = resolve_candidate(*run.context, "softmax", out.candidate);
    REQUIRE_MESSAGE(resolved, (resolved ? "" : resolved.error().what));
    for (auto& w : out.measured.workloads) {
      w.written.clear();
      for (const auto& work : of.workloads) {
        if (work.uuid != w.uuid)
          continue;
        auto cases = draw_cases(*run.context, of, work, out.draw, *resolved);
        REQUIRE(cases);
        for (uint32_t i = 0; i < cases->size(); ++i) {
          auto file =
            reference_file(*run.context, "softmax", w.uuid, "probabilities", (*cases)[i].what.set);
          std::filesystem::create_directories(file.parent_path());
          std::ofstream{file} << "a reference";
          w.written.push_back({i, "check"});
        }
      }
      for (int i = 0; i < 4; ++i) {
        const auto mine = static_cast<uint64_t>(ratio * 1e6) + static_cast<uint64_t>(i);
        w.blocks.push_back({i % 2 == 1, i % 2 == 1 ? 1'000'000 : mine, 100, 50});
        w.blocks.push_back({i % 2 == 0, i % 2 == 0 ? 1'000'000 : mine, 100, 50});
      }
    }
    return out;
  }
};

} // namespace

TEST_CASE_FIXTURE(promoting, "who screens better than the incumbent wants a promotion against it") {
  auto v = judged(screened("a", attempt_kind::search, 4'000, 2));
  CHECK(v.wants_promotion);
  REQUIRE(v.incumbent);
  CHECK(v.incumbent->key == "baseline");
  CHECK(journal->count("screened") == 1);
  CHECK(journal->count("verdict") == 1); // The baseline's.
  auto slower = judged(screened("b", attempt_kind::search, 9'000, 3));
  CHECK_FALSE(slower.wants_promotion);
  CHECK(journal->count("verdict") == 2);
}

TEST_CASE_FIXTURE(
  promoting, "a gain that counts makes a new incumbent, by the promotion's own time") {
  judged(screened("a", attempt_kind::search, 3'900, 2));
  auto v = judged(promoted("a", 4'000, 3, candidate("baseline"), 0.5));
  CHECK(v.status == verdict_status::passed);
  CHECK_FALSE(v.wants_promotion);
  CHECK_FALSE(v.incumbent_stays);
  CHECK(v.objective_ns == 4'000);
  auto data = nlohmann::json::parse(journal->last("verdict").data);
  CHECK(data.at("promotion") == true);
  CHECK(data.at("incumbent_stays") == false);
  CHECK(data.at("incumbent") == candidate("baseline").hash);
  CHECK(data.at("workloads").at(0).at("blocks").size() == 8);
  CHECK_FALSE(data.at("compared").get<std::string>().empty());
  // The next one has to be better than 4000 ns, and meets the new incumbent.
  CHECK_FALSE(judged(screened("b", attempt_kind::search, 4'000, 4)).wants_promotion);
  auto next = judged(screened("c", attempt_kind::search, 3'000, 5));
  REQUIRE(next.incumbent);
  CHECK(next.incumbent->key == "a");
}

TEST_CASE_FIXTURE(promoting, "a gain of less than one per cent does not replace the incumbent") {
  judged(screened("a", attempt_kind::search, 7'900, 2));
  auto v = judged(promoted("a", 7'900, 3, candidate("baseline"), 0.995));
  CHECK(v.status == verdict_status::passed);
  CHECK(v.incumbent_stays);
  CHECK(v.reason.find("the incumbent stays: ") == 0);
  CHECK(journal->last("verdict").reason == v.reason);
  auto next = judged(screened("b", attempt_kind::search, 7'950, 4));
  REQUIRE(next.incumbent);
  CHECK(next.incumbent->key == "baseline");
}

TEST_CASE_FIXTURE(promoting, "who is wrong on held-out inputs is refused, and the case is named") {
  judged(screened("a", attempt_kind::search, 4'000, 2));
  manner.judge = verdict_status::incorrect_numerical;
  auto v = judged(promoted("a", 4'000, 3, candidate("baseline"), 0.5));
  CHECK(v.status == verdict_status::incorrect_numerical);
  CHECK_FALSE(v.wants_promotion);
  manner.judge = verdict_status::passed;
  CHECK(judged(screened("b", attempt_kind::search, 7'000, 4)).incumbent->key == "baseline");
}

TEST_CASE_FIXTURE(promoting, "who was overtaken meets the one who did, or stays behind at once") {
  judged(screened("a", attempt_kind::search, 4'000, 2));
  judged(screened("b", attempt_kind::search, 5'000, 3));
  judged(screened("c", attempt_kind::search, 2'000, 4));
  judged(promoted("a", 4'000, 5, candidate("baseline"), 0.5));
  auto slower = judged(promoted("b", 5'000, 6, candidate("baseline"), 0.6));
  CHECK(slower.incumbent_stays);
  CHECK(slower.reason.find("has become the incumbent meanwhile") != std::string::npos);
  auto faster = judged(promoted("c", 2'000, 7, candidate("baseline"), 0.25));
  CHECK(faster.wants_promotion);
  CHECK(faster.incumbent->key == "a");
  CHECK(journal->count("screened") == 4);
}

TEST_CASE_FIXTURE(promoting, "a promotion without blocks to read is the house's failure") {
  judged(screened("a", attempt_kind::search, 4'000, 2));
  auto what = promoted("a", 4'000, 3, candidate("baseline"), 0.5);
  for (auto& w : what.measured.workloads)
    w.blocks.clear();
  CHECK(judged(what).status == verdict_status::infrastructure);
  CHECK(journal->count("no_verdict") == 1);
}

TEST_CASE_FIXTURE(promoting, "a restored scorer knows the incumbent and how many were tried") {
  scorer_config config;
  config.context = run.context;
  config.judge = comparer;
  config.events = event_port{journal.handle, start};
  config.best.of({"softmax", "cuda", 9}) = {candidate("restored"), 3'000, 12};
  whom = spawn<scorer>(std::move(config));
  prepared_problem ready;
  ready.problem = "softmax";
  ready.status = verdict_status::passed;
  for (auto uuid : {"even-4x8", "odd-3x5"})
    ready.workloads.push_back({uuid, false, {}, 1, "", 1'000, "stated"});
  tell(whom, ready);
  CHECK_FALSE(judged(screened("a", attempt_kind::search, 3'500, 2)).wants_promotion);
  CHECK(judged(screened("b", attempt_kind::search, 2'500, 3)).incumbent->key == "restored");
}
