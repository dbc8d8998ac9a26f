#include "actors/command_proposer.hpp"
#include "actors/device_lines.hpp"
#include "llm/mind/problem_text.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/small_run.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/stat.h>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr const char* kernel = R"(
extern "C" __global__ void quick(const float* logits, float* probabilities) {
  probabilities[threadIdx.x] = logits[threadIdx.x];
}
)";
constexpr const char* plan_text = R"({"schema":"gristmill.plan/1","variants":[{"steps":[
  {"op":"launch","entry":"quick","grid":[1,1,1],"block":[32,1,1],"args":["logits","probabilities"]}]}]})";
constexpr const char* idea = "One warp a row keeps the whole row in registers.";

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// What a command does in its folder; then it ends like this.
using deed = std::function<child_result(const fs::path&)>;

child_result ended_with(int32_t status, std::string log = {}) {
  child_result out;
  out.end = child_end::no_done;
  out.status = status;
  out.log = std::move(log);
  return out;
}

child_result hand_in(const fs::path& folder) {
  write(folder / "candidate.cu", kernel);
  write(folder / "plan.json", plan_text);
  write(folder / "hypothesis.txt", std::string(idea) + "\n");
  return ended_with(0);
}

struct commanded : actor_fixture {
  small_run run;
  fake_journal journal = make_fake_journal(*this);
  fake_child_front children = make_fake_child_front(*this);
  deed does = hand_in;
  proposer_actor whom;

  void begin(uint64_t nano_usd_cap = 0) {
    children->script = [this](const child_request& what) -> std::optional<scripted_child> {
      return scripted_child{does(what.job_directory), {}, {}};
    };
    command_proposer_config config;
    config.context = run.context;
    config.child_front = children.handle;
    config.events = event_port{journal.handle, start};
    config.program = std::make_shared<const protocol_program>(default_program());
    config.book = std::make_shared<idea_book>();
    config.describe = [this](const problem& of) {
      mind_problem out;
      out.text = prompt_problem_of(of);
      out.device = device_lines(*run.context);
      return out;
    };
    config.command = "my-agent";
    config.nano_usd_cap = nano_usd_cap;
    whom = spawn<command_proposer>(std::move(config));
  }

  reply<proposal> ask_for_one() {
    assignment work;
    work.id = {"softmax", "cuda", 1};
    work.device_model = "h200";
    return ask<proposal>(whom, propose_request{work});
  }

  proposal proposed() {
    auto got = answer(ask_for_one());
    REQUIRE(got);
    return *got;
  }

  std::string failed() {
    auto got = proposed();
    CHECK(got.kind == proposal_kind::failed);
    return got.reason;
  }
};

} // namespace

TEST_CASE_FIXTURE(commanded, "a command gets the task in a folder and leaves a candidate there") {
  std::string prompt;
  does = [&](const fs::path& folder) {
    prompt = read(folder / "prompt.md");
    CHECK(fs::exists(folder / "problem" / "definition.json"));
    CHECK(fs::exists(folder / "problem" / "workload.jsonl"));
    CHECK(read(folder / "problem" / "reference.py").find("def run") != std::string::npos);
    CHECK(read(folder / "history.tsv").starts_with("id\thypothesis"));
    CHECK(read(folder / "program.md") == default_program().text);
    return hand_in(folder);
  };
  begin();
  auto got = proposed();
  REQUIRE_MESSAGE(got.kind == proposal_kind::candidate, got.reason);
  CHECK(prompt.find("softmax") != std::string::npos);
  CHECK(prompt.find("candidate.cu") != std::string::npos);
  CHECK(run.context->blobs->get(got.candidate.source).value() == kernel);
  CHECK(run.context->blobs->get(got.candidate.plan).value() == plan_text);
  CHECK(got.candidate.hypothesis == idea);
  CHECK(got.candidate.key.starts_with("command/"));
  REQUIRE(children->requests.size() == 1);
  CHECK(children->requests[0].profile == child_profile::command);
  CHECK(children->requests[0].argv == std::vector<std::string>{"/bin/sh", "-c", "my-agent"});
  CHECK(journal->count("command_ended") == 1);
  CHECK_MESSAGE(fs::is_empty(run.context->jobs()), "its folder is gone");
}

TEST_CASE_FIXTURE(commanded, "a command that leaves nothing, or half, is told what is missing") {
  does = [](const fs::path&) { return ended_with(0); };
  begin();
  CHECK(failed() == "the command left no candidate.cu");
  does = [](const fs::path& folder) {
    write(folder / "candidate.cu", kernel);
    return ended_with(0);
  };
  CHECK(failed() == "the command left no plan.json");
  does = [](const fs::path& folder) {
    hand_in(folder);
    fs::remove(folder / "hypothesis.txt");
    return ended_with(0);
  };
  CHECK(failed().find("hypothesis") != std::string::npos);
}

