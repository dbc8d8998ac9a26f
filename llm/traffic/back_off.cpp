#include "llm/traffic/back_off.hpp"

#include <algorithm>

namespace gristmill {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

nanoseconds back_off(const trouble& why, uint32_t retry, traffic_random& random) {
  const bool overload = why.kind == trouble_kind::overload;
  const nanoseconds first = overload ? 4s : 1s;
  const nanoseconds most = overload ? nanoseconds{2min} : nanoseconds{60s};
  auto doublings = std::min(retry == 0 ? 0u : retry - 1, 10u);
  auto high = std::min(first * (int64_t{1} << doublings), most);
  auto drawn = nanoseconds{static_cast<int64_t>(random.up_to(static_cast<uint64_t>(high.count())))};
  // An overloaded server gets two seconds of peace whatever was drawn.
  if (overload)
    drawn = std::max(drawn, nanoseconds{2s});
  return std::max(nanoseconds{0}, why.wait) + drawn;
}

} // namespace gristmill
