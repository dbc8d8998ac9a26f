#include "simulation/report/lab_metrics.hpp"

#include <algorithm>
#include <cmath>

namespace gristmill {

namespace {

double gpu_share(const lab_result& run, gpu_time what) {
  double all = 0;
  for (double part : run.gpu_s)
    all += part;
  return all > 0 ? run.gpu_s[static_cast<size_t>(what)] / all : 0;
}

template <gpu_time What>
double share_of(const lab_result& run) {
  return gpu_share(run, What);
}

/// Of the time under lease: before the first launch, and from the end of the work to free.
double overhead_of(const lab_result& run) {
  const auto part = [&run](gpu_time what) { return run.gpu_s[static_cast<size_t>(what)]; };
  const double around = part(gpu_time::launch) + part(gpu_time::verify);
  const double leased =
    around + part(gpu_time::useful) + part(gpu_time::compile) + part(gpu_time::wasted);
  return leased > 0 ? around / leased : 0;
}

double starved_share(const lab_result& run) {
  return run.agents > 0 ? static_cast<double>(run.starved) / run.agents : 0;
}

double gpu_hours_of(const lab_result& run) {
  return run.end() != nullptr ? run.end()->gpu_hours : 0;
}

double goodput_of(const lab_result& run) {
  const double hours = gpu_hours_of(run);
  if (run.end() == nullptr || !(hours > 0) || !(run.end()->geomean > 0))
    return 0;
  return std::log(run.end()->geomean) * static_cast<double>(run.problem_s.size()) / hours;
}

template <int Decile>
double decile_of(const lab_result& run) {
  return lorenz_share(run.shares, Decile / 10.0) - lorenz_share(run.shares, (Decile - 1) / 10.0);
}

std::vector<lab_metric> make_metrics() {
  using enum metric_sense;
  using r = const lab_result&;
  return {
    {"wait_p50_s", "wait p50, s", lower, false, true, [](r x) { return x.waits.quantile_s(0.5); }},
    {"wait_p90_s", "wait p90, s", lower, false, true, [](r x) { return x.waits.quantile_s(0.9); }},
    {"wait_p99_s", "wait p99, s", lower, false, true, [](r x) { return x.waits.quantile_s(0.99); }},
    {"wait_max_s", "wait max, s", lower, false, true, [](r x) { return x.waits.max_s(); }},
    {"wait_mean_s", "wait mean, s", lower, false, true, [](r x) { return x.waits.mean_s(); }},
    {"queue_mean", "waiting requests, mean", lower, false, true,
      [](r x) { return x.measured_s > 0 ? x.queue_area / x.measured_s : 0; }},
    {"leases_per_s", "leases ended a second", higher, false, true,
      [](r x) { return x.throughput(); }},
    {"utilisation", "GPU time under lease, share", neither, false, true,
      [](r x) { return x.utilisation(); }},
    {"hold_mean_s", "hold mean, s", neither, false, true, [](r x) { return x.holds.mean_s(); }},
    {"hold_p50_s", "hold p50, s", neither, false, false,
      [](r x) { return x.holds.quantile_s(0.5); }},
    {"hold_p99_s", "hold p99, s", neither, false, false,
      [](r x) { return x.holds.quantile_s(0.99); }},
    {"overhead", "overhead, share of leased", lower, false, true, overhead_of},
    {"wasted_s", "wasted GPU seconds", lower, false, true,
      [](r x) { return x.gpu_s[static_cast<size_t>(gpu_time::wasted)]; }},
    {"gpu_useful", "GPU useful, share", higher, false, true, share_of<gpu_time::useful>},
    {"gpu_compile", "GPU waits for compiler, share", lower, false, true,
      share_of<gpu_time::compile>},
    {"gpu_launch", "GPU held idle, share", lower, false, true, share_of<gpu_time::launch>},
    {"gpu_wasted", "GPU wasted, share", lower, false, true, share_of<gpu_time::wasted>},
    {"gpu_verify", "GPU verifying, share", lower, false, true, share_of<gpu_time::verify>},
    {"gpu_down", "GPU out of service, share", neither, false, true, share_of<gpu_time::down>},
    {"gpu_free", "GPU free, share", neither, false, true, share_of<gpu_time::free>},
    {"jain_seconds", "Jain of GPU seconds", higher, false, true,
      [](r x) { return x.jain_seconds; }},
    {"jain_weighted", "Jain by weight", higher, false, true, [](r x) { return x.jain_weighted; }},
    {"jain_counts", "Jain of lease counts", neither, false, true,
      [](r x) { return x.jain_counts; }},
    {"starved", "starved agents, share", lower, false, true, starved_share},
    {"waiting_at_end_s", "longest wait at the end, s", neither, false, false,
      [](r x) { return x.waiting_at_end_s; }},
    {"requests", "requests", neither, false, false,
      [](r x) { return static_cast<double>(x.requests); }},
    {"leases", "leases ended", neither, false, false,
      [](r x) { return static_cast<double>(x.ended); }},
    {"hangs", "hangs", neither, false, true, [](r x) { return static_cast<double>(x.hangs); }},
    {"faults", "faults", neither, false, true, [](r x) { return static_cast<double>(x.faults); }},
    {"lost", "leases lost with a GPU", neither, false, true,
      [](r x) { return static_cast<double>(x.lost); }},
    {"given_up", "waits given up", lower, false, true,
      [](r x) { return static_cast<double>(x.given_up); }},
    {"decile_1", "GPU seconds of the least served tenth", neither, false, false, decile_of<1>},
    {"decile_2", "second tenth", neither, false, false, decile_of<2>},
    {"decile_3", "third tenth", neither, false, false, decile_of<3>},
    {"decile_4", "fourth tenth", neither, false, false, decile_of<4>},
    {"decile_5", "fifth tenth", neither, false, false, decile_of<5>},
    {"decile_6", "sixth tenth", neither, false, false, decile_of<6>},
    {"decile_7", "seventh tenth", neither, false, false, decile_of<7>},
    {"decile_8", "eighth tenth", neither, false, false, decile_of<8>},
    {"decile_9", "ninth tenth", neither, false, false, decile_of<9>},
    {"decile_10", "GPU seconds of the most served tenth", neither, false, false, decile_of<10>},
    {"geomean", "geomean", higher, true, true,
      [](r x) { return x.end() != nullptr ? x.end()->geomean : 1; }},
    {"wins", "wins (faster than T_b)", higher, true, true,
      [](r x) { return x.end() != nullptr ? static_cast<double>(x.end()->wins) : 0; }},
    {"above_two", "more than 2x", higher, true, true,
      [](r x) { return x.end() != nullptr ? static_cast<double>(x.end()->above_two) : 0; }},
    {"median_sol", "median SOL score", higher, true, true,
      [](r x) { return x.end() != nullptr ? x.end()->median_sol : 0; }},
    {"gpu_hours", "GPU-hours leased", neither, true, true, gpu_hours_of},
    {"area", "mean geomean over GPU-hours", higher, true, true,
      [](r x) { return x.mean_geomean(); }},
    {"goodput", "log gain a GPU-hour", higher, true, true, goodput_of},
  };
}

} // namespace

const std::vector<lab_metric>& own_metrics() {
  static const auto all = make_metrics();
  return all;
}

size_t own_metric(std::string_view key) {
  const auto& all = own_metrics();
  size_t at = 0;
  while (at < all.size() && all[at].key != key)
    ++at;
  return at;
}

const std::vector<double>& wait_grid() {
  static const auto grid = [] {
    std::vector<double> out = {0};
    for (int i = 0; i <= 9 * 16; ++i)
      out.push_back(std::pow(10.0, -3 + i / 16.0));
    return out;
  }();
  return grid;
}

double lorenz_share(const std::vector<agent_share>& agents, double share) {
  std::vector<double> held;
  double all = 0;
  for (const auto& each : agents) {
    held.push_back(each.held_s);
    all += each.held_s;
  }
  if (!(all > 0))
    return share;
  std::sort(held.begin(), held.end());
  const double end = share * static_cast<double>(held.size());
  double sum = 0;
  for (size_t i = 0; i < held.size(); ++i)
    sum += held[i] * std::clamp(end - static_cast<double>(i), 0.0, 1.0);
  return sum / all;
}

} // namespace gristmill