TEST_CASE_FIXTURE(commanded, "a command that fails or outlives its cap says how") {
  does = [](const fs::path& folder) {
    hand_in(folder);
    return ended_with(127, "sh: 1: my-agent: not found\n");
  };
  begin();
  CHECK(failed() == "the command ended with status 127: sh: 1: my-agent: not found");
  does = [](const fs::path& folder) {
    hand_in(folder);
    child_result out;
    out.end = child_end::deadline;
    return out;
  };
  CHECK(failed() == "the command was still at work after 540 s, and was ended");
}

TEST_CASE_FIXTURE(commanded, "no link, pipe or folder is taken for a candidate") {
  begin();
  does = [](const fs::path& folder) {
    hand_in(folder);
    fs::remove(folder / "candidate.cu");
    fs::create_symlink("/etc/passwd", folder / "candidate.cu");
    return ended_with(0);
  };
  CHECK(failed() == "candidate.cu: a link, which is not followed");
  does = [](const fs::path& folder) {
    hand_in(folder);
    fs::create_hard_link(folder / "candidate.cu", folder / "other.cu");
    return ended_with(0);
  };
  CHECK(failed() == "candidate.cu: no plain file of its own");
  does = [](const fs::path& folder) {
    hand_in(folder);
    fs::remove(folder / "plan.json");
    REQUIRE(mkfifo((folder / "plan.json").c_str(), 0600) == 0);
    return ended_with(0);
  };
  CHECK(failed() == "plan.json: no plain file of its own");
  does = [](const fs::path& folder) {
    hand_in(folder);
    fs::remove(folder / "candidate.cu");
    fs::create_directory(folder / "candidate.cu");
    return ended_with(0);
  };
  CHECK(failed() == "candidate.cu: no plain file of its own");
}

TEST_CASE_FIXTURE(commanded, "a folder that was replaced by a link is not entered") {
  temporary_folder elsewhere;
  begin();
  does = [&](const fs::path& folder) {
    hand_in(elsewhere.path);
    fs::remove_all(folder);
    fs::create_directory_symlink(elsewhere.path, folder);
    return ended_with(0);
  };
  CHECK(failed() == "the command took its folder away");
}

TEST_CASE_FIXTURE(commanded, "a candidate that is too large or breaks a rule is refused by name") {
  begin();
  does = [](const fs::path& folder) {
    hand_in(folder);
    write(folder / "candidate.cu", std::string(10'000'000, ' '));
    return ended_with(0);
  };
  CHECK(failed().starts_with("candidate.cu: 10000000 bytes, and "));
  does = [](const fs::path& folder) {
    hand_in(folder);
    write(folder / "plan.json", "garbage");
    return ended_with(0);
  };
  CHECK(failed().starts_with("refused by a rule: plan: "));
}

TEST_CASE_FIXTURE(
  commanded, "costs are what the command tells, unknown is not nothing, and the cap holds") {
  begin(500'000'000);
  does = [](const fs::path& folder) {
    write(folder / "cost.json", R"({"usd": 0.3})");
    return hand_in(folder);
  };
  CHECK(proposed().kind == proposal_kind::candidate);
  auto data = nlohmann::json::parse(journal->last("command_ended").data);
  CHECK(data.at("spent_nano_usd") == 300'000'000);
  CHECK(data.at("attempts_of_unknown_cost") == 0);
  does = [](const fs::path& folder) {
    write(folder / "cost.json", R"({"usd": -1})");
    return ended_with(0);
  };
  failed();
  data = nlohmann::json::parse(journal->last("command_ended").data);
  CHECK(data.at("spent_nano_usd") == 300'000'000);
  CHECK(data.at("attempts_of_unknown_cost") == 1);
  does = [](const fs::path& folder) {
    write(folder / "cost.json", R"({"usd": 0.3})");
    return ended_with(0);
  };
  failed();
  auto over = proposed();
  CHECK(over.kind == proposal_kind::exhausted);
  CHECK(over.reason == "the command has told of 0.6000 USD, and its cap is 0.5000");
  CHECK(children->requests.size() == 3);
}

TEST_CASE_FIXTURE(commanded, "a command that never leaves anything is not asked for ever") {
  does = [](const fs::path&) { return ended_with(0); };
  begin();
  for (int i = 0; i < 5; ++i)
    failed();
  auto over = proposed();
  CHECK(over.kind == proposal_kind::exhausted);
  CHECK(over.reason == "the command left no candidate 5 times in a row");
}

TEST_CASE_FIXTURE(commanded, "the end of the proposer ends its command and answers whoever waits") {
  begin();
  children->script = [](const child_request&) { return std::nullopt; };
  auto asked = ask_for_one();
  CHECK_FALSE(answered(asked));
  end(whom, caf::exit_reason::user_shutdown);
  auto got = answer(asked);
  REQUIRE_FALSE(got);
  CHECK(from_error(sys, got.error()).code == errc::shutting_down);
  CHECK(children->cancelled.size() == 1);
}
