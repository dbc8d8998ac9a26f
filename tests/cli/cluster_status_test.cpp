// `gristmill cluster status|drain|undrain`, against nobody and against a coordinator without nodes.

#include "tests/cli/program.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

/// A rehearsal that listens on loopback until it is told to end.
struct coordinator {
  scratch folder;
  program run{
    {"run", "softmax", "--gpus", "sleep:5ms:2", "--proposer", "sleep", "--workers", "3", "--budget",
      "10m", "--seed", "1", "--listen", "127.0.0.1:0", "--out", (folder / "run").string()}};
  std::string address = wait_for_address();

  std::string wait_for_address() {
    std::string out;
    const bool listens = eventually([&] {
      std::ifstream in(folder / "run" / "listen");
      return std::getline(in, out) && !out.empty();
    });
    REQUIRE_MESSAGE(listens, run.err());
    return out;
  }

  /// Exit code and both outputs.
  struct said {
    int code = 0;
    std::string out;
    std::string err;
  };
  said ask(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "cluster");
    arguments.insert(arguments.end(), {"--join", address});
    program client(std::move(arguments));
    const int code = client.wait();
    return {code, client.out(), client.err()};
  }
};

} // namespace

TEST_CASE("where nobody listens, the address is named and the exit code is 1") {
  // Port 1 is nobody's.
  program client({"cluster", "status", "--join", "127.0.0.1:1"});
  CHECK(client.wait() == 1);
  CHECK(client.out().empty());
  CHECK_MESSAGE(client.err().find("127.0.0.1:1") != std::string::npos, client.err());
}

TEST_CASE("flags that cannot be are refused before anybody is asked") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
    {{"status"}, "--join is missing"},
    {{"status", "--join", "127.0.0.1"}, "--join"},
    {{"status", "--join", "192.0.2.1:4600"}, "--tls"},
    {{"status", "--join", "127.0.0.1:1", "--json", "--metrics"}, "give one of them"},
    {{"status", "--join", "127.0.0.1:1", "--tls", "/nowhere"}, "/nowhere"},
    {{"drain", "--join", "127.0.0.1:1"}, "node"},
    {{"drian", "n1"}, "did you mean `drain`"},
  };
  for (auto [arguments, says] : cases) {
    CAPTURE(says);
    arguments.insert(arguments.begin(), "cluster");
    program client(arguments);
    CHECK(client.wait() == 2);
    CHECK_MESSAGE(client.err().find(says) != std::string::npos, client.err());
  }
}

TEST_CASE_FIXTURE(
  coordinator, "a coordinator tells its state in three forms, and knows its nodes") {
  const auto table = ask({"status"});
  CHECK_MESSAGE(table.code == 0, table.err);
  CHECK(table.out.find("start 1, up ") != std::string::npos);
  CHECK(table.out.find("no node has joined") != std::string::npos);
  const auto json = ask({"status", "--json"});
  REQUIRE_MESSAGE(json.code == 0, json.err);
  const auto parsed = nlohmann::json::parse(json.out);
  CHECK(parsed["schema"] == "gristmill.cluster-status/1");
  CHECK(parsed["devices_here"] == 2);
  CHECK(parsed["nodes"].empty());
  const auto metrics = ask({"status", "--metrics"});
  CHECK(metrics.code == 0);
  CHECK(metrics.out.find("gristmill_coordinator_devices 2\n") != std::string::npos);
  const auto unknown = ask({"drain", "box-7"});
  CHECK(unknown.code == 2);
  CHECK_MESSAGE(unknown.err.find("box-7") != std::string::npos, unknown.err);
  CHECK(ask({"undrain", "box-7"}).code == 2);
  run.signal(SIGINT);
  CHECK(run.wait() == 130);
}
