#include "llm/dialects/anthropic_messages.hpp"

#include "llm/dialects/plain_words.hpp"
#include "llm/dialects/reply_state.hpp"
#include "llm/dialects/request_body.hpp"
#include "llm/dialects/response_headers.hpp"
#include "llm/dialects/token_usage.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>

namespace gristmill {

namespace {

/// Never set by us for want of a field: the seed.
constexpr std::array<std::string_view, 6> ours{
  "model", "messages", "system", "stream", "max_tokens", "temperature"};
/// Set together when there is a reasoning effort.
constexpr std::array<std::string_view, 8> ours_with_effort{"model", "messages", "system", "stream",
  "max_tokens", "temperature", "thinking", "output_config"};

class messages_decoder final : public reply_state {
protected:
  void read(const sse_event& event, const ordered_json& data) override {
    const auto type =
      text_at(&data, "type").empty() ? std::string_view{event.name} : text_at(&data, "type");
    if (type == "message_start") {
      const auto* message = member(&data, "message");
      set_model(text_at(message, "model"));
      set_id(text_at(message, "id"));
      read_usage(member(message, "usage"));
      // What it says of output is the first token, not the sum.
      counted_.output.reset();
    } else if (type == "content_block_start") {
      read_block(member(&data, "content_block"));
    } else if (type == "content_block_delta") {
      const auto* delta = member(&data, "delta");
      if (text_at(delta, "type") == "text_delta")
        add_text(text_at(delta, "text"));
      else if (text_at(delta, "type") == "thinking_delta")
        add_hidden(text_at(delta, "thinking").size());
    } else if (type == "message_delta") {
      read_usage(member(&data, "usage"));
      read_stop(member(&data, "delta"));
    } else if (type == "message_stop") {
      end();
    }
  }

  /// Some servers end their streams so in every dialect; `message_stop` is what counts.
  void done() override {}
  llm_usage usage() const override { return normalised_exclusive(counted_); }

private:
  void read_block(const ordered_json* block) {
    const auto type = text_at(block, "type");
    if (type == "text")
      add_text(text_at(block, "text"));
    else if (type == "thinking")
      add_hidden(text_at(block, "thinking").size());
    else if (type == "redacted_thinking")
      add_hidden(1);
  }

  /// Each count is the sum so far. Such a sum never falls, and some servers give it in one event
  /// and 0 in the other.
  void read_usage(const ordered_json* usage) {
    const auto counted = read_openai_usage(usage);
    const auto raise = [](std::optional<uint64_t>& kept, std::optional<uint64_t> newer) {
      if (newer)
        kept = std::max(kept.value_or(0), *newer);
    };
    raise(counted_.input, counted.input);
    raise(counted_.output, counted.output);
    raise(counted_.cache_read, bounded(natural_at(usage, "cache_read_input_tokens")));
    auto written = bounded(natural_at(usage, "cache_creation_input_tokens"));
    if (!written)
      if (const auto* kinds = member(usage, "cache_creation"))
        written = bounded(natural_at(kinds, "ephemeral_5m_input_tokens")).value_or(0)
          + bounded(natural_at(kinds, "ephemeral_1h_input_tokens")).value_or(0);
    raise(counted_.cache_write, written);
    raise(counted_.reasoning,
      bounded(natural_at(member(usage, "output_tokens_details"), "thinking_tokens")));
  }

  static std::optional<uint64_t> bounded(std::optional<uint64_t> count) {
    return count && *count <= std::numeric_limits<uint32_t>::max() ? count : std::nullopt;
  }

  void read_stop(const ordered_json* delta) {
    const auto reason = text_at(delta, "stop_reason");
    if (reason.empty())
      return;
    if (reason == "end_turn" || reason == "stop_sequence") {
      set_finish(finish_kind::stop, reason);
    } else if (reason == "max_tokens") {
      set_finish(finish_kind::length, reason);
    } else if (reason == "model_context_window_exceeded") {
      set_finish(finish_kind::context_exceeded, reason);
    } else if (reason == "refusal") {
      set_finish(finish_kind::refusal, reason);
      if (const auto category = text_at(member(delta, "stop_details"), "category");
          !category.empty())
        add_note(fmt::format("refused as {}", plain_words(category, 80)));
    } else if (reason == "tool_use") {
      set_finish(finish_kind::unknown, "tool_use (a call of a tool that nobody offered)");
    } else {
      set_finish(finish_kind::unknown, reason);
    }
  }

