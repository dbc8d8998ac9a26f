#pragma once

#include "protocol/field_reader.hpp"
#include "protocol/workload.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// The workload in a JSON object; `path` leads to it in messages (empty for a line of its own).
/// What is wrong, the rule about custom inputs included, goes to the reader. `text` is what the
/// document was parsed from: only it still tells an integer beyond 64 bits from a float.
workload read_workload(
  const ordered_json& document, std::string_view path, field_reader& fields, std::string_view text);

/// Calls `read` with each line that is not blank, its number and a list for its warnings. `read`
/// answers nothing or the message of its failure. The outcome: the messages of the first twenty
/// lines that failed; in `warnings`, each different warning once, with the count of its lines.
result<void> for_each_line(std::string_view text, const std::string& file_name,
  std::vector<std::string>* warnings,
  const std::function<result<void>(std::string_view, size_t, std::vector<std::string>&)>& read);

} // namespace gristmill
