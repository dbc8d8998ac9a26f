// Children that try to get out of their jail, under both ways of building it.
#include "gpu/children/job_directory.hpp"
#include "tests/gpu/children/child_fixture.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

/// A setting of the environment for the length of a test.
struct setting {
  setting(const char* of, const std::string& value) : name(of) {
    if (const char* old = std::getenv(of))
      before = old, was_set = true;
    setenv(of, value.c_str(), 1);
  }
  setting(const setting&) = delete;
  setting& operator=(const setting&) = delete;
  ~setting() {
    if (was_set)
      setenv(name, before.c_str(), 1);
    else
      unsetenv(name);
  }

  const char* name;
  std::string before;
  bool was_set = false;
};

struct loopback_server {
  int plug = socket(AF_INET, SOCK_STREAM, 0);
  int port = 0;

  loopback_server() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    REQUIRE(bind(plug, reinterpret_cast<const sockaddr*>(&at), size) == 0);
    REQUIRE(listen(plug, 4) == 0);
    REQUIRE(getsockname(plug, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    port = ntohs(at.sin_port);
  }
  loopback_server(const loopback_server&) = delete;
  loopback_server& operator=(const loopback_server&) = delete;
  ~loopback_server() { close(plug); }
};

class prisoner : public child_fixture {
public:
  prisoner() : home(jobs_folder + "/home") {
    std::filesystem::create_directories(home);
    secret = put(home + "/secret", "#define SECRET 4711\n");
    put(jobs_folder + "/outside", "before");
  }

  static std::string put(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
    return path;
  }

  /// False, loudly, where this system does not let that way be gone.
  bool can_confine(const std::string& way) {
    const auto answer = run(fake("good"));
    if (answer.end == child_end::done)
      return true;
    MESSAGE("SKIPPED: no jail by " << way << " on this system: " << answer.log);
    return false;
  }

  ordered_json try_to_escape(child_profile profile, const std::string& input, bool jailed = true,
    const std::string& device = "") {
    auto request = fake("escapes");
    request.profile = profile;
    request.device = device;
    request.argv.push_back(ordered_json{{"secret", secret}, {"outside", jobs_folder + "/outside"},
      {"stranger", getpid()}, {"address", reinterpret_cast<uint64_t>(&secret)},
      {"port", server.port}, {"input", input},
      {"jailed", jailed}}.dump());
    const auto answer = run(request);
    REQUIRE_MESSAGE(answer.end == child_end::done, answer.log);
    return lines_of(answer, child_line_kind::sample).at(0);
  }

  bool wrote_outside() const {
    std::string text;
    std::getline(std::ifstream(jobs_folder + "/outside"), text);
    return text != "before";
  }

  bool gone_within(const std::string& argument, std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (!processes_with(argument).empty())
      if (std::chrono::steady_clock::now() > end)
        return false;
      else
        poll(nullptr, 0, 10);
    return true;
  }

  const std::string home;
  std::string secret;
  loopback_server server;
};

constexpr const char* ways[] = {"own", "bubblewrap"};

constexpr const char* holes[] = {"reads the secret", "reads through the root of another process",
  "writes to the system", "changes the kernel", "moves interrupts", "reaches a server",
  "opens a raw socket", "sees a stranger", "traces another process",
  "reads memory of another process", "makes a user namespace", "mounts", "becomes another user",
  "sees a disk"};

} // namespace

TEST_CASE_FIXTURE(prisoner, "a compiler, a judge and a runner find no way out") {
  for (const char* way : ways)
    for (auto profile : {child_profile::compiler, child_profile::judge, child_profile::runner}) {
      const std::string profile_name = to_string(profile);
      CAPTURE(way);
      CAPTURE(profile_name);
      const setting sandbox("GRISTMILL_SANDBOX", way);
      if (!can_confine(way))
        break;
      const auto found = try_to_escape(profile, "/usr/bin/env");
      for (const std::string hole : holes) {
        CAPTURE(hole);
        CHECK_FALSE(found.at(hole).get<bool>());
      }
      // The jail's own processes, the child and one that it starts for a try.
      CHECK(found.at("processes in sight").get<int>() <= 4);
      CHECK(found.at("writes into its folder").get<bool>());
      CHECK(found.at("reads its input").get<bool>());
      CHECK_FALSE(wrote_outside());
    }
}

TEST_CASE_FIXTURE(prisoner, "a runner of a real device sees processes and changes none of /proc") {
  for (const char* way : ways) {
    CAPTURE(way);
    const setting sandbox("GRISTMILL_SANDBOX", way);
    if (!can_confine(way))
      continue;
    const auto found = try_to_escape(child_profile::runner, "/usr/bin/env", true, "cuda:0");
    CHECK(found.at("processes in sight").get<int>() > 4);
    CHECK_FALSE(found.at("changes the kernel").get<bool>());
    CHECK_FALSE(found.at("moves interrupts").get<bool>());
  }
}

TEST_CASE_FIXTURE(prisoner, "without a jail the tries succeed: they would notice a hole") {
  const setting sandbox("GRISTMILL_SANDBOX", "limits");
  const auto found = try_to_escape(child_profile::runner, "/usr/bin/env", false);
  CHECK(wrote_outside());
  for (const char* hole : {"reads the secret", "reaches a server", "sees a stranger",
         "reads memory of another process"}) {
    CAPTURE(hole);
    if (std::string(hole) == "reads memory of another process" && !found.at(hole).get<bool>())
      MESSAGE("this system lets no process read another's memory");
    else
      CHECK(found.at(hole).get<bool>());
  }
  CHECK(found.at("processes in sight").get<int>() > 4);
}