  counted_tokens counted_;
};

class messages_dialect final : public dialect {
public:
  std::string_view name() const override { return "anthropic-messages"; }

  result<http_call> encode(const llm_request& request, const dialect_options& how) const override {
    if (auto checked = check_request(request, how); !checked)
      return pass(checked);
    if (request.messages.front().from != chat_role::user)
      return fail(errc::invalid_input,
        "the first message of a call of anthropic-messages must be the user's");
    if (!how.output_cap_field.empty())
      return fail(errc::invalid_input,
        "output_cap_field: anthropic-messages has one name for the cap; leave it out");
    if (auto checked =
          check_choice("instructions_role", how.instructions_role, {"system", "developer"});
        !checked)
      return pass(checked);
    if (how.instructions_role == "developer")
      return fail(errc::invalid_input,
        "instructions_role: anthropic-messages has a place of its own for them; leave it out");
    if (auto checked = check_choice("reasoning_effort", how.reasoning_effort,
          {"none", "low", "medium", "high", "xhigh", "max"});
        !checked)
      return pass(checked);
    auto url = request_url(how.endpoint, "/messages", "/v1");
    if (!url)
      return pass(url);
    sorted_json body;
    body["model"] = how.model;
    body["stream"] = true;
    body["max_tokens"] = request.output_tokens_max;
    if (!request.instructions.empty())
      body["system"] = system_of(request, how);
    body["messages"] = messages_of(request);
    if (sends_temperature(request, how))
      body["temperature"] = static_cast<double>(*request.temperature);
    if (how.reasoning_effort == "none") {
      body["thinking"] = {{"type", "disabled"}};
    } else if (!how.reasoning_effort.empty()) {
      body["thinking"] = {{"type", "adaptive"}};
      body["output_config"] = {{"effort", how.reasoning_effort}};
    }
    const auto merged = how.reasoning_effort.empty()
      ? merge_extra_body(body, how.extra_body, ours)
      : merge_extra_body(body, how.extra_body, ours_with_effort);
    if (!merged)
      return pass(merged);
    return make_call(
      how, std::move(*url), {{"anthropic-version", "2023-06-01"}}, "x-api-key", "", body);
  }

  std::unique_ptr<reply_decoder> decoder() const override {
    return std::make_unique<messages_decoder>();
  }

  trouble judge_failure(const http_report& ended, std::chrono::sys_seconds now_utc) const override {
    return judge_answer(ended, now_utc);
  }

  rate_limits limits_of(
    const http_headers& headers, std::chrono::sys_seconds now_utc) const override {
    return limits_in(headers, now_utc);
  }

private:
  static sorted_json text_block(const std::string& text) {
    return {{"type", "text"}, {"text", valid_utf8(text)}};
  }

  /// The instructions are the stable beginning: the one place where the cache is told to keep.
  static sorted_json system_of(const llm_request& request, const dialect_options& how) {
    if (!how.send_cache_key)
      return valid_utf8(request.instructions);
    auto block = text_block(request.instructions);
    block["cache_control"] = {{"type", "ephemeral"}};
    return sorted_json::array({block});
  }

  /// Roles have to alternate, so messages of one role in a row are blocks of one message.
  static sorted_json messages_of(const llm_request& request) {
    auto all = sorted_json::array();
    for (const auto& message : request.messages) {
      const auto* role = message.from == chat_role::user ? "user" : "assistant";
      if (all.empty() || all.back()["role"] != role)
        all.push_back({{"role", role}, {"content", sorted_json::array()}});
      all.back()["content"].push_back(text_block(message.text));
    }
    return all;
  }
};

} // namespace

const dialect& anthropic_messages() {
  static const messages_dialect only;
  return only;
}

} // namespace gristmill
