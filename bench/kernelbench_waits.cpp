// How long do agents wait for a GPU lock? Half of a public record of KernelBench runs gives the
// holds and the thinking, the simulator predicts the waits of the other half, and the errors are
// printed beside those of simple baselines. docs/studies/kernelbench-waits.md.
//
//   kernelbench_waits CSV [SEEDS]

#include "journal/hash.hpp"
#include "scoring/score.hpp"
#include "simulation/core/engine.hpp"
#include "simulation/import/import_fields.hpp"
#include "simulation/model/counter_stream.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace gristmill {

namespace {

using std::chrono::nanoseconds;

constexpr const char* header =
  "run_id,bench,gpu,problem,correct,failure_reason,peak_fraction,agent_s,check_s,benchmark_s,"
  "output_tokens,lock_acquisitions,lock_wait_s,lock_active_s";

/// Runs with fewer acquisitions show the harness's own final check only.
constexpr double agent_acquisitions_min = 10;
/// Relative errors are told against a wait of at least this: many waits are 0.
constexpr double wait_floor_s = 1;
/// How often the number of leases of a run is fitted to its length.
constexpr int fits = 5;

struct lock_run {
  std::string id;
  std::string gpu;
  std::string problem;
  double start_s = 0;
  /// Of the agent and of the check and the benchmark that the harness makes at its end.
  double length_s = 0;
  double acquisitions = 0;
  double wait_s = 0;
  double active_s = 0;

  bool is_agent() const { return acquisitions >= agent_acquisitions_min; }
  double hold() const { return active_s / acquisitions; }
  double think() const { return std::max(length_s - wait_s - active_s, 0.0) / acquisitions; }
  double wait() const { return wait_s / acquisitions; }
};

/// "20260716_090533_…" in seconds, days counted by the Julian day number.
result<double> start_of(const std::string& id) {
  auto number = [&](size_t at, size_t count) {
    int value = -1;
    if (id.size() >= at + count) {
      auto [end, error] = std::from_chars(id.data() + at, id.data() + at + count, value);
      if (error != std::errc{} || end != id.data() + at + count)
        value = -1;
    }
    return value;
  };
  int year = number(0, 4), month = number(4, 2), day = number(6, 2);
  int hour = number(9, 2), minute = number(11, 2), second = number(13, 2);
  if (year < 2000 || month < 1 || day < 1 || hour < 0 || minute < 0 || second < 0)
    return fail(errc::invalid_input, "run_id: it does not begin with a date and a time");
  auto days = std::chrono::sys_days{
    std::chrono::year{year} / static_cast<unsigned>(month) / static_cast<unsigned>(day)};
  return 86'400.0 * static_cast<double>(days.time_since_epoch().count()) + 3600.0 * hour
    + 60.0 * minute + second;
}

struct record {
  std::vector<lock_run> runs;
  size_t rows = 0;
  size_t without_times = 0;
};

result<record> read_record(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return fail(errc::not_found, path + ": cannot be read");
  record out;
  std::string line;
  for (size_t number = 1; std::getline(in, line); ++number) {
    auto placed = [&](const std::string& what) {
      return fail(errc::invalid_input, fmt::format("{}: line {}: {}", path, number, what));
    };
    if (!line.empty() && line.back() == '\r')
      line.pop_back();
    if (number == 1) {
      if (line != header)
        return placed(std::string("the header must be ") + header);
      continue;
    }
    auto parts = split_fields(line, ',', 15);
    if (!parts || parts->size() != 14)
      return placed("a run has 14 fields between commas");
    const auto& p = *parts;
    ++out.rows;
    if (p[7].empty() || p[11].empty() || p[12].empty() || p[13].empty()) {
      ++out.without_times;
      continue;
    }
    lock_run run;
    run.id = p[0];
    run.gpu = p[2];
    run.problem = p[3];
    auto start = start_of(run.id);
    if (!start)
      return placed(start.error().what);
    run.start_s = *start;
    for (auto [index, name, to] : {std::tuple{7, "agent_s", &run.length_s},
           std::tuple{8, "check_s", &run.length_s}, std::tuple{9, "benchmark_s", &run.length_s},
           std::tuple{11, "lock_acquisitions", &run.acquisitions},
           std::tuple{12, "lock_wait_s", &run.wait_s},
           std::tuple{13, "lock_active_s", &run.active_s}}) {
      if (p[static_cast<size_t>(index)].empty())
        continue;
      auto value = number_field(p[static_cast<size_t>(index)], name);
      if (!value)
        return placed(value.error().what);
      *to += *value;
    }
    if (run.acquisitions >= 1 && run.length_s > 0)
      out.runs.push_back(std::move(run));
  }
  std::sort(out.runs.begin(), out.runs.end(), [](const lock_run& a, const lock_run& b) {
    return std::tie(a.start_s, a.id) < std::tie(b.start_s, b.id);
  });
  return out;
}

/// Which half a run belongs to, by its name alone.
bool in_first_half(const lock_run& run) {
  return (sha256_hex(run.id).back() & 1) == 0;
}

/// Other runs on the same kind of GPU that went on at the same time, in the mean.
double company_of(const lock_run& run, const std::vector<lock_run>& all) {
  double shared = 0;
  for (const auto& other : all)
    if (&other != &run && other.gpu == run.gpu)
      shared += std::max(0.0,
        std::min(run.start_s + run.length_s, other.start_s + other.length_s)
          - std::max(run.start_s, other.start_s));
  return shared / run.length_s;
}

// --- the prediction ------------------------------------------------------------------------------

struct prediction_options {
  /// Predicted are the runs of the second half, from the first; or the other way round.
  bool first_trains = true;
  /// Holds and thinking of a run that is predicted come from trained runs of its problem only.
  bool by_problem = false;
  /// They, and the number of acquisitions, are its own: only the queue is predicted.
  bool load_known = false;
  uint64_t seeds = 20;
};

/// The number behind a key in the data of an event of ours; 0 where there is none.
uint64_t number_in(const std::string& data, const std::string& key) {
  uint64_t out = 0;
  if (auto at = data.find(key); at != std::string::npos)
    std::from_chars(data.data() + at + key.size(), data.data() + data.size(), out);
  return out;
}

/// One play of all runs on their GPUs; sums of waits and leases are added to each run.
class play {
public:
  play(const std::vector<lock_run>& runs, const prediction_options& options, uint64_t seed)
    : runs_(runs), options_(options), seed_(seed), holds_(runs.size()), thinks_(runs.size()),
      leases_(runs.size()) {
    draw();
  }

