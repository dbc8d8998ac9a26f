#include "cli/commands.hpp"
#include "protocol/nearest.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

namespace gristmill {

namespace {

/// Values of the flags of `run`; what was not given stays empty, so that the layers below show.
struct run_flags {
  run_settings given;
  // As texts: CLI11 takes a number that is too large, or negative, for another one.
  std::string workers;
  std::string seed;
  std::string config;
  bool json = false;
};

void add_run(CLI::App& app, run_flags& flags) {
  auto& s = flags.given;
  app.add_option("problem", s.problems,
    "names of built-in problems or folders in SOL-ExecBench form; default: all built-in ones");
  app.add_option("--gpus", s.gpus, "mock:MODEL[:COUNT] or sleep:TIME:COUNT, several with commas");
  app.add_option("--workers", flags.workers, "agents that work at once");
  app.add_option("--budget", s.budget, "10m, 500attempts or 600gpu-s; once for each kind")
    ->expected(1)
    ->allow_extra_args(false)
    ->take_all();
  app.add_option("--seed", flags.seed, "makes inputs and search repeatable");
  app.add_option("--out", s.out, "the run directory; default: runs/<time>-<name>");
  app.add_flag("--json", flags.json, "the table as JSON");
  app.add_option("--proposer", s.proposer, "template, scripted or sleep");
  app.add_option("--candidate", s.candidates, "[PROBLEM=]FILE.cu with FILE.plan.json beside it")
    ->expected(1)
    ->allow_extra_args(false)
    ->take_all();
  app.add_option("--bounds", s.bounds, "baselines and floors from a file");
  app.add_option("--oracle", s.oracle, "auto, native or torch");
  app.add_option("--python", s.python, "interpreter of the torch oracle");
  app.add_option("--toolchain", s.toolchain, "auto or clang");
  app.add_option("--lease-policy", s.lease_policy, "fifo or stride");
  app.add_option("--config", flags.config, "settings from a TOML file");
}

result<std::string> text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in)
    return fail(errc::not_found, "--config " + file + ": cannot be read");
  return text.str();
}

template <class Number>
result<Number> whole_number(const std::string& flag, const std::string& text) {
  Number value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    return fail(errc::invalid_input,
      flag + " " + text + ": must be a whole number from 0 to "
        + std::to_string(std::numeric_limits<Number>::max()));
  return value;
}

/// Flag over environment over file over default.
result<run_arguments> layered(const CLI::App& app, const run_flags& flags) {
  run_arguments out;
  out.json = flags.json;
  auto& s = out.settings;
  if (!flags.config.empty()) {
    auto text = text_of(flags.config);
    if (!text)
      return pass(text);
    if (auto applied = apply_toml(s, *text, flags.config); !applied)
      return pass(applied);
  }
  if (auto applied = apply_environment(s, [](const char* name) { return std::getenv(name); });
      !applied)
    return pass(applied);
  const auto& g = flags.given;
  auto take = [&app](const char* flag, auto& to, const auto& from) {
    if (app.count(flag) != 0)
      to = from;
  };
  take("problem", s.problems, g.problems);
  take("--gpus", s.gpus, g.gpus);
  take("--budget", s.budget, g.budget);
  take("--out", s.out, g.out);
  take("--proposer", s.proposer, g.proposer);
  take("--candidate", s.candidates, g.candidates);
  take("--bounds", s.bounds, g.bounds);
  take("--oracle", s.oracle, g.oracle);
  take("--python", s.python, g.python);
  take("--toolchain", s.toolchain, g.toolchain);
  take("--lease-policy", s.lease_policy, g.lease_policy);
  if (app.count("--workers") != 0) {
    auto workers = whole_number<uint32_t>("--workers", flags.workers);
    if (!workers)
      return pass(workers);
    if (*workers == 0)
      return fail(errc::invalid_input, "--workers 0: at least one worker is needed");
    s.workers = *workers;
  }
  if (app.count("--seed") != 0) {
    auto seed = whole_number<uint64_t>("--seed", flags.seed);
    if (!seed)
      return pass(seed);
    s.seed = *seed;
  }
  return out;
}

/// CLI11's message, and for an unknown flag or command the nearest known one.
exit_code complain_about(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::string text = error.what();
  std::vector<std::string> known;
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  if (argc > 1 && argv[1][0] != '-'
    && std::none_of(commands.begin(), commands.end(),
      [&](const CLI::App* command) { return command->get_name() == argv[1]; }))
    text = "unknown command " + std::string(argv[1]);
  const CLI::App* deepest = &app;
  for (auto subs = deepest->get_subcommands(); !subs.empty(); subs = deepest->get_subcommands())
    deepest = subs.front();
  for (const auto* option : deepest->get_options())
    for (const auto& name : option->get_lnames())
      known.push_back("--" + name);
  for (const auto* sub : deepest->get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(sub->get_name());
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    auto name = argument.substr(0, argument.find('='));
    if (text.find(name) != std::string::npos
      && std::find(known.begin(), known.end(), name) == known.end()) {
      text += suggestion(name, known);
      break;
    }
  }
  return complain({errc::invalid_input, text});
}

exit_code dispatch(int argc, char** argv) {
  CLI::App app{"A multi-agent runtime that optimises GPU kernels.", "gristmill"};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("gristmill ") + GRISTMILL_VERSION);

  run_flags run;
  auto* run_app = app.add_subcommand("run", "the main job: find correct, faster kernels");
  add_run(*run_app, run);

  report_arguments report;
  auto* report_app = app.add_subcommand("report", "print the table of a run from its log");
  report_app->add_option("run", report.run, "run directory")->required();
  report_app->add_flag("--json", report.json, "the table as JSON");

  doctor_arguments doctor;
  auto* doctor_app = app.add_subcommand("doctor", "what this machine has");
  doctor_app->add_flag("--json", doctor.json, "as JSON");
  doctor_app->add_option("--python", doctor.python, "interpreter of the torch oracle");

  bool list_json = false;
  auto* problem_app = app.add_subcommand("problem", "problems");
  problem_app->require_subcommand(1);
  auto* list_app = problem_app->add_subcommand("list", "the built-in problems");
  list_app->add_flag("--json", list_json, "as JSON");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) { // --help, --version
    return static_cast<exit_code>(app.exit(wanted));
  } catch (const CLI::ParseError& error) {
    return complain_about(app, error, argc, argv);
  }
  if (*run_app) {
    auto arguments = layered(*run_app, run);
    return arguments ? run_command(*arguments) : complain(arguments.error());
  }
  if (*report_app)
    return report_command(report);
  if (*doctor_app)
    return doctor_command(doctor);
  return problem_list_command(list_json);
}

} // namespace

} // namespace gristmill

int main(int argc, char** argv) {
  return static_cast<int>(gristmill::dispatch(argc, argv));
}
