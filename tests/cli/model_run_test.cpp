// Runs whose workers ask a model: flags, the worst case, a whole run against the scripted engineer,
// and the same run again from its cassette.

#include "tests/cli/program.hpp"

#include <csignal>
#include <cstdio>
#include <doctest/doctest.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace gristmill::test;

namespace {

/// `tests/servers/engineer_server.py` on a port of its own, or nothing where there is no Python.
class engineer {
public:
  engineer() {
    auto file = source_file("tests/servers/engineer_server.py");
    std::string python = "python3";
    std::string flag = "--port";
    std::string any = "0";
    char* arguments[] = {python.data(), file.data(), flag.data(), any.data(), nullptr};
    int ends[2];
    if (pipe(ends) != 0)
      return;
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&files, ends[0]);
    if (posix_spawnp(&pid_, python.c_str(), &files, nullptr, arguments, environ) != 0)
      pid_ = 0;
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    FILE* said = fdopen(ends[0], "r");
    if (pid_ == 0 || std::fscanf(said, "listening on %d", &port_) != 1)
      MESSAGE("SKIPPED: no Python 3 that serves tests/servers/engineer_server.py");
    std::fclose(said);
  }
  engineer(const engineer&) = delete;
  engineer& operator=(const engineer&) = delete;
  ~engineer() { stop(); }
  void stop() {
    if (pid_ <= 0)
      return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  bool works() const { return port_ > 0; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }

private:
  pid_t pid_ = 0;
  int port_ = 0;
};

std::vector<std::string> words(
  std::vector<std::string> first, const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

nlohmann::json table_of(const program& run) {
  auto table = nlohmann::json::parse(run.out(), nullptr, false);
  CAPTURE(run.err());
  REQUIRE(table.is_object());
  return table;
}

/// Hashes of the candidates in the order of their attempts.
std::vector<std::string> candidates_of(const std::filesystem::path& run) {
  program log({"log", "show", run.string(), "--json", "--kind", "claimed"});
  REQUIRE(log.wait() == 0);
  std::vector<std::string> out;
  std::istringstream lines(log.out());
  for (std::string line; std::getline(lines, line);) {
    auto data = nlohmann::json::parse(line).at("data");
    out.push_back(
      data.is_string() ? nlohmann::json::parse(data.get<std::string>()).at("key") : data.at("key"));
  }
  return out;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

} // namespace

TEST_CASE("mistakes in the flags of models are told with the nearest right choice") {
  const std::vector<std::string> endpoint{"run", "softmax", "--proposer", "llm", "--model-endpoint",
    "http://127.0.0.1:1/v1", "--model", "m"};
  struct mistake {
    std::vector<std::string> arguments;
    std::string wanted;
  };
  for (const auto& [arguments, wanted] :
    std::vector<mistake>{{{"run", "--proposer", "lllm"}, "llm"},
      {{"run", "--proposer", "llm"}, "--model-endpoint URL and --model NAME"},
      {{"run", "--proposer", "llm", "--model", "m"}, "--model-endpoint URL is missing"},
      {{"run", "--proposer", "llm", "--model-endpoint", "http://127.0.0.1:1"}, "--model NAME"},
      {{"run", "--proposer", "replay", "--model", "m", "--model-endpoint", "http://127.0.0.1:1"},
        "--cassette replay=FILE"},
      {{"run", "--proposer", "mixed(llm=1"}, "left open"},
      {words(endpoint, {"--model-dialect", "openai-chatt"}), "openai-chat"},
      {words(endpoint, {"--cassette", "reply=x"}), "replay"},
      {words(endpoint, {"--cassette", "replay=nowhere.jsonl"}), "no such file"},
      {words(endpoint, {"--program", "nowhere.md"}), "nowhere.md"},
      {words(endpoint, {"--docs", "nowhere"}), "nowhere"},
      {words(endpoint, {"--budget", "5used"}), "usd"},
      {words(endpoint, {"--problem-budget", "5m"}), "--problem-budget"},
      {words(endpoint, {"--agent-budget", "5cals"}), "calls"},
      {words(endpoint, {"--models", "x.toml"}), "exclude each other"},
      {words(endpoint, {"--model-key-env", "GRISTMILL_NO_SUCH_KEY"}), "GRISTMILL_NO_SUCH_KEY"},
      {{"run", "--proposer", "llm", "--model", "m", "--model-endpoint", "http://far.example/v1"},
        "in the clear"},
      {{"run", "--dry-run"}, "asks no model"}}) {
    CAPTURE(wanted);
    program run(arguments);
    CHECK(run.wait() == 2);
    CHECK_MESSAGE(run.err().find(wanted) != std::string::npos, run.err());
  }
}

TEST_CASE("a dry run tells the worst case and starts nothing") {
  scratch folder;
  const auto out = folder / "run";
  program run({"run", "softmax", "--proposer", "llm", "--model-endpoint", "http://127.0.0.1:1/v1",
    "--model", "m", "--budget", "10attempts", "--dry-run", "--out", out.string()});
  CHECK(run.wait() == 0);
  CHECK(run.out().find("propose") != std::string::npos);
  CHECK(run.out().find("calls") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("a run against the engineer gets over every trouble, and its cassette repeats it") {
  engineer server;
  if (!server.works())
    return;
  scratch folder;
  const auto run_with = [&](const std::string& out, std::vector<std::string> more) {
    return words({"run", "softmax", "--proposer", "llm", "--model-endpoint", server.url(),
                   "--model", "engineer", "--budget", "8attempts", "--workers", "1", "--seed", "3",
                   "--json", "--out", (folder / out).string()},
      more);
  };
  program first(run_with("first", {}));
  REQUIRE(first.wait() == 0);
  auto table = table_of(first);
  CHECK(table.at("problems").at(0).at("status") == "PASSED");
  CHECK(table.at("problems").at(0).at("speedup").get<double>() > 1.2);
  CHECK(table.at("models").at("calls").get<int>() >= 8);
  CHECK(table.at("models").at("calls_unknown") == 0);
  const auto cassette = folder / "first" / "llm" / "cassette.jsonl";
  CHECK(text_of(folder / "first" / "program.md") == text_of(source_file("protocol/program.md")));
  server.stop();

  program again(run_with("again", {"--cassette", "replay=" + cassette.string()}));
  REQUIRE(again.wait() == 0);
  CHECK(candidates_of(folder / "again") == candidates_of(folder / "first"));
  CHECK(table_of(again).at("digest") == table.at("digest"));

  SUBCASE("a prompt that was never recorded ends the run") {
    auto arguments = run_with("other", {"--cassette", "replay=" + cassette.string()});
    arguments[1] = "rmsnorm";
    program other(arguments);
    CHECK(other.wait() == 1);
    CHECK(other.err().find("not in the cassette") != std::string::npos);
  }
}

TEST_CASE("a server that nobody listens to ends as failed attempts, not as a hang") {
  scratch folder;
  program run({"run", "softmax", "--proposer", "llm", "--model-endpoint", "http://127.0.0.1:1/v1",
    "--model", "m", "--budget", "1attempts", "--budget", "60s", "--workers", "1", "--out",
    (folder / "run").string()});
  CHECK(run.wait() == 3);
}
