#pragma once

#include "llm/dialects/dialect.hpp"
#include "llm/money/price.hpp"
#include "llm/traffic/deployment_state.hpp"
#include "llm/traffic/retry_budget.hpp"
#include "llm/traffic/traffic_random.hpp"
#include "messages/llm.hpp"
#include "messages/result.hpp"
#include "planning/nested_budget.hpp"
#include "protocol/model_file.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gristmill {

/// How calls are tried; the same for all deployments. docs/models.md has the table in words.
struct gateway_policy {
  /// More calls that wait are refused with `queue_full`.
  size_t waiting_max = 4096;
  /// From the request to its answer: no try begins later than this.
  std::chrono::nanoseconds patience = std::chrono::hours{1};
  /// Tries after the first one that a call may have because a try failed. Being throttled and being
  /// cut off by the cap are not failures.
  uint32_t retries_max = 4;
  /// Of these, after tries that may have been billed.
  uint32_t ambiguous_retries_max = 2;
  /// The same prompt with a doubled cap, after an answer that was cut off by the cap.
  uint32_t truncation_resends_max = 3;
  /// All calls together: one retry for this many calls, and some more at the beginning.
  uint32_t calls_per_retry = 10;
  uint32_t retries_at_start = 20;
  /// A deployment is left for the next one of the role after this many failures of one call there.
  uint32_t failures_before_fail_over = 2;
  /// Refusals of single requests (400, 422) in a row that close a deployment.
  uint32_t config_failures_max = 3;
  /// A server that asks for a longer pause is closed for the run.
  std::chrono::nanoseconds pause_max = std::chrono::minutes{15};
  /// A pause longer than this sends calls to the next deployment of the role.
  std::chrono::nanoseconds pause_before_fail_over = std::chrono::seconds{5};
  /// A try that the transport never ends is given up so long after its `wall` deadline; with no
  /// such deadline, after `try_max`.
  std::chrono::nanoseconds wall_grace = std::chrono::seconds{30};
  std::chrono::nanoseconds try_max = std::chrono::hours{2};
};

/// What an earlier process of the run has spent; from the log.
struct spending {
  std::string problem;
  std::string agent;
  budget_amounts spent;
  budget_amounts held;
  /// The highest number of a try: those of this process begin above it.
  uint64_t last_try = 0;
};

struct gateway_config {
  model_file models;
  nested_budget::limits limits;
  bool allow_unpriced = false;
  gateway_policy policy;
  uint64_t seed = 0;
  std::vector<spending> spent_before;
};

/// How a try ended, in one piece.
struct try_result {
  uint64_t id = 0;
  /// False: nothing of it reached the server, so there is nothing to pay.
  bool sent = true;
  /// HTTP status; 0 for none.
  uint32_t status = 0;
  /// We ended it.
  bool cancelled = false;
  /// Of a stream; its `failed` is the trouble of the try, whatever its source.
  decoded_reply reply;
  rate_limits limits;
  /// From sending to the first event; 0 for none.
  std::chrono::nanoseconds first_event{0};
  /// The server said no before it did anything, so usage is none and not unknown.
  bool refused_unbilled = false;
  /// One of our deadlines ended it.
  bool timed_out = false;
};

/// One try, for the log. Written twice: before it is sent, and when it has ended.
struct try_record {
  uint64_t id = 0;
  uint64_t call = 0;
  std::string problem;
  std::string agent;
  std::string purpose;
  std::string deployment;
  std::string model;
  /// From 1, within the call.
  uint32_t number = 0;
  uint32_t cap = 0;
  budget_amounts reserved;
  /// Of one that has ended: what was counted.
  budget_amounts spent;
  budget_amounts held;
  llm_usage usage;
  /// "answered", "cut off by the cap", "refusal", "transient", "throttle", …, "cancelled", "not
  /// sent".
  std::string outcome;
  std::string reason;
  std::string request_id;
  std::chrono::nanoseconds took{0};
  price_origin origin = price_origin::local;
};

