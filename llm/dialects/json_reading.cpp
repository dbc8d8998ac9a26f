#include "llm/dialects/json_reading.hpp"

#include <cmath>

namespace gristmill {

namespace {

/// A whole answer with its reasoning in one terminal event is below a megabyte.
constexpr json_limits event_limits{size_t{8} << 20, 64, 4096, false, false};
/// Doubles are exact up to here.
constexpr double whole_max = 9007199254740992.0;

} // namespace

std::optional<ordered_json> read_json(std::string_view text) {
  auto read = parse_json(text, "event", event_limits);
  if (!read)
    return std::nullopt;
  return std::move(*read);
}

const ordered_json* member(const ordered_json* value, std::string_view key) {
  if (value == nullptr || !value->is_object())
    return nullptr;
  const auto found = value->find(key);
  return found == value->end() || found->is_null() ? nullptr : &*found;
}

const ordered_json* first_element(const ordered_json* value) {
  return value == nullptr || !value->is_array() || value->empty() ? nullptr : &value->front();
}

std::string_view text_of(const ordered_json* value) {
  return value != nullptr && value->is_string()
    ? std::string_view{value->get_ref<const std::string&>()}
    : std::string_view{};
}

std::string_view text_at(const ordered_json* value, std::string_view key) {
  return text_of(member(value, key));
}

std::string word_at(const ordered_json* value, std::string_view key) {
  const auto* found = member(value, key);
  if (found != nullptr && found->is_number_unsigned())
    return std::to_string(found->get<uint64_t>());
  if (found != nullptr && found->is_number_integer())
    return std::to_string(found->get<int64_t>());
  return std::string{text_of(found)};
}

std::optional<uint64_t> natural_at(const ordered_json* value, std::string_view key) {
  const auto* found = member(value, key);
  if (found == nullptr)
    return std::nullopt;
  if (found->is_number_unsigned())
    return found->get<uint64_t>();
  if (found->is_number_float()) {
    const auto number = found->get<double>();
    if (number >= 0 && number <= whole_max && std::floor(number) == number)
      return static_cast<uint64_t>(number);
  }
  return std::nullopt;
}

std::string joined_text(const ordered_json* value) {
  if (value == nullptr || !value->is_array())
    return std::string{text_of(value)};
  std::string joined;
  for (const auto& part : *value) {
    const auto type = text_at(&part, "type");
    if (part.is_string())
      joined += text_of(&part);
    else if (type.empty() || type == "text" || type == "output_text")
      joined += text_at(&part, "text");
  }
  return joined;
}

} // namespace gristmill
