#include "tests/simulation/replay/journals.hpp"

#include "journal/event_line.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace gristmill::test {

using std::chrono::milliseconds;

hand_journal& hand_journal::add(event e) {
  e.seq = events_.size() + 1;
  e.incarnation = 1;
  events_.push_back(std::move(e));
  return *this;
}

hand_journal& hand_journal::head(const std::string& policy) {
  return add({.kind = "run_started", .data = fmt::format(R"({{"lease_policy":"{}"}})", policy)});
}

hand_journal& hand_journal::up(const std::string& gpu, const std::string& model) {
  return add({.kind = "gpu_up",
    .gpu = gpu,
    .data = model.empty() ? "{}" : fmt::format(R"({{"model":"{}"}})", model)});
}

hand_journal& hand_journal::request(int64_t ms, uint64_t ticket, const std::string& agent,
  const std::string& problem, const std::string& more) {
  return add({.t = milliseconds{ms},
    .kind = "lease_request",
    .problem = problem,
    .attempt = fmt::format("{}/{}", agent, ticket),
    .data = fmt::format(
      R"({{"agent":"{}","class":"timing","estimate_ns":1000000000,"request":{},"ticket":{}{}}})",
      agent, ticket, ticket, more)});
}

hand_journal& hand_journal::grant(int64_t ms, uint64_t ticket, const std::string& agent,
  const std::string& gpu, uint64_t token, int64_t queued_ms, const std::string& problem) {
  return add({.t = milliseconds{ms},
    .kind = "lease_grant",
    .problem = problem,
    .gpu = gpu,
    .token = token,
    .data = fmt::format(
      R"({{"agent":"{}","class":"timing","queue_ns":{},"term_ns":120000000000,"ticket":{}}})",
      agent, queued_ms * 1'000'000, ticket)});
}

hand_journal& hand_journal::release(int64_t ms, const std::string& gpu, uint64_t token) {
  return add(
    {.t = milliseconds{ms}, .kind = "lease_release", .gpu = gpu, .token = token, .reason = "done"});
}

hand_journal& hand_journal::free(int64_t ms, const std::string& gpu, uint64_t token) {
  return add({.t = milliseconds{ms}, .kind = "gpu_free", .gpu = gpu, .token = token});
}

hand_journal& hand_journal::wait_end(
  int64_t ms, uint64_t ticket, const std::string& agent, int64_t queued_ms) {
  return add({.t = milliseconds{ms},
    .kind = "lease_wait_end",
    .problem = "p",
    .reason = "cancelled",
    .data = fmt::format(R"({{"agent":"{}","class":"timing","queue_ns":{},"ticket":{}}})", agent,
      queued_ms * 1'000'000, ticket)});
}

hand_journal& hand_journal::gpu(
  int64_t ms, const std::string& kind, const std::string& gpu, const std::string& reason) {
  return add({.t = milliseconds{ms}, .kind = kind, .gpu = gpu, .reason = reason});
}

std::string hand_journal::text() const {
  std::string out;
  for (const auto& e : events_)
    out += canonical_line(e) + "\n";
  return out;
}

lease_trace hand_journal::read() const {
  lease_trace_reader reader;
  for (const auto& e : events_) {
    auto taken = reader.take(e, e.seq);
    REQUIRE_MESSAGE(taken, taken.error().what);
  }
  auto trace = reader.finish();
  REQUIRE_MESSAGE(trace, trace.error().what);
  return *trace;
}

std::string hand_journal::complaint() const {
  lease_trace_reader reader;
  for (const auto& e : events_)
    if (auto taken = reader.take(e, e.seq); !taken)
      return taken.error().what;
  auto trace = reader.finish();
  return trace ? std::string{} : trace.error().what;
}

scenario small_scenario() {
  scenario what;
  what.name = "small";
  what.duration_s = 4000;
  what.gpus.push_back({.name = "b200", .model = "b200", .count = 2});
  agent_group quick;
  quick.name = "quick";
  quick.count = 4;
  quick.hold_factor = 0.5;
  agent_group slow;
  slow.name = "slow";
  slow.count = 3;
  slow.what = lease_class::profile;
  slow.weight = 2;
  slow.hold_factor = 2;
  what.agents = {quick, slow};
  what.think.call.mean_s = 10;
  what.hold.time.mean_s = 12;
  what.hold.agent_sigma = 0.5;
  what.hold.launch_s = 0.2;
  what.hold.verify_s = 0.3;
  what.problems = 2;
  what.lease_policy = "stride";
  return what;
}

lease_trace simulate_trace(const scenario& what, uint64_t seed) {
  lease_trace_reader reader;
  uint64_t line = 0;
  lab_options options;
  options.world.seed = seed;
  options.journal = [&](event&& e) {
    auto taken = reader.take(e, ++line);
    REQUIRE_MESSAGE(taken, taken.error().what);
  };
  auto ran = run_core(what, std::move(options));
  REQUIRE_MESSAGE(ran, ran.error().what);
  auto trace = reader.finish();
  REQUIRE_MESSAGE(trace, trace.error().what);
  trace->policy = what.lease_policy;
  trace->agents_by_name = true;
  return *trace;
}

} // namespace gristmill::test