/// What the gateway has to do. `send` is written to the log before it is carried out.
struct gateway_command {
  enum class kind : uint8_t {
    /// Keep `record`, then send `request` to `deployment` with its cap; answered by `on_ended`.
    send = 0,
    /// End the transfer of `record.id`; `on_ended` follows as for any other.
    cancel,
    /// Keep `record`: the try has ended and is counted.
    ended,
    /// Give `reply` to whoever asked for `asker`.
    answer,
    /// Give `why` to whoever asked for `asker`.
    refuse,
    /// Tell the log, for a person: `text` about `deployment`.
    note,
    /// Told once each: nothing can be sent any more (`provider_refused`), or the run's budget did
    /// not hold a call (`budget_exhausted`).
    stop,
  };
  kind what = kind::note;
  try_record record;
  /// Of `send`; its `output_tokens_max` is the cap of this try.
  llm_request request;
  size_t deployment = 0;
  uint64_t asker = 0;
  llm_reply reply;
  failure why;
  std::string text;
};

/// The mind of the gateway: which call is sent when and where, how often again, and who pays. Pure:
/// no clock, no thread, no randomness but from the seed. `now` never goes back.
///
/// One retry loop, here and nowhere else: the transport sends once. A call is answered exactly
/// once.
class gateway_core {
public:
  /// `invalid_input` for a price that nobody knows, unless allowed.
  static result<gateway_core> make(gateway_config config);

  /// Calls are known by their places: a copy would point into the original.
  gateway_core(const gateway_core&) = delete;
  gateway_core& operator=(const gateway_core&) = delete;
  gateway_core(gateway_core&&) = default;
  gateway_core& operator=(gateway_core&&) = default;

  /// `asker` names the answer: never used twice. Refused at once, as a command, with `queue_full`,
  /// `budget_exhausted`, `provider_refused`, or `invalid_input` for a call that no deployment can
  /// take or that its agent has open already.
  std::vector<gateway_command> on_request(
    uint64_t asker, llm_request request, std::chrono::nanoseconds now);
  /// The call is refused with `shutting_down`; a try on its way is ended and its money held.
  std::vector<gateway_command> on_cancel(const llm_cancel& what, std::chrono::nanoseconds now);
  /// Unknown and ended ones change nothing.
  std::vector<gateway_command> on_ended(const try_result& ended, std::chrono::nanoseconds now);
  /// Something may have fallen due.
  std::vector<gateway_command> on_due(std::chrono::nanoseconds now);
  /// The end of the run: everybody is refused with `shutting_down`, every try that was sent is
  /// held; nothing of those in `unsent` has left this machine.
  std::vector<gateway_command> on_shutdown(
    const std::set<uint64_t>& unsent, std::chrono::nanoseconds now);

  /// When `on_due` is to be called; nothing while only answers can change something.
  std::optional<std::chrono::nanoseconds> next_due(std::chrono::nanoseconds now) const;

  llm_snapshot snapshot(std::chrono::nanoseconds now) const;
  const nested_budget& book() const { return book_; }
  const model_file& models() const { return config_.models; }
  /// Why nothing is taken any more; empty while calls are taken.
  const std::string& closed() const { return closed_; }

private:
  struct call {
    uint64_t asker = 0;
    llm_request request;
    std::chrono::nanoseconds arrived{0};
    /// No try before this.
    std::chrono::nanoseconds not_before{0};
    uint32_t cap = 0;
    uint32_t tries = 0;
    uint32_t retries = 0;
    uint32_t ambiguous = 0;
    uint32_t resends = 0;
    uint32_t throttles = 0;
    /// Failures by deployment; one that has `failures_before_fail_over` is left.
    std::map<size_t, uint32_t> failures;
    /// The deployments that this call must not be sent to any more.
    std::set<size_t> excluded;
    uint64_t cost_nano_usd = 0;
    /// The newest answer that was cut off, in case nothing better comes.
    std::optional<llm_reply> truncated;
    std::string last_trouble;
    /// Open try; 0: it waits.
    uint64_t open_try = 0;
    bool cancelled = false;
  };
  struct open_try {
    std::list<call>::iterator owner;
    size_t deployment = 0;
    uint64_t ticket = 0;
    deployment_state::place place;
    uint64_t input_likely = 0;
    std::chrono::nanoseconds sent_at{0};
    std::chrono::nanoseconds give_up{0};
    try_record record;
  };
  using calls = std::list<call>;
  using commands = std::vector<gateway_command>;

