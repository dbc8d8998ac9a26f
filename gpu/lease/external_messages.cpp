#include "gpu/lease/external_messages.hpp"

#include "gpu/lease/policy_text.hpp"

#include <charconv>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// Bytes of the UTF-8 sequence that the text starts with; 0 when it is none.
size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  auto first = byte(0);
  size_t length = first < 0x80 ? 1
    : first < 0xc2             ? 0
    : first < 0xe0             ? 2
    : first < 0xf0             ? 3
    : first < 0xf5             ? 4
                               : 0;
  if (length == 0 || text.size() < length)
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
  // Overlong forms, surrogates, and what lies beyond Unicode.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)
    || (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f))
    return 0;
  return length;
}

void append_utf8(uint32_t code, std::string& out) {
  auto tail = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

/// Reads the few forms of JSON that an answer may have. Each function answers false when the next
/// thing is not of its form.
class answer_reader {
public:
  explicit answer_reader(std::string_view text) : rest_(text) {}

  bool take(std::string_view token) {
    skip_spaces();
    if (!rest_.starts_with(token))
      return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  bool at_end() {
    skip_spaces();
    return rest_.empty();
  }

  bool natural(uint64_t& out) {
    skip_spaces();
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out);
    auto length = static_cast<size_t>(end - rest_.data());
    if (error != std::errc{} || (length > 1 && rest_[0] == '0'))
      return false;
    rest_.remove_prefix(length);
    return true;
  }

  bool string(std::string& out) {
    if (!take("\""))
      return false;
    while (!rest_.empty() && rest_[0] != '"') {
      if (static_cast<unsigned char>(rest_[0]) < 0x20)
        return false;
      if (rest_[0] == '\\') {
        if (!escape(out))
          return false;
        continue;
      }
      out += rest_[0];
      rest_.remove_prefix(1);
    }
    if (rest_.empty())
      return false;
    rest_.remove_prefix(1);
    return true;
  }

private:
  void skip_spaces() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\r'))
      rest_.remove_prefix(1);
  }

  bool hex4(uint32_t& out) {
    if (rest_.size() < 6 || !rest_.starts_with("\\u"))
      return false;
    auto [end, error] = std::from_chars(rest_.data() + 2, rest_.data() + 6, out, 16);
    if (error != std::errc{} || end != rest_.data() + 6)
      return false;
    rest_.remove_prefix(6);
    return true;
  }

  bool escape(std::string& out) {
    if (rest_.size() < 2)
      return false;
    if (rest_[1] == 'u') {
      uint32_t code = 0;
      uint32_t low = 0;
      if (!hex4(code) || (code >= 0xdc00 && code < 0xe000))
        return false;
      if (code >= 0xd800 && code < 0xdc00) {
        if (!hex4(low) || low < 0xdc00 || low >= 0xe000)
          return false;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      }
      append_utf8(code, out);
      return true;
    }
    static constexpr std::string_view letters = "\"\\/bfnrt";
    static constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    auto at = letters.find(rest_[1]);
    if (at == std::string_view::npos)
      return false;
    out += meanings[at];
    rest_.remove_prefix(2);
    return true;
  }

  std::string_view rest_;
};

bool read_answer(std::string_view line, std::string_view number_key, external_answer& out) {
  answer_reader in(line);
  if (!in.take("{"))
    return false;
  bool has_id = false;
  bool has_ticket = false;
  for (bool more = true; more; more = in.take(",")) {
    std::string key;
    if (!in.string(key) || !in.take(":"))
      return false;
    if (key == "id" && !has_id) {
      has_id = true;
      if (!in.natural(out.id))
        return false;
    } else if (key == number_key && !has_ticket) {
      has_ticket = true;
      if (in.take("null"))
        continue;
      if (!in.natural(out.ticket.emplace()))
        return false;
    } else if (key == "state" && !out.state) {
      if (!in.string(out.state.emplace()))
        return false;
    } else {
      return false;
    }
  }
  return in.take("}") && in.at_end() && has_id;
}

} // namespace

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    auto length = utf8_length(text);
    auto c = static_cast<unsigned char>(text[0]);
    if (length == 0)
      out += "\xef\xbf\xbd";
    else if (c == '"' || c == '\\')
      (out += '\\') += text[0];
    else if (c < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04x}", c);
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + '"';
}

std::string external_hello() {
  return fmt::format(R"({{"event":"hello","version":{},"id":0}})", external_version);
}

std::string external_request(const waiter& w) {
  return fmt::format(R"({{"event":"request","ticket":{},"class":{},"problem":{},"agent":{},)"
                     R"("weight":{},"need":{},"estimate_ns":{},"cap_ns":{},"deadline_ns":{},)"
                     R"("arrived_ns":{}}})",
    w.ticket, json_quoted(to_string(w.what)), json_quoted(w.flow.problem),
    json_quoted(w.flow.agent), w.weight, w.need, w.est_hold.count(), w.cap.count(),
    w.deadline.count(), w.arrived.count());
}

std::string external_cancel(uint64_t ticket) {
  return fmt::format(R"({{"event":"cancel","ticket":{}}})", ticket);
}

std::string external_grant(uint64_t ticket, uint32_t gpu, std::chrono::nanoseconds now) {
  return fmt::format(
    R"({{"event":"grant","ticket":{},"gpu":{},"now_ns":{}}})", ticket, gpu, now.count());
}

std::string external_release(
  const lease_usage& usage, std::string_view reason, std::chrono::nanoseconds now) {
  return fmt::format(
    R"({{"event":"release","ticket":{},"gpu":{},"held_ns":{},"reason":{},"now_ns":{}}})",
    usage.ticket, usage.gpu, usage.held.count(), json_quoted(reason), now.count());
}

std::string external_load(std::string_view state) {
  return fmt::format(R"({{"event":"load","state":{}}})", json_quoted(state));
}

std::string external_pick(uint64_t id, const gpu_offer& offer, std::chrono::nanoseconds now) {
  std::string fits;
  for (need_id need = 0; need < needs_max; ++need)
    if ((offer.fits >> need & 1) != 0)
      fits += fmt::format("{}{}", fits.empty() ? "" : ",", need);
  return fmt::format(R"({{"event":"pick","id":{},"gpu":{},"fits":[{}],"now_ns":{}}})", id,
    offer.gpu, fits, now.count());
}

std::string external_save(uint64_t id) {
  return fmt::format(R"({{"event":"save","id":{}}})", id);
}

result<external_answer> parse_external_answer(std::string_view line, std::string_view number_key) {
  external_answer out;
  if (line.size() > external_line_bytes_max)
    return fail(errc::invalid_input,
      fmt::format("answers a line of more than {} bytes", external_line_bytes_max));
  if (!read_answer(line, number_key, out))
    return fail(errc::invalid_input,
      fmt::format(
        "answers '{}', which is not an object of id, {} and state", shown(line), number_key));
  return out;
}

} // namespace gristmill
