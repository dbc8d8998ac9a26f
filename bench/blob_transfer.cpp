// How fast a blob travels between two processes on this machine's loopback, in turns with a plain
// copy of the same file to the same disk.
//
// usage: gristmill-bench-blobs [--tls yes|no] [--mebibytes N] [--rounds N] [--folder FOLDER]
//
// The receiving process listens, as a coordinator does; the sending one joins, with certificates of
// its own making. Keepers and transport are those of production. Prints a line a round and the
// medians.

#include "actors/blob_keeper.hpp"
#include "actors/cluster_port.hpp"
#include "actors/system_config.hpp"
#include "actors/transport/certificates.hpp"
#include "journal/hash.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace fs = std::filesystem;
using namespace gristmill;
using namespace std::chrono_literals;

namespace {

struct options {
  bool tls = true;
  uint64_t mebibytes = 100;
  uint32_t rounds = 5;
  fs::path folder = fs::temp_directory_path();
};

/// A door that also passes fetches on to its keeper: enough of a coordinator for this.
using bench_door_actor = caf::typed_actor<seam::sig<cluster_greeting, cluster_hello>,
  seam::sig<blobs_fetched, blob_fetch, caf::strong_actor_ptr>>;

class bench_door final : public bench_door_actor::base {
public:
  bench_door(caf::actor_config& config, blob_keeper_actor keeper)
    : bench_door_actor::base(config), keeper_(std::move(keeper)) {}

  behavior_type make_behavior() override {
    return {
      [](const cluster_hello& hello) { return greet(hello); },
      [this](
        const blob_fetch& what, const caf::strong_actor_ptr& from) -> caf::result<blobs_fetched> {
        auto reply = make_response_promise<blobs_fetched>();
        seam::ask(this, keeper_, what, from)
          .then([reply](const blobs_fetched& fetched) mutable { reply.deliver(fetched); },
            [reply](caf::error& why) mutable { reply.deliver(std::move(why)); });
        return reply;
      },
    };
  }

  void on_exit() override { keeper_ = nullptr; }

private:
  blob_keeper_actor keeper_;
};

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "gristmill-bench-blobs: {}\n", what);
  std::exit(1);
}

template <class T>
T must(result<T> from) {
  if (!from)
    give_up(from.error().what);
  return std::move(*from);
}

cluster_transport transport_of(const options& given, const char* who) {
  cluster_transport out;
  if (given.tls)
    out.tls = (given.folder / "tls" / who).string();
  return out;
}

blob_keeper_config keeper_of(const fs::path& store) {
  blob_keeper_config config;
  config.store = std::make_shared<blob_store>(must(blob_store::open(store)));
  return config;
}

/// The receiving process: tells its port through the pipe and serves until it is killed.
[[noreturn]] void receive(const options& given, int pipe) {
  const cluster_address address{"127.0.0.1", 0};
  const auto transport = transport_of(given, "coordinator");
  if (auto fine = check_transport(transport, address, cluster_side::coordinator); !fine)
    give_up(fine.error().what);
  caf::actor_system_config config;
  configure(config, 2);
  configure_cluster(config, transport);
  caf::actor_system system{config};
  auto keeper = start_blob_keeper(system, keeper_of(given.folder / "received"));
  auto door = system.spawn<bench_door>(keeper);
  const auto port =
    must(cluster_listen(system, caf::actor_cast<cluster_door_actor>(door), address));
  if (::write(pipe, &port, sizeof port) != sizeof port)
    give_up("cannot tell the port");
  for (;;)
    ::pause();
}

/// Bytes of one file into a new one, and both to the disk.
double copy_seconds(const fs::path& from, const fs::path& to) {
  const auto begin = std::chrono::steady_clock::now();
  const int in = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  const int out = ::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (in < 0 || out < 0)
    give_up("cannot copy " + from.string());
  std::vector<char> block(blob_piece_max);
  for (ssize_t count = 0; (count = ::read(in, block.data(), block.size())) > 0;)
    if (::write(out, block.data(), static_cast<size_t>(count)) != count)
      give_up("cannot write " + to.string());
  if (::fsync(out) != 0)
    give_up("cannot write " + to.string());
  ::close(in);
  ::close(out);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string made_up(uint64_t bytes, uint64_t seed) {
  std::string out(bytes, '\0');
  uint64_t x = seed * 0x9e3779b97f4a7c15 + 1;
  for (size_t i = 0; i + 8 <= out.size(); i += 8) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    std::memcpy(out.data() + i, &x, 8);
  }
  return out;
}

