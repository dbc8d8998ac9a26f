#include "actors/child_front.hpp"

#include <fmt/format.h>

namespace gristmill {

child_front::child_front(caf::actor_config& config, child_front_config settings)
  : child_front_actor::base(config), settings_(settings) {}

child_front_actor::behavior_type child_front::make_behavior() {
  seam::end_on_exception(this);
  return {
    [this](child_request& request) { return start(std::move(request)); },
    [this](const child_cancel& what) {
      if (open_.count(what.id) != 0)
        settings_.starter->cancel(what.id);
    },
    [this](child_result& ended) {
      auto found = open_.find(ended.id);
      if (found == open_.end())
        return;
      auto reply = std::move(found->second);
      open_.erase(found);
      reply.deliver(std::move(ended));
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
  auto me = child_front_actor{this};
  auto started = settings_.starter->submit(
    std::move(request), [me](child_result ended) { seam::post(me, std::move(ended)); });
  if (!started)
    return to_error(started.error());
  auto reply = make_response_promise<child_result>();
  open_.emplace(id, reply);
  return reply;
}

void child_front::on_exit() {
  for (auto& [id, reply] : open_) {
    settings_.starter->cancel(id);
    reply.deliver(to_error({errc::shutting_down, "the children are being ended"}));
  }
  open_.clear();
}

} // namespace gristmill
