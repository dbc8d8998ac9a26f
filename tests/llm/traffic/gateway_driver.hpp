#pragma once

#include "llm/traffic/gateway_core.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gristmill::test {

/// 1 USD per million tokens read, 10 written; cached 0.1, written to the cache 1.25.
inline model_price plain_price(const std::string& model) {
  model_price out;
  out.model = model;
  out.as_of = std::chrono::year{2026} / 11 / 30;
  out.input = 1'000'000;
  out.cached_read = 100'000;
  out.cache_write = 1'250'000;
  out.output = 10'000'000;
  return out;
}

/// Deployments "a", "b", … of which "propose" uses all, in this order; the models "m-a", … have a
/// price.
inline gateway_config some_deployments(size_t count) {
  gateway_config out;
  for (size_t i = 0; i < count; ++i) {
    model_deployment d;
    d.name = std::string(1, static_cast<char>('a' + i));
    d.model = "m-" + d.name;
    d.endpoint = "https://" + d.name + ".example.org";
    d.output_tokens_max = 8000;
    out.models.deployments.push_back(d);
    out.models.prices.push_back(plain_price(d.model));
    out.models.roles["propose"].push_back(i);
  }
  out.seed = 1;
  return out;
}

inline llm_request a_request(uint64_t call, const std::string& agent = "w0",
  const std::string& problem = "softmax", uint32_t cap = 1000) {
  llm_request out;
  out.call = call;
  out.agent = agent;
  out.problem = problem;
  out.purpose = "propose";
  out.instructions = "be brief";
  out.messages = {{chat_role::user, "write a kernel"}};
  out.output_tokens_max = cap;
  return out;
}

inline try_result an_answer(const std::string& text = "a kernel",
  finish_kind finish = finish_kind::stop, uint64_t input = 10, uint64_t output = 20) {
  try_result out;
  out.status = 200;
  out.reply.text = text;
  out.reply.finish = finish;
  out.reply.usage = {usage_state::exact, input, 0, 0, output, 0};
  return out;
}

inline try_result a_failure(trouble_kind kind, const std::string& what = "it broke",
  std::chrono::nanoseconds wait = std::chrono::nanoseconds{0}) {
  try_result out;
  out.status = 500;
  out.reply.failed = {kind, wait, what};
  // As call_reader says it.
  out.refused_unbilled = kind != trouble_kind::ambiguous;
  return out;
}

/// Plays actor and transport: keeps what is sent, and gives back what the test says.
struct gateway_driver {
  explicit gateway_driver(gateway_config config) : core(make(std::move(config))) {}

  static gateway_core make(gateway_config config) {
    auto made = gateway_core::make(std::move(config));
    REQUIRE_MESSAGE(made, made.error().what);
    return std::move(*made);
  }

  struct sent {
    try_record record;
    llm_request request;
    size_t deployment = 0;
    std::chrono::nanoseconds at{0};
  };

  uint64_t ask(llm_request request) {
    auto asker = next_asker++;
    take(core.on_request(asker, std::move(request), now));
    return asker;
  }
  void cancel(const std::string& agent, uint64_t call) { take(core.on_cancel({agent, call}, now)); }

  void take(std::vector<gateway_command> todo) {
    for (auto& c : todo) {
      switch (c.what) {
      case gateway_command::kind::send:
        REQUIRE(used.insert(c.record.id).second);
        open.push_back({c.record, c.request, c.deployment, now});
        ++sends;
        break;
      case gateway_command::kind::cancel:
        cancelled.push_back(c.record.id);
        break;
      case gateway_command::kind::ended:
        ended.push_back(c.record);
        break;
      case gateway_command::kind::answer:
        REQUIRE(done.insert(c.asker).second);
        answers[c.asker] = c.reply;
        break;
      case gateway_command::kind::refuse:
        REQUIRE(done.insert(c.asker).second);
        refusals[c.asker] = c.why;
        break;
      case gateway_command::kind::note:
        notes.push_back(c.text);
        break;
      case gateway_command::kind::stop:
        stops.push_back(c.why);
        break;
      }
    }
  }

  /// Ends the n-th open try.
  void finish(try_result how, size_t n = 0) {
    REQUIRE(n < open.size());
    how.id = open[n].record.id;
    open.erase(open.begin() + static_cast<int64_t>(n));
    take(core.on_ended(how, now));
  }

  void advance(std::chrono::nanoseconds by) {
    auto end = now + by;
    for (int steps = 0; steps < 10'000; ++steps) {
      auto due = core.next_due(now);
      if (!due || *due > end)
        break;
      now = std::max(*due, now + std::chrono::nanoseconds{1});
      take(core.on_due(now));
    }
    now = end;
    take(core.on_due(now));
  }
  /// Until a try is open; the time that passed.
  std::chrono::nanoseconds advance_to_send() {
    auto begin = now;
    while (open.empty()) {
      auto due = core.next_due(now);
      REQUIRE(due);
      REQUIRE(*due < begin + std::chrono::hours{2});
      advance(std::max(*due - now, std::chrono::nanoseconds{1}));
    }
    return now - begin;
  }

  const budget_account& run() const { return core.book().run(); }

  gateway_core core;
  std::chrono::nanoseconds now{0};
  uint64_t next_asker = 1;
  std::deque<sent> open;
  std::vector<uint64_t> cancelled;
  std::vector<try_record> ended;
  std::map<uint64_t, llm_reply> answers;
  std::map<uint64_t, failure> refusals;
  std::vector<std::string> notes;
  std::vector<failure> stops;
  std::set<uint64_t> used;
  std::set<uint64_t> done;
  uint64_t sends = 0;
};

} // namespace gristmill::test
