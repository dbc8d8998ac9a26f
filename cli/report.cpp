#include "cli/verb.hpp"

#include "cli/read_run.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

namespace gristmill {

exit_code report_command(const report_arguments& arguments) {
  auto read = read_run(arguments.run);
  if (!read)
    return complain(read.error());
  auto text = arguments.json ? to_json(read->table) : to_text(read->table);
  std::fputs(text.c_str(), stdout);
  return exit_code::ok;
}

void add_report_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand("report", "print the table of a run from its log");
  auto arguments = std::make_shared<report_arguments>();
  app->add_option("run", arguments->run, "run directory")->required();
  app->add_flag("--json", arguments->json, "the table as JSON");
  all.push_back({app, [arguments] { return report_command(*arguments); }});
}

} // namespace gristmill
