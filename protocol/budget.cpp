#include "protocol/budget.hpp"

#include "protocol/duration_text.hpp"
#include "protocol/json_document.hpp"

#include <charconv>
#include <fmt/format.h>

namespace gristmill {

namespace {

std::optional<uint64_t> whole_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value > INT64_MAX)
    return std::nullopt;
  return value;
}

result<void> set_once(std::optional<uint64_t>& slot, std::optional<uint64_t> value,
  const std::string& text, std::string_view kind) {
  if (!value)
    return fail(errc::invalid_input,
      fmt::format("--budget {}: not readable; write for example 10m, 90s, 1.5h, 500attempts or "
                  "600gpu-s",
        excerpt(text)));
  if (*value == 0)
    return fail(errc::invalid_input,
      fmt::format("--budget {}: a budget of nothing; it must be more than zero", excerpt(text)));
  if (slot)
    return fail(errc::invalid_input,
      fmt::format(
        "--budget {}: {} is limited twice; give each kind of budget once", excerpt(text), kind));
  slot = value;
  return {};
}

result<void> add(budget& to, const std::string& text) {
  const std::string_view view{text};
  for (std::string_view unit : {"attempts", "attempt"})
    if (view.ends_with(unit))
      return set_once(
        to.attempts, whole_number(view.substr(0, view.size() - unit.size())), text, "attempts");
  if (const size_t mark = view.find("gpu-"); mark != std::string_view::npos) {
    // "600gpu-s" is a duration with the mark in front of its unit.
    const std::string unit{view.substr(mark + 4)};
    const bool fits = unit == "s" || unit == "m" || unit == "h";
    return set_once(to.gpu_ns,
      fits ? parse_duration_ns(std::string{view.substr(0, mark)} + unit) : std::nullopt, text,
      "time under lease");
  }
  return set_once(to.wall_ns, parse_duration_ns(view), text, "wall time");
}

} // namespace

result<budget> parse_budget(const std::vector<std::string>& texts) {
  budget out;
  for (const auto& each : texts)
    if (auto added = add(out, each); !added)
      return pass(added);
  return out;
}

} // namespace gristmill
