#include "llm/dialects/dialect.hpp"

#include "llm/dialects/anthropic_messages.hpp"
#include "llm/dialects/openai_chat.hpp"
#include "llm/dialects/openai_responses.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"

#include <array>
#include <fmt/format.h>

namespace gristmill {

namespace {

std::array<const dialect*, 3> all_dialects() {
  return {&openai_chat(), &openai_responses(), &anthropic_messages()};
}

} // namespace

std::string to_string(trouble_kind kind) {
  switch (kind) {
  case trouble_kind::none:
    return "none";
  case trouble_kind::transient:
    return "transient";
  case trouble_kind::throttle:
    return "throttle";
  case trouble_kind::overload:
    return "overload";
  case trouble_kind::money:
    return "money";
  case trouble_kind::too_big:
    return "too big";
  case trouble_kind::config:
    return "config";
  case trouble_kind::ambiguous:
    return "ambiguous";
  }
  return "none";
}

std::vector<std::string> known_dialects() {
  std::vector<std::string> names;
  for (const auto* each : all_dialects())
    names.emplace_back(each->name());
  return names;
}

result<const dialect*> find_dialect(std::string_view name) {
  for (const auto* each : all_dialects())
    if (each->name() == name)
      return each;
  return fail(errc::not_found,
    fmt::format("no dialect is called {}{}", excerpt(name), suggestion(name, known_dialects())));
}

} // namespace gristmill
