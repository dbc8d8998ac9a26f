// `gristmill broker` and `gristmill lease` with real processes, on sleep devices.

#include "tests/cli/broker_fixture.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace gristmill::test;
using std::chrono::seconds;

namespace {

std::string our_program() {
  return std::string(std::getenv("GRISTMILL_BIN")) + "/gristmill";
}

/// Writes its own number to F, then sleeps longer than any test.
std::string sleeper(const std::filesystem::path& file) {
  return "sh -c 'echo $$ > " + file.string() + ".new; mv " + file.string() + ".new " + file.string()
    + "; exec sleep 1000'";
}

/// Runs a program of the system with that variable added to its environment; its exit status.
int exit_of(std::vector<std::string> words, std::string variable) {
  std::vector<char*> argv, environment{variable.data()};
  for (auto& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  for (char** e = environ; *e; ++e)
    environment.push_back(*e);
  environment.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  REQUIRE(posix_spawnp(&pid, argv[0], &quiet, nullptr, argv.data(), environment.data()) == 0);
  posix_spawn_file_actions_destroy(&quiet);
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

} // namespace

TEST_CASE("a command runs under a lease and its exit code is passed on") {
  broker_process b({"--gpus", "mock:h200"});
  auto p = b.lease({"--as", "alice/x"},
    {"sh", "-c", "echo $CUDA_VISIBLE_DEVICES $GRISTMILL_LEASE_GPU $GRISTMILL_LEASE_TOKEN; exit 7"});
  CHECK(p->wait() == 7);
  CHECK(p->out() == "0 mock:h200#0 1\n");
  CHECK(p->err().find("waited") != std::string::npos);
  CHECK(b.run("true") == 0);
  CHECK(b.run("kill -TERM $$") == 128 + SIGTERM);
  auto missing = b.lease({}, {"/no/such/program"});
  CHECK(missing->wait() == 127);
  CHECK(missing->err().find("/no/such/program") != std::string::npos);
  auto quiet = b.lease({"--quiet"}, {"true"});
  CHECK(quiet->wait() == 0);
  CHECK(quiet->err().empty());
  auto json = b.lease({"--json"}, {"true"});
  CHECK(json->wait() == 0);
  CHECK(nlohmann::json::parse(json->err())["exit_code"] == 0);
  CHECK(b.all_free());
}

TEST_CASE("wrong use, no broker and no turn in time have exit codes of their own") {
  program usage({"lease", "--clas", "timing", "--", "true"});
  CHECK(usage.wait() == 2);
  CHECK(usage.err().find("--class") != std::string::npos);
  program nobody({"lease", "--socket", "/no/such/socket", "--", "true"});
  CHECK(nobody.wait() == 69);
  program nobody_there({"broker", "status", "--socket", "/no/such/socket"});
  CHECK(nobody_there.wait() == 69);
  broker_process b({"--gpus", "sleep:1"});
  auto holder = b.lease({}, {"sh", "-c", sleeper(b.folder / "pid")});
  number_in(b.folder / "pid");
  CHECK(b.run("true", {"--wait", "100ms"}) == 75);
  CHECK(b.run("true", {"--wait", "0s"}) == 75);
  CHECK(b.run("true", {"--need", "h200"}) == 2);
  CHECK(b.run("true", {"--cap", "1h"}) == 2);
}

TEST_CASE("at the cap the whole tree ends, a grandchild with a session of its own included") {
  broker_process b({"--gpus", "sleep:1"});
  auto p = b.lease({"--cap", "700ms", "--grace", "200ms"},
    {"sh", "-c",
      "trap '' TERM; setsid setsid " + sleeper(b.folder / "pid") + " & while :; do sleep 1; done"});
  auto pid = number_in(b.folder / "pid");
  CHECK(p->wait(seconds{10}) == 124);
  CHECK(p->err().find("cap") != std::string::npos);
  CHECK(gone(pid));
  CHECK(b.all_free());
}

TEST_CASE("what a command leaves behind ends with its lease") {
  broker_process b({"--gpus", "sleep:1"});
  CHECK(b.run("setsid " + sleeper(b.folder / "pid") + " & while ! test -f "
          + (b.folder / "pid").string() + "; do sleep 0.01; done; exit 3")
    == 3);
  CHECK(gone(number_in(b.folder / "pid")));
  CHECK(b.all_free());
}

TEST_CASE("kill -9 of the client, of the guard, or of both leaves nothing held and nothing alive") {
  broker_process b({"--gpus", "sleep:1"});
  for (const std::string victim : {"client", "guard", "both"}) {
    CAPTURE(victim);
    auto file = b.folder / victim;
    auto p = b.lease({},
      {"sh", "-c", "setsid setsid " + sleeper(file.string() + "-2") + " & exec " + sleeper(file)});
    auto command = number_in(file);
    auto grandchild = number_in(file.string() + "-2");
    auto guard = parent_of(command);
    REQUIRE(guard > 1);
    REQUIRE(guard != p->pid());
    if (victim != "client")
      kill(guard, SIGKILL);
    if (victim != "guard")
      p->signal(SIGKILL);
    CHECK(p->wait(seconds{10}) == 128 + SIGKILL);
    CHECK(gone(command));
    CHECK(gone(grandchild));
    CHECK(b.run("true", {"--wait", "10s"}) == 0);
  }
  CHECK(b.all_free());
}

TEST_CASE("Ctrl-C while waiting leaves the line, Ctrl-C while running reaches the command") {
  broker_process b({"--gpus", "sleep:1"});
  auto holder = b.lease({},
    {"sh", "-c",
      "trap 'exit 5' INT; echo $$ > " + (b.folder / "pid").string()
        + "; while :; do sleep 0.05; done"});
  number_in(b.folder / "pid");
  auto waiter = b.lease({}, {"true"});
  REQUIRE(eventually([&] { return b.status()["waiting"] == 1; }));
  waiter->signal(SIGINT);
  CHECK(waiter->wait(seconds{5}) == 130);
  REQUIRE(eventually([&] { return b.status()["waiting"] == 0; }));
  holder->signal(SIGINT);
  CHECK(holder->wait(seconds{5}) == 5);
  CHECK(b.all_free());
}

TEST_CASE("kill -9 of the broker: the command goes on, is adopted, and who waits waits on") {
  broker_process b({"--gpus", "sleep:1"});
  auto go = (b.folder / "go").string();
  auto holder = b.lease({"--as", "alice/x"},
    {"sh", "-c",
      "echo $$ > " + (b.folder / "pid").string() + "; while ! test -f " + go
        + "; do sleep 0.02; done; exit 9"});
  auto command = number_in(b.folder / "pid");
  auto waiter = b.lease({"--as", "bob/x"}, {"sh", "-c", "exit 4"});
  REQUIRE(eventually([&] { return b.status()["waiting"] == 1; }));
  auto before = b.status()["gpus"][0];
  b.kill_it();
  CHECK(kill(command, 0) == 0);
  b.start();
  REQUIRE(eventually([&] { return b.status()["gpus"][0]["phase"] == "active"; }));
  REQUIRE(eventually([&] { return b.status()["waiting"] == 1; }));
  auto after = b.status();
  CHECK(after["epoch"] == 2);
  CHECK(after["gpus"][0]["token"] == before["token"]);
  CHECK(after["gpus"][0]["user"] == "alice");
  CHECK(after["gpus"][0]["held_ns"] > before["held_ns"]);
  CHECK(kill(command, 0) == 0);
  std::ofstream(go) << "go";
  CHECK(holder->wait(seconds{10}) == 9);
  CHECK(waiter->wait(seconds{10}) == 4);
  CHECK(b.all_free());
}

TEST_CASE("broker, client and guard killed at once: the next broker ends what is left") {
  broker_process b({"--gpus", "sleep:1"});
  auto p = b.lease({},
    {"sh", "-c",
      "setsid setsid " + sleeper(b.folder / "pid2") + " & exec " + sleeper(b.folder / "pid")});
  auto command = number_in(b.folder / "pid");
  auto grandchild = number_in(b.folder / "pid2");
  b.kill_it();
  kill(parent_of(command), SIGKILL);
  p->signal(SIGKILL);
  p->wait();
  b.start();
  CHECK(gone(command));
  CHECK(gone(grandchild));
  CHECK(b.run("true", {"--wait", "10s"}) == 0);
}

TEST_CASE("two stages of one pipeline share the lease of the first") {
  broker_process b({"--gpus", "sleep:1"});
  auto inner = our_program() + " lease -- sh -c 'echo inner $GRISTMILL_LEASE_TOKEN'";
  auto p = b.lease({"--cap", "20s"}, {"sh", "-c", inner + " | cat; " + inner});
  CHECK(p->wait(seconds{10}) == 0);
  CHECK(p->out() == "inner 1\ninner 1\n");
}

TEST_CASE("drain, undrain, quota and status work from outside") {
  broker_process b({"--gpus", "sleep:2", "--quota", "alice=2", "--cap", "timing=30s"});
  auto tool = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"broker", "--socket", b.socket()});
    return program(words).wait();
  };
  CHECK(tool({"drain", "sleep#0", "--reason", "fan"}) == 0);
  CHECK(b.status()["gpus"][0]["phase"] == "draining");
  CHECK(b.status()["gpus"][0]["reason"] == "fan");
  CHECK(tool({"drain", "cuda:9"}) == 2);
  CHECK(tool({"quota", "bob=3"}) == 0);
  CHECK(tool({"quota", "bob=0"}) == 2);
  CHECK(b.status()["weights"]["alice"] == 2);
  CHECK(b.status()["weights"]["bob"] == 3);
  CHECK(b.run("test $GRISTMILL_LEASE_GPU = sleep#1") == 0);
  CHECK(b.run("true", {"--cap", "31s"}) == 2);
  b.kill_it();
  b.start();
  CHECK(b.status()["gpus"][0]["phase"] == "draining");
  CHECK(tool({"undrain", "sleep#0"}) == 0);
  CHECK(b.all_free());
  program text({"broker", "status", "--socket", b.socket()});
  CHECK(text.wait() == 0);
  CHECK(text.out().find("sleep#0") != std::string::npos);
}

