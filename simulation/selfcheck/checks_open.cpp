#include "simulation/scenario_file.hpp"
#include "simulation/selfcheck/formulas.hpp"
#include "simulation/selfcheck/runs.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

void add_many_servers(std::vector<check>& out, double load, double jobs) {
  const auto of = open_scenario("open queue", 27, load, exponential_law(24), jobs);
  const open_queue q(27, load, 24);
  check made;
  made.name = fmt::format("open-queue-{:.0f}", load * 100);
  made.what = fmt::format("M/M/27 at load {}, {:.0f} jobs", load, jobs);
  made.source = "Erlang C; Kleinrock I 3.5";
  made.config = canonical_toml(of);
  made.lines = {{"mean wait, s", q.mean_wait()}, {"waits at all", q.waits_at_all()}};
  // Nearer to saturation the tail would need three times as many jobs for the same standard error.
  const bool with_tail = load <= 0.9;
  if (with_tail)
    made.lines.push_back({"wait p99, s", q.wait_quantile(0.99)});
  made.run = [of, with_tail](uint64_t seed, mutant_kind mutant) -> result<seed_outcome> {
    auto run = run_scenario(of, seed, mutant);
    if (!run)
      return pass(run);
    seed_outcome one;
    one.values = {run->waits.mean_s(), 1 - run->waits.share_up_to(no_wait_s)};
    if (with_tail)
      one.values.push_back(run->waits.quantile_s(0.99));
    count_run(one, *run);
    return one;
  };
  out.push_back(std::move(made));
}

void add_one_server(std::vector<check>& out, const std::vector<load_case>& cases) {
  check made;
  made.name = "one-gpu";
  made.what = "M/G/1, first come first served, mean hold 10 s";
  made.source = "Pollaczek-Khinchine";
  std::vector<scenario> all;
  for (const auto& each : cases) {
    all.push_back(open_scenario("one GPU", 1, each.load, law_of(10, each.cv2), each.jobs));
    made.config += canonical_toml(all.back());
    made.lines.push_back({wait_line(each), pollaczek_khinchine(each.load, 10, each.cv2)});
  }
  made.run = run_each(std::move(all), [](const lab_result& run) { return run.waits.mean_s(); });
  out.push_back(std::move(made));
}

} // namespace

void add_open_checks(std::vector<check>& out, bool quick) {
  if (quick) {
    add_one_server(out, {{0.5, 0, 30'000}, {0.5, 1, 40'000}});
    return;
  }
  add_many_servers(out, 0.8, 600'000);
  add_many_servers(out, 0.9, 1'000'000);
  add_many_servers(out, 0.95, 2'000'000);
  add_one_server(out, {{0.8, 0, 200'000}, {0.8, 1, 300'000}, {0.8, 4, 500'000}});
}

} // namespace gristmill