TEST_CASE_FIXTURE(prisoner, "an oracle reads the system, but no home, and writes only its folder") {
  const setting at_home("HOME", home);
  for (const char* way : ways) {
    CAPTURE(way);
    const setting sandbox("GRISTMILL_SANDBOX", way);
    if (!can_confine(way))
      continue;
    const auto found = try_to_escape(child_profile::oracle, "/etc/passwd");
    for (const char* hole :
      {"reads the secret", "reads through the root of another process", "writes to the system",
        "changes the kernel", "sees a stranger", "traces another process",
        "reads memory of another process", "makes a user namespace", "mounts", "sees a disk"}) {
      CAPTURE(std::string(hole));
      CHECK_FALSE(found.at(hole).get<bool>());
    }
    CHECK_FALSE(wrote_outside());
    CHECK(found.at("reads its input").get<bool>());
    CHECK(found.at("writes into its folder").get<bool>());
  }
}

TEST_CASE_FIXTURE(prisoner, "a source that names a secret file does not compile") {
  const std::string compiler = "/usr/bin/g++";
  if (access(compiler.c_str(), X_OK) != 0) {
    MESSAGE("SKIPPED: no " << compiler);
    return;
  }
  for (const char* way : ways)
    for (const bool by_assembler : {false, true}) {
      CAPTURE(way);
      CAPTURE(by_assembler);
      const setting sandbox("GRISTMILL_SANDBOX", way);
      if (!can_confine(way))
        break;
      auto request = fake("");
      request.profile = child_profile::compiler;
      const auto source = request.job_directory + "/kernel.cpp";
      request.argv = {compiler, "-c", source, "-o", request.job_directory + "/kernel.o"};
      put(source, "int answer() { return 1; }\n");
      const auto fine = run(request);
      REQUIRE_MESSAGE(fine.status == 0, fine.log);
      put(source,
        by_assembler ? fmt::format("asm(\".incbin \\\"{}\\\"\");\n", secret)
                     : fmt::format("#include \"{}\"\n", secret));
      request.id += 1000;
      const auto answer = run(request);
      CHECK(answer.status != 0);
      const bool named = answer.log.find("No such file") != std::string::npos
        || answer.log.find("file not found") != std::string::npos;
      CHECK_MESSAGE(named, answer.log);
    }
}

TEST_CASE_FIXTURE(prisoner, "a child that starts processes without end is stopped") {
  for (const char* way : ways) {
    CAPTURE(way);
    const setting sandbox("GRISTMILL_SANDBOX", way);
    if (!can_confine(way))
      continue;
    auto request = fake("forks");
    request.profile = child_profile::compiler;
    request.argv.push_back(request.job_directory);
    auto answer = start(request);
    // Refused more, it waits and is ended here; or the watch has ended it.
    if (answer.wait_for(5s) != std::future_status::ready)
      loop.cancel(request.id);
    const auto ended = answer_of(answer);
    CHECK(ended.end != child_end::done);
    const auto samples = lines_of(ended, child_line_kind::sample);
    const int made = samples.empty() ? 0 : samples[0].at("made").get<int>();
    // 512, and on a kernel that gives out numbers apart 300 more.
    CHECK(made <= 812);
    if (samples.empty())
      CHECK(ended.log.find("more than 512 processes") != std::string::npos);
    CHECK(gone_within(request.job_directory, 10s));
  }
}

TEST_CASE_FIXTURE(prisoner, "a child that fills the disk is stopped") {
  const setting sandbox("GRISTMILL_SANDBOX", "own");
  if (!can_confine("own"))
    return;
  auto request = fake("fills");
  request.profile = child_profile::compiler;
  auto answer = start(request);
  std::error_code error;
  if (answer.wait_for(20s) != std::future_status::ready) {
    loop.cancel(request.id);
    const auto samples = lines_of(answer_of(answer), child_line_kind::sample);
    REQUIRE_FALSE(samples.empty());
    if (!samples[0].at("can_reserve").get<bool>())
      MESSAGE("SKIPPED: this file system cannot reserve room for a file");
    else
      FAIL("nobody ended it");
    return;
  }
  const auto ended = answer_of(answer);
  CHECK(ended.status == 128 + SIGKILL);
  CHECK_MESSAGE(ended.log.find("more than 1024 MiB") != std::string::npos, ended.log);
}

TEST_CASE_FIXTURE(prisoner, "a daemon does not outlive the child that left it") {
  for (const char* way : ways) {
    CAPTURE(way);
    const setting sandbox("GRISTMILL_SANDBOX", way);
    if (!can_confine(way))
      continue;
    auto request = fake("leaves_daemon");
    request.argv.push_back(request.job_directory);
    CHECK(run(request).end == child_end::done);
    CHECK(processes_with(request.job_directory).empty());
  }
}

TEST_CASE_FIXTURE(prisoner, "a way that was asked for by name is not replaced by less") {
  const setting sandbox("GRISTMILL_SANDBOX", "strict");
  const auto answer = run(fake("good"));
  CHECK(answer.end == child_end::could_not_start);
  CHECK(answer.log.find("auto, bubblewrap, own, limits") != std::string::npos);
}

TEST_CASE_FIXTURE(prisoner, "a child is told what protects it") {
  for (const auto& [way, part] : {std::pair{"own", "by gristmill-jail"},
         {"bubblewrap", "by bubblewrap"}, {"limits", "limits;"}}) {
    CAPTURE(way);
    const setting sandbox("GRISTMILL_SANDBOX", way);
    if (!can_confine(way))
      continue;
    const auto answer = run(fake("surroundings"));
    const auto found = lines_of(answer, child_line_kind::sample).at(0);
    CHECK(found.at("environment").at("GRISTMILL_PROTECTIONS").get<std::string>().find(part)
      != std::string::npos);
  }
}
