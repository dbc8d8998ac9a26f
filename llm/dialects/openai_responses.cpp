#include "llm/dialects/openai_responses.hpp"

#include "llm/dialects/plain_words.hpp"
#include "llm/dialects/reply_state.hpp"
#include "llm/dialects/request_body.hpp"
#include "llm/dialects/response_headers.hpp"
#include "llm/dialects/token_usage.hpp"

#include <array>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr std::array<std::string_view, 8> ours{"model", "input", "instructions", "stream",
  "max_output_tokens", "temperature", "prompt_cache_key", "reasoning"};

class responses_decoder final : public reply_state {
protected:
  void read(const sse_event& event, const ordered_json& data) override {
    const auto type =
      text_at(&data, "type").empty() ? std::string_view{event.name} : text_at(&data, "type");
    const auto* response = member(&data, "response");
    if (response != nullptr) {
      set_model(text_at(response, "model"));
      set_id(text_at(response, "id"));
    }
    if (type == "response.output_text.delta")
      add_text(text_at(&data, "delta"));
    else if (type == "response.refusal.delta")
      add_refusal(text_at(&data, "delta"));
    else if (type.starts_with("response.reasoning") && type.ends_with(".delta"))
      add_hidden(text_at(&data, "delta").size());
    else if (type == "response.completed" || type == "response.incomplete"
      || type == "response.failed" || type == "response.cancelled")
      read_terminal(type, response);
  }

  /// Some servers end their streams so in every dialect; the typed event is what counts.
  void done() override {}
  llm_usage usage() const override { return normalised_inclusive(counted_); }

private:
  void read_terminal(std::string_view type, const ordered_json* response) {
    counted_ = read_openai_usage(member(response, "usage"));
    const auto status = text_at(response, "status");
    if (type == "response.failed" || status == "failed" || member(response, "error") != nullptr)
      return read_failure(response);
    read_output(member(response, "output"));
    // Of type, status and details the worst counts: they are known to differ.
    const auto reason = text_at(member(response, "incomplete_details"), "reason");
    if (type == "response.cancelled" || status == "cancelled")
      set_finish(finish_kind::unknown, "cancelled");
    else if (type == "response.incomplete" || status == "incomplete" || !reason.empty())
      set_finish(incomplete_kind(reason), reason.empty() ? "incomplete" : reason);
    else if (status.empty() || status == "completed")
      set_finish(finish_kind::stop, "completed");
    else
      set_finish(finish_kind::unknown, status);
    end();
  }

  void read_failure(const ordered_json* response) {
    provider_error error;
    if (response != nullptr)
      error = read_provider_error(*response).value_or(provider_error{});
    if (error.message.empty() && error.code.empty())
      error.message = "response.failed";
    fail_with(judge_stream_error(error, begun()));
  }

  /// The full response, unless it has none: then what came piece by piece stays.
  void read_output(const ordered_json* output) {
    if (output == nullptr || !output->is_array())
      return;
    std::string text;
    std::string refused;
    bool tool = false;
    for (const auto& item : *output) {
      const auto type = text_at(&item, "type");
      tool |= type.ends_with("_call");
      if (type == "reasoning")
        add_hidden(1);
      if (type != "message")
        continue;
      const auto* content = member(&item, "content");
      text += joined_text(content);
      if (content != nullptr && content->is_array())
        for (const auto& part : *content)
          refused += text_at(&part, "refusal");
    }
    if (!text.empty())
      set_text(std::move(text));
    if (!refused.empty()) {
      set_finish(finish_kind::refusal, "refusal");
      if (!has_text())
        set_text(std::move(refused));
    }
    if (tool && !has_text())
      set_finish(finish_kind::unknown, "a call of a tool that nobody offered");
  }

  static finish_kind incomplete_kind(std::string_view reason) {
    if (reason == "max_output_tokens")
      return finish_kind::length;
    if (reason == "content_filter")
      return finish_kind::content_filter;
    return finish_kind::unknown;
  }

  counted_tokens counted_;
};

class responses_dialect final : public dialect {
public:
  std::string_view name() const override { return "openai-responses"; }

  result<http_call> encode(const llm_request& request, const dialect_options& how) const override {
    if (auto checked = check_request(request, how); !checked)
      return pass(checked);
    // Either role is the place of its own that instructions have here.
    if (auto checked =
          check_choice("instructions_role", how.instructions_role, {"system", "developer"});
        !checked)
      return pass(checked);
    if (!how.output_cap_field.empty())
      return fail(errc::invalid_input,
        "output_cap_field: openai-responses has one name for the cap; leave it out");
    if (auto checked = check_choice("reasoning_effort", how.reasoning_effort,
          {"none", "minimal", "low", "medium", "high", "xhigh", "max"});
        !checked)
      return pass(checked);
    auto url = request_url(how.endpoint, "/responses", "");
    if (!url)
      return pass(url);
    sorted_json body;
    body["model"] = how.model;
    body["stream"] = true;
    body["max_output_tokens"] = request.output_tokens_max;
    if (!request.instructions.empty())
      body["instructions"] = valid_utf8(request.instructions);
    auto input = sorted_json::array();
    for (const auto& message : request.messages)
      input.push_back({{"role", message.from == chat_role::user ? "user" : "assistant"},
        {"content", valid_utf8(message.text)}});
    body["input"] = std::move(input);
    if (sends_temperature(request, how))
      body["temperature"] = static_cast<double>(*request.temperature);
    if (!how.reasoning_effort.empty())
      body["reasoning"] = {{"effort", how.reasoning_effort}};
    if (how.send_cache_key)
      body["prompt_cache_key"] = cache_key(request);
    if (auto merged = merge_extra_body(body, how.extra_body, ours); !merged)
      return pass(merged);
    return make_call(how, std::move(*url), {}, "Authorization", "Bearer ", body);
  }

  std::unique_ptr<reply_decoder> decoder() const override {
    return std::make_unique<responses_decoder>();
  }

  trouble judge_failure(const http_report& ended, std::chrono::sys_seconds now_utc) const override {
    return judge_answer(ended, now_utc);
  }

  rate_limits limits_of(
    const http_headers& headers, std::chrono::sys_seconds now_utc) const override {
    return limits_in(headers, now_utc);
  }
};

} // namespace

const dialect& openai_responses() {
  static const responses_dialect only;
  return only;
}

} // namespace gristmill
