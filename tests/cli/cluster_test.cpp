// A run and its nodes as processes of this machine, over loopback.

#include "tests/cli/tiny_run.hpp"

#include <csignal>
#include <memory>

using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

/// A run whose devices are those of nodes, and the same run in one process.
struct cluster_run {
  tiny_run calm_run;
  tiny_run tiny{"nodes:mock:h200"};
  std::map<std::string, std::unique_ptr<program>> nodes;

  fs::path out(const std::string& name) const { return tiny.folder / name; }

  std::vector<std::string> listening(const std::string& name) const {
    auto all = tiny.starting(out(name));
    all.insert(all.end(), {"--listen", "127.0.0.1:0"});
    return all;
  }

  std::string address_of(const std::string& name) const {
    REQUIRE(eventually([&] { return fs::exists(out(name) / "listen"); }, 60s));
    auto text = text_of(out(name) / "listen");
    return text.substr(0, text.find('\n'));
  }

  program& node(const std::string& name, const std::string& address) {
    auto& made = nodes[name];
    made.reset();
    made = std::make_unique<program>(std::vector<std::string>{"node", "--join", address, "--name",
      name, "--gpus", "mock:h200", "--compile-slots", "1", "--workers", "1", "--toolchain", "clang",
      "--state", (tiny.folder / ("state-" + name)).string(), "--until-run-ends"});
    return *made;
  }

  verdict_set expected() {
    program calm(calm_run.starting(calm_run.folder / "calm"));
    int status = calm.wait();
    INFO("stderr: ", calm.err());
    REQUIRE((status == 0 || status == 3));
    auto verdicts = verdicts_of(calm_run.folder / "calm");
    REQUIRE(verdicts.size() == 12); // Five candidates and the baseline, twice.
    return verdicts;
  }
};

/// By candidate: the same one may be measured again when its worker is lost after its verdict.
verdict_set last_verdicts_of(const fs::path& run) {
  verdict_set out;
  for (const auto& e : log_of(run, {"verdict"})) {
    const auto& data = e.at("data");
    out[{e.at("problem"), e.at("candidate"), data.at("key")}] =
      fmt::format("{} {} {}", data.at("status").get<std::string>(),
        data.at("objective_ns").get<uint64_t>(), data.at("speedup").get<double>());
  }
  return out;
}

} // namespace

TEST_CASE_FIXTURE(
  cluster_run, "a run on the devices of two nodes ends with the verdicts of one process") {
  auto calm = expected();
  program run(listening("far"));
  auto address = address_of("far");
  node("n1", address);
  node("n2", address);
  int status = run.wait();
  INFO("stderr: ", run.err());
  CHECK((status == 0 || status == 3));
  CHECK(run.err().find("listening on " + address) != std::string::npos);
  CHECK(verdicts_of(out("far")) == calm);
  CHECK(log_of(out("far"), {"node_joined"}).size() == 2);
  for (const auto& e : log_of(out("far"), {"measured"}))
    CHECK(e.at("gpu").get<std::string>().find("/mock:h200#0") != std::string::npos);
  for (auto& [name, process] : nodes) {
    CHECK(process->wait(30s) == 0);
    INFO(name, " stderr: ", process->err());
    CHECK(processes_in(tiny.folder / ("state-" + name)).empty());
  }
}

TEST_CASE_FIXTURE(cluster_run,
  "a node that is killed and comes back changes no verdict and counts as nobody's failure") {
  auto calm = expected();
  program run(listening("killed"));
  auto address = address_of("killed");
  node("n1", address);
  node("n2", address);
  auto measured = [&](size_t least) {
    return eventually([&] { return log_of(out("killed"), {"measured"}).size() >= least; }, 60s);
  };
  REQUIRE(measured(2));
  nodes["n1"]->signal(SIGKILL);
  nodes["n1"]->wait();
  REQUIRE(eventually([&] { return !log_of(out("killed"), {"node_lost"}).empty(); }, 20s));
  node("n1", address);
  int status = run.wait();
  INFO("stderr: ", run.err());
  CHECK((status == 0 || status == 3));
  CHECK(last_verdicts_of(out("killed")) == calm);
  for (const auto& e : log_of(out("killed"), {"attempt_finished"}))
    CHECK_MESSAGE(e.at("data").at("outcome") != "infrastructure", e.dump());
  CHECK(log_of(out("killed"), {"no_verdict", "actor_died", "attempt_lost"}).empty());
}

TEST_CASE("what cannot be listened at, or on, is said before anything is begun") {
  scratch folder;
  auto refused = [&](std::vector<std::string> more) {
    std::vector<std::string> all{"run", "softmax", "--out", (folder / "out").string()};
    all.insert(all.end(), more.begin(), more.end());
    program run(all);
    CHECK(run.wait() == 2);
    CHECK_FALSE(fs::exists(folder / "out"));
    return run.err();
  };
  auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(refused({"--gpus", "nodes:mock:h200"}), "--listen"));
  CHECK(has(refused({"--gpus", "nodes:mock:h20", "--listen", "127.0.0.1:0"}), "h200"));
  CHECK(has(refused({"--listen", "127.0.0.1"}), "--listen"));
  CHECK(has(refused({"--listen", "0.0.0.0:0"}), "--tls"));
  CHECK(has(refused({"--tls", "nowhere"}), "--listen"));
  CHECK(has(refused({"--listen", "127.0.0.1:0", "--heartbeat", "soon"}), "--heartbeat"));
}