TEST_CASE("a second broker is refused, a stale socket is taken over, SIGTERM waits for leases") {
  broker_process b({"--gpus", "sleep:1"});
  program second({"broker", "--gpus", "sleep:1", "--socket", b.socket(), "--state",
    (b.folder / "other").string()});
  CHECK(second.wait() == 2);
  CHECK(second.err().find("another broker") != std::string::npos);
  program same_state({"broker", "--gpus", "sleep:1", "--socket", (b.folder / "s2").string(),
    "--state", (b.folder / "state").string()});
  CHECK(same_state.wait() == 2);
  b.kill_it();
  CHECK(std::filesystem::exists(b.socket()));
  b.start();
  auto go = (b.folder / "go").string();
  auto holder = b.lease({},
    {"sh", "-c",
      "echo $$ > " + (b.folder / "pid").string() + "; while ! test -f " + go
        + "; do sleep 0.02; done"});
  number_in(b.folder / "pid");
  b.process().signal(SIGTERM);
  REQUIRE(eventually([&] { return b.status()["draining"] == true; }));
  std::ofstream(go) << "go";
  CHECK(holder->wait(seconds{10}) == 0);
  CHECK(b.process().wait(seconds{10}) == 0);
  CHECK_FALSE(std::filesystem::exists(b.socket()));
}

