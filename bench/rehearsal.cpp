// Rehearses a run at full scale with no kernel anywhere and prints what the house itself costs:
//
//     build/release/bench/gristmill-bench-rehearsal [GRISTMILL [WORKERS [GPUS [LEASES [HOLD_MS]]]]]
//
// It starts `gristmill run --gpus sleep:…`, waits for it, and reads the journal: how long a GPU
// that was verified stood idle before its next grant, how long it took from the release of a lease
// to the start of the next work on that GPU, when the first grant came, and how much memory the
// main process had.

#include "journal/event_log.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <spawn.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

/// Nearest-rank percentile of sorted values, in milliseconds.
double percentile_ms(const std::vector<double>& sorted_ns, double share) {
  if (sorted_ns.empty())
    return 0;
  auto rank = static_cast<size_t>(share * static_cast<double>(sorted_ns.size() - 1) + 0.5);
  return sorted_ns[rank] / 1e6;
}

void print_row(const char* what, std::vector<double> ns) {
  std::sort(ns.begin(), ns.end());
  std::printf("%-34s %6zu samples   p50 %7.3f ms   p99 %7.3f ms   max %7.3f ms\n", what, ns.size(),
    percentile_ms(ns, 0.5), percentile_ms(ns, 0.99), ns.empty() ? 0 : ns.back() / 1e6);
}

std::vector<gristmill::event> all_events(const std::filesystem::path& database) {
  auto log = gristmill::event_log::open(database, gristmill::event_log::mode::read);
  std::vector<gristmill::event> out;
  while (log) {
    auto more = log->read(out.empty() ? 1 : out.back().seq + 1, 10'000);
    if (!more || more->empty())
      break;
    out.insert(out.end(), more->begin(), more->end());
  }
  return out;
}

double ns_of(const gristmill::event& e) {
  return static_cast<double>(e.t.count());
}

} // namespace

int main(int argc, char** argv) {
  std::string program = argc > 1 ? argv[1] : "build/release/gristmill";
  std::string workers = argc > 2 ? argv[2] : "500";
  std::string gpus = argc > 3 ? argv[3] : "27";
  std::string leases = argc > 4 ? argv[4] : "2000";
  std::string hold = argc > 5 ? argv[5] : "100";
  auto folder =
    std::filesystem::temp_directory_path() / ("gristmill-rehearsal-" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  std::vector<std::string> arguments = {program, "run", "--gpus", "sleep:" + hold + "ms:" + gpus,
    "--proposer", "sleep", "--workers", workers, "--budget", leases + "attempts", "--out",
    folder.string(), "--json"};
  std::vector<char*> raw;
  for (auto& a : arguments)
    raw.push_back(a.data());
  raw.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1 /* O_WRONLY */, 0);
  pid_t child = 0;
  auto began = clock_type::now();
  if (posix_spawnp(&child, program.c_str(), &actions, nullptr, raw.data(), environ) != 0) {
    std::perror(program.c_str());
    return 1;
  }
  int status = 0;
  rusage used{};
  wait4(child, &status, 0, &used);
  double wall = std::chrono::duration<double>(clock_type::now() - began).count();
  auto events = all_events(folder / "run.db");
  if (events.empty()) {
    std::fprintf(stderr, "no events in %s\n", (folder / "run.db").c_str());
    return 1;
  }

  std::vector<double> idle, turnaround;
  std::map<std::string, double> verified_at, released_at;
  double first_grant_wall = 0;
  int64_t started_wall = events.front().wall;
  size_t grants = 0;
  for (const auto& e : events) {
    if (e.kind == "gpu_free") {
      verified_at[e.gpu] = ns_of(e);
    } else if (e.kind == "lease_grant") {
      ++grants;
      if (first_grant_wall == 0)
        first_grant_wall = static_cast<double>(e.wall - started_wall) / 1e9;
      if (auto found = verified_at.find(e.gpu); found != verified_at.end()) {
        idle.push_back(ns_of(e) - found->second);
        verified_at.erase(found);
      }
    } else if (e.kind == "lease_release") {
      released_at[e.gpu] = ns_of(e);
    } else if (e.kind == "lease_active") {
      if (auto found = released_at.find(e.gpu); found != released_at.end()) {
        turnaround.push_back(ns_of(e) - found->second);
        released_at.erase(found);
      }
    }
  }
  std::printf(
    "%s workers, %s sleep devices of %s ms, %zu leases; NOT A MEASUREMENT of any kernel\n",
    workers.c_str(), gpus.c_str(), hold.c_str(), grants);
  print_row("verified to next grant", idle);
  print_row("released to next work on that GPU", turnaround);
  std::printf("%-34s %.3f s after the log's first line\n", "first grant", first_grant_wall);
  std::printf(
    "%-34s %.1f MB peak resident\n", "main process", static_cast<double>(used.ru_maxrss) / 1024);
  double processor = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec)
    + 1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  std::printf("%-34s %.1f s wall, %.2f s processor\n", "whole run", wall, processor);
  std::filesystem::remove_all(folder);
  return WIFEXITED(status) && WEXITSTATUS(status) != 1 ? 0 : 1;
}