  result<void> run(std::vector<double>& waits, std::vector<double>& leases) {
    for (int i = 0; i < fits; ++i) {
      auto played = once();
      if (!played)
        return pass(played);
      if (i + 1 == fits || options_.load_known)
        break;
      // Waits make a run longer; it has as many leases as fit into its time.
      for (size_t r = 0; r < runs_.size(); ++r)
        if (predicted(r) && !options_.load_known) {
          auto took = ends_[r] - (runs_[r].start_s - origin_);
          if (took > 0)
            leases_[r] = std::clamp(leases_[r] * runs_[r].length_s / took, 1.0, 2000.0);
        }
    }
    for (size_t r = 0; r < runs_.size(); ++r) {
      waits[r] += waits_[r];
      leases[r] += std::round(leases_[r]);
    }
    return {};
  }

private:
  bool predicted(size_t r) const {
    return runs_[r].is_agent() && in_first_half(runs_[r]) != options_.first_trains;
  }

  void draw() {
    std::vector<size_t> trained;
    double checks = 0;
    double check_s = 0;
    origin_ = runs_.front().start_s;
    for (size_t r = 0; r < runs_.size(); ++r)
      if (in_first_half(runs_[r]) == options_.first_trains) {
        if (runs_[r].is_agent()) {
          trained.push_back(r);
        } else {
          checks += runs_[r].acquisitions;
          check_s += runs_[r].active_s;
        }
      }
    for (size_t r = 0; r < runs_.size(); ++r) {
      const auto& run = runs_[r];
      bool trains = in_first_half(run) == options_.first_trains;
      holds_[r] = run.hold();
      thinks_[r] = run.think();
      leases_[r] = run.acquisitions;
      if (!run.is_agent() && !trains) {
        // A run whose agent does not lock: its final check and benchmark, as long as others' are.
        holds_[r] = checks > 0 ? check_s / checks : 0;
        leases_[r] = 2;
      }
      if (!predicted(r) || options_.load_known || trained.empty())
        continue;
      auto from = trained;
      if (options_.by_problem) {
        std::erase_if(from, [&](size_t t) { return runs_[t].problem != run.problem; });
        if (from.size() < 3)
          from = trained;
      }
      auto like = from[counter_word(seed_, stream(r, 0), 0) % from.size()];
      holds_[r] = runs_[like].hold();
      thinks_[r] = runs_[like].think();
      leases_[r] = std::clamp(run.length_s / (holds_[r] + thinks_[r]), 1.0, 2000.0);
    }
  }