TEST_CASE("what the broker cannot read is refused before it listens") {
  auto refused = [](std::vector<std::string> flags, const std::string& wanted,
                   const variables& environment = {}) {
    scratch folder;
    flags.insert(flags.begin(),
      {"broker", "--socket", (folder / "s").string(), "--state", (folder / "state").string()});
    program p(flags, environment);
    CHECK(p.wait() == 2);
    INFO(p.err());
    CHECK(p.err().find(wanted) != std::string::npos);
  };
  refused({}, "--gpus");
  refused({"--gpus", "hip:0"}, "cuda:all");
  refused({"--gpus", "sleep:1", "--lease-policy", "strid"}, "stride");
  refused({"--gpus", "sleep:1", "--quota", "alice"}, "USER=WEIGHT");
  refused({"--gpus", "sleep:1", "--cap", "timming=5s"}, "timing");
  refused({"--gpus", "sleep:1", "--ttl", "0s"}, "--ttl");
  if (std::filesystem::exists("/proc/driver/nvidia"))
    MESSAGE("SKIPPED: there is a GPU here, so `cuda:all` without one cannot be tried");
  else
    refused({"--gpus", "cuda:all"}, "no NVIDIA GPU", {{"PATH", "/nowhere"}});
}

TEST_CASE("real GPUs are named by UUID and looked at with nvidia-smi after each lease") {
  scratch tools;
  auto smi = tools / "nvidia-smi";
  std::filesystem::create_directories(smi.parent_path());
  std::ofstream(smi) << "#!/bin/sh\ncase \"$*\" in\n"
                        "*index,uuid*) echo '0, GPU-aaaa, NVIDIA H200, 143771, 9.0';;\n"
                        "*compute-apps*) cat "
                     << (tools / "apps").string()
                     << " 2>/dev/null;;\n*memory.used*) echo 4;;\n-L) echo GPU;;\nesac\nexit 0\n";
  chmod(smi.c_str(), 0755);
  broker_process b(
    {"--gpus", "cuda:all"}, {{"PATH", smi.parent_path().string() + ":" + std::getenv("PATH")}});
  auto p = b.lease({"--need", "h200"}, {"sh", "-c", "echo $CUDA_VISIBLE_DEVICES"});
  CHECK(p->wait() == 0);
  CHECK(p->out() == "GPU-aaaa\n");
  std::ofstream(tools / "apps") << "4711, 1024\n";
  auto dirty = b.lease({}, {"true"});
  CHECK(dirty->wait() == 0);
  CHECK(eventually([&] { return b.status()["gpus"][0]["phase"] == "suspect"; }));
  CHECK(dirty->err().find("4711") != std::string::npos);
}

TEST_CASE("the Python client waits, sees its GPU and gives it back, also after an exception") {
  broker_process b({"--gpus", "sleep:1"});
  auto python = [&](const std::string& body) {
    return "import sys, os; sys.path.insert(0, '" + source_file("clients/python")
      + "')\nfrom gristmill_lease import lease\n" + body;
  };
  auto run = [&](const std::string& body) {
    auto words = b.folder / "code.py";
    std::ofstream(words) << python(body);
    // Not under a lease: the interpreter asks for one itself.
    return exit_of({"python3", words.string()}, "GRISTMILL_LEASE_SOCKET=" + b.socket());
  };
  CHECK(run("with lease(cls='timing', cap=20) as gpu:\n    assert gpu['name'] == 'sleep#0'\n"
            "    assert os.environ['CUDA_VISIBLE_DEVICES'] == '0'\n")
    == 0);
  CHECK(run("with lease():\n    raise ValueError\n") != 0);
  CHECK(run("with lease(need='h200'):\n    pass\n") != 0);
  CHECK(run("with lease():\n    os.kill(os.getpid(), 9)\n") != 0);
  CHECK(b.all_free());
  CHECK(b.run("true", {"--wait", "5s"}) == 0);
}
