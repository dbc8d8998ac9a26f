#include "protocol/exporter/binding_names.hpp"

#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"
#include "protocol/resolve.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

bool binding_names::knows(std::string_view name) const {
  return std::any_of(
    entries_.begin(), entries_.end(), [&](const entry& each) { return each.name == name; });
}

result<const binding_names::entry*> binding_names::find(const expression_name& name) const {
  const entry* found = nullptr;
  std::vector<std::string> known;
  for (const auto& each : entries_) {
    const bool kind_fits = name.kind.empty() || each.kind == name.kind;
    if (kind_fits && each.name == name.name) {
      if (found != nullptr)
        return fail(errc::invalid_input, fmt::format("{} is ambiguous", excerpt(name.name)));
      found = &each;
    } else if (kind_fits) {
      known.push_back(each.name);
    }
  }
  if (found != nullptr)
    return found;
  return fail(errc::unsupported,
    fmt::format("there is no name {} that a call of the exported code can tell{}",
      excerpt(name_text(name)), suggestion(name.name, known)));
}

result<const binding_names::entry*> binding_names::tensor(const expression_name& name) const {
  auto found = find(name);
  if (found && !(*found)->is_tensor)
    return fail(errc::invalid_input, fmt::format("{} is not a tensor", excerpt(name_text(name))));
  return found;
}

result<std::string> binding_names::value_code(const expression_name& name) const {
  auto found = find(name);
  if (!found)
    return pass(found);
  if ((*found)->is_tensor)
    return fail(errc::invalid_input, fmt::format("{} is a tensor", excerpt(name_text(name))));
  return (*found)->code;
}

result<std::string> binding_names::call_code(
  std::string_view function, const expression_name& subject, const std::string& index) const {
  if (function == "occupancy") {
    if (!occupancy)
      return fail(errc::unsupported, "`occupancy` has no meaning here");
    return occupancy(subject.name);
  }
  auto found = tensor(subject);
  if (!found)
    return pass(found);
  const auto& at = **found;
  if (function == "ctype")
    return fmt::format("gm::type(\"{}\")", cpp_type(at.type));
  if (function == "dim")
    return fmt::format("gm::dim({}, {})", at.code, index);
  return fmt::format("gm::{}({})", function, at.code);
}

std::string c_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || c == '?')
      out += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte >= 0x7f)
      out += fmt::format("\\{:03o}", byte);
    else
      out += c;
  }
  return out + "\"";
}

} // namespace gristmill