  static uint64_t stream(size_t r, uint64_t purpose) { return purpose << 32 | r; }

  recorded_agent recorded(size_t r) const {
    const auto& run = runs_[r];
    counter_stream thinking(seed_, stream(r, 1));
    counter_stream holding(seed_, stream(r, 2));
    recorded_agent out;
    out.name = fmt::format("{}", r);
    auto begins = run.start_s - origin_;
    // Who only checks does so when his agent is done.
    if (!run.is_agent())
      begins += std::max(run.length_s - leases_[r] * holds_[r], 0.0);
    auto count = static_cast<size_t>(std::max(std::round(leases_[r]), 1.0));
    for (size_t i = 0; i < count; ++i) {
      recorded_lease lease;
      auto think = run.is_agent() ? thinks_[r] * thinking.exponential() : 0;
      lease.absolute = i == 0;
      lease.gap = time_of(think + (i == 0 ? begins : 0));
      lease.hold = time_of(holds_[r] * holding.exponential());
      lease.estimate = time_of(std::max(holds_[r], 0.001));
      lease.what = lease_class::timing;
      lease.problem = run.problem;
      lease.need = run.gpu;
      out.leases.push_back(std::move(lease));
    }
    return out;
  }

  result<void> once() {
    scenario what;
    what.name = "kernelbench-waits";
    what.lease_policy = "fifo";
    std::set<std::string> models;
    lab_options options;
    double last = 0;
    for (size_t r = 0; r < runs_.size(); ++r) {
      models.insert(runs_[r].gpu);
      options.world.recorded.push_back(recorded(r));
      last = std::max(last, runs_[r].start_s + runs_[r].length_s - origin_);
    }
    for (const auto& model : models) {
      gpu_group group;
      group.name = model;
      group.model = model;
      group.count = 1;
      what.gpus.push_back(group);
    }
    what.duration_s = last * 2 + 30 * 86'400;
    what.patience_s = what.duration_s;
    for (auto& cap : what.caps_s)
      cap = what.duration_s;
    waits_.assign(runs_.size(), 0);
    ends_.assign(runs_.size(), 0);
    // Only two kinds of lines tell something here, and each holds one run at a time on its GPU.
    std::map<std::string, size_t> holder;
    options.journal = [&](event&& e) {
      if (e.kind == "lease_grant") {
        auto r = static_cast<size_t>(number_in(e.data, "\"agent\":\""));
        waits_[r] += static_cast<double>(number_in(e.data, "\"queue_ns\":")) / 1e9;
        holder[e.gpu] = r;
      } else if (e.kind == "gpu_free") {
        auto& end = ends_[holder.at(e.gpu)];
        end = std::max(end, seconds_of(e.t));
      }
    };
    auto ran = run_core(what, std::move(options));
    return ran ? result<void>{} : pass(ran);
  }

  const std::vector<lock_run>& runs_;
  const prediction_options& options_;
  uint64_t seed_;
  double origin_ = 0;
  std::vector<double> holds_;
  std::vector<double> thinks_;
  std::vector<double> leases_;
  std::vector<double> waits_;
  std::vector<double> ends_;
};

// --- errors --------------------------------------------------------------------------------------

struct pair_of_waits {
  double predicted = 0;
  double observed = 0;
  /// Acquisitions, for the pooled mean.
  double predicted_weight = 1;
  double observed_weight = 1;
};

/// Of the ranks; ties share theirs.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(
    order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> out(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t j = i;
    while (j < order.size() && values[order[j]] == values[order[i]])
      ++j;
    for (size_t k = i; k < j; ++k)
      out[order[k]] = static_cast<double>(i + j - 1) / 2;
    i = j;
  }
  return out;
}

