#include "actors/transport/certificates.hpp"
#include "actors/transport/dial.hpp"
#include "actors/transport/gate.hpp"
#include "tests/journal/temporary_folder.hpp"

#include <arpa/inet.h>
#include <ctime>
#include <doctest/doctest.h>
#include <filesystem>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace gristmill;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

const join_identity ours{1, "0.9.0", "hub"};

join_identity process(const std::string& name) {
  return {1, "0.9.0", name};
}

/// A gate, and who takes its connections as the actor library would: says a word to each.
class listening {
public:
  explicit listening(const std::string& tls, std::chrono::milliseconds patience = 5000ms,
    std::chrono::milliseconds silence = 10000ms) {
    gate_settings settings;
    settings.address = {"127.0.0.1", 0};
    settings.tls = tls;
    settings.ours = ours;
    settings.patience = patience;
    settings.silence = silence;
    auto opened = cluster_gate::open(settings);
    REQUIRE_MESSAGE(opened, opened.error().what);
    gate = std::move(*opened);
    ready_ = gate->take_ready_socket();
    thread_ = std::thread([this] { take(); });
  }

  ~listening() {
    stop_ = true;
    thread_.join();
    close(ready_);
  }

  result<wire_ptr> join(
    const std::string& tls, const join_identity& who, std::chrono::milliseconds deadline = 5000ms) {
    return dial({{"127.0.0.1", gate->port()}, tls, who}, deadline);
  }

  std::unique_ptr<cluster_gate> gate;
  std::atomic<size_t> taken{0};

private:
  void take() {
    while (!stop_) {
      pollfd one{ready_, POLLIN, 0};
      char byte = 0;
      if (poll(&one, 1, 20) == 1 && recv(ready_, &byte, 1, 0) == 1)
        if (auto next = gate->next()) {
          next->line->write("hello", 5);
          held_.push_back(next->line);
          ++taken;
        }
      // As the actor library does with a connection at its end.
      std::erase_if(held_, [](const wire_ptr& line) {
        char rest[64];
        const auto got = line->read(rest, sizeof(rest));
        const bool over = got.what == wire::state::ended || got.what == wire::state::failed;
        if (over)
          line->gone();
        return over;
      });
    }
  }

  int ready_ = -1;
  std::atomic<bool> stop_{false};
  std::vector<wire_ptr> held_;
  std::thread thread_;
};

struct two_clusters {
  two_clusters() {
    for (const auto* each : {"ours", "theirs"})
      REQUIRE(make_cluster_folder(base / each, {{"a"}, {}, std::time(nullptr)}));
  }

  std::string hub() const { return base / "ours/coordinator"; }
  std::string node() const { return base / "ours/nodes/a"; }
  std::string stranger() const { return base / "theirs/nodes/a"; }

  temporary_folder scratch;
  const fs::path& base = scratch.path;
};

void check_failure(const result<wire_ptr>& joined, errc code, const std::string& part) {
  REQUIRE_FALSE(joined);
  INFO(joined.error().what);
  CHECK(joined.error().code == code);
  CHECK(joined.error().what.find(part) != std::string::npos);
}

/// A port of 127.0.0.1 where nobody listens, or somebody who never answers.
class silent_port {
public:
  explicit silent_port(bool listens) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in end{};
    end.sin_family = AF_INET;
    end.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(end);
    REQUIRE(bind(socket_, reinterpret_cast<sockaddr*>(&end), size) == 0);
    if (listens)
      REQUIRE(::listen(socket_, 8) == 0);
    REQUIRE(getsockname(socket_, reinterpret_cast<sockaddr*>(&end), &size) == 0);
    port = ntohs(end.sin_port);
  }
  ~silent_port() { close(socket_); }

  uint16_t port = 0;

private:
  int socket_;
};

} // namespace

TEST_CASE("without TLS a process of the same user is let in and hears the first word") {
  listening hub{""};
  auto joined = hub.join("", process("a"));
  REQUIRE_MESSAGE(joined, joined.error().what);
  char word[8] = {};
  CHECK((*joined)->read(word, sizeof(word)).bytes == 5);
  CHECK(std::string(word) == "hello");
  CHECK(hub.gate->names_of("a") == std::vector<std::string>{""});
  CHECK(hub.gate->names_of("b").empty());
}

TEST_CASE_FIXTURE(two_clusters, "with TLS a node of the cluster is let in under its name") {
  listening hub{this->hub()};
  auto joined = hub.join(node(), process("p"));
  REQUIRE_MESSAGE(joined, joined.error().what);
  CHECK((*joined)->encrypted());
  CHECK((*joined)->peer_name() == "coordinator");
  CHECK(hub.gate->names_of("p") == std::vector<std::string>{"a"});
}

