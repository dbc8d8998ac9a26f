#include "llm/dialects/reply_state.hpp"

#include "llm/dialects/plain_words.hpp"
#include "llm/dialects/token_usage.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

/// A kernel is a few kilobytes; a model that writes more than this is in a loop.
constexpr size_t text_max = size_t{8} << 20;
/// Names and numbers of the provider, for people.
constexpr size_t name_max = 200;
constexpr size_t note_max = 1000;

/// Servers count their marks of the end differently; far above it, the cap was not heeded at all.
bool is_at_cap(uint64_t output, uint32_t cap) {
  return output >= cap && output <= uint64_t{cap} + cap / 64 + 1;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

} // namespace

void reply_state::take(const sse_event& event) {
  if (ended_)
    return;
  ++events_;
  const auto data = trimmed(event.data);
  if (data.empty())
    return;
  if (data == "[DONE]")
    return done();
  const auto document = read_json(data);
  if (!document)
    return fail_with(fmt::format(
      "event {} of the stream is no JSON that we read ({} bytes)", events_, data.size()));
  const bool may_be_error = member(&*document, "error") != nullptr
    || text_at(&*document, "type") == "error" || text_at(&*document, "object") == "error"
    || event.name == "error";
  if (may_be_error) {
    if (const auto error = read_provider_error(*document))
      return fail_with(judge_stream_error(*error, begun()));
    if (event.name == "error") {
      provider_error error;
      error.message = text_at(&*document, "message");
      return fail_with(judge_stream_error(error, begun()));
    }
  }
  if (!document->is_object())
    return fail_with(fmt::format("event {} of the stream is no JSON object", events_));
  read(event, *document);
}

bool reply_state::begun() const {
  const auto counted = usage();
  return !text_.empty() || !refusal_.empty() || hidden_bytes_ > 0 || counted.input() > 0
    || counted.output() > 0;
}

void reply_state::add_text(std::string_view text) {
  if (text_.size() + text.size() > text_max)
    return fail_with(fmt::format("an answer of more than {} MiB of text", text_max >> 20));
  text_ += text;
}

void reply_state::set_text(std::string text) {
  text_.clear();
  add_text(text);
}

void reply_state::add_refusal(std::string_view text) {
  if (refusal_.size() + text.size() <= text_max)
    refusal_ += text;
}

void reply_state::set_model(std::string_view name) {
  if (!name.empty())
    model_ = plain_words(name, name_max);
}

void reply_state::set_id(std::string_view id) {
  // Not through plain_words: an id is a long random word, too.
  if (!id.empty()
    && id.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                            "0123456789-_.:")
      == std::string_view::npos)
    id_ = id.substr(0, name_max);
}

void reply_state::set_finish(finish_kind kind, std::string_view in_their_words) {
  if (finish_ && *finish_ != finish_kind::stop)
    return;
  finish_ = kind;
  finish_words_ = plain_words(in_their_words, 80);
}

void reply_state::add_note(std::string_view note) {
  if (note_.size() + note.size() > note_max)
    return;
  note_ += note_.empty() ? "" : "; ";
  note_ += note;
}

void reply_state::fail_with(trouble failed) {
  if (!failed_)
    failed_ = std::move(failed);
  ended_ = true;
}

void reply_state::fail_with(std::string what) {
  trouble failed;
  failed.kind = trouble_kind::ambiguous;
  failed.what = std::move(what);
  fail_with(std::move(failed));
}

decoded_reply reply_state::result(uint32_t cap) {
  decoded_reply reply;
  reply.text = text_;
  reply.model = model_;
  reply.request_id = id_;
  reply.note = note_;
  reply.usage = believed(usage(), text_.size() + refusal_.size());
  if (failed_ || !ended_) {
    // Tokens were spent, and who ends a stream early has not counted them all. What was counted
    // stays as a lower bound.
    reply.usage.state = usage_state::unknown;
    if (failed_) {
      reply.failed = *failed_;
    } else {
      reply.failed.kind = trouble_kind::ambiguous;
      reply.failed.what =
        fmt::format("the stream ended without its last event, after {} events and {} bytes of text",
          events_, text_.size());
    }
    return reply;
  }
  reply.finish = finish_.value_or(finish_kind::unknown);
  check(reply, cap);
  return reply;
}

void reply_state::check(decoded_reply& reply, uint32_t cap) const {
  const auto note = [&](const std::string& words) {
    reply.note += reply.note.empty() ? "" : "; ";
    reply.note += words;
  };
  const auto fail = [&](std::string what) {
    reply.failed.kind = trouble_kind::ambiguous;
    reply.failed.what = std::move(what);
  };
  const bool counted = reply.usage.state != usage_state::unknown;
  const auto output = reply.usage.output();
  if (!refusal_.empty() && reply.finish == finish_kind::stop) {
    reply.finish = finish_kind::refusal;
    if (is_blank(reply.text))
      reply.text = refusal_;
  }
  if (reply.finish == finish_kind::stop && counted && cap > 0) {
    if (is_at_cap(output, cap) || is_at_cap(reply.usage.visible_output, cap)) {
      reply.finish = finish_kind::length;
      note(
        fmt::format("the server calls the answer whole, but {} tokens are the whole cap", output));
    } else if (output > cap) {
      note(fmt::format(
        "the server does not heed the cap: {} tokens, and the cap was {}", output, cap));
    }
  }
  if (reply.finish == finish_kind::length && counted && output < cap)
    note(
      fmt::format("cut off after {} of {} tokens: by the model's context or a limit of the server, "
                  "which a larger cap does not lift",
        output, cap));
  const auto all = reply.usage.input() + output;
  if (counted && (all == 2048 || all == 4096))
    note(
      fmt::format("prompt and answer are exactly {} tokens, the default context of Ollama, which "
                  "cuts prompts without a word: raise OLLAMA_CONTEXT_LENGTH at the server",
        all));
  if (!finish_)
    return fail("the server did not say why the answer ended");
  if (reply.finish == finish_kind::unknown)
    return fail(fmt::format("the answer ended for a reason that is no success: {}",
      finish_words_.empty() ? "none given" : finish_words_));
  if (reply.finish == finish_kind::stop && is_blank(reply.text))
    fail(hidden_bytes_ > 0
        ? "an answer without text: the model only reasoned, and the server calls that whole"
        : "an answer without text, although the server calls it whole: too large a prompt for its "
          "context is one cause");
}

} // namespace gristmill