/// Not a number where one side does not vary.
double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  auto mean = [](const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
  };
  double ma = mean(a), mb = mean(b), ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - ma) * (b[i] - mb);
    aa += (a[i] - ma) * (a[i] - ma);
    bb += (b[i] - mb) * (b[i] - mb);
  }
  return ab / std::sqrt(aa * bb);
}

void print_row(const std::string& name, const std::vector<pair_of_waits>& all) {
  std::vector<double> relative, absolute, predicted, observed;
  double wp = 0, p = 0, wo = 0, o = 0;
  size_t within = 0;
  for (const auto& one : all) {
    auto miss = std::abs(one.predicted - one.observed);
    relative.push_back(miss / std::max(one.observed, wait_floor_s));
    absolute.push_back(miss);
    predicted.push_back(one.predicted);
    observed.push_back(one.observed);
    p += one.predicted * one.predicted_weight;
    wp += one.predicted_weight;
    o += one.observed * one.observed_weight;
    wo += one.observed_weight;
    auto ratio = (one.predicted + wait_floor_s) / (one.observed + wait_floor_s);
    within += ratio >= 0.5 && ratio <= 2 ? 1 : 0;
  }
  auto rank = correlation(ranks(predicted), ranks(observed));
  std::puts(
    fmt::format("{:<34} {:>9.1f} {:>9.1f} {:>+8.0f} % {:>9.0f} % {:>9.1f} {:>10.0f} % {:>9}", name,
      p / wp, o / wo, 100 * (p / wp - o / wo) / (o / wo), 100 * *median(relative),
      *median(absolute), 100.0 * static_cast<double>(within) / static_cast<double>(all.size()),
      std::isnan(rank) ? "-" : fmt::format("{:.2f}", rank))
      .c_str());
}

/// Nobody waits for a lock longer than others hold it. Where the record says so, something else
/// held it, or it was another lock.
void print_unexplained(const std::vector<lock_run>& runs) {
  size_t agents = 0, impossible = 0;
  double waited = 0, beyond = 0;
  for (const auto& run : runs) {
    if (!run.is_agent())
      continue;
    ++agents;
    waited += run.wait_s;
    double held = 0;
    for (const auto& other : runs)
      if (&other != &run && other.gpu == run.gpu && other.start_s < run.start_s + run.length_s
        && run.start_s < other.start_s + other.length_s)
        held += other.active_s;
    impossible += run.wait_s > held ? 1 : 0;
    beyond += std::max(run.wait_s - held, 0.0);
  }
  std::puts(fmt::format("{} of {} agents waited longer than all others that were there at any time "
                        "of it held in their whole lives; {:.0f} % of all waiting is beyond that",
    impossible, agents, 100 * beyond / waited)
              .c_str());
}

/// Waits from the mean of the other half, of its GPUs, and in proportion to the company.
void print_baselines(const std::vector<lock_run>& runs, bool first_trains) {
  double wait = 0, count = 0, by_company = 0, company_square = 0;
  std::map<std::string, std::pair<double, double>> of_gpu;
  for (const auto& run : runs)
    if (run.is_agent() && in_first_half(run) == first_trains) {
      wait += run.wait_s;
      count += run.acquisitions;
      of_gpu[run.gpu].first += run.wait_s;
      of_gpu[run.gpu].second += run.acquisitions;
      auto company = company_of(run, runs);
      by_company += company * run.wait();
      company_square += company * company;
    }
  std::vector<pair_of_waits> mean, gpu, linear;
  for (const auto& run : runs)
    if (run.is_agent() && in_first_half(run) != first_trains) {
      pair_of_waits one{wait / count, run.wait(), run.acquisitions, run.acquisitions};
      mean.push_back(one);
      const auto& [w, n] = of_gpu[run.gpu];
      one.predicted = n > 0 ? w / n : wait / count;
      gpu.push_back(one);
      one.predicted = company_of(run, runs) * by_company / company_square;
      linear.push_back(one);
    }
  print_row("baseline: mean of the other half", mean);
  print_row("baseline: mean of the GPU model", gpu);
  print_row("baseline: proportional to company", linear);
}

