#include "gpu/lease/policy.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <set>

namespace gristmill {

namespace {

/// Virtual time: nanoseconds of GPU, divided by the weight, in units of 1/1024. 128 bits, because
/// 63 would overflow after some months of a large cluster.
using pass_time = __int128;
constexpr int fraction_bits = 10;

pass_time charge_of(std::chrono::nanoseconds held, uint32_t weight) {
  return (pass_time{std::max<int64_t>(held.count(), 0)} << fraction_bits)
    / pass_time{std::max<uint32_t>(weight, 1)};
}

/// What a node of the tree keeps of one flow (a problem, or an agent within it).
struct flow_account {
  pass_time pass = 0;
  /// Waiting tickets by need, oldest first within each.
  std::map<need_id, std::set<uint64_t>> waiting;
  uint64_t waiting_count = 0;
};

/// Flows of one level, ordered by pass for each need: picking and re-ordering are O(log flows).
class stride_level {
public:
  std::map<std::string, flow_account> flows;
  pass_time virtual_time = 0;

  void add(const std::string& name, need_id need, uint64_t ticket) {
    auto& f = flows[name];
    // A flow without waiters was away: it comes back now, whatever it did not use meanwhile.
    if (f.waiting_count == 0)
      f.pass = std::max(f.pass, virtual_time);
    auto& queue = f.waiting[need];
    queue.insert(ticket);
    ++f.waiting_count;
    if (queue.size() == 1)
      ready_[need].insert({f.pass, name});
  }

  void remove(const std::string& name, need_id need, uint64_t ticket) {
    auto& f = flows[name];
    auto& queue = f.waiting[need];
    queue.erase(ticket);
    --f.waiting_count;
    if (queue.empty()) {
      ready_[need].erase({f.pass, name});
      f.waiting.erase(need);
    }
  }

  void advance(const std::string& name) { virtual_time = std::max(virtual_time, flows[name].pass); }

  void move_pass(const std::string& name, pass_time by) {
    auto& f = flows[name];
    for (const auto& [need, queue] : f.waiting)
      ready_[need].erase({f.pass, name});
    f.pass += by;
    for (const auto& [need, queue] : f.waiting)
      ready_[need].insert({f.pass, name});
  }

  /// The flow with the smallest pass that has a waiter for `model` or for any model.
  const std::string* first(need_id model) const {
    const std::pair<pass_time, std::string>* best = nullptr;
    for (need_id need : {model, any_need}) {
      auto it = ready_.find(need);
      if (it == ready_.end() || it->second.empty())
        continue;
      if (best == nullptr || *it->second.begin() < *best)
        best = &*it->second.begin();
    }
    return best == nullptr ? nullptr : &best->second;
  }

private:
  std::map<need_id, std::set<std::pair<pass_time, std::string>>> ready_;
};

std::string hex(std::string_view text) {
  std::string out;
  for (char c : text)
    out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out.empty() ? "-" : out;
}

bool unhex(std::string_view text, std::string& out) {
  out.clear();
  if (text == "-")
    return true;
  if (text.size() % 2 != 0)
    return false;
  for (size_t i = 0; i < text.size(); i += 2) {
    unsigned value = 0;
    auto [end, error] = std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    if (error != std::errc{} || end != text.data() + i + 2)
      return false;
    out += static_cast<char>(value);
  }
  return true;
}

std::string decimal(pass_time value) {
  return fmt::format("{}", value);
}

bool read_pass(std::string_view text, pass_time& out) {
  bool negative = text.starts_with('-');
  if (negative)
    text.remove_prefix(1);
  if (text.empty() || text.size() > 36)
    return false;
  out = 0;
  for (char c : text) {
    if (c < '0' || c > '9')
      return false;
    out = out * 10 + (c - '0');
  }
  if (negative)
    out = -out;
  return true;
}

class stride_policy final : public lease_policy {
public:
  std::string_view name() const override { return "stride"; }

  void on_request(const waiter& w) override {
    tickets_[w.ticket] = w;
    problems_.add(w.flow.problem, w.need, w.ticket);
    agents_[w.flow.problem].add(w.flow.agent, w.need, w.ticket);
  }

  void on_cancel(uint64_t ticket) override {
    auto it = tickets_.find(ticket);
    if (it == tickets_.end() || running_.contains(ticket))
      return;
    leave_queue(it->second);
    tickets_.erase(it);
  }

