#include "actors/child_front.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

child_front::child_front(caf::actor_config& config, child_front_config settings)
  : child_front_actor::base(config), settings_(settings) {}

child_front_actor::behavior_type child_front::make_behavior() {
  seam::end_on_exception(this);
  return {
    [this](child_request& request) { return start(std::move(request)); },
    [this](const child_cancel& what) {
      if (open_.count(what.id) == 0)
        return;
      if (what.gently)
        settings_.starter->terminate(what.id);
      else
        settings_.starter->cancel(what.id);
    },
    [this](const device_quiet_query& what) { return on_quiet(what); },
    [this](child_result& ended) {
      auto found = open_.find(ended.id);
      if (found == open_.end())
        return;
      auto over = std::move(found->second);
      open_.erase(found);
      if (ended.group_left && !over.device.empty())
        stuck_.insert(over.device);
      over.reply.deliver(std::move(ended));
      if (!quiet(over.device))
        return;
      auto [first, last] = waiting_.equal_range(over.device);
      for (auto i = first; i != last; ++i)
        i->second.deliver(device_quiet{over.device});
      waiting_.erase(first, last);
    },
  };
}

caf::result<child_result> child_front::start(child_request request) {
  if (open_.size() >= settings_.open_max)
    return to_error({errc::queue_full,
      fmt::format("{} children are running or waiting already; try again later", open_.size())});
  if (open_.count(request.id) != 0)
    return to_error({errc::invalid_input,
      fmt::format("child_request.id: a child with the id {} is open already", request.id)});
  auto id = request.id;
  auto device = request.device;
  auto me = child_front_actor{this};
  auto started = settings_.starter->submit(
    std::move(request), [me](child_result ended) { seam::post(me, std::move(ended)); });
  if (!started)
    return to_error(started.error());
  auto reply = make_response_promise<child_result>();
  open_.emplace(id, open_child{reply, std::move(device)});
  return reply;
}

bool child_front::quiet(const std::string& device) const {
  return stuck_.count(device) == 0
    && std::none_of(
      open_.begin(), open_.end(), [&](const auto& child) { return child.second.device == device; });
}

caf::result<device_quiet> child_front::on_quiet(const device_quiet_query& what) {
  if (quiet(what.device))
    return device_quiet{what.device};
  auto reply = make_response_promise<device_quiet>();
  waiting_.emplace(what.device, reply);
  return reply;
}

void child_front::on_exit() {
  auto ending = to_error({errc::shutting_down, "the children are being ended"});
  for (auto& [id, child] : open_) {
    settings_.starter->cancel(id);
    child.reply.deliver(ending);
  }
  for (auto& [device, reply] : waiting_)
    reply.deliver(ending);
  open_.clear();
  waiting_.clear();
}

} // namespace gristmill
