#include "actors/llm_proposer.hpp"
#include "actors/proposers.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/small_run.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

/// What the gateway says, and what it was asked.
struct gateway_memory {
  std::vector<llm_request> asked;
  std::vector<llm_cancel> cancelled;
  std::map<uint64_t, caf::typed_response_promise<llm_reply>> open;
};

class fake_gateway final : public llm_gateway_actor::base {
public:
  fake_gateway(caf::actor_config& actor, std::shared_ptr<gateway_memory> memory)
    : llm_gateway_actor::base(actor), memory_(std::move(memory)) {}

protected:
  behavior_type make_behavior() override {
    return {
      [this](const llm_request& request) -> caf::result<llm_reply> {
        memory_->asked.push_back(request);
        auto promise = make_response_promise<llm_reply>();
        memory_->open.emplace(request.call, promise);
        return promise;
      },
      [this](const llm_cancel& what) { memory_->cancelled.push_back(what); },
      [](const llm_query&) { return llm_snapshot{}; },
      [](const tick&) {},
    };
  }

private:
  std::shared_ptr<gateway_memory> memory_;
};

constexpr const char* good_reply =
  "HYPOTHESIS: one thread a row is enough for such short rows, so it is faster.\n"
  "STRATEGY: vector-loads\n\n```cuda\n__global__ void k(const float* x, float* y) { y[0] = x[0]; "
  "}\n"
  "```\n\n```json\n{\"schema\": \"gristmill.plan/1\", \"variants\": [{\"steps\": [{\"op\": "
  "\"launch\", "
  "\"entry\": \"k\", \"grid\": [1, 1, 1], \"block\": [1, 1, 1], \"args\": [\"x\", "
  "\"y\"]}]}]}\n```\n";

struct with_models : actor_fixture {
  small_run run;
  fake_journal journal = make_fake_journal(*this);
  std::shared_ptr<gateway_memory> memory = std::make_shared<gateway_memory>();
  llm_gateway_actor gateway = spawn<fake_gateway>(memory);
  std::shared_ptr<search_library> library = std::make_shared<search_library>();
  model_mind mind;
  proposer_actor whom;
  assignment work;

  with_models() {
    auto program = std::make_shared<protocol_program>();
    program->rules.tools = {{"docs", 1}};
    mind.program = program;
    work.id = {"softmax", "cuda", 3};
    work.seed = 5;
    work.graph = *run.context->blobs->put(run.context->problems.at("softmax").graph_json);
  }
  ~with_models() {
    // A promise that nobody kept holds the gateway, which holds the memory it lies in.
    memory->open.clear();
    end_all();
  }

  void begin() {
    llm_proposer_config config;
    config.context = run.context;
    config.library = library;
    config.mind = mind;
    config.agent = "worker-0";
    config.models = gateway;
    config.events = event_port{journal.handle, start};
    whom = spawn<llm_proposer>(std::move(config));
  }

  reply<proposal> propose() {
    auto asked = ask<proposal>(whom, propose_request{work});
    advance(0s);
    return asked;
  }
  void says(size_t nth, const std::string& text, finish_kind finish = finish_kind::stop) {
    REQUIRE(memory->asked.size() > nth);
    llm_reply out;
    out.call = memory->asked[nth].call;
    out.text = text;
    out.finish = finish;
    memory->open.at(out.call).deliver(out);
    settle();
  }
  void refuses(size_t nth, errc code, const std::string& why) {
    REQUIRE(memory->asked.size() > nth);
    memory->open.at(memory->asked[nth].call).deliver(to_error({code, why}));
    settle();
  }
};

} // namespace

TEST_CASE_FIXTURE(
  with_models, "a model's reply becomes a stored candidate under a key of its strategy") {
  begin();
  auto asked = propose();
  REQUIRE(memory->asked.size() == 1);
  CHECK(memory->asked[0].agent == "worker-0");
  CHECK_FALSE(answered(asked));
  says(0, good_reply);
  auto got = answer(asked);
  REQUIRE(got);
  REQUIRE_MESSAGE(got->kind == proposal_kind::candidate, got->reason);
  CHECK(got->candidate.key.starts_with("llm/vector-loads/"));
  CHECK(run.context->blobs->has(got->candidate.source));
  CHECK(run.context->blobs->has(got->candidate.plan));
}

TEST_CASE_FIXTURE(with_models, "the plain kernel and given candidates are asked of no model") {
  begin();
  work.kind = attempt_kind::baseline;
  auto plain = answer(propose());
  REQUIRE(plain);
  CHECK(plain->candidate.key == "plain/1");
  work.kind = attempt_kind::planted;
  candidate_ref given;
  given.hash = "h";
  work.given = given;
  CHECK(answer(propose())->candidate == given);
  CHECK(memory->asked.empty());
}

TEST_CASE_FIXTURE(
  with_models, "an answer that comes after its attempt was given up changes nothing") {
  begin();
  auto first = propose();
  work.id.ordinal = 4;
  auto second = propose();
  CHECK(refusal(first).code == errc::shutting_down);
  REQUIRE(memory->cancelled.size() == 1);
  CHECK(memory->cancelled[0].call == memory->asked[0].call);
  says(0, good_reply);
  CHECK_FALSE(answered(second));
  says(1, good_reply);
  CHECK(answer(second)->kind == proposal_kind::candidate);
}

TEST_CASE_FIXTURE(with_models, "a proposer that ends takes its call back") {
  begin();
  auto asked = propose();
  end(whom);
  REQUIRE(memory->cancelled.size() == 1);
  CHECK(memory->cancelled[0].agent == "worker-0");
  CHECK(refusal(asked).code == errc::shutting_down);
}

