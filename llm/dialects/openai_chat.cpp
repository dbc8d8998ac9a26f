#include "llm/dialects/openai_chat.hpp"

#include "llm/dialects/plain_words.hpp"
#include "llm/dialects/reply_state.hpp"
#include "llm/dialects/request_body.hpp"
#include "llm/dialects/response_headers.hpp"
#include "llm/dialects/token_usage.hpp"

#include <array>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr std::array<std::string_view, 10> ours{"model", "messages", "stream", "stream_options",
  "max_completion_tokens", "max_tokens", "temperature", "seed", "reasoning_effort",
  "prompt_cache_key"};

finish_kind finish_of(std::string_view word) {
  if (word == "stop")
    return finish_kind::stop;
  if (word == "length")
    return finish_kind::length;
  if (word == "content_filter")
    return finish_kind::content_filter;
  if (word == "refusal")
    return finish_kind::refusal;
  return finish_kind::unknown;
}

class chat_decoder final : public reply_state {
protected:
  void read(const sse_event&, const ordered_json& data) override {
    set_model(text_at(&data, "model"));
    set_id(text_at(&data, "id"));
    // The last one counts: some servers count on in every chunk, some say it twice.
    if (const auto* counts = member(&data, "usage"); counts != nullptr && counts->is_object())
      counted_ = read_openai_usage(counts);
    const auto* choice = first_element(member(&data, "choices"));
    if (choice == nullptr || natural_at(choice, "index").value_or(0) != 0)
      return;
    if (const auto* delta = member(choice, "delta"))
      read_delta(delta);
    else if (const auto* whole = member(choice, "message"); whole != nullptr && !has_text())
      read_delta(whole);
    if (const auto reason = text_at(choice, "finish_reason"); !reason.empty())
      set_finish(finish_of(reason), finish_words(reason));
  }

  void done() override { end(); }
  llm_usage usage() const override { return normalised_inclusive(counted_); }

private:
  void read_delta(const ordered_json* delta) {
    add_text(joined_text(member(delta, "content")));
    add_refusal(text_at(delta, "refusal"));
    // Two names of one thing (vllm#50624); a server that sends both sends the same twice.
    for (const auto* name : {"reasoning", "reasoning_content"})
      add_hidden(text_at(delta, name).size());
  }

  static std::string finish_words(std::string_view reason) {
    if (reason == "tool_calls" || reason == "function_call")
      return fmt::format("{} (a call of a tool that nobody offered)", reason);
    return std::string{reason};
  }

  counted_tokens counted_;
};

class chat_dialect final : public dialect {
public:
  std::string_view name() const override { return "openai-chat"; }

  result<http_call> encode(const llm_request& request, const dialect_options& how) const override {
    if (auto checked = check_request(request, how); !checked)
      return pass(checked);
    if (auto checked =
          check_choice("instructions_role", how.instructions_role, {"system", "developer"});
        !checked)
      return pass(checked);
    if (auto checked = check_choice(
          "output_cap_field", how.output_cap_field, {"max_completion_tokens", "max_tokens"});
        !checked)
      return pass(checked);
    if (auto checked = check_choice("reasoning_effort", how.reasoning_effort,
          {"none", "minimal", "low", "medium", "high", "xhigh", "max"});
        !checked)
      return pass(checked);
    auto url = request_url(how.endpoint, "/chat/completions", "");
    if (!url)
      return pass(url);
    sorted_json body;
    body["model"] = how.model;
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    body[cap_field(how)] = request.output_tokens_max;
    body["messages"] = messages_of(request, how);
    if (sends_temperature(request, how))
      body["temperature"] = static_cast<double>(*request.temperature);
    if (request.seed)
      body["seed"] = *request.seed & uint64_t{INT64_MAX};
    if (!how.reasoning_effort.empty())
      body["reasoning_effort"] = how.reasoning_effort;
    if (how.send_cache_key)
      body["prompt_cache_key"] = cache_key(request);
    if (auto merged = merge_extra_body(body, how.extra_body, ours); !merged)
      return pass(merged);
    return make_call(how, std::move(*url), {}, "Authorization", "Bearer ", body);
  }

  std::unique_ptr<reply_decoder> decoder() const override {
    return std::make_unique<chat_decoder>();
  }

  trouble judge_failure(const http_report& ended, std::chrono::sys_seconds now_utc) const override {
    return judge_answer(ended, now_utc);
  }

  rate_limits limits_of(
    const http_headers& headers, std::chrono::sys_seconds now_utc) const override {
    return limits_in(headers, now_utc);
  }

private:
  /// OpenAI's reasoning models refuse `max_tokens`. Ollama, and llama.cpp before 2026, know nothing
  /// else, and what they do not know they ignore: the answer would then have no end.
  static std::string cap_field(const dialect_options& how) {
    if (!how.output_cap_field.empty())
      return how.output_cap_field;
    const auto host = host_of(how.endpoint);
    const bool openai = host == "api.openai.com" || host.ends_with(".openai.azure.com")
      || host.ends_with(".services.ai.azure.com");
    return openai ? "max_completion_tokens" : "max_tokens";
  }

  static sorted_json messages_of(const llm_request& request, const dialect_options& how) {
    auto all = sorted_json::array();
    if (!request.instructions.empty())
      all.push_back({{"role", how.instructions_role.empty() ? "system" : how.instructions_role},
        {"content", valid_utf8(request.instructions)}});
    for (const auto& message : request.messages)
      all.push_back({{"role", message.from == chat_role::user ? "user" : "assistant"},
        {"content", valid_utf8(message.text)}});
    return all;
  }
};

} // namespace

const dialect& openai_chat() {
  static const chat_dialect only;
  return only;
}

} // namespace gristmill
