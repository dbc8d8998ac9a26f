#include "protocol/budget.hpp"

#include "protocol/duration_text.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace gristmill {

namespace {

const std::vector<std::string> units{
  "s", "m", "h", "d", "ms", "attempts", "gpu-s", "gpu-m", "gpu-h", "usd", "tokens", "calls"};

constexpr const char* examples = "10m, 90s, 1.5h, 500attempts, 600gpu-s, 5usd, 2000000tokens or "
                                 "1000calls";

std::optional<uint64_t> whole_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value > INT64_MAX)
    return std::nullopt;
  return value;
}

/// Names the nearest unit, when the text is a number and something behind it.
std::string unit_hint(std::string_view text) {
  const size_t digits = text.find_first_not_of("0123456789.");
  if (digits == 0 || digits == std::string_view::npos)
    return {};
  const auto near = nearest(text.substr(digits), units);
  return near ? "; did you mean `" + std::string{text.substr(0, digits)} + *near + "`?" : "";
}

class reader {
public:
  explicit reader(std::string_view flag) : flag_(flag) {}

  result<void> add(budget& to, const std::string& text) const {
    const std::string_view view{text};
    const struct {
      std::string_view unit;
      std::optional<uint64_t>* slot;
      std::string_view kind;
    } counts[] = {{"attempts", &to.attempts, "attempts"}, {"attempt", &to.attempts, "attempts"},
      {"tokens", &to.tokens, "tokens"}, {"token", &to.tokens, "tokens"},
      {"calls", &to.calls, "calls"}, {"call", &to.calls, "calls"}};
    for (const auto& [unit, slot, kind] : counts)
      if (view.ends_with(unit))
        return set_once(*slot, whole_number(view.substr(0, view.size() - unit.size())), text, kind);
    // 10^-9 USD are to a USD what a nanosecond is to a second.
    if (view.ends_with("usd"))
      return set_once(to.nano_usd,
        parse_duration_ns(std::string{view.substr(0, view.size() - 3)} + "s"), text, "money");
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

  tl::unexpected<failure> refuse(const std::string& text, const std::string& why) const {
    return fail(errc::invalid_input, fmt::format("{} {}: {}", flag_, excerpt(text), why));
  }

private:
  result<void> set_once(std::optional<uint64_t>& slot, std::optional<uint64_t> value,
    const std::string& text, std::string_view kind) const {
    if (!value)
      return refuse(
        text, fmt::format("not readable; write for example {}{}", examples, unit_hint(text)));
    if (*value == 0)
      return refuse(text, "a budget of nothing; it must be more than zero");
    if (slot)
      return refuse(text, fmt::format("{} is limited twice; give each kind of budget once", kind));
    slot = value;
    return {};
  }

  std::string_view flag_;
};

} // namespace

result<budget> parse_budget(const std::vector<std::string>& texts, std::string_view flag) {
  budget out;
  const reader read{flag};
  for (const auto& each : texts)
    if (auto added = read.add(out, each); !added)
      return pass(added);
  return out;
}

result<budget> parse_share_budget(const std::vector<std::string>& texts, std::string_view flag) {
  const reader read{flag};
  for (const auto& each : texts) {
    budget one;
    if (auto added = read.add(one, each); !added)
      return pass(added);
    if (one.wall_ns)
      return read.refuse(each,
        "wall time is of the whole run (--budget); write for example 5usd, 2000000tokens, "
        "1000calls, 600gpu-s or 500attempts");
  }
  return parse_budget(texts, flag);
}

} // namespace gristmill
