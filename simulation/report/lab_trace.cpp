#include "simulation/report/lab_trace.hpp"

#include "simulation/scenario_file.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gristmill {

namespace {

using nlohmann::json;

/// Nanoseconds as microseconds with all their digits.
std::string micros(int64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

std::string json_text(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace

event lab_run_event(const lab_variant& variant, uint64_t seed, const lab_identity& who) {
  event out;
  out.kind = "lab_run";
  out.reason = "simulated";
  out.data = json{{"simulated", true}, {"scenario", canonical_toml(variant.what)},
    {"name", variant.what.name}, {"config", variant.config}, {"seed", seed},
    {"lease_policy", variant.what.lease_policy}, {"version", who.version}, {"build", who.build}}
               .dump();
  return out;
}

event for_timeline(event e) {
  if (!e.attempt.empty())
    return e;
  const auto data = json::parse(e.data, nullptr, false);
  if (data.is_object() && data.contains("agent") && data["agent"].is_string())
    e.attempt = data["agent"].get<std::string>();
  if (!e.problem.empty())
    e.attempt = e.attempt.empty() ? e.problem : e.problem + " " + e.attempt;
  return e;
}

result<std::string> perfetto_trace(
  std::span<const event> events, const std::string& title, const lab_identity& who) {
  auto timeline = read_timeline(events);
  if (!timeline)
    return pass(timeline);
  std::string out = fmt::format(
    R"({{"displayTimeUnit":"ms","otherData":{{"note":"SIMULATED","title":{},"version":{},"build":{}}},)"
    R"("traceEvents":[)"
    "\n",
    json_text(title), json_text(who.version), json_text(who.build));
  out += fmt::format(R"({{"ph":"M","pid":1,"name":"process_name","args":{{"name":{}}}}})",
    json_text("SIMULATED " + title));
  for (size_t gpu = 0; gpu < timeline->gpus.size(); ++gpu) {
    out += fmt::format(",\n"
                       R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":{}}}}})",
      gpu + 1, json_text(timeline->gpus[gpu]));
    out += fmt::format(
      ",\n"
      R"({{"ph":"M","pid":1,"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})",
      gpu + 1, gpu);
  }
  for (const gpu_span& span : timeline->spans) {
    // Ends from ends, not from lengths: so that neighbours touch and never overlap.
    const int64_t from = std::llround(span.from * 1e9);
    const int64_t to = std::llround(span.to * 1e9);
    out += fmt::format(
      ",\n"
      R"({{"ph":"X","pid":1,"tid":{},"name":"{}","cat":"lease","ts":{},"dur":{},"args":{{"what":{}}}}})",
      span.gpu + 1, to_string(span.activity), micros(from), micros(to - from),
      json_text(span.what));
  }
  int64_t waiting = 0;
  for (const event& e : events) {
    if (e.kind == "lease_request")
      ++waiting;
    else if (e.kind == "lease_grant" || e.kind == "lease_wait_end")
      waiting = std::max<int64_t>(0, waiting - 1);
    else
      continue;
    out += fmt::format(
      ",\n"
      R"({{"ph":"C","pid":1,"name":"waiting requests","ts":{},"args":{{"waiting":{}}}}})",
      micros(e.t.count()), waiting);
  }
  return out + "\n]}\n";
}

} // namespace gristmill
