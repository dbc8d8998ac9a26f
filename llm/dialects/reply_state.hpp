#pragma once

#include "llm/dialects/dialect.hpp"
#include "llm/dialects/json_reading.hpp"
#include "llm/dialects/provider_error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gristmill {

/// What the decoders of all dialects have in common: which events are read at all, what is a
/// failure, and what has to be checked about an answer that claims to be whole. A dialect reads its
/// events (`read`) and tells what it found.
class reply_state : public reply_decoder {
public:
  void take(const sse_event& event) final;
  bool finished() const final { return ended_; }
  size_t text_bytes() const final { return text_.size() + refusal_.size() + hidden_bytes_; }
  decoded_reply result(uint32_t cap) final;

protected:
  /// One event that is a JSON object and no error. Never called once the stream has ended.
  virtual void read(const sse_event& event, const ordered_json& data) = 0;
  /// An event whose data is "[DONE]".
  virtual void done() = 0;
  /// Of a stream that came to its terminal event.
  virtual llm_usage usage() const = 0;

  bool has_text() const { return !text_.empty(); }
  void add_text(std::string_view text);
  /// In place of all that came before.
  void set_text(std::string text);
  void add_refusal(std::string_view text);
  void add_hidden(size_t bytes) { hidden_bytes_ += bytes; }
  void set_model(std::string_view name);
  void set_id(std::string_view id);
  /// A reason that is no plain stop is not taken back by a later one.
  void set_finish(finish_kind kind, std::string_view in_their_words);
  /// Something of the answer has come, or of its tokens: from now on it may be billed.
  bool begun() const;
  void add_note(std::string_view note);

  /// The terminal event.
  void end() { ended_ = true; }
  void fail_with(trouble failed);
  /// `ambiguous`.
  void fail_with(std::string what);

private:
  void check(decoded_reply& reply, uint32_t cap) const;

  std::string text_;
  std::string refusal_;
  std::string model_;
  std::string id_;
  std::string finish_words_;
  std::string note_;
  std::optional<finish_kind> finish_;
  std::optional<trouble> failed_;
  size_t hidden_bytes_ = 0;
  size_t events_ = 0;
  bool ended_ = false;
};

} // namespace gristmill
