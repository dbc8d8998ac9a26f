#include "cli/lab_session.hpp"
#include "cli/verb.hpp"
#include "cli/whole_number.hpp"
#include "journal/event_line.hpp"
#include "simulation/lab.hpp"
#include "simulation/report/lab_page.hpp"
#include "simulation/report/lab_summary.hpp"
#include "simulation/report/lab_trace.hpp"
#include "simulation/scenario_file.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <memory>

namespace gristmill {

namespace {

struct simulate_arguments {
  std::string scenario;
  std::vector<std::string> set;
  std::vector<std::string> policies;
  std::vector<std::string> planners;
  std::string engine = "core";
  std::string seeds = "5";
  std::string first_seed = "1";
  std::string jobs = "0";
  std::string minutes = "60";
  std::string journal;
  std::string perfetto;
  std::string csv;
  std::string html;
  bool json = false;
  bool list = false;
  bool without_bounds = false;
};

result<lab_wishes> wishes_of(const simulate_arguments& arguments) {
  lab_wishes out;
  auto base = load_scenario(arguments.scenario);
  if (!base)
    return pass(base);
  out.base = std::move(*base);
  for (const auto& each : arguments.set) {
    const size_t equals = each.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(errc::invalid_input, "--set " + each + ": must be KEY=VALUE");
    if (auto set = set_scenario_key(out.base, each.substr(0, equals), each.substr(equals + 1));
        !set)
      return fail(set.error().code, "--set " + each + ": " + set.error().what);
  }
  auto seeds = whole_number("--seeds", arguments.seeds, 1, runs_max);
  if (!seeds)
    return pass(seeds);
  auto first = whole_number("--first-seed", arguments.first_seed, 0, UINT64_MAX - runs_max);
  if (!first)
    return pass(first);
  out.seeds = static_cast<uint32_t>(*seeds);
  out.first_seed = *first;
  out.policies = arguments.policies;
  out.planners = arguments.planners;
  out.with_bounds = !arguments.without_bounds;
  out.against_equal = true;
  if (arguments.engine != "core" && arguments.engine != "actors")
    return fail(
      errc::invalid_input, "--engine " + arguments.engine + ": must be `core` or `actors`");
  out.engine = arguments.engine == "core" ? lab_engine::core : lab_engine::actors;
  return out;
}

/// Journal, Perfetto trace and the events of the Gantt chart: one more run of the first seed of the
/// first variant, with its events.
class traced_run {
public:
  traced_run(
    const simulate_arguments& arguments, const lab_plan& plan, lab_identity who, double minutes)
    : arguments_(arguments), plan_(plan), who_(std::move(who)), minutes_(minutes) {}

  const std::vector<event>& window() const { return window_; }

  result<void> run(const std::string& digest) {
    const bool to_journal = !arguments_.journal.empty();
    const bool to_window = !arguments_.perfetto.empty() || !arguments_.html.empty();
    if (!to_journal && !to_window)
      return {};
    if (to_journal) {
      out_.open(arguments_.journal + ".part", std::ios::binary | std::ios::trunc);
      write(lab_run_event(plan_.variants.front(), plan_.first_seed, who_));
    }
    result<lab_result> ran;
    auto ended = interruptible([&](const std::atomic<bool>& stop) -> result<void> {
      ran = run_with_events(
        plan_.variants.front(), plan_.first_seed, plan_.engine, run_lab,
        [&](event&& e) { return take(std::move(e), to_journal, to_window); }, &stop);
      if (stop)
        return fail(errc::shutting_down, "interrupted");
      return {};
    });
    if (!ended)
      return ended;
    const bool cut = !ran && ran.error().code == errc::shutting_down && !to_journal;
    if (!ran && !cut)
      return pass(ran);
    if (window_.size() > window_events_max)
      return fail(errc::invalid_input,
        fmt::format("--minutes {}: more than {} events; take fewer minutes", arguments_.minutes,
          window_events_max));
    if (ran && ran->digest != digest)
      return fail(errc::io_failed,
        fmt::format("the run with a journal has digest {}, without {}: a mistake of ours",
          ran->digest, digest));
    if (to_journal)
      if (auto kept = close_journal(); !kept)
        return kept;
    if (arguments_.perfetto.empty())
      return {};
    auto trace =
      perfetto_trace(window_, fmt::format("{}, seed {}", plan_.name, plan_.first_seed), who_);
    if (!trace)
      return pass(trace);
    return write_whole_file(arguments_.perfetto, *trace);
  }

private:
  void write(event e) {
    e.seq = ++count_;
    e.incarnation = 1;
    out_ << canonical_line(e) << '\n';
  }

  bool take(event&& e, bool to_journal, bool to_window) {
    const bool inside = std::chrono::duration<double>(e.t).count() <= minutes_ * 60
      && window_.size() <= window_events_max;
    if (to_window && inside)
      window_.push_back(for_timeline(e));
    if (to_journal)
      write(std::move(e));
    return to_journal || inside;
  }