TEST_CASE_FIXTURE(
  two_clusters, "TLS that does not fit is refused, and the text says what is wrong") {
  listening hub{this->hub()};
  SUBCASE("a certificate of another CA: the node refuses the coordinator") {
    check_failure(hub.join(stranger(), process("p")), errc::refused, "of another CA");
  }
  SUBCASE("a certificate of another CA that trusts ours: the coordinator refuses the node") {
    fs::copy_file(base / "ours/nodes/a/ca.pem", base / "mixed.pem");
    std::error_code error;
    fs::copy(base / "theirs/nodes/a", base / "both", fs::copy_options::recursive, error);
    std::FILE* ca = std::fopen((base / "both/ca.pem").c_str(), "a");
    REQUIRE(ca);
    std::FILE* more = std::fopen((base / "mixed.pem").c_str(), "r");
    REQUIRE(more);
    for (int c = std::fgetc(more); c != EOF; c = std::fgetc(more))
      std::fputc(c, ca);
    std::fclose(ca);
    std::fclose(more);
    check_failure(
      hub.join(base / "both", process("p")), errc::refused, "same `gristmill cluster init`");
  }
  SUBCASE("no TLS to a port with TLS") {
    check_failure(hub.join("", process("p")), errc::refused, "--tls FOLDER");
  }
  CHECK(hub.taken == 0);
}

TEST_CASE_FIXTURE(two_clusters, "a node cannot pass for the coordinator") {
  // Refused before anything listens; the check of the peer stands behind it.
  gate_settings settings;
  settings.address = {"127.0.0.1", 0};
  settings.tls = node();
  settings.ours = ours;
  CHECK_FALSE(cluster_gate::open(settings));
}

TEST_CASE_FIXTURE(two_clusters, "TLS to a port without TLS ends in words, not in silence") {
  listening hub{""};
  check_failure(hub.join(node(), process("p"), 1000ms), errc::refused, "TLS");
}

TEST_CASE("another version is turned away with both named") {
  listening hub{""};
  check_failure(hub.join("", {1, "0.8.0", "p"}), errc::refused, "0.8.0 (cluster protocol 1)");
  check_failure(hub.join("", {2, "0.9.0", "p"}), errc::refused, "0.9.0 (cluster protocol 2)");
}

TEST_CASE("a port where nobody listens, an unknown host and a silent peer are told apart") {
  silent_port closed{false};
  check_failure(
    dial({{"127.0.0.1", closed.port}, "", process("p")}, 2s), errc::node_lost, "nobody listens");
  silent_port mute{true};
  check_failure(
    dial({{"127.0.0.1", mute.port}, "", process("p")}, 100ms), errc::timed_out, "in time");
  check_failure(
    dial({{"no-such-host.invalid", 1}, "", process("p")}, 2s), errc::invalid_input, "--tls");
}

TEST_CASE("addresses beyond loopback need TLS on both sides") {
  gate_settings settings;
  settings.address = {"0.0.0.0", 0};
  settings.ours = ours;
  auto opened = cluster_gate::open(settings);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == errc::invalid_input);
  CHECK(opened.error().what.find("--tls FOLDER") != std::string::npos);
  check_failure(
    dial({{"192.0.2.1", 1}, "", process("p")}, 1s), errc::invalid_input, "--tls FOLDER");
}

TEST_CASE("an address that is taken, or not of this machine, is an error with a remedy") {
  silent_port mute{true};
  gate_settings settings;
  settings.ours = ours;
  settings.address = {"127.0.0.1", mute.port};
  auto taken = cluster_gate::open(settings);
  REQUIRE_FALSE(taken);
  CHECK(taken.error().what.find("another port") != std::string::npos);
}

TEST_CASE("a process that comes again takes the place of its older connection") {
  listening hub{""};
  auto first = hub.join("", process("a"));
  REQUIRE(first);
  auto other = hub.join("", process("b"));
  REQUIRE(other);
  auto second = hub.join("", process("a"));
  REQUIRE_MESSAGE(second, second.error().what);
  CHECK(hub.gate->names_of("a").size() == 1);
  char rest[16];
  CHECK((*first)->read(rest, sizeof(rest)).bytes == 5);
  CHECK((*first)->read(rest, sizeof(rest)).what == wire::state::ended);
  CHECK((*other)->read(rest, sizeof(rest)).bytes == 5);
  CHECK((*other)->read(rest, sizeof(rest)).what == wire::state::want_read);
}

TEST_CASE("whoever says nothing is closed, before it is let in and after") {
  listening hub{"", 200ms, 200ms};
  sockaddr_in end{};
  end.sin_family = AF_INET;
  end.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  end.sin_port = htons(hub.gate->port());
  const int mute = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(connect(mute, reinterpret_cast<sockaddr*>(&end), sizeof(end)) == 0);
  pollfd one{mute, POLLIN, 0};
  CHECK(poll(&one, 1, 10000) == 1);
  char byte = 0;
  CHECK(recv(mute, &byte, 1, 0) <= 0);
  close(mute);
  auto joined = hub.join("", process("a"));
  REQUIRE(joined);
  char word[8];
  CHECK((*joined)->read(word, sizeof(word)).bytes == 5);
  pollfd quiet{(*joined)->socket(), POLLIN, 0};
  CHECK(poll(&quiet, 1, 10000) == 1);
  CHECK((*joined)->read(word, sizeof(word)).what == wire::state::ended);
}

TEST_CASE_FIXTURE(two_clusters, "renewed certificates hold from the next connection on") {
  listening hub{this->hub()};
  REQUIRE(hub.join(node(), process("p")));
  REQUIRE(renew_certificates(base / "ours", {}, std::time(nullptr)));
  REQUIRE(hub.join(node(), process("q")));
  // A folder that does not hold leaves what was loaded in use.
  fs::permissions(this->hub() + "/key.pem", fs::perms{0644});
  CHECK(hub.join(node(), process("r")));
}
