#pragma once

#include "protocol/json_document.hpp"
#include "protocol/solution.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Finds the content for a source path when the document has none. The failure says why there is
/// none.
using neighbour = std::function<result<std::string>(const std::string&)>;

/// A solution from a parsed document. `text` is what the document was parsed from, for the line
/// numbers of the messages; `fill` may be empty.
result<solution> read_solution(const ordered_json& document, std::string_view text,
  const std::string& file_name, std::vector<std::string>* warnings, solution_rules rules,
  const neighbour& fill);

/// The document of a text, which must be an object.
result<ordered_json> parse_solution_document(std::string_view text, const std::string& file_name);

} // namespace gristmill
