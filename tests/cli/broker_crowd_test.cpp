// Many shells at once ask for two devices.

#include "tests/cli/broker_fixture.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <thread>

using namespace gristmill::test;
using std::chrono::seconds;

namespace {

/// Checked programs take 100 MB each, and a machine that swaps says nothing about a broker. They
/// start so slowly that those already there are served before the others have come.
#ifdef __SANITIZE_ADDRESS__
constexpr int crowd = 60;
constexpr bool comes_at_once = false;
#else
constexpr int crowd = 200;
constexpr bool comes_at_once = true;
#endif

/// When each request of a user was made and granted, and what it held, from the journal.
struct history {
  std::map<uint64_t, std::string> user;
  std::map<uint64_t, int64_t> asked, granted, freed, estimate;
};

history read(const std::vector<nlohmann::json>& journal) {
  history h;
  std::map<std::pair<std::string, uint64_t>, uint64_t> holders;
  for (const auto& e : journal) {
    const std::string kind = e["kind"];
    const int64_t t = e["t"];
    if (kind == "lease_ticket") {
      auto ticket = e["data"]["ticket"].get<uint64_t>();
      h.user[ticket] = e["problem"];
      h.asked[ticket] = t;
      h.estimate[ticket] = e["data"]["estimated_wait_ns"];
    } else if (kind == "lease_grant") {
      auto ticket = e["data"]["ticket"].get<uint64_t>();
      h.granted[ticket] = t;
      holders[{e["gpu"], e["token"]}] = ticket;
    } else if (kind == "gpu_free") {
      auto held = holders.find({e["gpu"], e["token"]});
      if (held != holders.end())
        h.freed[held->second] = t;
    }
  }
  return h;
}

double at(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[static_cast<size_t>(share * double(values.size() - 1))];
}

/// Nanoseconds of GPU by user for leases granted while everybody had somebody waiting, and the
/// longest of them.
std::pair<std::map<std::string, double>, double> shares(const history& h, uint64_t first) {
  std::map<std::string, double> held;
  double longest = 0;
  for (const auto& [ticket, granted] : h.granted) {
    if (ticket < first || h.freed.count(ticket) == 0)
      continue;
    std::set<std::string> backlogged;
    for (const auto& [other, asked] : h.asked)
      if (other >= first && asked <= granted
        && (h.granted.count(other) == 0 || h.granted.at(other) >= granted))
        backlogged.insert(h.user.at(other));
    if (backlogged.size() < 3)
      continue;
    auto time = double(h.freed.at(ticket) - granted);
    held[h.user.at(ticket)] += time;
    longest = std::max(longest, time);
  }
  return {held, longest};
}

} // namespace

