// How fast the laboratory is, beside other simulators and as its size grows. Prints figures;
// decides nothing.
//
//     gristmill-bench-lab-speed compare [DAYS [PYTHON]]
//         300 agents and 27 GPUs, thinking 300 s and holding 30 s in the mean, both exponential,
//         oldest request first, for 21 days: both engines, SimGrid and SimPy, each in a process of
//         its own, beside what queueing theory says exactly. SimGrid is compared with when
//         libsimgrid-dev is installed as the build is configured, SimPy when PYTHON (python3)
//         can import simpy.
//     gristmill-bench-lab-speed scale FILE.csv FILE.svg [LEASES]
//         Nanoseconds of the processor per lease and memory from 100 agents on 9 GPUs to 10,000 on
//         1,000, each for about as many LEASES (400,000).
//     gristmill-bench-lab-speed policies [SEEDS [DAYS [THREADS]]]
//         Eight lease policies with SEEDS seeds each in the engine `core`, on THREADS threads.
//     gristmill-bench-lab-speed one core|actors POLICY AGENTS GPUS THINK_S HOLD_S DURATION_S SEED
//         One run in this process; prints wall_s leases mean_wait_s throughput.

#include "bench/lab_speed_runs.hpp"
#include "report/svg/charts.hpp"
#include "simulation/selfcheck/formulas.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <string_view>
#include <thread>

