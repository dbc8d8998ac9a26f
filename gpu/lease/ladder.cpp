#include "gpu/lease/ladder.hpp"

#include <algorithm>

namespace gristmill {

using std::chrono::nanoseconds;

std::string to_string(ladder_step step) {
  switch (step) {
  case ladder_step::wait:
    return "wait";
  case ladder_step::mark:
    return "hung";
  case ladder_step::terminate:
    return "SIGTERM";
  case ladder_step::kill:
    return "SIGKILL";
  case ladder_step::quarantine:
    return "quarantine";
  case ladder_step::reset:
    return "reset";
  case ladder_step::lost:
    return "lost";
  case ladder_step::done:
    return "done";
  }
  return "unknown";
}

nanoseconds ladder::due() const {
  switch (reached_) {
  case ladder_step::wait:
    return nanoseconds{0};
  case ladder_step::mark:
    return at_ + times_.terminate;
  case ladder_step::terminate:
    return at_ + std::max(times_.kill - times_.terminate, nanoseconds{0});
  case ladder_step::kill:
    return at_ + std::max(times_.quarantine - times_.kill, nanoseconds{0});
  case ladder_step::reset:
    return at_ + times_.reset;
  case ladder_step::quarantine:
  case ladder_step::lost:
  case ladder_step::done:
    break;
  }
  return at_;
}

ladder_step ladder::next(nanoseconds elapsed, const ladder_view& view) {
  auto take = [&](ladder_step step) {
    reached_ = step;
    at_ = elapsed;
    return step;
  };
  if (reached_ == ladder_step::done || reached_ == ladder_step::lost)
    return reached_;
  // The holder is told in any case: the work was over its deadline.
  if (reached_ == ladder_step::wait)
    return take(ladder_step::mark);
  // A GPU that has been put into quarantine stays there, but the ladder has an end.
  if (!view.process_left && !view.memory_left)
    return take(ladder_step::done);
  if (reached_ == ladder_step::reset && view.reset_failed)
    return take(ladder_step::lost);
  if (elapsed < due())
    return ladder_step::wait;
  switch (reached_) {
  case ladder_step::mark:
    return take(ladder_step::terminate);
  case ladder_step::terminate:
    return take(ladder_step::kill);
  case ladder_step::kill:
    return take(ladder_step::quarantine);
  case ladder_step::quarantine:
    return take(view.can_reset ? ladder_step::reset : ladder_step::lost);
  default:
    return take(ladder_step::lost);
  }
}

} // namespace gristmill
