#include "simulation/replay/lease_trace.hpp"

#include "protocol/json_document.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace gristmill {

using nlohmann::json;
using std::chrono::nanoseconds;

namespace {

/// Longer times than this are damage: a century.
constexpr int64_t time_max_ns = int64_t{3'155'760'000} * 1'000'000'000;

failure wrong(uint64_t line, const event& e, const std::string& what) {
  return {errc::invalid_input, fmt::format("line {} ({}): {}", line, e.kind, what)};
}

lease_outcome outcome_of(const std::string& reason) {
  if (reason == "fault")
    return lease_outcome::fault;
  if (reason == "hang" || reason == "timeout" || reason == "expired")
    return lease_outcome::hang;
  if (reason == "infrastructure" || reason == "revoked" || reason.starts_with("node_lost"))
    return lease_outcome::infrastructure;
  return lease_outcome::fine;
}

/// Logs of earlier versions do not say what a GPU is, but its name may: "mock:h200#0".
std::string model_in_name(const std::string& name) {
  auto colon = name.find(':');
  auto hash = name.find('#');
  if (colon == std::string::npos || hash == std::string::npos || hash <= colon + 1)
    return {};
  return name.substr(colon + 1, hash - colon - 1);
}

bool is_lease_kind(const std::string& kind) {
  return kind.starts_with("lease_") || kind.starts_with("gpu_") || kind == "token_block";
}

} // namespace

/// The data of one event.
struct lease_trace_reader::fields {
  json object;

