#include "cli/commands.hpp"

#include "cli/read_run.hpp"

#include <cstdio>

namespace gristmill {

exit_code report_command(const report_arguments& arguments) {
  auto read = read_run(arguments.run);
  if (!read)
    return complain(read.error());
  auto text = arguments.json ? to_json(read->table) : to_text(read->table);
  std::fputs(text.c_str(), stdout);
  return exit_code::ok;
}

} // namespace gristmill