TEST_CASE_FIXTURE(with_models, "what a model gets wrong is a failed proposal with its reason") {
  begin();
  auto asked = propose();
  SUBCASE("cut off") {
    says(0, "HYPOTHESIS: half of", finish_kind::length);
    CHECK(answer(asked)->reason.find("cut off") != std::string::npos);
  }
  SUBCASE("refused twice") {
    says(0, "No.", finish_kind::refusal);
    says(1, "No.", finish_kind::refusal);
    CHECK(answer(asked)->reason.find("refused") != std::string::npos);
  }
  SUBCASE("no form, twice") {
    says(0, "prose");
    says(1, "prose");
    CHECK(memory->asked[1].purpose == "repair");
  }
  SUBCASE("no answer") {
    refuses(0, errc::timed_out, "after the last try");
  }
  CHECK(answer(asked)->kind == proposal_kind::failed);
}

TEST_CASE_FIXTURE(
  with_models, "a budget that is gone ends the search of the problem, not the run's time") {
  begin();
  auto asked = propose();
  refuses(0, errc::budget_exhausted, "the problem's budget of 1 USD");
  CHECK(answer(asked)->kind == proposal_kind::exhausted);
  CHECK(answer(asked)->reason.find("1 USD") != std::string::npos);
}

TEST_CASE_FIXTURE(with_models, "a worker whose own budget is gone ends nobody else's search") {
  begin();
  auto asked = propose();
  refuses(0, errc::budget_exhausted, "agent 'worker-0': the budget of 5 calls is spent");
  CHECK(answer(asked)->kind == proposal_kind::failed);
}

TEST_CASE_FIXTURE(
  with_models, "in a mixture a worker whose provider refuses goes on by searching") {
  mind.search_when_closed = true;
  begin();
  auto asked = propose();
  refuses(0, errc::provider_refused, "the key is not valid");
  CHECK(answer(asked)->kind == proposal_kind::candidate);
  *mind.closed = true;
  CHECK(answer(propose())->kind == proposal_kind::candidate);
  CHECK(memory->asked.size() == 1);
}

TEST_CASE_FIXTURE(with_models, "after failures in a row the next question waits") {
  begin();
  for (size_t i = 0; i < 3; ++i) {
    auto asked = propose();
    says(i, "");
    REQUIRE(answer(asked)->kind == proposal_kind::failed);
  }
  auto asked = propose();
  CHECK(memory->asked.size() == 3);
  advance(4s);
  CHECK(memory->asked.size() == 3);
  advance(1s);
  CHECK(memory->asked.size() == 4);
  SUBCASE("and a pause of an attempt that was given up is none of the next") {
    says(3, "");
    auto waits = propose(); // Pauses for 10 s.
    advance(9s);
    auto next = propose();
    advance(1s);
    CHECK(memory->asked.size() == 4);
    advance(9s);
    CHECK(memory->asked.size() == 5);
    CHECK_FALSE(answered(next));
    CHECK(refusal(waits).code == errc::shutting_down);
  }
}

TEST_CASE_FIXTURE(with_models, "documentation is searched for a model that asks") {
  temporary_folder docs;
  std::ofstream(docs.path / "copy.md") << "# Copies\n\nmake_tiled_copy builds a tiled copy.\n";
  auto index = docs_index::read(docs.path);
  REQUIRE(index);
  mind.docs = std::make_shared<const docs_index>(std::move(*index));
  begin();
  auto asked = propose();
  says(0, "```tool\n{\"name\": \"docs\", \"arguments\": {\"query\": \"tiled copy\"}}\n```\n");
  REQUIRE(memory->asked.size() == 2);
  CHECK(memory->asked[1].messages.front().text.find("make_tiled_copy") != std::string::npos);
  says(1, good_reply);
  CHECK(answer(asked)->kind == proposal_kind::candidate);
}

TEST_CASE_FIXTURE(with_models, "insights are written to the log, so that a resumed run has them") {
  auto program = std::make_shared<protocol_program>();
  program->rules.reflect_every = 1;
  mind.program = program;
  trial before;
  before.key = "plain/1";
  before.status = verdict_status::passed;
  before.objective_ns = 1000;
  before.candidate.hash = "h";
  work.history.push_back(before);
  begin();
  auto asked = propose();
  CHECK(memory->asked[0].purpose == "reflect");
  says(0, "- works: short rows\n");
  advance(1s);
  auto data = nlohmann::json::parse(journal->last("insight").data);
  CHECK(data.at("lines").at(0).get<std::string>().find("short rows") != std::string::npos);
  CHECK(mind.book->insights("softmax").size() == 1);
}

TEST_CASE_FIXTURE(with_models, "an unknown problem is an error, and the proposer lives on") {
  begin();
  work.id.problem = "max";
  CHECK(refusal(propose()).code == errc::not_found);
  work.id.problem = "softmax";
  propose();
  CHECK(memory->asked.size() == 1);
}

TEST_CASE_FIXTURE(with_models, "each worker gets the proposer of its share") {
  run_peers peers;
  peers.models = gateway;
  peers.events = event_port{journal.handle, start};
  proposer_parts parts;
  parts.context = run.context;
  parts.mix = *parse_proposer("mixed(llm=1, template=1)");
  parts.mind = mind;
  auto first = make_proposer(sys, peers, 0, parts);
  auto second = make_proposer(sys, peers, 1, parts);
  own(first);
  own(second);
  ask<proposal>(first, propose_request{work});
  advance(0s);
  CHECK(memory->asked.size() == 1);
  auto searched = ask<proposal>(second, propose_request{work});
  advance(0s);
  CHECK(answer(searched)->kind == proposal_kind::candidate);
}