namespace {

using namespace gristmill;
using namespace gristmill::bench;

void print_row(const char* name, const engine_run& run, const engine_run& core) {
  fmt::print("{:<20} {:>9.2f} {:>9.2f} {:>9} {:>11.0f} {:>8.1f} {:>10.4f} {:>11.6f} {:>9.2f}x "
             "{:>8.2f}x\n",
    name, run.wall_s, run.processor_s, run.leases, double(run.leases) / run.wall_s, run.peak_mb,
    run.mean_wait_s, run.throughput, run.wall_s / core.wall_s, run.processor_s / core.processor_s);
  std::fflush(stdout);
}

int compare(double days, const std::string& python) {
  closed_model model;
  model.duration_s = days * 86'400;
  fmt::print("{} agents, {} GPUs, think {} s, hold {} s (exponential), fifo, {} days, seed {}\n",
    model.agents, model.gpus, model.think_s, model.hold_s, days, model.seed);
  fmt::print("{:<20} {:>9} {:>9} {:>9} {:>11} {:>8} {:>10} {:>11} {:>10} {:>9}\n", "", "wall s",
    "cpu s", "leases", "leases/s", "peak MB", "mean wait", "throughput", "wall/core", "cpu/core");
  auto core = run_apart("core", model);
  auto actors = run_apart("actors", model);
  if (!core || !actors)
    return 1;
  print_row("gristmill core", *core, *core);
  print_row("gristmill actors", *actors, *core);
  int status = 0;
  auto simgrid = std::filesystem::path(own_folder()) / "gristmill-rival-simgrid";
  std::optional<engine_run> rival;
  if (!std::filesystem::exists(simgrid)) {
    fmt::print("SimGrid              SKIPPED: not built. Install libsimgrid-dev (Debian) and "
               "configure this build again.\n");
  } else if ((rival = run_rival({simgrid.string()}, model, status))) {
    print_row("SimGrid", *rival, *core);
    fmt::print("{:<20} SimGrid takes {:.2f} times the cpu seconds of the actors engine\n", "",
      rival->processor_s / actors->processor_s);
  } else {
    fmt::print("SimGrid              FAILED with exit status {}\n", status);
  }
  if ((rival = run_rival({python, LAB_SPEED_SIMPY}, model, status))) {
    print_row("SimPy", *rival, *core);
    fmt::print("{:<20} SimPy takes {:.2f} times the cpu seconds of the actors engine\n", "",
      rival->processor_s / actors->processor_s);
  } else if (status == 3) {
    fmt::print("SimPy                SKIPPED: {} has no simpy. Make a virtual environment, `pip "
               "install simpy` there, and give its python as the last argument.\n",
      python);
  } else {
    fmt::print("SimPy                FAILED: {} ended with exit status {}\n", python, status);
  }
  closed_queue exact{model.agents, model.gpus, model.think_s, model.hold_s};
  fmt::print("{:<20} {:>9} {:>9} {:>9.0f} {:>11} {:>8} {:>10.4f} {:>11.6f}\n", "exact (M/M/c//N)",
    "", "", exact.throughput() * model.duration_s, "", "", exact.mean_wait(), exact.throughput());
  fmt::print("core and actors draw the same numbers, so their leases agree to the last; the others "
             "draw their own\n");
  return 0;
}

/// A chart as a picture of its own: what a page would say about its looks is within.
std::string stand_alone(std::string chart) {
  auto at = chart.find('>');
  if (at != std::string::npos)
    chart.insert(at + 1,
      "<style>svg { background: #fff; color: #222; } text { fill: currentColor; font: 12px "
      "sans-serif; } .title { font-size: 14px; font-weight: 600; } .grid { stroke: #ccc; "
      "stroke-width: 0.6; } .axis { stroke: currentColor; fill: none; }</style>");
  return chart;
}

struct size {
  uint32_t agents;
  uint32_t gpus;
};

int growth(const std::string& csv, const std::string& svg, double leases) {
  constexpr size sizes[] = {{100, 9}, {300, 27}, {1000, 90}, {3000, 270}, {10'000, 1000}};
  std::ofstream table(csv, std::ios::trunc);
  table << "engine,agents,gpus,leases,wall_s,processor_s,ns_per_lease,peak_mb\n";
  std::vector<chart_line> lines(2);
  lines[0].name = "core";
  lines[1].name = "actors";
  for (auto at : sizes) {
    closed_model model;
    model.agents = at.agents;
    model.gpus = at.gpus;
    closed_queue exact{model.agents, model.gpus, model.think_s, model.hold_s};
    model.duration_s = std::ceil(leases / exact.throughput());
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i == 1 && at.agents > 1000)
        continue;
      auto run = run_apart(lines[i].name, model);
      if (!run)
        return 1;
      // Of the processor: what else this machine does shall not show.
      auto ns = run->processor_s * 1e9 / double(run->leases);
      table << fmt::format("{},{},{},{},{:.4f},{:.4f},{:.1f},{:.1f}\n", lines[i].name, at.agents,
        at.gpus, run->leases, run->wall_s, run->processor_s, ns, run->peak_mb);
      fmt::print("{:<7} {:>6} agents {:>5} GPUs {:>8} leases {:>7.0f} ns/lease {:>6.1f} MB\n",
        lines[i].name, at.agents, at.gpus, run->leases, ns, run->peak_mb);
      std::fflush(stdout);
      lines[i].x.push_back(at.agents);
      lines[i].y.push_back(ns);
    }
  }
  // What n log n would be through the first point of core: log n per lease.
  chart_line law;
  law.name = "log n through the first point of core";
  for (auto at : sizes) {
    law.x.push_back(at.agents);
    law.y.push_back(lines[0].y.front() * std::log(double(at.agents)) / std::log(100.0));
  }
  lines.push_back(std::move(law));
  chart_frame frame;
  frame.title = "Cost of a simulated lease";
  frame.x_label = "agents (about 11 a GPU)";
  frame.y_label = "ns of one core a lease";
  frame.x_kind = scale_kind::logarithmic;
  frame.y_kind = scale_kind::logarithmic;
  std::ofstream picture(svg, std::ios::trunc);
  picture << stand_alone(line_chart(frame, lines)) << '\n';
  if (!table.flush() || !picture.flush()) {
    std::fprintf(stderr, "cannot write %s or %s\n", csv.c_str(), svg.c_str());
    return 1;
  }
  return 0;
}

int policies(uint32_t seeds, double days, unsigned threads) {
  const std::vector<std::string> names = {
    "fifo", "stride", "sept", "las", "lottery", "drr", "rr", "edf"};
  std::atomic<size_t> next{0};
  std::vector<double> took(names.size() * seeds);
  auto work = [&] {
    for (size_t i = next++; i < took.size(); i = next++) {
      closed_model model;
      model.duration_s = days * 86'400;
      model.policy = names[i % names.size()];
      model.seed = 1 + i / names.size();
      took[i] = run_here("core", model).wall_s;
    }
  };
  auto began = std::chrono::steady_clock::now();
  std::vector<std::thread> crew;
  for (unsigned i = 0; i < threads; ++i)
    crew.emplace_back(work);
  for (auto& each : crew)
    each.join();
  auto wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  auto processor = double(std::clock()) / CLOCKS_PER_SEC;
  for (size_t p = 0; p < names.size(); ++p) {
    double sum = 0;
    for (size_t i = p; i < took.size(); i += names.size())
      sum += took[i];
    fmt::print("{:<10} {:>7.2f} s of wall time a run\n", names[p], sum / seeds);
  }
  fmt::print("{} seeds x {} policies of {} days on {} threads: {:.1f} s of wall time, {:.1f} s of "
             "the processor; 100 seeds of 21 days would take {:.1f} min if each thread has a core "
             "of its own\n",
    seeds, names.size(), days, threads, wall, processor,
    processor / seeds * 100 / threads / 60 * 21 / days);
  return 0;
}

int usage(const char* self) {
  std::fprintf(stderr,
    "usage: %s compare [DAYS [PYTHON]] | scale FILE.csv FILE.svg [LEASES] | policies [SEEDS [DAYS "
    "[THREADS]]] | one core|actors POLICY AGENTS GPUS THINK_S HOLD_S DURATION_S SEED\n",
    self);
  return 2;
}

} // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  auto number = [&](size_t i, double otherwise) {
    return i < words.size() ? std::atof(words[i].c_str()) : otherwise;
  };
  std::string_view mode = words.empty() ? "" : words[0];
  if (mode == "compare" && words.size() <= 3 && number(1, 21) > 0)
    return compare(number(1, 21), words.size() > 2 ? words[2] : "python3");
  if (mode == "scale" && words.size() >= 3 && words.size() <= 4 && number(3, 4e5) >= 1000)
    return growth(words[1], words[2], number(3, 4e5));
  if (mode == "policies" && words.size() <= 4 && number(1, 100) >= 1 && number(2, 21) > 0
    && number(3, 2) >= 1)
    return policies(uint32_t(number(1, 100)), number(2, 21), static_cast<unsigned>(number(3, 2)));
  if (mode == "one" && words.size() == 9 && (words[1] == "core" || words[1] == "actors")) {
    closed_model model;
    model.policy = words[2];
    model.agents = uint32_t(number(3, 0));
    model.gpus = uint32_t(number(4, 0));
    model.think_s = number(5, 0);
    model.hold_s = number(6, 0);
    model.duration_s = number(7, 0);
    model.seed = uint64_t(number(8, 0));
    auto run = run_here(words[1], model);
    fmt::print(
      "{:.6f} {} {:.6f} {:.6f}\n", run.wall_s, run.leases, run.mean_wait_s, run.throughput);
    return 0;
  }
  return usage(argv[0]);
}
