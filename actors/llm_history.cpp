#include "actors/llm_history.hpp"

#include "actors/run_events.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace gristmill {

using nlohmann::json;

namespace {

json amounts_json(const budget_amounts& a) {
  return {{"nano_usd", a.nano_usd}, {"tokens", a.tokens}, {"calls", a.calls}};
}

budget_amounts amounts_from(const json& data) {
  auto whole = [&](const char* field) {
    const auto& value = data.at(field);
    if (!value.is_number_unsigned())
      throw json::type_error::create(
        302, std::string(field) + " must be a whole number of 0 or more", &value);
    return value.get<uint64_t>();
  };
  budget_amounts out;
  out.nano_usd = whole("nano_usd");
  out.tokens = whole("tokens");
  out.calls = whole("calls");
  return out;
}

/// "request" and "agent" are keys that a digest leaves out: numbers and workers differ from run to
/// run.
json record_json(const try_record& r) {
  return {{"request", r.id}, {"agent", r.agent}, {"call", r.call}, {"purpose", r.purpose},
    {"deployment", r.deployment}, {"model", r.model}, {"try", r.number}, {"cap", r.cap},
    {"reserved", amounts_json(r.reserved)}, {"price", to_string(r.origin)}};
}

} // namespace

event sent_event(const try_record& r) {
  return {.kind = "llm_sent", .problem = r.problem, .data = text_of(record_json(r))};
}

event call_event(const try_record& r) {
  auto data = record_json(r);
  data["outcome"] = r.outcome;
  data["spent"] = amounts_json(r.spent);
  data["held"] = amounts_json(r.held);
  data["usage"] = {{"state", to_string(r.usage.state)}, {"uncached_input", r.usage.uncached_input},
    {"cache_read", r.usage.cache_read}, {"cache_write", r.usage.cache_write},
    {"visible_output", r.usage.visible_output}, {"reasoning", r.usage.reasoning}};
  data["took_ns"] = r.took.count();
  if (!r.request_id.empty())
    data["provider_request"] = r.request_id;
  return {.kind = "llm_call", .problem = r.problem, .reason = r.reason, .data = text_of(data)};
}

result<restored_spending> restore_spending(std::span<const event> events) {
  restored_spending out;
  std::map<std::pair<std::string, std::string>, spending> accounts;
  std::map<uint64_t, event> open;
  std::set<uint64_t> ended;
  std::chrono::nanoseconds last{0};
  auto book = [&](const std::string& problem, const std::string& agent) -> spending& {
    auto& s = accounts[{problem, agent}];
    s.problem = problem;
    s.agent = agent;
    return s;
  };
  for (const auto& e : events) {
    last = std::max(last, e.t);
    if (e.kind != "llm_sent" && e.kind != "llm_call")
      continue;
    try {
      auto data = json::parse(e.data);
      auto id = data.at("request").get<uint64_t>();
      auto agent = data.at("agent").get<std::string>();
      auto& s = book(e.problem, agent);
      s.last_try = std::max(s.last_try, id);
      if (e.kind == "llm_sent") {
        amounts_from(data.at("reserved"));
        if (ended.count(id) == 0)
          open.emplace(id, e);
        continue;
      }
      auto spent = amounts_from(data.at("spent"));
      auto held = amounts_from(data.at("held"));
      if (!ended.insert(id).second)
        continue;
      open.erase(id);
      s.spent += spent;
      s.held += held;
    } catch (const json::exception& error) {
      return fail(
        errc::invalid_input, fmt::format("event {} ({}): {}", e.seq, e.kind, error.what()));
    }
  }
  for (const auto& [id, e] : open) {
    auto data = json::parse(e.data);
    budget_amounts one_call;
    one_call.calls = 1;
    auto held = amounts_from(data["reserved"]);
    held.calls = 0;
    auto& s = book(e.problem, data.value("agent", ""));
    s.spent += one_call;
    s.held += held;
    data["outcome"] = "interrupted";
    data["spent"] = amounts_json(one_call);
    data["held"] = amounts_json(held);
    data["usage"] = {{"state", to_string(usage_state::unknown)}, {"uncached_input", 0},
      {"cache_read", 0}, {"cache_write", 0}, {"visible_output", 0}, {"reasoning", 0}};
    data["took_ns"] = 0;
    out.closing.push_back({.t = last,
      .kind = "llm_call",
      .problem = e.problem,
      .reason = "the process was ended while it was under way; what it cost nobody knows",
      .data = text_of(data)});
  }
  for (auto& [key, s] : accounts)
    out.spent.push_back(std::move(s));
  return out;
}

} // namespace gristmill
