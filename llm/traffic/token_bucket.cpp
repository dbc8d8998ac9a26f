#include "llm/traffic/token_bucket.hpp"

#include <algorithm>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {
constexpr nanoseconds minute = std::chrono::minutes{1};
/// Enough for every debt that matters, far from the end of the numbers.
constexpr nanoseconds longest = std::chrono::hours{24 * 365};
} // namespace

nanoseconds token_bucket::time_of(uint64_t amount) const {
  auto ns = static_cast<unsigned __int128>(amount) * static_cast<uint64_t>(minute.count())
    / std::max<uint64_t>(*a_minute_, 1);
  auto most = static_cast<unsigned __int128>(longest.count());
  return nanoseconds{static_cast<int64_t>(std::min(ns, most))};
}

nanoseconds token_bucket::ready(uint64_t amount, nanoseconds now) const {
  if (!a_minute_)
    return now;
  auto needs = std::min(time_of(amount), minute);
  return std::max(now, busy_until_ + needs - minute);
}

void token_bucket::take(uint64_t amount, nanoseconds now) {
  if (a_minute_)
    busy_until_ = std::min(std::max(busy_until_, now) + time_of(amount), now + longest);
}

void token_bucket::refund(uint64_t amount) {
  if (a_minute_)
    busy_until_ = std::max(busy_until_ - time_of(amount), nanoseconds{0});
}

} // namespace gristmill
