#include "cli/verb.hpp"

#include "gpu/broker/guard.hpp"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

namespace gristmill {

int become_lease_program(char** arguments) {
  auto folder = program_folder();
  if (!folder)
    return static_cast<int>(complain(folder.error()));
  auto path = *folder + "/gristmill-lease";
  std::string name = "gristmill-lease";
  std::vector<char*> argv{name.data()};
  for (; *arguments; ++arguments)
    argv.push_back(*arguments);
  argv.push_back(nullptr);
  execv(path.c_str(), argv.data());
  return static_cast<int>(complain({errc::io_failed,
    fmt::format("{}: {}; keep the programs together", path, std::strerror(errno))}));
}

void add_lease_verb(CLI::App& root, verbs& all) {
  // For the list of commands and for misspelt ones: `main` takes the command before the flags are
  // read, because all behind -- is somebody else's.
  auto* app = root.add_subcommand("lease", "waits for a turn on a GPU and runs a command on it");
  all.push_back({app, [] {
                   fmt::print("{}", lease_help());
                   return exit_code::usage;
                 }});
}

} // namespace gristmill
