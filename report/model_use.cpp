#include "report/run_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gristmill {

using nlohmann::json;

namespace {

uint64_t count_in(const json& data, const char* field) {
  auto found = data.find(field);
  return found != data.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

std::string usd(uint64_t nano_usd) {
  return fmt::format("{:.4f} USD", static_cast<double>(nano_usd) / 1e9);
}

} // namespace

void count_model_call(model_use& use, const event& e) {
  if (e.kind != "llm_call")
    return;
  const auto data = json::parse(e.data, nullptr, false);
  if (!data.is_object())
    return;
  const auto spent = data.value("spent", json::object());
  const auto held = data.value("held", json::object());
  const auto usage = data.value("usage", json::object());
  const auto calls = count_in(spent, "calls") + count_in(held, "calls");
  use.calls += calls;
  use.nano_usd += count_in(spent, "nano_usd");
  use.held_nano_usd += count_in(held, "nano_usd");
  for (const char* kind : {"uncached_input", "cache_read", "cache_write"})
    use.input_tokens += count_in(usage, kind);
  for (const char* kind : {"visible_output", "reasoning"})
    use.output_tokens += count_in(usage, kind);
  if (calls > 0 && count_in(held, "tokens") > 0)
    use.calls_unknown += calls;
  if (calls > 0 && data.value("price", std::string{}) == "unpriced")
    use.calls_unpriced += calls;
}

std::string to_text(const model_use& use) {
  if (use.calls == 0)
    return {};
  auto text = fmt::format("{} calls of models: {} tokens read, {} written, {}", use.calls,
    use.input_tokens, use.output_tokens, usd(use.nano_usd));
  if (use.calls_unknown > 0)
    text += fmt::format("; of {} calls nobody knows the usage: up to {} more", use.calls_unknown,
      usd(use.held_nano_usd));
  if (use.calls_unpriced > 0)
    text += fmt::format("; {} calls have no price and are not in the sum", use.calls_unpriced);
  return text;
}

} // namespace gristmill
