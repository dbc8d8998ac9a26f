// A run and its nodes as processes of this machine, over loopback.

#include "tests/cli/tiny_run.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <memory>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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

/// A port of the loopback that another process listens at; 0: any.
class held_port {
public:
  explicit held_port(uint16_t port) {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_port = htons(port);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    REQUIRE(bind(socket_, reinterpret_cast<sockaddr*>(&here), sizeof(here)) == 0);
    REQUIRE(listen(socket_, 1) == 0);
    socklen_t size = sizeof(here);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&here), &size);
    address = "127.0.0.1:" + std::to_string(ntohs(here.sin_port));
  }
  held_port(const held_port&) = delete;
  held_port& operator=(const held_port&) = delete;
  ~held_port() { close(socket_); }

  std::string address;

private:
  int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Every file of a run with its bytes, but for the one that every reader of the log marks.
std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() != ".db-shm")
      out[entry.path().string()] = entry.is_regular_file() ? text_of(entry.path()) : "";
  return out;
}

/// Lends nothing but a place for a worker.
std::vector<std::string> small_node(const fs::path& state, const std::string& address,
  const std::string& name, const std::vector<std::string>& more) {
  std::vector<std::string> all{"node", "--join", address, "--name", name, "--workers", "1",
    "--compile-slots", "0", "--state", state.string()};
  all.insert(all.end(), more.begin(), more.end());
  return all;
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
  CHECK(has(refused({"--gpus", "nodes:mock:h200"}), "--listen"));
  CHECK(has(refused({"--gpus", "nodes:mock:h20", "--listen", "127.0.0.1:0"}), "h200"));
  CHECK(has(refused({"--listen", "127.0.0.1"}), "--listen"));
  CHECK(has(refused({"--listen", "0.0.0.0:0"}), "--tls"));
  CHECK(has(refused({"--tls", "nowhere"}), "--listen"));
  CHECK(has(refused({"--listen", "127.0.0.1:0", "--heartbeat", "soon"}), "--heartbeat"));
  held_port taken{0};
  auto busy = refused({"--listen", taken.address});
  CHECK_MESSAGE(has(busy, "--listen " + taken.address + ": "), busy);
  CHECK(has(busy, "another process listens there"));
  auto trust = (folder / "trust").string();
  program init({"cluster", "init", trust, "--node", "n1"});
  REQUIRE(init.wait() == 0);
  // Of a net that is nobody's.
  auto foreign = refused({"--listen", "192.0.2.1:4100", "--tls", trust + "/coordinator"});
  CHECK_MESSAGE(has(foreign, "--listen 192.0.2.1:4100: "), foreign);
  CHECK(has(foreign, "give an address of this machine"));
}

TEST_CASE_FIXTURE(cluster_run,
  "a run is not resumed while its port is taken, and its node gives up after the time it is "
  "given") {
  auto run = std::make_unique<program>(listening("taken"));
  auto address = address_of("taken");
  program n1(small_node(
    tiny.folder / "state-n1", address, "n1", {"--until-run-ends", "--give-up-after", "700ms"}));
  REQUIRE(eventually([&] { return has(n1.err(), "works for"); }, 60s));
  run->signal(SIGKILL);
  run->wait();
  CHECK(n1.wait(60s) == 1);
  CHECK_MESSAGE(has(n1.err(), "giving up after 0.7 s"), n1.err());
  CHECK(has(n1.err(), address));
  {
    held_port taken(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    auto before = files_of(out("taken"));
    program again({"resume", out("taken").string()});
    CHECK(again.wait() == 2);
    CHECK_MESSAGE(has(again.err(), "--listen " + address + ": "), again.err());
    CHECK_MESSAGE(files_of(out("taken")) == before, "nothing has changed");
  }
  program last({"resume", out("taken").string()});
  CHECK(eventually([&] { return has(last.err(), "listening on " + address); }, 60s));
}

TEST_CASE("a node whose certificate is of another name ends; one whose name is taken tries again") {
  scratch folder;
  auto trust = (folder / "trust").string();
  program init({"cluster", "init", trust, "--node", "n1"});
  REQUIRE(init.wait() == 0);
  program run({"run", "softmax", "--gpus", "sleep:5ms", "--proposer", "sleep", "--workers", "1",
    "--budget", "10m", "--listen", "127.0.0.1:0", "--tls", trust + "/coordinator", "--out",
    (folder / "run").string()});
  REQUIRE(eventually([&] { return fs::exists(folder / "run" / "listen"); }, 60s));
  auto address = text_of(folder / "run" / "listen");
  address = address.substr(0, address.find('\n'));
  const std::vector<std::string> with{"--tls", trust + "/nodes/n1"};
  program other(small_node(folder / "state-other", address, "other", with));
  CHECK(other.wait(60s) == 1);
  CHECK_MESSAGE(has(other.err(), "turned away for good"), other.err());
  CHECK(has(other.err(), "its certificate is of \"n1\""));
  CHECK_FALSE(has(other.err(), "trying again"));
  program first(small_node(folder / "state-first", address, "n1", with));
  REQUIRE(eventually([&] { return has(first.err(), "works for"); }, 60s));
  // The run's one worker lived with the coordinator until now.
  CHECK(eventually([&] { return !log_of(folder / "run", {"worker_placed"}).empty(); }));
  program second(small_node(folder / "state-second", address, "n1", with));
  CHECK(eventually([&] { return has(second.err(), "trying again"); }, 60s));
  first.signal(SIGTERM);
  CHECK(first.wait(60s) == 0);
  CHECK_MESSAGE(
    eventually([&] { return has(second.err(), "works for"); }, 60s), "its turn has come");
  CHECK(log_of(folder / "run", {"actor_died", "attempt_lost"}).empty());
}

TEST_CASE("how long a node waits for a coordinator is checked like every flag") {
  scratch folder;
  auto ends_with = [&](const std::vector<std::string>& more, int code) {
    program node(small_node(folder / "state", "127.0.0.1:1", "n1", more)); // Nobody's port.
    CHECK(node.wait(60s) == code);
    return node.err();
  };
  auto alone = ends_with({"--give-up-after", "1s"}, 2);
  CHECK_MESSAGE(has(alone, "--until-run-ends"), alone);
  CHECK(has(ends_with({"--until-run-ends", "--give-up-after", "soon"}, 2), "--give-up-after soon"));
  CHECK_FALSE(fs::exists(folder / "state"));
  auto gone = ends_with({"--until-run-ends", "--give-up-after", "300ms"}, 1);
  CHECK_MESSAGE(has(gone, "giving up after 0.3 s"), gone);
}