  void on_grant(uint64_t ticket, std::chrono::nanoseconds) override {
    auto it = tickets_.find(ticket);
    if (it == tickets_.end() || running_.contains(ticket))
      return;
    const auto& w = it->second;
    auto& agents = agents_[w.flow.problem];
    problems_.advance(w.flow.problem);
    agents.advance(w.flow.agent);
    leave_queue(w);
    running_.insert(ticket);
    // Charged in advance: else a flow would get every GPU that becomes free before its first
    // release, as if nothing ran for it.
    charge(w, charge_of(w.est_hold, w.weight));
  }

  void on_release(const lease_usage& usage, std::string_view) override {
    auto it = tickets_.find(usage.ticket);
    if (it == tickets_.end() || running_.erase(usage.ticket) == 0)
      return;
    const auto& w = it->second;
    charge(w, charge_of(usage.held, w.weight) - charge_of(w.est_hold, w.weight));
    tickets_.erase(it);
  }

  std::optional<uint64_t> pick(need_id model, std::chrono::nanoseconds) const override {
    const auto* problem = problems_.first(model);
    if (problem == nullptr)
      return std::nullopt;
    const auto& agents = agents_.at(*problem);
    const auto* agent = agents.first(model);
    const auto& waiting = agents.flows.at(*agent).waiting;
    std::optional<uint64_t> oldest;
    for (need_id need : {model, any_need})
      if (auto it = waiting.find(need); it != waiting.end())
        oldest = std::min(oldest.value_or(*it->second.begin()), *it->second.begin());
    return oldest;
  }

  std::string save() const override {
    std::string out = "stride 1\n";
    save_level(problems_, "-", "problem", out);
    for (const auto& [problem, agents] : agents_)
      save_level(agents, hex(problem), "agent", out);
    return out;
  }

  result<void> load(std::string_view text) override;

private:
  static void save_level(
    const stride_level& level, const std::string& parent, const char* kind, std::string& out) {
    out += fmt::format("{} {} time {}\n", kind, parent, decimal(level.virtual_time));
    for (const auto& [name, f] : level.flows)
      out += fmt::format("{} {} flow {} {}\n", kind, parent, hex(name), decimal(f.pass));
  }

  void leave_queue(const waiter& w) {
    problems_.remove(w.flow.problem, w.need, w.ticket);
    agents_[w.flow.problem].remove(w.flow.agent, w.need, w.ticket);
  }

  void charge(const waiter& w, pass_time by) {
    problems_.move_pass(w.flow.problem, by);
    agents_[w.flow.problem].move_pass(w.flow.agent, by);
  }

  stride_level problems_;
  std::map<std::string, stride_level> agents_;
  std::map<uint64_t, waiter> tickets_;
  std::set<uint64_t> running_;
};

result<void> stride_policy::load(std::string_view text) {
  auto bad = [](std::string_view line) {
    return fail(errc::invalid_input,
      fmt::format("this is not the saved state of lease policy 'stride': {}", line.substr(0, 80)));
  };
  if (!tickets_.empty())
    return fail(errc::refused, "the state of lease policy 'stride' is loaded before any request");
  stride_level problems;
  std::map<std::string, stride_level> agents;
  bool first = true;
  while (!text.empty()) {
    auto end = text.find('\n');
    if (end == std::string_view::npos)
      return bad(text);
    auto line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (first) {
      if (line != "stride 1")
        return bad(line);
      first = false;
      continue;
    }
    std::vector<std::string_view> fields;
    for (auto rest = line;;) {
      auto space = rest.find(' ');
      fields.push_back(rest.substr(0, space));
      if (space == std::string_view::npos)
        break;
      rest.remove_prefix(space + 1);
    }
    std::string parent;
    if (fields.size() < 4 || (fields[0] != "problem" && fields[0] != "agent")
      || !unhex(fields[1], parent))
      return bad(line);
    auto& level = fields[0] == "problem" ? problems : agents[parent];
    std::string name;
    pass_time value = 0;
    if (fields[2] == "time" && fields.size() == 4 && read_pass(fields[3], value))
      level.virtual_time = value;
    else if (fields[2] == "flow" && fields.size() == 5 && unhex(fields[3], name)
      && read_pass(fields[4], value))
      level.flows[name].pass = value;
    else
      return bad(line);
  }
  if (first)
    return bad("it is empty");
  problems_ = std::move(problems);
  agents_ = std::move(agents);
  return {};
}

} // namespace

std::unique_ptr<lease_policy> make_stride_policy() {
  return std::make_unique<stride_policy>();
}

} // namespace gristmill
