#include "gpu/broker/wire.hpp"

#include "protocol/nearest.hpp"
#include "protocol/strict_json.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

constexpr size_t name_bytes_max = 256;
constexpr size_t command_bytes_max = 1024;
constexpr size_t note_bytes_max = 4096;
constexpr size_t gpus_max = 4096;
/// A year: more than any wait, and far from an overflow of nanoseconds.
constexpr uint64_t duration_max = uint64_t{366} * 24 * 3600 * 1'000'000'000;

const std::vector<std::string>& verbs() {
  static const std::vector<std::string> all = {"hello", "request", "cancel", "started", "renew",
    "ended", "adopt", "check", "status", "drain", "undrain", "quota"};
  return all;
}

const std::vector<std::string>& says() {
  static const std::vector<std::string> all = {"hello", "ticket", "position", "granted", "over",
    "adopted", "ack", "closed", "revoke", "status", "error"};
  return all;
}

template <class Enum>
std::vector<std::string> names_of(size_t count) {
  std::vector<std::string> all;
  for (size_t i = 0; i < count; ++i)
    all.push_back(to_string(static_cast<Enum>(i)));
  return all;
}

const std::vector<std::string>& classes() {
  static const auto all = names_of<lease_class>(5);
  return all;
}

const std::vector<std::string>& outcomes() {
  static const auto all = names_of<lease_outcome>(4);
  return all;
}

const std::vector<std::string>& probes() {
  static const auto all = names_of<probe_outcome>(3);
  return all;
}

nanoseconds duration(strict_object& in, std::string_view key) {
  return nanoseconds{static_cast<int64_t>(in.natural(key, duration_max))};
}

/// Names travel on to terminals and logs.
std::string plain(strict_object& in, std::string_view key, size_t bytes_max = name_bytes_max) {
  auto text = in.text(key, bytes_max);
  if (std::any_of(text.begin(), text.end(),
        [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }))
    in.complain(key, "has a control character");
  return text;
}

std::string optional_plain(
  strict_object& in, std::string_view key, size_t bytes_max = name_bytes_max) {
  return in.has(key) ? plain(in, key, bytes_max) : std::string{};
}

nanoseconds optional_duration(strict_object& in, std::string_view key) {
  return in.has(key) ? duration(in, key) : nanoseconds{0};
}

void read_lease(strict_object& in, client_line& out) {
  out.gpu = in.natural32("gpu");
  out.token = in.natural("token");
  out.lease = plain(in, "lease");
}

void read_client(strict_object& in, client_line& out) {
  switch (out.verb) { // no default: the compiler reports a missing verb
  case client_verb::hello:
    out.protocol = in.natural32("protocol");
    out.as = optional_plain(in, "as");
    break;
  case client_verb::request:
    out.request = in.natural("request");
    if (in.has("class"))
      out.what = static_cast<lease_class>(in.choice("class", classes()));
    out.need = optional_plain(in, "need");
    out.candidate = optional_plain(in, "candidate");
    out.command = optional_plain(in, "command", command_bytes_max);
    out.estimate = optional_duration(in, "estimate_ns");
    out.patience = optional_duration(in, "patience_ns");
    out.term = optional_duration(in, "term_ns");
    out.watch = optional_duration(in, "watch_ns");
    out.guarded = in.has("guarded") && in.boolean("guarded");
    break;
  case client_verb::cancel:
    out.request = in.natural("request");
    break;
  case client_verb::started:
    read_lease(in, out);
    out.session = in.integer("session", 0, INT32_MAX);
    break;
  case client_verb::renew:
    read_lease(in, out);
    out.idle = optional_duration(in, "idle_ns");
    break;
  case client_verb::ended:
    read_lease(in, out);
    if (in.has("outcome"))
      out.outcome = static_cast<lease_outcome>(in.choice("outcome", outcomes()));
    out.reason = optional_plain(in, "reason", note_bytes_max);
    break;
  case client_verb::adopt:
    read_lease(in, out);
    out.request = in.natural("request");
    out.session = in.integer("session", 0, INT32_MAX);
    out.held = duration(in, "held_ns");
    break;
  case client_verb::check:
    read_lease(in, out);
    break;
  case client_verb::status:
    out.waiters = in.has("waiters") ? in.natural32("waiters", 10000) : 0;
    break;
  case client_verb::drain:
    out.gpu_name = optional_plain(in, "gpu");
    out.reason = optional_plain(in, "reason", note_bytes_max);
    break;
  case client_verb::undrain:
    out.gpu_name = optional_plain(in, "gpu");
    break;
  case client_verb::quota:
    out.user = plain(in, "user");
    out.weight = in.natural32("weight", 1'000'000);
    if (out.weight == 0)
      in.complain("weight", "must be at least 1");
    break;
  }
}

