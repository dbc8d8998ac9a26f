#include "cli/commands.hpp"

#include "kernels/builtin.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gristmill {

exit_code problem_list_command(bool json) {
  auto problems = builtin_problems();
  if (!json) {
    for (const auto& p : problems)
      std::fputs(
        fmt::format("{:<24} {:>2} workloads  {}\n", p.name, p.workloads.size(), p.def.description)
          .c_str(),
        stdout);
    return exit_code::ok;
  }
  auto out = nlohmann::ordered_json::array();
  for (const auto& p : problems)
    out.push_back(
      {{"name", p.name}, {"workloads", p.workloads.size()}, {"description", p.def.description}});
  std::fputs((out.dump(2) + "\n").c_str(), stdout);
  return exit_code::ok;
}

} // namespace gristmill
