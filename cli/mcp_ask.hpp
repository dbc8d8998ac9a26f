#pragma once

#include "actors/interfaces.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>

namespace gristmill {

/// Asks an actor from a thread that is none, and blocks until it answers. `meanwhile` is called
/// about three times a second. `refused` once `cancelled` is set; an actor that ends answers by its
/// end.
template <class Reply, class Handle, class Request>
result<Reply> ask_actor(caf::actor_system& system, const Handle& whom, const Request& request,
  const std::atomic<bool>& cancelled, const std::function<void()>& meanwhile) {
  auto promise = std::make_shared<std::promise<result<Reply>>>();
  auto answer = promise->get_future();
  system.spawn([whom, request, promise](caf::event_based_actor* self) {
    seam::ask(self, whom, request)
      .then([promise](const Reply& reply) { promise->set_value(reply); },
        [promise, self](const caf::error& error) {
          promise->set_value(tl::unexpected<failure>(from_error(self->system(), error)));
        });
  });
  while (answer.wait_for(std::chrono::milliseconds{300}) != std::future_status::ready) {
    if (cancelled)
      return fail(errc::refused, "cancelled");
    if (meanwhile)
      meanwhile();
  }
  return answer.get();
}

} // namespace gristmill