  const json* find(const char* key) const {
    auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
  }
  result<std::string> text(const char* key, bool required) const {
    const auto* value = find(key);
    if (value == nullptr && !required)
      return std::string{};
    if (value == nullptr || !value->is_string())
      return fail(errc::invalid_input,
        fmt::format("data.{} is {}", key, value == nullptr ? "missing" : "not a string"));
    return value->get<std::string>();
  }
  result<uint64_t> number(const char* key, std::optional<uint64_t> fallback) const {
    const auto* value = find(key);
    if (value == nullptr && fallback)
      return *fallback;
    if (value == nullptr || !value->is_number_unsigned())
      return fail(errc::invalid_input,
        fmt::format(
          "data.{} is {}", key, value == nullptr ? "missing" : "not a whole number of 0 or more"));
    return value->get<uint64_t>();
  }
  result<nanoseconds> time(const char* key, std::optional<uint64_t> fallback) const {
    auto value = number(key, fallback);
    if (!value)
      return pass(value);
    if (*value > static_cast<uint64_t>(time_max_ns))
      return fail(errc::invalid_input, fmt::format("data.{} is longer than a century", key));
    return nanoseconds{static_cast<int64_t>(*value)};
  }
};

lease_trace_reader::lease_trace_reader(lease_trace_limits limits) : limits_(limits) {
  needs_.emplace("", 0);
  out_.needs.emplace_back();
  out_.agents_by_name = false;
}

result<uint32_t> lease_trace_reader::name_of(std::map<std::string, uint32_t>& index,
  std::vector<std::string>& names, const std::string& name, const char* what, uint64_t line) {
  if (auto found = index.find(name); found != index.end())
    return found->second;
  if (name.size() > limits_.name_bytes)
    return fail(errc::invalid_input,
      fmt::format("line {}: a name of {} bytes ({}); at most {} are read", line, name.size(), what,
        limits_.name_bytes));
  if (names.size() >= limits_.names)
    return fail(errc::refused,
      fmt::format("line {}: more than {} different names ({})", line, limits_.names, what));
  auto number = static_cast<uint32_t>(names.size());
  names.push_back(name);
  index.emplace(name, number);
  return number;
}

result<uint32_t> lease_trace_reader::gpu_of(const event& e, uint64_t line) {
  if (e.gpu.empty())
    return tl::unexpected<failure>(wrong(line, e, "the field 'gpu' is empty"));
  if (auto found = gpus_.find(e.gpu); found != gpus_.end())
    return found->second;
  if (out_.gpus.size() >= limits_.gpus)
    return fail(errc::refused, fmt::format("line {}: more than {} GPUs", line, limits_.gpus));
  if (e.gpu.size() > limits_.name_bytes)
    return tl::unexpected<failure>(
      wrong(line, e, fmt::format("the name of a GPU has {} bytes", e.gpu.size())));
  auto number = static_cast<uint32_t>(out_.gpus.size());
  gpus_.emplace(e.gpu, number);
  out_.gpus.push_back({e.gpu, {}, {}});
  out_.gpus.back().attributes.model = model_in_name(e.gpu);
  states_.emplace_back();
  // Nobody can get it before it has reported.
  states_.back().away = nanoseconds{0};
  states_.back().why = "not there yet";
  return number;
}

// --- GPUs --------------------------------------------------------------------------------------

void lease_trace_reader::close(uint32_t gpu, time t) {
  auto& s = states_[gpu];
  if (!s.lease)
    return;
  auto& r = out_.requests[*s.lease];
  if (r.released == traced_request::never)
    r.released = t;
  r.freed = t;
  s.lease.reset();
}

void lease_trace_reader::leave(uint32_t gpu, time t, const std::string& why) {
  auto& s = states_[gpu];
  if (s.away)
    return;
  s.away = t;
  s.why = why.substr(0, 200);
}

void lease_trace_reader::come_back(uint32_t gpu, time t) {
  auto& s = states_[gpu];
  if (!s.away)
    return;
  auto& outages = out_.gpus[gpu].outages;
  if (*s.away < t) {
    // Up and suspect within one instant is no return.
    if (!outages.empty() && outages.back().to == *s.away)
      outages.back().to = t;
    else
      outages.push_back({*s.away, t, s.why});
  }
  s.away.reset();
}

result<void> lease_trace_reader::take_gpu(
  const event& e, const fields& data, time t, uint64_t line) {
  auto gpu = gpu_of(e, line);
  if (!gpu)
    return pass(gpu);
  const auto& kind = e.kind;
  if (kind == "gpu_up") {
    auto& about = out_.gpus[*gpu].attributes;
    for (auto [key, to] : {std::pair{"model", &about.model}, std::pair{"arch", &about.arch},
           std::pair{"node", &about.node}}) {
      auto text = data.text(key, false);
      if (!text)
        return tl::unexpected<failure>(wrong(line, e, text.error().what));
      if (text->size() > limits_.name_bytes)
        return tl::unexpected<failure>(wrong(line, e, fmt::format("data.{} is too long", key)));
      if (!text->empty())
        *to = *text;
    }
    auto memory = data.number("memory_bytes", about.memory_bytes);
    if (!memory)
      return tl::unexpected<failure>(wrong(line, e, memory.error().what));
    about.memory_bytes = *memory;
  }
  if (kind == "gpu_up" || kind == "gpu_free") {
    close(*gpu, t);
    come_back(*gpu, t);
    states_[*gpu].free_since = t;
  } else if (kind == "gpu_down" || kind == "gpu_suspect" || kind == "gpu_quarantined"
    || kind == "gpu_draining") {
    auto& s = states_[*gpu];
    if (s.lease && kind == "gpu_down")
      out_.requests[*s.lease].lost = true;
    close(*gpu, t);
    leave(*gpu, t, kind.substr(4) + (e.reason.empty() ? "" : ": " + e.reason));
  } else if (kind == "gpu_verifying" && !states_[*gpu].lease) {
    leave(*gpu, t, "being looked at" + (e.reason.empty() ? "" : ": " + e.reason));
  }
  return {};
}

// --- requests ----------------------------------------------------------------------------------

result<traced_request> lease_trace_reader::describe(
  const event& e, const fields& data, time t, uint64_t line) {
  traced_request r;
  r.asked = t;
  r.asked_line = line;
  auto agent = data.text("agent", true);
  auto what = data.text("class", true);
  auto need = data.text("need", false);
  auto weight = data.number("weight", 1);
  auto estimate = data.time("estimate_ns", 0);
  auto term = data.time("term_ns", 0);
  for (const failure* bad : {agent ? nullptr : &agent.error(), what ? nullptr : &what.error(),
         need ? nullptr : &need.error(), weight ? nullptr : &weight.error(),
         estimate ? nullptr : &estimate.error(), term ? nullptr : &term.error()})
    if (bad != nullptr)
      return tl::unexpected<failure>(wrong(line, e, bad->what));
  bool known = false;
  for (auto one : {lease_class::correctness, lease_class::timing, lease_class::profile,
         lease_class::reference, lease_class::official})
    if (to_string(one) == *what) {
      r.what = one;
      known = true;
    }
  if (!known)
    return tl::unexpected<failure>(wrong(line, e,
      fmt::format("data.class is '{}'; known: correctness, timing, profile, reference, official",
        what->substr(0, 60))));
  if (*weight == 0 || *weight > UINT32_MAX)
    return tl::unexpected<failure>(wrong(line, e, "data.weight must be within 1..4294967295"));
  if (auto parsed = parse_need(*need); !parsed)
    return tl::unexpected<failure>(wrong(line, e, "data.need: " + parsed.error().what));
  if (e.attempt.size() > limits_.name_bytes)
    return tl::unexpected<failure>(
      wrong(line, e, fmt::format("the attempt has {} bytes", e.attempt.size())));
  auto agent_id = name_of(agents_, out_.agents, *agent, "agents", line);
  if (!agent_id)
    return pass(agent_id);
  auto problem_id = name_of(problems_, out_.problems, e.problem, "problems", line);
  if (!problem_id)
    return pass(problem_id);
  auto need_number = name_of(needs_, out_.needs, *need, "needs", line);
  if (!need_number)
    return pass(need_number);
  r.agent = *agent_id;
  r.problem = *problem_id;
  r.need = *need_number;
  r.weight = static_cast<uint32_t>(*weight);
  r.estimate = *estimate;
  r.term = *term;
  r.attempt = e.attempt;
  if (out_.requests.size() >= limits_.requests)
    return fail(errc::refused,
      fmt::format("line {}: more than {} requests; read the first part only (--until)", line,
        limits_.requests));
  return r;
}

// A broker that starts anew numbers its tickets from 1, and whoever waited stands in line anew.
void lease_trace_reader::abandon_waits() {
  for (const auto& [ticket, index] : waiting_)
    out_.requests[index].gave_up = std::max(before_, out_.requests[index].asked);
  abandoned_waits_ += waiting_.size();
  waiting_.clear();
}

result<void> lease_trace_reader::take_request(
  const event& e, const fields& data, time t, uint64_t line) {
  auto ticket = data.number("ticket", std::nullopt);
  if (!ticket)
    return tl::unexpected<failure>(wrong(line, e, ticket.error().what));
  auto request = describe(e, data, t, line);
  if (!request)
    return pass(request);
  if (data.find("hold_ns") != nullptr) {
    auto hold = data.time("hold_ns", std::nullopt);
    if (!hold)
      return tl::unexpected<failure>(wrong(line, e, hold.error().what));
    request->intended = true;
    request->hold = *hold;
    out_.intended = true;
  }
  if (waiting_.contains(*ticket)) {
    // A smaller number than the newest: the count has begun anew.
    if (waiting_.rbegin()->first == *ticket)
      return tl::unexpected<failure>(
        wrong(line, e, fmt::format("ticket {} waits already", *ticket)));
    abandon_waits();
  }
  auto index = static_cast<uint32_t>(out_.requests.size());
  if (!request->intended)
    waiting_.emplace(*ticket, index);
  out_.requests.push_back(std::move(*request));
  return {};
}

result<void> lease_trace_reader::take_wait_end(
  const event& e, const fields& data, time t, uint64_t line) {
  auto ticket = data.number("ticket", std::nullopt);
  auto queued = data.time("queue_ns", 0);
  if (!ticket || !queued)
    return tl::unexpected<failure>(
      wrong(line, e, !ticket ? ticket.error().what : queued.error().what));
  auto found = waiting_.find(*ticket);
  if (found == waiting_.end()) {
    ++unknown_requests_;
    auto request = describe(e, data, t, line);
    if (!request)
      return pass(request);
    request->asked = std::max(t - *queued, nanoseconds{0});
    request->gave_up = t;
    out_.requests.push_back(std::move(*request));
    return {};
  }
  out_.requests[found->second].gave_up = t;
  waiting_.erase(found);
  return {};
}

result<void> lease_trace_reader::take_grant(
  const event& e, const fields& data, time t, uint64_t line) {
  if (out_.intended)
    return tl::unexpected<failure>(
      wrong(line, e, "requests before it say how long they will hold, so this is no recording"));
  auto gpu = gpu_of(e, line);
  if (!gpu)
    return pass(gpu);
  auto ticket = data.number("ticket", std::nullopt);
  auto term = data.time("term_ns", std::nullopt);
  auto queued = data.time("queue_ns", std::nullopt);
  for (const failure* bad : {ticket ? nullptr : &ticket.error(), term ? nullptr : &term.error(),
         queued ? nullptr : &queued.error()})
    if (bad != nullptr)
      return tl::unexpected<failure>(wrong(line, e, bad->what));
  auto& s = states_[*gpu];
  if (s.lease)
    return tl::unexpected<failure>(wrong(line, e,
      fmt::format("{} is granted while its lease of line {} is not over: lines are missing or "
                  "doubled",
        e.gpu, out_.requests[*s.lease].granted_line)));
  if (e.token <= s.token)
    return tl::unexpected<failure>(wrong(line, e,
      fmt::format("token {} of {} does not come after token {}", e.token, e.gpu, s.token)));
  uint32_t index = 0;
  if (auto found = waiting_.find(*ticket); found != waiting_.end()) {
    index = found->second;
    if (out_.agents[out_.requests[index].agent] != data.text("agent", false).value_or(""))
      return tl::unexpected<failure>(wrong(line, e,
        fmt::format("ticket {} was asked for by '{}' in line {}", *ticket,
          out_.agents[out_.requests[index].agent], out_.requests[index].asked_line)));
    waiting_.erase(found);
  } else {
    ++unknown_requests_;
    auto request = describe(e, data, t, line);
    if (!request)
      return pass(request);
    request->asked = std::max(t - *queued, nanoseconds{0});
    index = static_cast<uint32_t>(out_.requests.size());
    out_.requests.push_back(std::move(*request));
  }
  auto& r = out_.requests[index];
  if (s.away) {
    // A journal that begins in the middle says first of a GPU that it is granted.
    come_back(*gpu, t);
  } else if (s.free_since < t && r.asked < t) {
    // Nobody leaves a free GPU to itself while somebody waits for it: it could not be lent.
    ++late_grants_;
    leave(*gpu, s.free_since, "without a token to give");
    come_back(*gpu, t);
  }
  r.granted = t;
  r.granted_line = line;
  r.gpu = *gpu;
  r.term = *term;
  s.lease = index;
  s.token = e.token;
  out_.grants.push_back(index);
  return {};
}

result<void> lease_trace_reader::take_end(const event& e, time t, uint64_t line) {
  auto gpu = gpu_of(e, line);
  if (!gpu)
    return pass(gpu);
  auto& s = states_[*gpu];
  if (!s.lease || s.token != e.token) {
    ++unknown_leases_;
    return {};
  }
  auto& r = out_.requests[*s.lease];
  if (r.released != traced_request::never)
    return tl::unexpected<failure>(
      wrong(line, e, fmt::format("token {} of {} is over already", e.token, e.gpu)));
  r.released = t;
  r.outcome = outcome_of(e.reason);
  r.lost = e.reason.starts_with("node_lost");
  return {};
}

// --- all -----------------------------------------------------------------------------------------

result<void> lease_trace_reader::take(const event& e, uint64_t line) {
  out_.lines = std::max(out_.lines, line);
  if (e.seq != 0) {
    if (e.seq <= last_seq_)
      return tl::unexpected<failure>(
        wrong(line, e, fmt::format("seq {} does not come after seq {}", e.seq, last_seq_)));
    seq_holes_ += e.seq == last_seq_ + 1 || last_seq_ == 0 ? 0 : 1;
    last_seq_ = e.seq;
  }
  bool head = e.kind == "run_started" || e.kind == "lab_run" || e.kind == "trace_started";
  if (!head && e.kind != "run_resumed" && !is_lease_kind(e.kind))
    return {};
  fields data{json::parse(e.data.empty() ? "{}" : e.data, nullptr, false)};
  if (!data.object.is_object())
    return tl::unexpected<failure>(wrong(line, e, "its data is not a JSON object"));
  if (head) {
    auto policy = data.text("lease_policy", false);
    auto source = data.text("source", false);
    if (!policy || !source)
      return tl::unexpected<failure>(
        wrong(line, e, !policy ? policy.error().what : source.error().what));
    out_.policy = *policy;
    out_.source = e.kind == "run_started" ? "run"
      : e.kind == "lab_run"               ? "simulation"
                                          : "trace" + (source->empty() ? "" : " of " + *source);
    out_.agents_by_name = true;
    return {};
  }
  if (e.kind == "run_resumed") {
    before_ = last_;
    abandon_waits();
    return {};
  }
  if (e.t.count() > time_max_ns || e.t.count() < 0)
    return tl::unexpected<failure>(
      wrong(line, e, fmt::format("t is {} ns; it must lie within 0 and a century", e.t.count())));
  if (!base_)
    base_ = e.t;
  if (e.t - *base_ < last_)
    return tl::unexpected<failure>(wrong(line, e,
      fmt::format("its time is {} ns earlier than that of the lease event before",
        (last_ - (e.t - *base_)).count())));
  auto t = e.t - *base_;
  if (over_ || (limits_.until && t > *limits_.until)) {
    over_ = true;
    return {};
  }
  before_ = std::exchange(last_, t);
  const auto& kind = e.kind;
  if (kind == "lease_request")
    return take_request(e, data, t, line);
  if (kind == "lease_wait_end")
    return take_wait_end(e, data, t, line);
  if (kind == "lease_grant")
    return take_grant(e, data, t, line);
  if (kind == "lease_release" || kind == "lease_withdraw" || kind == "lease_revoke")
    return take_end(e, t, line);
  if (kind == "lease_adopt") {
    auto gpu = gpu_of(e, line);
    if (!gpu)
      return pass(gpu);
    if (!states_[*gpu].lease || states_[*gpu].token != e.token) {
      ++unknown_leases_;
      leave(*gpu, t, "held by a lease whose grant the file does not have");
    }
    return {};
  }
  if (kind.starts_with("gpu_") || kind == "token_block")
    return take_gpu(e, data, t, line);
  return {};
}

result<lease_trace> lease_trace_reader::finish() {
  if (out_.requests.empty())
    return fail(errc::invalid_input,
      out_.lines == 0
        ? "nothing in it"
        : fmt::format("no lease event in its {} lines: nobody asked for a GPU", out_.lines));
  out_.span = last_;
  uint64_t held = 0;
  uint64_t open = waiting_.size();
  // What is open goes on past the end, and then in an order in which nothing is granted.
  for (const auto& [ticket, index] : waiting_)
    out_.requests[index].gave_up = last_ + nanoseconds{1};
  waiting_.clear();
  for (uint32_t gpu = 0; gpu < states_.size(); ++gpu) {
    auto& s = states_[gpu];
    held += s.lease ? 1 : 0;
    close(gpu, last_ + nanoseconds{2});
    if (s.away && *s.away < last_)
      out_.gpus[gpu].outages.push_back({*s.away, traced_request::never, s.why});
  }
  auto note = [&](uint64_t count, const std::string& what) {
    if (count != 0)
      out_.notes.push_back(fmt::format("{} {}", count, what));
  };
  if (over_)
    out_.notes.push_back("what comes after the time that was asked for was not read");
  note(seq_holes_, "holes in the numbers of the lines: the file is a choice of lines, or damaged");
  note(unknown_requests_,
    "grants or waits whose request is not in the file; the time of asking was taken from the "
    "time in line, and their estimates are not known");
  note(unknown_leases_,
    "ends or adoptions of leases whose grant is not in the file; their GPUs were taken to be away");
  note(abandoned_waits_, "waits that a start of the broker cut off; they count as given up");
  note(late_grants_,
    "times a free GPU was lent only later although somebody waited for it, as when its tokens are "
    "not on the disk yet; it counts as away in between");
  note(held, "leases that were held at the end of the file; they count as over there");
  note(open, "requests that waited at the end of the file; they count as given up there");
  if (out_.gpus.empty())
    return fail(errc::invalid_input,
      fmt::format("no GPU is named in its {} lines: nothing can be lent", out_.lines));
  return std::move(out_);
}

} // namespace gristmill
