#include "cli/verb.hpp"

#include <CLI/CLI.hpp>

namespace gristmill {

CLI::App& verb_group(CLI::App& root, const std::string& name, const std::string& description) {
  for (auto* app : root.get_subcommands([](const CLI::App*) { return true; }))
    if (app->get_name() == name)
      return *app;
  auto* app = root.add_subcommand(name, description);
  app->require_subcommand(1);
  return *app;
}

} // namespace gristmill
