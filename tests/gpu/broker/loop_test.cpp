// The broker with its real socket, in this process: turns of the loop instead of a thread.

#include "gpu/broker/broker_loop.hpp"
#include "gpu/broker/client.hpp"
#include "gpu/broker/process_tree.hpp"
#include "tests/journal/temporary_folder.hpp"

#include <cerrno>
#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

using namespace gristmill;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

class world {
public:
  explicit world(broker_loop_limits limits = {}, uint32_t gpus = 1) {
    path = folder / "s";
    auto opened = broker_store::open(folder / "state");
    REQUIRE(opened.has_value());
    store = std::move(*opened);
    auto bound = broker_socket::listen(path, false);
    REQUIRE_MESSAGE(bound.has_value(), bound.error().what);
    socket = std::move(*bound);
    broker_settings settings;
    for (uint32_t n = 0; n < gpus; ++n)
      settings.devices.push_back({"sleep#" + std::to_string(n), "sleep", "0", false, 0, ""});
    settings.policy = make_fifo_policy();
    settings.policy_text = "fifo";
    settings.boot = boot_identity();
    loop = std::make_unique<broker_loop>(
      std::move(settings), *store, *socket, make_trivial_probe(), limits);
    REQUIRE(loop->start().has_value());
  }
  void turn(int times = 3) {
    for (int n = 0; n < times; ++n)
      loop->turn(0ns);
  }

  /// First, so that it outlives what writes into it.
  temporary_folder scratch;
  fs::path folder = scratch.path;
  std::string path;
  std::unique_ptr<broker_store> store;
  std::unique_ptr<broker_socket> socket;
  std::unique_ptr<broker_loop> loop;
};

/// A client without manners.
class raw {
public:
  explicit raw(const std::string& path) : fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  ~raw() { close(fd); }
  ssize_t write(const std::string& bytes) {
    return send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// Whether the broker has closed the connection, after all that it had said.
  bool closed() {
    char bytes[4096];
    ssize_t got = 0;
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0)
      heard.append(bytes, static_cast<size_t>(got));
    // A connection that is closed before all was read is reset.
    return got == 0 || errno == ECONNRESET;
  }
  int fd;
  std::string heard;
};

std::optional<broker_line> hear(world& w, broker_client& c, broker_say what) {
  for (int n = 0; n < 50; ++n) {
    w.turn(1);
    auto got = c.next(0ns);
    if (got && *got && (*got)->say == what)
      return **got;
  }
  return std::nullopt;
}

bool still_serves(world& w) {
  auto c = broker_client::connect(w.path, "");
  REQUIRE(c.has_value());
  return hear(w, *c, broker_say::hello).has_value();
}

} // namespace

TEST_CASE("a client is greeted, granted and given the cost of its lease") {
  world w;
  auto waiter = lease_waiter({}, w.path, true, 0ns, broker_now());
  bool granted = false;
  for (int n = 0; n < 50 && !granted; ++n) {
    granted = waiter.step(broker_now()).granted;
    w.turn(1);
  }
  REQUIRE(granted);
  auto keeper = waiter.take();
  keeper.started(0);
  w.turn();
  keeper.ended(lease_outcome::fine, "done");
  w.turn();
  auto news = keeper.step(broker_now());
  REQUIRE(news.closed.has_value());
  CHECK(news.closed->probe.outcome == probe_outcome::passed);
  CHECK(w.loop->core().at_rest());
}

TEST_CASE("hostile bytes cost their own connection only") {
  world w;
  const std::string zeros(100, '\0');
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), zeros + "\n",
         std::string("{\"line\":\"hello\",\"protocol\":1}\n{}\n"), std::string(70000, 'x'),
         std::string(10000, '[') + "\n"}) {
    raw hostile(w.path);
    hostile.write(bytes);
    w.turn(8);
    CHECK(hostile.closed());
    CHECK(still_serves(w));
  }
}

TEST_CASE("a client that says nothing is sent away in time") {
  broker_loop_limits limits;
  limits.hello_limit = 0ns;
  world w(limits);
  raw silent(w.path);
  w.turn();
  CHECK(silent.closed());
}

TEST_CASE("a client that does not read loses its connection, not the broker its memory") {
  broker_loop_limits limits;
  limits.unread_bytes_max = 10000;
  world w(limits);
  raw deaf(w.path);
  deaf.write("{\"line\":\"hello\",\"protocol\":1}\n");
  ssize_t sent = 1;
  for (int n = 0; n < 5000 && sent > 0; ++n) {
    sent = deaf.write("{\"line\":\"status\"}\n");
    w.turn(1);
  }
  CHECK(sent <= 0);
  CHECK(still_serves(w));
}

TEST_CASE("more clients than there may be are turned away with a reason") {
  broker_loop_limits limits;
  limits.connections_max = 2;
  world w(limits);
  raw one(w.path), two(w.path), three(w.path);
  w.turn();
  CHECK(three.closed());
  CHECK(three.heard.find("queue full") != std::string::npos);
  CHECK_FALSE(one.closed());
}

TEST_CASE("two brokers never share a socket, and a dead one's is taken over") {
  world w;
  auto second = broker_socket::listen(w.path, false);
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().code == errc::refused);
  // As a broker leaves it that is killed: the file is there, the lock is not held.
  auto stale = (w.folder / "stale").string();
  {
    int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, stale.c_str());
    REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    close(fd);
  }
  CHECK(broker_socket::listen(stale, false).has_value());
  std::ofstream(w.folder / "file") << "mine";
  auto file = broker_socket::listen((w.folder / "file").string(), false);
  REQUIRE_FALSE(file.has_value());
  CHECK(fs::exists(w.folder / "file"));
  CHECK_FALSE(broker_socket::listen(std::string(200, 'x'), false).has_value());
}