TEST_CASE("a crowd of shells shares two devices by weight, and is told how long it will wait") {
  double load[1] = {0};
  const bool busy = !comes_at_once
    || (getloadavg(load, 1) == 1 && load[0] > 1.5 * double(std::thread::hardware_concurrency()));
  broker_process b({"--gpus", "sleep:2", "--quota", "u=1,v=1,w=2"});
  std::filesystem::create_directories(b.folder / "stamps");
  const std::vector<std::string> work = {
    std::string(std::getenv("GRISTMILL_BIN")) + "/tests/broker_stamp",
    (b.folder / "stamps").string(), "50"};
  // A broker that has never seen such work cannot know how long it takes.
  constexpr uint64_t before = 6;
  for (uint64_t n = 0; n < before; ++n)
    CHECK(b.lease({"--as", std::string(1, "uvw"[n % 3]) + "/p"}, work)->wait() == 0);
  std::vector<std::unique_ptr<program>> all;
  for (int n = 0; n < crowd; ++n)
    all.push_back(b.lease({"--as", std::string(1, "uvww"[n % 4]) + "/p"}, work));
  for (auto& p : all)
    CHECK(p->wait(seconds{60}) == 0);
  CHECK(b.all_free());

  auto journal = b.journal();
  auto h = read(journal);
  CHECK(h.granted.size() == crowd + before);

  auto [held, longest] = shares(h, before + 1);
  const double total = held["u"] + held["v"] + held["w"];
  REQUIRE(total > 0);
  // scheduling: abs(share - weight) <= (c + 1) Lmax / total service, on c = 2 devices.
  const double bound = 3 * longest / total;
  MESSAGE(fmt::format("shares u {:.3f}, v {:.3f}, w {:.3f} of 0.25, 0.25, 0.50; bound {:.3f}",
    held["u"] / total, held["v"] / total, held["w"] / total, bound));
  CHECK(std::abs(held["u"] / total - 0.25) <= bound);
  CHECK(std::abs(held["v"] / total - 0.25) <= bound);
  CHECK(std::abs(held["w"] / total - 0.50) <= bound);

  std::vector<double> ratios;
  for (const auto& [ticket, granted] : h.granted) {
    const auto waited = granted - h.asked[ticket];
    // Where hardly anybody waits, the ratio says nothing.
    if (ticket > before && std::max(waited, h.estimate[ticket]) > 100'000'000)
      ratios.push_back(double(waited) / double(std::max<int64_t>(h.estimate[ticket], 1)));
  }
  const auto good =
    std::count_if(ratios.begin(), ratios.end(), [](double r) { return r >= 0.3 && r <= 1.5; });
  MESSAGE(fmt::format("actual/estimated wait: median {:.2f}, p5 {:.2f}, p95 {:.2f}, {} of {} in "
                      "[0.3, 1.5]",
    at(ratios, 0.5), at(ratios, 0.05), at(ratios, 0.95), good, ratios.size()));
  // How long such work took a moment ago says little on a machine whose load comes and goes.
  if (busy) {
    MESSAGE("the machine is busy: the estimates are shown but not checked");
  } else {
    CHECK(at(ratios, 0.5) >= 0.67);
    CHECK(at(ratios, 0.5) <= 1.5);
    // Who asks first is told of a line that is not there yet, and the slower they are started
    // the more of them: 91 % when they start within 0.2 s, 88 % within a second.
    WARN(double(good) >= 0.9 * double(ratios.size()));
    CHECK(double(good) >= 0.8 * double(ratios.size()));
  }

  // Printed, not checked: they say how busy this machine is. bench/broker_compare.py checks them.
  std::map<std::pair<std::string, uint64_t>, int64_t> grants;
  for (const auto& e : journal)
    if (e["kind"] == "lease_grant")
      grants[{e["gpu"], e["token"]}] = e["t"];
  std::vector<double> to_exec, to_grant;
  for (const auto& file : std::filesystem::directory_iterator(b.folder / "stamps")) {
    auto name = file.path().filename().string();
    auto dash = name.find('-');
    std::pair<std::string, uint64_t> key{
      "sleep#" + name.substr(0, dash), std::stoull(name.substr(dash + 1))};
    int64_t began = 0, ended = 0;
    std::ifstream(file.path()) >> began >> ended;
    to_exec.push_back(double(began - grants.at(key)) / 1e6);
    ++key.second;
    if (grants.count(key) == 1)
      to_grant.push_back(double(grants.at(key) - ended) / 1e6);
  }
  MESSAGE(fmt::format("grant to exec p50 {:.2f} ms, p95 {:.2f} ms; exit to next grant p50 {:.2f} "
                      "ms, p95 {:.2f} ms",
    at(to_exec, 0.5), at(to_exec, 0.95), at(to_grant, 0.5), at(to_grant, 0.95)));
}

TEST_CASE("kill -9 of clients and of the broker in the middle of a crowd loses no device") {
  // Whoever is killed between a grant and its guard holds a device until it is missed: soon, here.
  broker_process b({"--gpus", "sleep:2", "--ttl", "10s"});
  std::vector<std::unique_ptr<program>> all;
  for (int n = 0; n < 40; ++n)
    all.push_back(b.lease({"--as", std::string(1, "uvw"[n % 3]) + "/p"}, {"sleep", "0.1"}));
  // Only who has been in line stands in line anew: a client that comes while no broker is there is
  // told so and ends, and on a busy machine the last of these come late.
  REQUIRE(eventually([&] {
    const auto seen = b.status();
    const auto granted = seen["granted_total"].get<size_t>();
    return granted > 4 && granted + seen["waiting"].get<size_t>() == all.size();
  }));
  for (size_t n = 0; n < all.size(); n += 4)
    all[n]->signal(SIGKILL);
  b.kill_it();
  b.start();
  for (size_t n = 0; n < all.size(); ++n) {
    auto code = all[n]->wait(seconds{60});
    if (n % 4 != 0)
      CHECK(code == 0);
  }
  CHECK(b.all_free());
  CHECK(b.status()["waiting"] == 0);
  auto one = b.lease({}, {"sleep", "0.2"});
  auto two = b.lease({}, {"sleep", "0.2"});
  CHECK(one->wait() == 0);
  CHECK(two->wait() == 0);
}
