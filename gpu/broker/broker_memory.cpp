#include "gpu/broker/broker_store.hpp"

#include "gpu/broker/wire.hpp"
#include "protocol/strict_json.hpp"

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

constexpr size_t text_bytes_max = 4096;
constexpr size_t policy_bytes_max = size_t{32} << 20;
constexpr size_t entries_max = 65536;
constexpr const char* memory_schema = "gristmill.broker-state/1";
constexpr const char* record_schema = "gristmill.broker-lease/1";

nanoseconds time_of(strict_object& in, std::string_view key) {
  return nanoseconds{in.integer(key, 0)};
}

void expect_schema(strict_object& in, const char* wanted) {
  if (in.text("schema", 64) != wanted)
    in.complain("schema", std::string("must be ") + wanted);
}

result<ordered_json> parse_file(std::string_view text, const std::string& file) {
  json_limits limits;
  limits.depth = 8;
  limits.keys = entries_max;
  return parse_json(text, file, limits);
}

} // namespace

std::string lease_record_text(const lease_record& r) {
  ordered_json out = {{"schema", record_schema}, {"gpu", r.gpu}, {"token", r.token},
    {"lease", r.lease}, {"boot", r.boot}, {"granted_at_ns", r.granted_at.count()},
    {"term_ns", r.term.count()}, {"request", r.request.request},
    {"class", to_string(r.request.what)}, {"user", r.request.flow.problem},
    {"project", r.request.flow.agent}, {"weight", r.request.weight}, {"need", r.request.need},
    {"estimate_ns", r.request.estimated_hold.count()}, {"command", r.request.attempt},
    {"candidate", r.request.candidate}, {"guarded", r.guarded}, {"uid", r.user}, {"pid", r.pid},
    {"started", r.started}, {"session", r.session}, {"session_started", r.session_started}};
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

result<lease_record> parse_lease_record(std::string_view text, const std::string& file) {
  auto json = parse_file(text, file);
  if (!json)
    return pass(json);
  lease_record r;
  std::optional<failure> trouble;
  {
    strict_object in(*json, file, trouble);
    expect_schema(in, record_schema);
    r.gpu = in.text("gpu", text_bytes_max);
    r.token = in.natural("token");
    r.lease = in.text("lease", text_bytes_max);
    r.boot = in.text("boot", text_bytes_max);
    r.granted_at = time_of(in, "granted_at_ns");
    r.term = time_of(in, "term_ns");
    r.request.request = in.natural("request");
    auto what = parse_lease_class(in.text("class", 64));
    if (what)
      r.request.what = *what;
    else
      in.complain("class", what.error().what);
    r.request.flow.problem = in.text("user", text_bytes_max);
    r.request.flow.agent = in.text("project", text_bytes_max);
    r.request.weight = in.natural32("weight");
    r.request.need = in.text("need", text_bytes_max);
    r.request.estimated_hold = time_of(in, "estimate_ns");
    r.request.attempt = in.text("command", text_bytes_max);
    r.request.candidate = in.text("candidate", text_bytes_max);
    r.guarded = in.boolean("guarded");
    r.user = in.natural32("uid");
    r.pid = static_cast<pid_t>(in.integer("pid", 0, INT32_MAX));
    r.started = in.natural("started");
    r.session = static_cast<pid_t>(in.integer("session", 0, INT32_MAX));
    r.session_started = in.natural("session_started");
  }
  if (trouble)
    return tl::unexpected<failure>(*trouble);
  return r;
}

std::string broker_memory_text(const broker_memory& m) {
  ordered_json out = {{"schema", memory_schema}, {"epoch", m.epoch}, {"tokens", m.tokens},
    {"drained", m.drained}, {"weights", m.weights}, {"policy", m.policy},
    {"policy_state", m.policy_state}};
  return out.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

result<broker_memory> parse_broker_memory(std::string_view text, const std::string& file) {
  auto json = parse_file(text, file);
  if (!json)
    return pass(json);
  broker_memory m;
  std::optional<failure> trouble;
  {
    strict_object in(*json, file, trouble);
    expect_schema(in, memory_schema);
    m.epoch = in.natural("epoch", INT64_MAX);
    in.each_member(
      "tokens", entries_max, [&](const std::string& name, const ordered_json& value, const auto&) {
        if (value.is_number_unsigned() && value.get<uint64_t>() < uint64_t{INT64_MAX})
          m.tokens[name] = value.get<uint64_t>();
        else
          in.complain("tokens", "must be natural numbers");
      });
    in.each_member(
      "drained", entries_max, [&](const std::string& name, const ordered_json& value, const auto&) {
        if (value.is_string())
          m.drained[name] = value.get<std::string>();
        else
          in.complain("drained", "must be texts");
      });
    in.each_member(
      "weights", entries_max, [&](const std::string& name, const ordered_json& value, const auto&) {
        if (value.is_number_unsigned() && value.get<uint64_t>() >= 1
          && value.get<uint64_t>() <= 1'000'000)
          m.weights[name] = static_cast<uint32_t>(value.get<uint64_t>());
        else
          in.complain("weights", "must lie in 1..1000000");
      });
    m.policy = in.text("policy", text_bytes_max);
    m.policy_state = in.text("policy_state", policy_bytes_max);
  }
  if (trouble)
    return tl::unexpected<failure>(*trouble);
  return m;
}

} // namespace gristmill
