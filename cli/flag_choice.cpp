#include "cli/flag_choice.hpp"

#include "protocol/nearest.hpp"

#include <algorithm>

namespace gristmill {

result<void> check_choice(
  const std::string& flag, const std::string& value, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) != known.end())
    return {};
  return fail(errc::invalid_input, flag + " " + value + ": unknown" + suggestion(value, known));
}

} // namespace gristmill