result<std::vector<pair_of_waits>> predict(
  const std::vector<lock_run>& runs, const prediction_options& options) {
  std::vector<double> waits(runs.size()), leases(runs.size());
  for (uint64_t seed = 1; seed <= options.seeds; ++seed)
    if (auto played = play(runs, options, seed).run(waits, leases); !played)
      return pass(played);
  std::vector<pair_of_waits> out;
  for (size_t r = 0; r < runs.size(); ++r)
    if (runs[r].is_agent() && in_first_half(runs[r]) != options.first_trains)
      out.push_back({waits[r] / leases[r], runs[r].wait(),
        leases[r] / static_cast<double>(options.seeds), runs[r].acquisitions});
  return out;
}

void print_runs(const std::vector<lock_run>& runs, const std::vector<pair_of_waits>& found) {
  std::puts("\nper run (holds and thinking from the other half)\n"
            "start            gpu         problem                  with   acq  told acq  wait s  "
            "told s");
  size_t i = 0;
  for (const auto& run : runs)
    if (run.is_agent() && !in_first_half(run)) {
      const auto& one = found[i++];
      std::puts(fmt::format("{:<15}  {:<10}  {:<22} {:>6.1f} {:>5.0f} {:>9.0f} {:>7.1f} {:>7.1f}",
        run.id.substr(0, 15), run.gpu, run.problem.substr(0, 22), company_of(run, runs),
        run.acquisitions, one.predicted_weight, one.observed, one.predicted)
                  .c_str());
    }
}

result<void> study(const std::string& path, uint64_t seeds) {
  auto read = read_record(path);
  if (!read)
    return pass(read);
  const auto& runs = read->runs;
  size_t agents = 0, first = 0;
  double acquisitions = 0;
  for (const auto& run : runs)
    if (run.is_agent()) {
      ++agents;
      first += in_first_half(run) ? 1 : 0;
      acquisitions += run.acquisitions;
    }
  if (first == 0 || first == agents)
    return fail(errc::invalid_input, path + ": one half has no run of an agent");
  std::puts(fmt::format("{} rows, {} without times; {} runs play, {} of them agents with at least "
                        "{:.0f} acquisitions ({:.0f} in all); first half {}, second half {}; seeds "
                        "1 to {}",
    read->rows, read->without_times, runs.size(), agents, agent_acquisitions_min, acquisitions,
    first, agents - first, seeds)
              .c_str());
  print_unexplained(runs);
  std::vector<pair_of_waits> shown;
  for (bool first_trains : {true, false}) {
    std::puts(fmt::format("\n{} half predicted from the {} one\n{:<34} {:>9} {:>9} {:>10} {:>11} "
                          "{:>9} {:>12} {:>9}",
      first_trains ? "second" : "first", first_trains ? "first" : "second", "", "pooled s",
      "measured", "error", "median rel", "median s", "within x2", "rank corr")
                .c_str());
    print_baselines(runs, first_trains);
    for (auto [name, by_problem, known] :
      {std::tuple{"simulated: any run of the other half", false, false},
        std::tuple{"simulated: runs of the same problem", true, false},
        std::tuple{"simulated: its own load known", false, true}}) {
      auto found = predict(runs, {first_trains, by_problem, known, seeds});
      if (!found)
        return pass(found);
      print_row(name, *found);
      if (first_trains && !by_problem && !known)
        shown = *found;
    }
  }
  print_runs(runs, shown);
  return {};
}

} // namespace

} // namespace gristmill

int main(int argc, char** argv) {
  uint64_t seeds = 20;
  if (argc == 3) {
    std::string text = argv[2];
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seeds);
    if (error != std::errc{} || end != text.data() + text.size() || seeds < 1 || seeds > 10'000)
      argc = 0;
  }
  if (argc != 2 && argc != 3) {
    std::fputs("usage: kernelbench_waits CSV [SEEDS, 1 to 10000]\n", stderr);
    return 2;
  }
  auto done = gristmill::study(argv[1], seeds);
  if (!done) {
    std::fprintf(stderr, "kernelbench_waits: %s\n", done.error().what.c_str());
    return 2;
  }
  return 0;
}
