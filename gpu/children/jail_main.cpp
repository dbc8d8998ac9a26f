#include "gpu/children/jail.hpp"

#include <cstdlib>
#include <fmt/format.h>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  // The command of a trial: tells what it was given.
  if (arguments == std::vector<std::string>{"--report"}) {
    const char* protections = std::getenv("GRISTMILL_PROTECTIONS");
    fmt::print("{}\n", protections != nullptr ? protections : "none");
    return 0;
  }
  auto command = gristmill::parse_jail_command(arguments);
  if (!command) {
    fmt::print(stderr, "{}\n", command.error().what);
    return gristmill::jail_exit_usage;
  }
  fmt::print(stderr, "{}\n", gristmill::enter_jail(*command).what);
  return gristmill::jail_exit_failed;
}