  result<void> close_journal() {
    out_.close();
    std::error_code error;
    if (out_)
      std::filesystem::rename(arguments_.journal + ".part", arguments_.journal, error);
    if (!out_ || error)
      return fail(errc::io_failed, arguments_.journal + ": cannot be written");
    return {};
  }

  const simulate_arguments& arguments_;
  const lab_plan& plan_;
  lab_identity who_;
  double minutes_;
  std::ofstream out_;
  uint64_t count_ = 0;
  std::vector<event> window_;
};

exit_code list_presets() {
  for (const auto& each : presets())
    std::fputs(fmt::format("{:20} {}\n", each.name, each.what).c_str(), stdout);
  return exit_code::ok;
}

exit_code simulate_command(const simulate_arguments& arguments) {
  if (arguments.list)
    return list_presets();
  if (arguments.scenario.empty())
    return complain({errc::invalid_input,
      "simulate: a scenario is missing: a preset (--list shows them) or a file"});
  for (const auto& [flag, path] :
    {std::pair{"--journal", &arguments.journal}, std::pair{"--perfetto", &arguments.perfetto},
      std::pair{"--csv", &arguments.csv}, std::pair{"--html", &arguments.html}})
    if (auto fine = check_output(flag, *path); !fine)
      return complain(fine.error());
  auto jobs = whole_number("--jobs", arguments.jobs, 0, 1024);
  if (!jobs)
    return complain(jobs.error());
  auto minutes = whole_number("--minutes", arguments.minutes, 1, 10'000'000);
  if (!minutes)
    return complain(minutes.error());
  auto wishes = wishes_of(arguments);
  if (!wishes)
    return complain(wishes.error());
  auto plan = make_plan(*wishes);
  if (!plan)
    return complain(plan.error());
  if (auto fine = check_plan(*plan, run_lab); !fine)
    return complain(fine.error());
  const auto who = this_program();
  std::vector<lab_row> rows;
  auto ran = run_with_progress(
    *plan, {}, static_cast<unsigned>(*jobs), [&rows](lab_row&& row) -> result<void> {
      rows.push_back(std::move(row));
      return {};
    });
  if (!ran)
    return complain_or_interrupted({ran.error().code,
      ran.error().code == errc::shutting_down ? fmt::format(
        "interrupted: {} of {} runs were done, nothing is shown", rows.size(), plan->runs())
                                              : ran.error().what});
  sort_rows(rows);
  auto summary = summarise(*plan, rows);
  if (!summary)
    return complain(summary.error());
  traced_run trace(arguments, *plan, who, static_cast<double>(*minutes));
  if (auto traced = trace.run(rows.front().digest); !traced)
    return complain_or_interrupted(traced.error());
  if (!arguments.csv.empty()) {
    std::string text = results_head(*plan);
    for (const auto& row : rows)
      text += results_line(*plan, row);
    if (auto written = write_whole_file(arguments.csv, text); !written)
      return complain(written.error());
  }
  if (!arguments.html.empty()) {
    auto page = to_html({*plan, *summary, rows, who, trace.window(), double(*minutes)});
    if (!page)
      return complain(page.error());
    if (auto written = write_whole_file(arguments.html, *page); !written)
      return complain(written.error());
  }
  const auto text =
    arguments.json ? to_json(*plan, *summary, rows, who) : to_text(*plan, *summary, who);
  std::fputs(text.c_str(), stdout);
  return exit_code::ok;
}

} // namespace

void add_simulate_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand(
    "simulate", "simulate agents on GPUs: waits, fairness and outcome under policies");
  auto arguments = std::make_shared<simulate_arguments>();
  app->add_option("scenario", arguments->scenario, "preset or TOML file");
  app->add_flag("--list", arguments->list, "list the presets");
  app->add_option("--seeds", arguments->seeds, "runs of each variant; 5 when it is not given");
  app->add_option("--first-seed", arguments->first_seed, "the first of them; 1");
  app->add_option("--policy", arguments->policies, "lease policy; again for another one")
    ->allow_extra_args(false);
  app->add_option("--planner", arguments->planners, "planner; again for another one")
    ->allow_extra_args(false);
  app->add_option("--set", arguments->set, "KEY=VALUE of the scenario; again for more")
    ->allow_extra_args(false);
  app->add_option("--engine", arguments->engine, "`core`, or `actors`: the real actors");
  app->add_option("--jobs", arguments->jobs, "threads; one for each processor");
  app->add_flag(
    "--without-bounds", arguments->without_bounds, "leave equal share and the oracle out");
  app->add_flag("--json", arguments->json, "the result as JSON");
  app->add_option("--csv", arguments->csv, "write a row for each run");
  app->add_option("--html", arguments->html, "write one self-contained page");
  app->add_option(
    "--journal", arguments->journal, "write the events of the first seed, first variant");
  app->add_option("--perfetto", arguments->perfetto, "write its first minutes as a trace");
  app->add_option("--minutes", arguments->minutes, "of the trace and the Gantt chart; 60");
  all.push_back({app, [arguments] { return simulate_command(*arguments); }});
}

} // namespace gristmill
