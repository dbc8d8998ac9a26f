#pragma once

#include "gpu/lease/need.hpp"
#include "messages/event.hpp"
#include "messages/lease.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// One request for a GPU, and what became of it. All times count from the first lease event of the
/// trace; `never` stands for what has not happened.
struct traced_request {
  static constexpr std::chrono::nanoseconds never{-1};
  static constexpr uint32_t no_gpu = ~uint32_t{0};

  /// Indices into the names of the trace.
  uint32_t agent = 0;
  uint32_t problem = 0;
  uint32_t need = 0;
  uint32_t weight = 1;
  lease_class what = lease_class::timing;
  lease_outcome outcome = lease_outcome::fine;
  /// The GPU or its node was lost under the lease.
  bool lost = false;
  /// The file says when somebody will come and how long he will hold, not what happened.
  bool intended = false;
  uint32_t gpu = no_gpu;
  std::chrono::nanoseconds asked{0};
  std::chrono::nanoseconds estimate{0};
  std::chrono::nanoseconds term{0};
  /// Of an intended request: how long it will hold.
  std::chrono::nanoseconds hold{0};
  std::chrono::nanoseconds granted = never;
  /// The work was over.
  std::chrono::nanoseconds released = never;
  /// Nothing of it ran any more.
  std::chrono::nanoseconds freed = never;
  /// The wait ended without a GPU.
  std::chrono::nanoseconds gave_up = never;
  std::string attempt;
  uint64_t asked_line = 0;
  uint64_t granted_line = 0;

  bool was_granted() const { return granted != never; }
};

/// Time during which a GPU was lent to nobody, for whatever reason.
struct gpu_outage {
  std::chrono::nanoseconds from{0};
  /// `traced_request::never` when it never came back.
  std::chrono::nanoseconds to = traced_request::never;
  std::string why;
};

struct traced_gpu {
  std::string name;
  gpu_attributes attributes;
  std::vector<gpu_outage> outages;
};

/// What a journal says about leases: who asked when for what, what he got, and which GPUs were
/// there (docs/trace-format.md).
struct lease_trace {
  /// "run", "simulation", "broker" or what an importer wrote.
  std::string source;
  /// As in `policy_from_text`; empty when the journal does not say.
  std::string policy;
  std::vector<std::string> agents;
  std::vector<std::string> problems;
  /// Number 0 is "any GPU".
  std::vector<std::string> needs;
  std::vector<traced_gpu> gpus;
  /// In the order of asking.
  std::vector<traced_request> requests;
  /// Indices of requests, in the order of their grants.
  std::vector<uint32_t> grants;
  /// Time of the last lease event.
  std::chrono::nanoseconds span{0};
  uint64_t lines = 0;
  /// What was left out or changed, and why: whole sentences.
  std::vector<std::string> notes;
  /// Requests say what will be, not what was.
  bool intended = false;
  /// Agents are told apart by their name alone, not by problem and name.
  bool agents_by_name = true;
};

struct lease_trace_limits {
  uint32_t requests = 2'000'000;
  uint32_t gpus = 4096;
  uint32_t names = 100'000;
  size_t name_bytes = 512;
  /// Events later than this are not taken.
  std::optional<std::chrono::nanoseconds> until{};
};

/// Reads a journal event by event, in order; memory grows with the number of requests only.
class lease_trace_reader {
public:
  explicit lease_trace_reader(lease_trace_limits limits = {});

  /// `line` is the number that messages name. What is not about leases is passed over. Errors:
  /// `invalid_input` for a lease event that is damaged or cannot follow what came before (the
  /// reader goes on as well as it can), `refused` over a limit.
  result<void> take(const event& e, uint64_t line);

  /// Errors: `invalid_input` when nobody asked for a GPU.
  result<lease_trace> finish();

  /// An event later than the limit has been seen: the rest need not be read.
  bool over() const { return over_; }

private:
  using time = std::chrono::nanoseconds;

  struct gpu_state {
    /// Index of the request that holds it.
    std::optional<uint32_t> lease;
    uint64_t token = 0;
    /// Since when nobody can get it; nothing while it is in service.
    std::optional<time> away;
    std::string why;
    time free_since{0};
  };
  struct fields;

  result<void> take_request(const event& e, const fields& data, time t, uint64_t line);
  result<void> take_wait_end(const event& e, const fields& data, time t, uint64_t line);
  result<void> take_grant(const event& e, const fields& data, time t, uint64_t line);
  result<void> take_end(const event& e, time t, uint64_t line);
  result<void> take_gpu(const event& e, const fields& data, time t, uint64_t line);
  result<uint32_t> gpu_of(const event& e, uint64_t line);
  result<uint32_t> name_of(std::map<std::string, uint32_t>& index, std::vector<std::string>& names,
    const std::string& name, const char* what, uint64_t line);
  /// A request that the lines tell of: agent, problem, class, need, weight.
  result<traced_request> describe(const event& e, const fields& data, time t, uint64_t line);
  void close(uint32_t gpu, time t);
  void leave(uint32_t gpu, time t, const std::string& why);
  void come_back(uint32_t gpu, time t);
  void abandon_waits();

  lease_trace_limits limits_;
  lease_trace out_;
  std::map<std::string, uint32_t> agents_;
  std::map<std::string, uint32_t> problems_;
  std::map<std::string, uint32_t> needs_;
  std::map<std::string, uint32_t> gpus_;
  std::vector<gpu_state> states_;
  /// Requests that wait, by ticket.
  std::map<uint64_t, uint32_t> waiting_;
  std::optional<time> base_;
  time last_{0};
  /// Of the lease event before the last.
  time before_{0};
  uint64_t last_seq_ = 0;
  uint64_t seq_holes_ = 0;
  uint64_t unknown_requests_ = 0;
  uint64_t unknown_leases_ = 0;
  uint64_t abandoned_waits_ = 0;
  uint64_t late_grants_ = 0;
  bool over_ = false;
};

} // namespace gristmill