  explicit gateway_core(gateway_config config, std::vector<deployment_price> prices);

  // gateway_core.cpp: what waits, and what may be sent.
  void schedule(std::chrono::nanoseconds now, commands& out);
  std::vector<calls::iterator> in_fair_order(std::chrono::nanoseconds now);
  bool try_send(calls::iterator it, std::chrono::nanoseconds now, commands& out);
  void send(calls::iterator it, size_t deployment, uint64_t ticket, const budget_amounts& worst,
    std::chrono::nanoseconds now, commands& out);
  std::optional<size_t> choose(const call& c, std::chrono::nanoseconds now) const;
  /// Where the call may go at all, in the order of fail-over.
  std::vector<size_t> open_to(const call& c) const;
  std::string why_nobody(const call& c) const;
  void give_up_late(std::chrono::nanoseconds now, commands& out);
  void answer(calls::iterator it, llm_reply reply, std::chrono::nanoseconds now, commands& out);
  /// What was cut off is given as an answer where there is one; else the error.
  void refuse(
    calls::iterator it, errc code, std::string why, std::chrono::nanoseconds now, commands& out);
  void forget(calls::iterator it);
  void note(size_t d, std::string text, commands& out) const;

  // gateway_ends.cpp: what the end of a try means.
  void end(open_try t, const try_result& ended, std::chrono::nanoseconds now, commands& out);
  void count(open_try& t, const try_result& ended, const std::string& outcome,
    std::chrono::nanoseconds now, commands& out);
  trouble trouble_of(const open_try& t, const try_result& ended) const;
  void after_answer(
    const open_try& t, const try_result& ended, std::chrono::nanoseconds now, commands& out);
  void after_trouble(const open_try& t, const try_result& ended, const trouble& why,
    std::chrono::nanoseconds now, commands& out);
  void after_config_trouble(const open_try& t, const try_result& ended, const trouble& why,
    std::chrono::nanoseconds now, commands& out);
  void after_too_big(const open_try& t, const try_result& ended, const trouble& why,
    std::chrono::nanoseconds now, commands& out);
  void wait_out_throttle(
    const open_try& t, const trouble& why, std::chrono::nanoseconds now, commands& out);
  void retry(const open_try& t, const trouble& why, bool timed_out, std::chrono::nanoseconds now,
    commands& out);
  /// Again elsewhere at once, or refused when there is no elsewhere.
  void move_on(calls::iterator it, errc code, std::chrono::nanoseconds now, commands& out);
  /// Refuses whoever waits for it alone, but `except`: that one is the caller's.
  void close_deployment(size_t d, const std::string& why, calls::iterator except,
    std::chrono::nanoseconds now, commands& out);
  llm_reply reply_of(const open_try& t, const try_result& ended) const;

  gateway_config config_;
  std::vector<deployment_price> prices_;
  std::vector<deployment_state> deployments_;
  nested_budget book_;
  retry_budget retries_;
  traffic_random random_;
  /// Every call that is not answered, in the order of arrival, and cancelled ones whose try goes
  /// on.
  calls calls_;
  size_t waiting_ = 0;
  std::map<std::pair<std::string, uint64_t>, calls::iterator> by_agent_;
  std::map<uint64_t, open_try> tries_;
  /// By problem: calls under way and when it was served last, for fairness.
  struct problem_share {
    uint32_t in_flight = 0;
    uint64_t served = 0;
  };
  std::map<std::string, problem_share> shares_;
  uint64_t next_try_ = 1;
  uint64_t next_serve_ = 1;
  uint64_t calls_unknown_ = 0;
  uint64_t calls_ended_ = 0;
  llm_usage usage_;
  std::string closed_;
  bool budget_told_ = false;
};

} // namespace gristmill
