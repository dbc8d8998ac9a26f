#include "bench/lab_speed_runs.hpp"

#include "simulation/actors/engine.hpp"
#include "simulation/core/engine.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gristmill::bench {

scenario scenario_of(const closed_model& model) {
  scenario out;
  out.name = "closed-queue";
  out.duration_s = model.duration_s;
  gpu_group gpus;
  gpus.count = model.gpus;
  out.gpus.push_back(gpus);
  agent_group agents;
  agents.count = model.agents;
  out.agents.push_back(agents);
  out.think.call = {draw_kind::exponential, model.think_s, 0, 1, 0};
  out.hold.time = {draw_kind::exponential, model.hold_s, 0, 1, 0};
  // Longer than any hold that will be drawn: the closed form knows no cap.
  out.caps_s = {3600, 3600, 3600, 3600, 3600};
  out.lease_policy = model.policy;
  return out;
}

engine_run run_here(const std::string& engine, const closed_model& model) {
  lab_options options;
  options.world.seed = model.seed;
  auto what = scenario_of(model);
  auto began = std::chrono::steady_clock::now();
  auto got =
    engine == "actors" ? run_actors(what, std::move(options)) : run_core(what, std::move(options));
  if (!got) {
    std::fprintf(stderr, "%s: %s\n", engine.c_str(), got.error().what.c_str());
    std::exit(1);
  }
  engine_run out;
  out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  out.leases = got->ended;
  out.mean_wait_s = got->waits.mean_s();
  out.throughput = got->throughput();
  return out;
}

namespace {

std::vector<std::string> numbers_of(const closed_model& model) {
  return {std::to_string(model.agents), std::to_string(model.gpus),
    fmt::format("{}", model.think_s), fmt::format("{}", model.hold_s),
    fmt::format("{}", model.duration_s), std::to_string(model.seed)};
}

} // namespace

std::optional<engine_run> run_rival(
  const std::vector<std::string>& program, const closed_model& model, int& status) {
  auto words = program;
  for (auto& each : numbers_of(model))
    words.push_back(std::move(each));
  std::vector<char*> raw;
  for (auto& w : words)
    raw.push_back(w.data());
  raw.push_back(nullptr);
  int pipe_ends[2];
  status = -1;
  if (pipe(pipe_ends) != 0)
    return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[1]);
  pid_t child = 0;
  auto failed = posix_spawnp(&child, raw[0], &actions, nullptr, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  std::string said;
  if (failed == 0) {
    char buffer[512];
    for (ssize_t n = 0; (n = read(pipe_ends[0], buffer, sizeof buffer)) > 0;)
      said.append(buffer, static_cast<size_t>(n));
  }
  close(pipe_ends[0]);
  if (failed != 0)
    return std::nullopt;
  rusage used{};
  int raw_status = 0;
  if (wait4(child, &raw_status, 0, &used) != child)
    return std::nullopt;
  status = WIFEXITED(raw_status) ? WEXITSTATUS(raw_status) : 128;
  engine_run out;
  unsigned long long leases = 0;
  if (status != 0
    || std::sscanf(
         said.c_str(), "%lf %llu %lf %lf", &out.wall_s, &leases, &out.mean_wait_s, &out.throughput)
      != 4)
    return std::nullopt;
  out.leases = leases;
  auto seconds = [](const timeval& t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
  out.processor_s = seconds(used.ru_utime) + seconds(used.ru_stime);
  out.peak_mb = double(used.ru_maxrss) / 1024;
  return out;
}

std::optional<engine_run> run_apart(const std::string& engine, const closed_model& model) {
  int status = 0;
  auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  auto out = run_rival({self, "one", engine, model.policy}, model, status);
  if (!out)
    std::fprintf(stderr, "the %s engine ended with exit status %d\n", engine.c_str(), status);
  return out;
}

std::string own_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

} // namespace gristmill::bench
