#include "actors/cluster_hub.hpp"

#include "actors/cluster_words.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <utility>

namespace gristmill {

namespace {

/// An executor that dies more often than this in one stay is not started again.
constexpr uint32_t executor_deaths_max = 5;
/// Measurements of one node that nobody has had judged; the oldest is forgotten.
constexpr size_t outputs_max = 4096;

/// What failed is this candidate, here and anywhere: the measurement fails, and the node is fine.
bool is_of_candidate(errc code) {
  return code == errc::invalid_input || code == errc::not_found || code == errc::unsupported
    || code == errc::refused;
}

/// An executor believes in a device whose node is gone.
failure nobody_has(const std::string& device) {
  return {errc::node_lost, "node '" + device.substr(0, device.find('/')) + "': it is not here"};
}

} // namespace

// ---- executors

void cluster_hub::add_devices(session_id session) {
  const auto* node = nodes_.find(session);
  for (size_t i = 0; i < node->devices.size(); ++i) {
    if (!node->left_idle[i].empty())
      continue;
    const auto& what = node->devices[i];
    auto name = device_name_of(node->name, what.name);
    auto& d = devices_[name];
    d.session = session;
    d.what = what;
    d.executor = nullptr;
    d.deaths = 0;
    d.restart_at = instant{0};
    device_join join{name, config_.device_model, what.arch, node->name, what.memory_bytes};
    seam::ask(this, config_.lease, std::move(join))
      .then(
        [this, session, name](const device_joined& joined) {
          auto& in = devices_[name];
          if (in.session != session)
            return;
          in.gpu = joined.gpu;
          in.joined = true;
          device_of_gpu_[joined.gpu] = name;
          if (std::exchange(in.drained, false))
            seam::ask(this, config_.lease, broker_command{broker_verb::undrain, name, "it is back"})
              .then([](const lease_ack&) {}, [](const caf::error&) {});
          start_executor(name);
        },
        [this, session, name](const caf::error& why) {
          spdlog::warn(
            "{}: {} is left idle: {}", label_of(session), name, seam::show(system(), why));
        });
  }
}

void cluster_hub::start_executor(const std::string& name) {
  auto& d = devices_.at(name);
  const auto* node = nodes_.find(d.session);
  if (!node || ending())
    return;
  remote_device what;
  what.name = name;
  what.gpu = d.gpu;
  what.boot = fmt::format("{}.{}.{}", config_.incarnation, node->boot, ++starts_);
  what.what = d.what;
  what.front = child_front_actor{cluster_center_actor{this}};
  auto executor = config_.make.executor(home_system(), what);
  d.executor = caf::actor_cast<caf::strong_actor_ptr>(executor);
  d.restart_at = instant{0};
  monitors_.watch(this, d.executor,
    [this, name, who = d.executor](const caf::error&) { executor_down(name, who); });
}

void cluster_hub::executor_down(const std::string& name, const caf::strong_actor_ptr& executor) {
  auto found = devices_.find(name);
  if (found == devices_.end() || found->second.executor != executor) {
    end_if_alone();
    return; // Ended by us.
  }
  auto& d = found->second;
  d.executor = nullptr;
  if (ending()) {
    end_if_alone();
    return;
  }
  if (++d.deaths > executor_deaths_max)
    spdlog::error("{}: its executor died {} times; the device is left idle", name, d.deaths);
  else
    d.restart_at = now() + config_.times.back_off;
}

void cluster_hub::remove_devices(session_id session, const failure& why) {
  for (auto& [name, d] : devices_) {
    if (d.session != session)
      continue;
    d.session = 0;
    d.restart_at = instant{0};
    // The reason is what its holder hears.
    if (auto executor = std::exchange(d.executor, nullptr)) {
      monitors_.unwatch(this, executor);
      send_exit(caf::actor_cast<caf::actor>(executor), to_error(why));
    }
  }
}

// ---- what they believe to be children

caf::result<child_result> cluster_hub::start_child(const child_request& what) {
  auto of = devices_.find(what.device);
  auto reply = make_response_promise<child_result>();
  if (of == devices_.end() || !find(of->second.session)) {
    config_.book->take(what.id);
    reply.deliver(to_error(nobody_has(what.device)));
    return reply;
  }
  if (auto request = config_.book->asked(what.id))
    start_measure(of->second.session, what, *request, reply);
  else
    start_probe(of->second.session, what, reply);
  return reply;
}

bool cluster_hub::hand_in(session_id session, const child_request& what,
  const measure_request& request, caf::typed_response_promise<child_result>& reply) {
  auto* s = find(session);
  if (s->held.empty() || !config_.key_of)
    return false;
  auto held = s->held.find(config_.key_of(request));
  if (held == s->held.end())
    return false;
  auto one = std::move(held->second);
  s->held.erase(held);
  note_handed_in(session, request.attempt, one.device);
  if (!one.measured.output_folder.empty())
    s->outputs.insert({request.under.gpu, request.under.token});
  config_.book->measured(what.id, std::move(one.measured));
  auto ended = std::move(one.ended);
  ended.id = what.id;
  reply.deliver(std::move(ended));
  return true;
}

void cluster_hub::note_handed_in(
  session_id session, const attempt_id& attempt, const std::string& where) {
  auto* node = nodes_.find(session);
  ++node->handed_in;
  note("handed_in", node->name, "measured while the coordinator was away",
    nlohmann::json{{"attempt", to_string(attempt)}, {"device", where}}.dump());
}

void cluster_hub::start_measure(session_id session, const child_request& what,
  const measure_request& request, caf::typed_response_promise<child_result> reply) {
  if (hand_in(session, what, request, reply))
    return;
  node_task task;
  task.kind = node_task_kind::measure;
  const auto task_device = devices_.at(what.device).what.name;
  task.device = task_device;
  task.measure = request;
  auto at = std::pair{request.under.gpu, request.under.token};
  auto child = what.id;
  auto id = give(session, std::move(task), what.deadline,
    [this, session, child, at, reply, attempt = request.attempt, where = task_device](
      const result<node_answer>& answer) mutable {
      task_of_child_.erase(child);
      if (answer) {
        auto* s = find(session);
        if (s && !answer->measured.output_folder.empty()) {
          if (s->outputs.size() >= outputs_max)
            s->outputs.erase(s->outputs.begin());
          s->outputs.insert(at);
        }
        if (s && answer->what == handed_in_answer)
          note_handed_in(session, attempt, where);
        config_.book->measured(child, answer->measured);
        auto ended = answer->ended;
        ended.id = child;
        reply.deliver(std::move(ended));
        return;
      }
      const auto& why = answer.error();
      if (is_of_candidate(why.code)) {
        reply.deliver(to_error({errc::invalid_input, why.what}));
        return;
      }
      config_.book->take(child);
      if (why.code == errc::node_lost)
        reply.deliver(to_error(why));
      else if (why.code == errc::timed_out) // Of its device alone, which waits until it is quiet.
        reply.deliver(to_error({errc::timed_out, label_of(session) + ": " + why.what}));
      else if (why.code == errc::shutting_down)
        reply.deliver(to_error({errc::node_lost, label_of(session) + ": " + why.what}));
      else
        reply.deliver(to_error(blame(session, why)));
    });
  if (id != 0)
    task_of_child_[child] = id;
}

void cluster_hub::start_probe(
  session_id session, const child_request& what, caf::typed_response_promise<child_result> reply) {
  node_task task;
  task.kind = node_task_kind::probe;
  task.device = devices_.at(what.device).what.name;
  task.command = what.argv;
  auto child = what.id;
  auto id = give(session, std::move(task), what.deadline,
    [this, session, child, reply](const result<node_answer>& answer) mutable {
      task_of_child_.erase(child);
      if (!answer) {
        failure why{errc::node_lost, label_of(session) + ": " + answer.error().what};
        reply.deliver(to_error(answer.error().code == errc::node_lost ? answer.error() : why));
        return;
      }
      auto ended = answer->ended;
      ended.id = child;
      reply.deliver(std::move(ended));
    });
  if (id != 0)
    task_of_child_[child] = id;
}

void cluster_hub::cancel_child(const child_cancel& what) {
  auto task = task_of_child_.find(what.id);
  if (task == task_of_child_.end())
    return;
  for (auto& [session, s] : stays_)
    if (tasks_.has(task->second, session))
      seam::tell(this, s.agent, node_task_cancel{task->second, what.gently});
}

caf::result<device_quiet> cluster_hub::wait_for_quiet(const device_quiet_query& what) {
  auto reply = make_response_promise<device_quiet>();
  auto of = devices_.find(what.device);
  if (of == devices_.end() || !find(of->second.session)) {
    reply.deliver(to_error(nobody_has(what.device)));
    return reply;
  }
  auto session = of->second.session;
  node_task task;
  task.kind = node_task_kind::quiet;
  task.device = of->second.what.name;
  give(session, std::move(task), config_.times.quiet,
    [this, session, device = what.device, reply](const result<node_answer>& answer) mutable {
      if (answer) {
        reply.deliver(device_quiet{device});
        return;
      }
      const auto& why = answer.error();
      if (why.code == errc::timed_out)
        spdlog::warn("{}: something still works there, and until it ends the device gets no lease; "
                     "the others of its node go on",
          device);
      if (why.code == errc::node_lost || why.code == errc::timed_out)
        reply.deliver(to_error(why));
      else
        reply.deliver(
          to_error(blame(session, {errc::child_failed, device + " is not quiet: " + why.what})));
    });
  return reply;
}

} // namespace gristmill