int measure(const options& given, uint16_t port) {
  const cluster_address address{"127.0.0.1", port};
  const auto transport = transport_of(given, "nodes/sender");
  if (auto fine = check_transport(transport, address, cluster_side::node); !fine)
    give_up(fine.error().what);
  caf::actor_system_config config;
  configure(config, 2);
  configure_cluster(config, transport);
  caf::actor_system system{config};
  auto settings = keeper_of(given.folder / "sent");
  auto store = settings.store;
  auto keeper = start_blob_keeper(system, std::move(settings));
  auto door = caf::actor_cast<bench_door_actor>(must(cluster_connect(system, address, 10s)));
  std::vector<double> travelled;
  std::vector<double> copied;
  std::vector<double> hashed;
  const auto bytes = given.mebibytes << 20;
  const auto rate = [&](double seconds) { return static_cast<double>(bytes) / 1e6 / seconds; };
  fmt::print("{} MiB, {}, into {}\n", given.mebibytes,
    given.tls ? "with mutual TLS" : "without TLS", given.folder.string());
  {
    caf::scoped_actor self{system};
    for (uint32_t round = 0; round < given.rounds; ++round) {
      const auto text = made_up(bytes, round + 1);
      const auto ref = must(store->put(text));
      auto begin = std::chrono::steady_clock::now();
      self
        ->request(door, caf::timespan{5min}, blob_fetch{{ref}, 5min},
          caf::actor_cast<caf::strong_actor_ptr>(keeper))
        .receive([](const blobs_fetched&) {},
          [&](const caf::error& why) { give_up(seam::show(system, why)); });
      travelled.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      copied.push_back(copy_seconds(must(store->path(ref)), given.folder / "copy"));
      begin = std::chrono::steady_clock::now();
      if (sha256_hex(text) != ref.sha256)
        give_up("the hash is another one");
      hashed.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      fmt::print(
        "round {}: travelled {:.0f} MB/s, plain copy {:.0f} MB/s, SHA-256 alone {:.0f} MB/s\n",
        round + 1, rate(travelled.back()), rate(copied.back()), rate(hashed.back()));
    }
  }
  fmt::print(
    "median of {}: travelled {:.0f} MB/s ({:.2f} s), plain copy {:.0f} MB/s, SHA-256 {:.0f} MB/s\n",
    given.rounds, rate(median(travelled)), median(travelled), rate(median(copied)),
    rate(median(hashed)));
  caf::anon_send_exit(keeper, caf::exit_reason::user_shutdown);
  return 0;
}

options read_options(int argc, char** argv) {
  options out;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 >= argc)
      give_up(name + ": a value is missing");
    const std::string value = argv[i + 1];
    if (name == "--tls" && (value == "yes" || value == "no"))
      out.tls = value == "yes";
    else if (name == "--mebibytes")
      out.mebibytes = std::strtoull(value.c_str(), nullptr, 10);
    else if (name == "--rounds")
      out.rounds = static_cast<uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
    else if (name == "--folder")
      out.folder = value;
    else
      give_up(name + " " + value + ": known are --tls yes|no, --mebibytes, --rounds, --folder");
  }
  if (out.mebibytes == 0 || out.mebibytes > 256 || out.rounds == 0)
    give_up("--mebibytes 1 to 256, --rounds 1 or more");
  return out;
}

} // namespace

int main(int argc, char** argv) {
  auto given = read_options(argc, argv);
  given.folder /= fmt::format("gristmill-bench-blobs-{}", ::getpid());
  fs::create_directories(given.folder);
  if (given.tls)
    if (auto made = make_cluster_folder(given.folder / "tls", {{"sender"}, {}, std::time(nullptr)});
        !made)
      give_up(made.error().what);
  int ends[2];
  if (::pipe(ends) != 0)
    give_up("cannot make a pipe");
  std::fflush(stdout);
  // Before any thread.
  const pid_t receiver = ::fork();
  if (receiver == 0) {
    ::close(ends[0]);
    receive(given, ends[1]);
  }
  ::close(ends[1]);
  uint16_t port = 0;
  if (::read(ends[0], &port, sizeof port) != sizeof port)
    give_up("the receiving process did not start");
  const int code = measure(given, port);
  ::kill(receiver, SIGKILL);
  ::waitpid(receiver, nullptr, 0);
  fs::remove_all(given.folder);
  return code;
}
