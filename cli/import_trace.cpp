#include "cli/new_file.hpp"
#include "cli/verb.hpp"
#include "simulation/import/trace_import.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

namespace gristmill {

namespace {

struct import_arguments {
  std::string form;
  std::string file;
  std::string out;
  bool json = false;
  import_options options;
};

void print(const import_arguments& a, const import_summary& s) {
  if (a.json) {
    nlohmann::json root{{"schema", "gristmill.import-trace/1"}, {"form", a.form}, {"out", a.out},
      {"jobs", s.jobs}, {"requests", s.requests}, {"gpus", s.gpus}, {"span_s", s.span_s},
      {"hold_mean_s", s.hold_mean_s}, {"hold_max_s", s.hold_max_s},
      {"offered_load", s.offered_load}, {"time_scale", a.options.time_scale}, {"lost", s.lost}};
    std::puts(root.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return;
  }
  std::puts(fmt::format("{}: {} requests of {} jobs in {:.1f} s on {} GPUs, offered load {:.1f} %; "
                        "holds {:.3f} s in the mean, {:.3f} s at most; times are {} of the file's",
    a.out, s.requests, s.jobs, s.span_s, s.gpus, s.offered_load * 100, s.hold_mean_s, s.hold_max_s,
    a.options.time_scale)
              .c_str());
  for (const auto& what : s.lost)
    std::puts(("lost: " + what).c_str());
}

exit_code import_command(const import_arguments& a) {
  auto form = parse_import_form(a.form);
  if (!form)
    return complain(form.error());
  auto jobs = read_import(*form, a.file, a.options);
  if (!jobs)
    return complain(jobs.error());
  auto name = a.file.substr(a.file.find_last_of('/') + 1);
  auto file = new_file::create(a.out);
  if (!file)
    return complain(file.error());
  auto summary = write_lease_trace(std::move(*jobs), *form, name, a.options,
    [&](const std::string& line) { file->write(line + "\n"); });
  if (!summary)
    return complain(summary.error());
  if (auto written = file->finish(); !written)
    return complain(written.error());
  print(a, *summary);
  return exit_code::ok;
}

} // namespace

void add_import_trace_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand("import-trace",
    "turn the record of another cluster into a lease trace, which `replay` can run");
  auto a = std::make_shared<import_arguments>();
  app->add_option("form", a->form, "swf, openb or gavel")->required();
  app->add_option("file", a->file, "the record")->required();
  app->add_option("--out", a->out, "the lease trace, a new file")->required();
  app->add_option("--time-scale", a->options.time_scale,
    "every time is multiplied by this (0.01, which makes 36 s of an hour)");
  app->add_option("--gpus", a->options.gpus,
    "GPUs of the trace; without it as many as make the offered load 80 %");
  app->add_option("--limit", a->options.limit, "at most so many requests, the earliest (10000)");
  app->add_option("--hold-cap", a->options.hold_cap_s,
    "longer holds are cut to so many seconds (600); 0 cuts none");
  app->add_option("--mean-job", a->options.mean_job_s,
    "gavel only: mean seconds of a job, in the time of the file (3600)");
  app->add_flag("--json", a->json, "the summary as JSON");
  all.push_back({app, [a] { return import_command(*a); }});
}

} // namespace gristmill
