#include "llm/traffic/deployment_state.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

deployment_state::deployment_state(const model_deployment& what)
  : requests_(what.requests_per_minute), input_(what.input_tokens_per_minute),
    output_(what.output_tokens_per_minute), window_(what.in_flight_max) {}

deployment_state::verdict deployment_state::may_send(
  uint64_t input_tokens, uint64_t output_tokens, nanoseconds now) const {
  if (!closed_.empty())
    return {obstacle::closed, nanoseconds{0}};
  if (!breaker_.may_send(now))
    return {obstacle::broken, breaker_.looking() ? nanoseconds{0} : breaker_.opens_again()};
  if (now < paused_until_)
    return {obstacle::paused, paused_until_};
  if (in_flight_ >= window_.size())
    return {obstacle::full, nanoseconds{0}};
  auto ready = std::max(
    {requests_.ready(1, now), input_.ready(input_tokens, now), output_.ready(output_tokens, now)});
  if (ready > now)
    return {obstacle::full, ready};
  return {};
}

deployment_state::place deployment_state::sent(
  uint64_t input_tokens, uint64_t output_tokens, nanoseconds now) {
  requests_.take(1, now);
  input_.take(input_tokens, now);
  output_.take(output_tokens, now);
  ++in_flight_;
  ++calls;
  return {window_.sent(), breaker_.sent()};
}

void deployment_state::ended(uint64_t input_taken, uint64_t output_taken, const llm_usage& usage,
  bool reached_server, nanoseconds now) {
  --in_flight_;
  if (!reached_server) {
    requests_.refund(1);
    input_.refund(input_taken);
    output_.refund(output_taken);
    return;
  }
  // What nobody knows stays taken: the server may have counted it.
  if (usage.state != usage_state::exact)
    return;
  auto settle = [&](token_bucket& bucket, uint64_t taken, uint64_t used) {
    if (used > taken)
      bucket.take(used - taken, now);
    else
      bucket.refund(taken - used);
  };
  // Reading from a cache does not count towards the input limit of most providers.
  settle(input_, input_taken, usage.uncached_input + usage.cache_write);
  settle(output_, output_taken, usage.output());
}

void deployment_state::success() {
  window_.success();
  breaker_.success();
  config_failures = 0;
}

void deployment_state::throttled(const place& at, nanoseconds wait, nanoseconds now) {
  paused_until_ = std::max(paused_until_, now + std::max(wait, nanoseconds{0}));
  window_.trouble(at.order);
  // A server that counts our quota is alive.
  if (at.look)
    breaker_.success();
}

bool deployment_state::failed(const place& at, bool overload, nanoseconds now) {
  if (overload)
    window_.trouble(at.order);
  return breaker_.failure(at.look, now);
}

void deployment_state::answered(const place& at) {
  if (at.look)
    breaker_.success();
}

void deployment_state::unlearned(const place& at) {
  if (at.look)
    breaker_.look_lost();
}

void deployment_state::heed(const rate_limits& limits, nanoseconds now) {
  // Some servers say 0 or -1 and no time: that is no order to wait. A reset lies within the minute
  // that limits are counted in; anything longer is for the throttle to say.
  auto pause = [&](int64_t remaining, nanoseconds reset) {
    if (remaining == 0 && reset > nanoseconds{0})
      paused_until_ =
        std::max(paused_until_, now + std::min<nanoseconds>(reset, std::chrono::minutes{1}));
  };
  pause(limits.requests_remaining, limits.requests_reset);
  pause(limits.tokens_remaining, limits.tokens_reset);
}

void deployment_state::close(std::string why) {
  if (closed_.empty())
    closed_ = std::move(why);
}

std::string deployment_state::paused_text(nanoseconds now) const {
  if (!closed_.empty())
    return closed_;
  auto seconds = [&](nanoseconds until) {
    return (std::max(until - now, nanoseconds{0}).count() + 999'999'999) / 1'000'000'000;
  };
  if (breaker_.open())
    return breaker_.looking()
      ? "failing; one call looks whether it works again"
      : fmt::format("failing; next look in {} s", seconds(breaker_.opens_again()));
  if (now < paused_until_)
    return fmt::format("paused by the server for {} s more", seconds(paused_until_));
  return {};
}

} // namespace gristmill