void read_broker(strict_object& in, broker_line& out) {
  auto lease_part = [&] {
    out.gpu = in.natural32("gpu");
    out.token = in.natural("token");
  };
  switch (out.say) { // no default: the compiler reports a missing one
  case broker_say::hello:
    out.protocol = in.natural32("protocol");
    out.epoch = in.natural("epoch");
    out.as = plain(in, "as");
    in.each("gpus", gpus_max, [&](const ordered_json& value, const std::string&) {
      if (value.is_string())
        out.gpus.push_back(value.get<std::string>());
    });
    break;
  case broker_say::ticket:
  case broker_say::position:
    out.request = in.natural("request");
    out.ticket = in.natural("ticket");
    out.ahead = in.natural32("ahead");
    out.estimated_wait = duration(in, "estimated_wait_ns");
    break;
  case broker_say::granted:
  case broker_say::adopted:
    out.request = in.natural("request");
    lease_part();
    out.gpu_name = plain(in, "name");
    out.lease = plain(in, "lease");
    out.visible = plain(in, "visible");
    out.term = duration(in, "term_ns");
    out.ttl = duration(in, "ttl_ns");
    break;
  case broker_say::over:
    out.request = in.natural("request");
    out.reason = in.text("reason", note_bytes_max);
    break;
  case broker_say::ack:
    out.applied = in.boolean("applied");
    out.note = in.text("note", note_bytes_max);
    out.left = duration(in, "left_ns");
    break;
  case broker_say::closed:
    lease_part();
    out.held = duration(in, "held_ns");
    out.cleaned = duration(in, "cleaned_ns");
    out.probe.outcome = static_cast<probe_outcome>(in.choice("probe", probes()));
    out.probe.detail = in.text("detail", note_bytes_max);
    break;
  case broker_say::revoke:
    lease_part();
    out.reason = in.text("reason", note_bytes_max);
    break;
  case broker_say::status: // read before, as a whole
    break;
  case broker_say::error: {
    out.request = in.natural("request");
    std::vector<std::string> codes;
    for (int code = 1; code <= static_cast<int>(errc::device_fault); ++code)
      codes.push_back(to_string(static_cast<errc>(code)));
    out.code = static_cast<errc>(in.choice("code", codes) + 1);
    out.what = in.text("what", note_bytes_max);
    break;
  }
  }
}

result<ordered_json> parse_object(std::string_view line, size_t bytes_max, size_t depth) {
  json_limits limits;
  limits.bytes = bytes_max;
  limits.depth = depth;
  limits.keys = gpus_max;
  limits.unique_keys = true;
  auto json = parse_json(line, "line", limits);
  if (json && !json->is_object())
    return fail(
      errc::invalid_input, fmt::format("a line must be a JSON object, not {}", kind_text(*json)));
  return json;
}

} // namespace

std::string to_string(client_verb verb) {
  return verbs()[static_cast<size_t>(verb)];
}

std::string to_string(broker_say say) {
  return says()[static_cast<size_t>(say)];
}

result<client_line> parse_client_line(std::string_view line) {
  auto json = parse_object(line, client_line_bytes_max, 4);
  if (!json)
    return pass(json);
  client_line out;
  std::optional<failure> trouble;
  {
    strict_object in(*json, "line", trouble);
    out.verb = static_cast<client_verb>(in.choice("line", verbs()));
    if (!trouble)
      read_client(in, out);
  }
  if (trouble)
    return tl::unexpected<failure>(*trouble);
  return out;
}

