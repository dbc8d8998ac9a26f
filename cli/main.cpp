#include "cli/verb.hpp"
#include "gpu/planner/external_allocation.hpp"
#include "protocol/nearest.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <malloc.h>

namespace gristmill {

namespace {

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
  // A group, such as `problem`, without a command that it has.
  if (deepest != &app && argc > 2 && argv[2][0] != '-'
    && !deepest->get_subcommands([](const CLI::App*) { return true; }).empty())
    text = "unknown command " + std::string(argv[2]);
  const bool lacks_command = argc == (deepest == &app ? 1 : 2)
    && !deepest->get_subcommands([](const CLI::App*) { return true; }).empty();
  if (lacks_command) {
    std::vector<std::string> commands_of_it;
    for (const auto* sub : deepest->get_subcommands([](const CLI::App*) { return true; }))
      commands_of_it.push_back(sub->get_name());
    return complain({errc::invalid_input,
      (deepest == &app ? std::string("gristmill") : deepest->get_name()) + ": a command is missing"
        + suggestion("", commands_of_it)});
  }
  for (const auto* option : deepest->get_options())
    for (const auto& name : option->get_lnames())
      known.push_back("--" + name);
  for (const auto* sub : deepest->get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(sub->get_name());
  if (text.find("disallowed flag override") != std::string::npos)
    for (int i = 1; i < argc; ++i)
      if (const std::string argument = argv[i]; argument.starts_with("--")
          && text.starts_with(argument.substr(2, argument.find('=') - 2) + " was given"))
        return complain({errc::invalid_input, argument + ": the flag takes no value"});
  // A flag that nobody knows comes first: what else is missing may follow from it.
  const bool unknown_command = text.starts_with("unknown command");
  for (int i = 1; !unknown_command && i < argc && std::string(argv[i]) != "--"; ++i) {
    std::string argument = argv[i];
    auto name = argument.substr(0, argument.find('='));
    if (name.starts_with("--") && std::find(known.begin(), known.end(), name) == known.end())
      return complain({errc::invalid_input,
        name + ": unknown flag of "
          + (deepest == &app ? std::string("gristmill") : "`" + deepest->get_display_name() + "`")
          + suggestion(name, known)});
  }
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

/// `--json=3` is no way to give a flag.
void refuse_values_of_flags(CLI::App& app) {
  for (auto* option : app.get_options())
    if (option->get_expected_max() == 0)
      option->disable_flag_override();
  for (auto* sub : app.get_subcommands([](CLI::App*) { return true; }))
    refuse_values_of_flags(*sub);
}

exit_code dispatch(int argc, char** argv) {
  install_external_planner();
  CLI::App app{"A multi-agent runtime that optimises GPU kernels.", "gristmill"};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("gristmill ") + GRISTMILL_VERSION);

  verbs all;
  add_run_verb(app, all);
  add_resume_verb(app, all);
  add_log_show_verb(app, all);
  add_log_verify_verb(app, all);
  add_report_verb(app, all);
  add_doctor_verb(app, all);
  add_problem_list_verb(app, all);
  add_problem_check_verb(app, all);
  add_problem_show_verb(app, all);
  add_problem_reference_verb(app, all);
  add_solution_check_verb(app, all);
  add_trace_check_verb(app, all);
  add_convert_verb(app, all);
  add_broker_verb(app, all);
  add_lease_verb(app, all);
  add_leases_verb(app, all);
  add_score_verb(app, all);
  add_audit_verb(app, all);
  add_rescore_verb(app, all);
  add_selfcheck_verb(app, all);
  add_export_verb(app, all);
  add_simulate_verb(app, all);
  add_sweep_verb(app, all);
  add_replay_verb(app, all);
  add_import_trace_verb(app, all);
  add_program_check_verb(app, all);
  add_program_show_verb(app, all);
  add_mcp_verb(app, all);
  add_baseline_verb(app, all);
  add_node_verb(app, all);
  add_cluster_init_verbs(app, all);
  add_cluster_status_verbs(app, all);

  refuse_values_of_flags(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) { // --help, --version
    return static_cast<exit_code>(app.exit(wanted));
  } catch (const CLI::ParseError& error) {
    return complain_about(app, error, argc, argv);
  }
  for (const auto& each : all)
    if (*each.app)
      return each.run();
  return complain({errc::invalid_input, "no command given"});
}

/// Assignments and buffers for other machines are blocks of hundreds of kilobytes that live for a
/// moment. glibc learns from the first of them to keep such blocks in its heaps, where small ones
/// that stay hold them for the whole run: a coordinator that loses nodes grew by it. With a fixed
/// threshold they go back to the system (docs/cluster.md).
void give_large_blocks_back() {
#ifdef M_MMAP_THRESHOLD
  constexpr int bytes = 128 << 10; // What glibc begins with.
  mallopt(M_MMAP_THRESHOLD, bytes);
  mallopt(M_TRIM_THRESHOLD, bytes);
#endif
}

} // namespace

} // namespace gristmill

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "lease") == 0)
    return gristmill::become_lease_program(argv + 2);
  gristmill::give_large_blocks_back();
  return static_cast<int>(gristmill::dispatch(argc, argv));
}