std::string write_client_line(const client_line& line) {
  ordered_json out = {{"line", to_string(line.verb)}};
  auto text = [&](const char* key, const std::string& value) {
    if (!value.empty())
      out[key] = value;
  };
  auto time = [&](const char* key, nanoseconds value) {
    if (value != nanoseconds{0})
      out[key] = value.count();
  };
  auto lease_part = [&] {
    out["gpu"] = line.gpu;
    out["token"] = line.token;
    out["lease"] = line.lease;
  };
  switch (line.verb) { // no default: the compiler reports a missing verb
  case client_verb::hello:
    out["protocol"] = line.protocol;
    text("as", line.as);
    break;
  case client_verb::request:
    out["request"] = line.request;
    out["class"] = to_string(line.what);
    text("need", line.need);
    text("candidate", line.candidate);
    text("command", line.command);
    time("estimate_ns", line.estimate);
    time("patience_ns", line.patience);
    time("term_ns", line.term);
    time("watch_ns", line.watch);
    if (line.guarded)
      out["guarded"] = true;
    break;
  case client_verb::cancel:
    out["request"] = line.request;
    break;
  case client_verb::started:
    lease_part();
    out["session"] = line.session;
    break;
  case client_verb::renew:
    lease_part();
    time("idle_ns", line.idle);
    break;
  case client_verb::ended:
    lease_part();
    out["outcome"] = to_string(line.outcome);
    text("reason", line.reason);
    break;
  case client_verb::adopt:
    lease_part();
    out["request"] = line.request;
    out["session"] = line.session;
    out["held_ns"] = line.held.count();
    break;
  case client_verb::check:
    lease_part();
    break;
  case client_verb::status:
    out["waiters"] = line.waiters;
    break;
  case client_verb::drain:
    text("gpu", line.gpu_name);
    text("reason", line.reason);
    break;
  case client_verb::undrain:
    text("gpu", line.gpu_name);
    break;
  case client_verb::quota:
    out["user"] = line.user;
    out["weight"] = line.weight;
    break;
  }
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

result<broker_line> parse_broker_line(std::string_view line) {
  auto json = parse_object(line, broker_line_bytes_max, 8);
  if (!json)
    return pass(json);
  broker_line out;
  std::optional<failure> trouble;
  if (json->value("line", "") == "status") {
    // Its body is for people and programs of theirs: not checked key by key.
    out.say = broker_say::status;
    if (!json->contains("status") || !(*json)["status"].is_object())
      return fail(errc::invalid_input, "line.status must be an object");
    out.status = (*json)["status"];
    return out;
  }
  {
    strict_object in(*json, "line", trouble);
    out.say = static_cast<broker_say>(in.choice("line", says()));
    if (!trouble)
      read_broker(in, out);
  }
  if (trouble)
    return tl::unexpected<failure>(*trouble);
  return out;
}

std::string write_broker_line(const broker_line& line) {
  ordered_json out = {{"line", to_string(line.say)}};
  switch (line.say) { // no default: the compiler reports a missing one
  case broker_say::hello:
    out["protocol"] = line.protocol;
    out["epoch"] = line.epoch;
    out["as"] = line.as;
    out["gpus"] = line.gpus;
    break;
  case broker_say::ticket:
  case broker_say::position:
    out["request"] = line.request;
    out["ticket"] = line.ticket;
    out["ahead"] = line.ahead;
    out["estimated_wait_ns"] = line.estimated_wait.count();
    break;
  case broker_say::granted:
  case broker_say::adopted:
    out["request"] = line.request;
    out["gpu"] = line.gpu;
    out["token"] = line.token;
    out["name"] = line.gpu_name;
    out["lease"] = line.lease;
    out["visible"] = line.visible;
    out["term_ns"] = line.term.count();
    out["ttl_ns"] = line.ttl.count();
    break;
  case broker_say::over:
    out["request"] = line.request;
    out["reason"] = line.reason;
    break;
  case broker_say::ack:
    out["applied"] = line.applied;
    out["note"] = line.note;
    out["left_ns"] = line.left.count();
    break;
  case broker_say::closed:
    out["gpu"] = line.gpu;
    out["token"] = line.token;
    out["held_ns"] = line.held.count();
    out["cleaned_ns"] = line.cleaned.count();
    out["probe"] = to_string(line.probe.outcome);
    out["detail"] = line.probe.detail;
    break;
  case broker_say::revoke:
    out["gpu"] = line.gpu;
    out["token"] = line.token;
    out["reason"] = line.reason;
    break;
  case broker_say::status:
    out["status"] = line.status;
    break;
  case broker_say::error:
    out["request"] = line.request;
    out["code"] = to_string(line.code);
    out["what"] = line.what;
    break;
  }
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

result<lease_flow> parse_user_project(std::string_view text) {
  auto slash = text.find('/');
  lease_flow out{std::string(text.substr(0, slash)),
    slash == std::string_view::npos ? "-" : std::string(text.substr(slash + 1))};
  for (const auto* name : {&out.problem, &out.agent}) {
    auto fine =
      !name->empty() && name->size() <= 64 && std::all_of(name->begin(), name->end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
          || std::string_view("._-@+").find(c) != std::string_view::npos;
      });
    if (!fine)
      return fail(errc::invalid_input,
        fmt::format("'{}' must be USER or USER/PROJECT, each of 1 to 64 letters, digits or ._-@+",
          excerpt(text)));
  }
  return out;
}

result<lease_class> parse_lease_class(std::string_view text) {
  for (size_t i = 0; i < classes().size(); ++i)
    if (classes()[i] == text)
      return static_cast<lease_class>(i);
  return fail(errc::invalid_input,
    fmt::format("unknown class {}{}", excerpt(text), suggestion(text, classes())));
}

} // namespace gristmill
