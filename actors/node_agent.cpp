#include "actors/node_agent.hpp"

#include "actors/cluster_words.hpp"
#include "actors/compiler.hpp"
#include "actors/judge.hpp"
#include "actors/oracle.hpp"
#include "actors/rehearsal.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace gristmill {

namespace {

std::set<std::string> names_of(const std::vector<node_agent_device>& devices) {
  std::set<std::string> out;
  for (const auto& one : devices)
    out.insert(one.what.name);
  return out;
}

template <class Handle>
void end_actor(Handle& whom) {
  if (whom)
    caf::anon_send_exit(whom, caf::exit_reason::user_shutdown);
  whom = nullptr;
}

} // namespace

node_agent::node_agent(caf::actor_config& actor, node_agent_config config)
  : own_node_agent_actor::base(actor), config_(std::move(config)), monitors_(this),
    tasks_(names_of(config_.devices)) {}

void node_agent::on_exit() {
  monitors_.clear();
  for (auto& [index, one] : workers_) {
    end_actor(one.worker);
    end_actor(one.proposer);
  }
  workers_.clear();
  if (cell_) {
    end_actor(cell_->compiler);
    end_actor(cell_->oracle);
    end_actor(cell_->judge);
  }
  cell_ = nullptr;
  end_actor(child_front_);
  end_actor(keeper_);
  pins_.clear();
  hub_ = nullptr;
  hub_keeper_ = nullptr;
  // When somebody else ended this actor, the process is told all the same.
  tell_news(node_news::kind::broken, "the node agent itself was ended");
  config_.on_news = nullptr;
  config_.make_child_front = nullptr;
  config_.make_keeper = nullptr;
}

void node_agent::tell_news(node_news::kind what, std::string text) {
  if (!config_.on_news)
    return;
  auto call = config_.on_news;
  if (what == node_news::kind::left || what == node_news::kind::broken)
    config_.on_news = nullptr; // The last word.
  call({what, std::move(text)});
}

node_agent::instant node_agent::now() {
  return clock().now().time_since_epoch();
}

own_node_agent_actor::behavior_type node_agent::make_behavior() {
  seam::end_on_exception(this);
  // Who of the node's own dies for good takes the node along.
  if (config_.make_child_front)
    child_front_ = config_.make_child_front(home_system());
  if (config_.make_keeper)
    keeper_ = config_.make_keeper(home_system());
  auto dies_with_us = [this](const auto& whom, const char* what) {
    if (whom)
      monitors_.watch(this, whom, [this, what](const caf::error& why) {
        end_all(
          node_news::kind::broken, fmt::format("{} died: {}", what, seam::show(system(), why)));
      });
  };
  dies_with_us(child_front_, "the front of the children");
  dies_with_us(keeper_, "the keeper of the blobs");
  return {
    [this](const node_welcome& what, const caf::strong_actor_ptr& keeper) {
      on_welcome(what, keeper);
      arm();
    },
    [this](const node_task& what) {
      on_task(what);
      arm();
    },
    [this](const node_task_cancel& what) {
      if (auto ticket = tasks_.cancel(what.id, now()); ticket != 0)
        end_child(ticket, what.gently);
      arm();
    },
    [this](const worker_order& what, const worker_peers& peers) { on_worker_order(what, peers); },
    [this](const node_drain& what) { spdlog::info("nothing new for this node: {}", what.reason); },
    [this](const node_farewell& what) { on_farewell(what); },
    [this](const tick& due) {
      if (due.generation == generation_)
        on_tick();
    },
    [this](const cluster_greeting&, const caf::strong_actor_ptr& door) { on_hub(door); },
    [this](const drain_request& what) { leave(what.reason); },
  };
}

// ---- time

void node_agent::arm() {
  auto due = tasks_.next_due();
  auto sooner = [&due](const std::optional<instant>& other) {
    if (other && (!due || *other < *due))
      due = other;
  };
  sooner(welcome_due_);
  sooner(leave_due_);
  if (leave_due_)
    sooner(busy_last_ + config_.times.leave_idle);
  for (const auto& [ticket, one] : sleeping_)
    sooner(one.until);
  if (!due || due == armed_for_)
    return;
  armed_for_ = due;
  seam::tell_later(
    this, std::max(*due - now(), instant{0}), node_agent_actor{this}, tick{++generation_});
}

void node_agent::on_tick() {
  armed_for_.reset();
  const auto at = now();
  if (welcome_due_ && at >= *welcome_due_)
    turned_away("the coordinator has not answered the offer");
  std::vector<uint64_t> awake;
  for (const auto& [ticket, one] : sleeping_)
    if (at >= one.until)
      awake.push_back(ticket);
  for (auto ticket : awake)
    end_sleep(ticket, child_end::done);
  for (const auto& [ticket, task] : tasks_.take_due(at)) {
    const bool first = !task.ending;
    if (first && (task.kind == node_task_kind::measure || task.kind == node_task_kind::probe)) {
      end_child(ticket, false); // Its own end answers.
      continue;
    }
    if (task.orphan)
      continue; // Nobody is waiting.
    refuse(
      ticket, {errc::timed_out, fmt::format("{} has outlived its deadline", to_string(task.kind))});
  }
  look_whether_left();
  arm();
}

// ---- hubs come and go

void node_agent::on_hub(const caf::strong_actor_ptr& door) {
  if (leave_due_ || !door)
    return;
  if (hub_)
    forget_hub();
  hub_ = caf::actor_cast<cluster_hub_actor>(door);
  ++stay_;
  monitors_.watch(this, hub_, [this, stay = stay_](const caf::error& why) {
    if (stay == stay_)
      hub_lost("the coordinator cannot be reached any more: " + seam::show(system(), why));
  });
  node_offer offer;
  offer.node = config_.node;
  offer.boot = config_.boot;
  for (const auto& one : config_.devices)
    offer.devices.push_back(one.what);
  offer.compile_slots = config_.compile_slots;
  offer.workers = config_.workers;
  offer.oracle = config_.oracle || !config_.devices.empty();
  if (config_.compile_slots != 0)
    offer.toolchain = config_.device_code.version;
  if (cell_) {
    offer.run = cell_->terms.run;
    offer.held = held_.offer();
  }
  welcome_due_ = now() + config_.times.welcome;
  seam::tell(this, hub_, std::move(offer), caf::actor_cast<caf::strong_actor_ptr>(this),
    caf::actor_cast<caf::strong_actor_ptr>(keeper_));
  arm();
}

void node_agent::on_welcome(const node_welcome& what, const caf::strong_actor_ptr& keeper) {
  if (!hub_)
    return;
  if (!what.taken && what.reason.starts_with(run_is_over)) {
    on_farewell({what.reason});
    return;
  }
  if (!what.taken && what.reason.starts_with(refused_for_good)) {
    end_all(node_news::kind::broken, what.reason);
    return;
  }
  if (!what.taken) {
    turned_away(what.reason);
    return;
  }
  if (!welcome_due_)
    return; // Nobody has asked for it.
  welcome_due_.reset();
  hub_keeper_ = keeper;
  auto terms = run_terms_from_json(what.terms);
  if (!terms) {
    cannot_work("its terms do not read: " + terms.error().what);
    return;
  }
  if (terms->run != what.run) {
    cannot_work("its terms are of run '" + terms->run + "', its welcome is of '" + what.run + "'");
    return;
  }
  if (auto fine = check_devices(*terms); !fine) {
    cannot_work(fine.error().what);
    return;
  }
  if (cell_ && same_context(cell_->terms, *terms)) {
    // The hub has been told what is held here.
    held_.offered();
    cell_->terms = std::move(*terms);
    cell_->mix = *parse_proposer(cell_->terms.proposer);
    prepare_next(what.prepared);
    return;
  }
  drop_run();
  enter_run(std::move(*terms), what.prepared);
}

void node_agent::turned_away(const std::string& reason) {
  const bool was_in = !welcome_due_.has_value();
  forget_hub();
  tell_news(was_in ? node_news::kind::hub_lost : node_news::kind::turned_away, reason);
}

void node_agent::cannot_work(const std::string& reason) {
  node_ready no;
  no.able = false;
  no.reason = reason;
  seam::tell(this, hub_, std::move(no));
  forget_hub();
  tell_news(node_news::kind::turned_away, reason);
}

result<void> node_agent::check_devices(const run_terms& terms) const {
  if (terms.rehearsal)
    return {};
  for (const auto& [device, runner] : config_.devices) {
    if (device.label != terms.device_label)
      continue; // Left idle by the hub.
    const auto& facts = terms.facts;
    // Not of L2: where no device is at the coordinator its size is the profile's.
    if (device.arch != terms.arch || device.sm_count != facts.sm_count
      || device.shared_per_block != facts.smem_per_block
      || device.shared_per_sm != facts.smem_per_sm)
      return fail(errc::invalid_input,
        fmt::format("{} is a {} of another shape than the run's: {} multiprocessors where the run "
                    "has {}; times of the two cannot be compared",
          device.name, device.label, device.sm_count, facts.sm_count));
  }
  return {};
}

void node_agent::enter_run(run_terms terms, std::vector<std::string> prepared) {
  auto entered = [this, stay = stay_, terms, prepared](const caf::error& why) {
    if (stay != stay_)
      return;
    if (why) {
      cannot_work("what the run needs did not arrive: " + seam::show(system(), why));
      return;
    }
    auto own = config_.folders;
    own.directory /= fmt::format("run-{}", ++runs_);
    std::error_code error;
    std::filesystem::create_directories(own.directory, error);
    auto context = error ? result<run_context>{fail(errc::io_failed,
                     fmt::format("{}: {}", own.directory.string(), error.message()))}
                         : make_node_context(terms, own);
    if (!context) {
      cannot_work(context.error().what);
      return;
    }
    context->child_ids = child_ids_;
    cell_ = std::make_shared<cell>();
    cell_->terms = terms;
    cell_->context = std::make_shared<const run_context>(std::move(*context));
    cell_->mix = *parse_proposer(terms.proposer); // The reader has looked at it.
    start_services(cell_);
    prepare_next(prepared);
  };
  auto blobs = blobs_of(terms);
  if (blobs.empty() || !keeper_) {
    entered({});
    return;
  }
  seam::ask(this, keeper_, blob_fetch{std::move(blobs), config_.times.fetch_context}, hub_keeper_)
    .then([entered](const blobs_fetched&) { entered({}); }, entered);
}

void node_agent::prepare_next(std::vector<std::string> missing) {
  std::erase_if(missing, [this](const std::string& name) {
    return cell_->terms.rehearsal || cell_->prepared.count(name) != 0;
  });
  if (missing.empty() || !cell_->oracle) {
    become_ready();
    return;
  }
  auto name = missing.back();
  missing.pop_back();
  auto failed = [this, stay = stay_, name](const std::string& why) {
    if (stay == stay_)
      cannot_work("problem " + name + " cannot be prepared here: " + why);
  };
  prepare_request request;
  request.problem = name;
  seam::ask(this, cell_->oracle, request)
    .then(
      [this, stay = stay_, of = cell_, name, missing, failed](const prepared_problem& made) {
        if (made.status != verdict_status::passed) {
          failed(to_string(made.status) + ": " + made.reason);
          return;
        }
        of->prepared[name] = made;
        if (stay == stay_ && of == cell_)
          prepare_next(missing);
      },
      [this, failed](const caf::error& why) { failed(seam::show(system(), why)); });
}

void node_agent::become_ready() {
  ready_ = true;
  if (!leave_due_)
    tasks_.set_mode(node_tasks::mode::open);
  seam::tell(this, hub_, node_ready{});
  tell_news(node_news::kind::ready, cell_->terms.run);
}

void node_agent::forget_hub() {
  ++stay_;
  if (hub_)
    monitors_.unwatch(this, hub_);
  hub_ = nullptr;
  hub_keeper_ = nullptr;
  welcome_due_.reset();
  ready_ = false;
  end_workers();
  tasks_.hub_lost();
  held_.hub_lost();
  quiet_waiting_.clear();
  std::erase_if(pins_, [this](const auto& one) { return !tasks_.is_open(one.first); });
  remove_dropped();
}

void node_agent::hub_lost(const std::string& reason) {
  const bool waiting = welcome_due_.has_value();
  forget_hub();
  if (leave_due_) // Nobody is left to hand anything in to.
    end_all(node_news::kind::left, reason);
  else
    tell_news(waiting ? node_news::kind::turned_away : node_news::kind::hub_lost, reason);
}

void node_agent::on_farewell(const node_farewell& what) {
  const bool over = what.reason.starts_with(run_is_over);
  // Of an earlier stay, when the hub is still to answer this offer.
  if (!hub_ || (welcome_due_ && !over))
    return;
  forget_hub();
  if (over)
    drop_run();
  if (leave_due_)
    end_all(node_news::kind::left, what.reason);
  else
    tell_news(over ? node_news::kind::run_over : node_news::kind::hub_lost, what.reason);
}

// ---- the end

void node_agent::leave(const std::string& reason) {
  if (leave_due_ || !ready_) {
    end_all(node_news::kind::left, reason);
    return;
  }
  leave_due_ = now() + config_.times.leave;
  busy_last_ = now();
  seam::tell(this, hub_, node_leaving{reason});
  tasks_.set_mode(node_tasks::mode::leaving);
  end_workers();
  arm();
}

void node_agent::look_whether_left() {
  if (!leave_due_)
    return;
  const auto at = now();
  if (tasks_.open() != 0 || held_.size() != 0)
    busy_last_ = at;
  if (at >= *leave_due_)
    end_all(node_news::kind::left, "what still ran was cut off");
  else if (at - busy_last_ >= config_.times.leave_idle)
    end_all(node_news::kind::left, "nothing is left to be done here");
}

void node_agent::end_all(node_news::kind how, const std::string& reason) {
  if (hub_ && !leave_due_)
    seam::tell(this, hub_, node_leaving{reason});
  drop_run();
  tell_news(how, reason);
  quit();
}

void node_agent::drop_run() {
  for (const auto& [ticket, child] : children_)
    if (child_front_)
      seam::tell(this, child_front_, child_cancel{child, false});
  children_.clear();
  sleeping_.clear();
  quiet_waiting_.clear();
  pins_.clear();
  tasks_.forget_all();
  end_workers();
  held_.clear();
  if (!cell_)
    return;
  end_services(*cell_);
  held_.take_dropped(); // They go with the folder.
  // A child that is being killed may still write: what it leaves goes with the next start.
  std::error_code error;
  std::filesystem::remove_all(cell_->context->directory, error);
  cell_ = nullptr;
}

// ---- who does the work

void node_agent::start_services(const cell_ptr& in) {
  const bool prepares = config_.oracle || !config_.devices.empty();
  if (config_.compile_slots != 0)
    start_service(in, "compiler");
  if (prepares)
    start_service(in, "oracle");
  if (!config_.devices.empty() && !in->terms.rehearsal)
    start_service(in, "judge");
}

void node_agent::start_service(const cell_ptr& in, const std::string& which) {
  auto& home = home_system();
  auto watch = [this, &which, weak = std::weak_ptr<cell>(in)](const auto& whom) {
    monitors_.watch(this, whom, [this, which, weak](const caf::error& why) {
      auto of = weak.lock();
      if (!of || of != cell_)
        return;
      spdlog::error("{} died: {}", which, seam::show(system(), why));
      if (++of->deaths[which] > config_.restarts_max)
        end_all(node_news::kind::broken, fmt::format("{} died {} times", which, of->deaths[which]));
      else
        start_service(of, which);
    });
  };
  if (which == "compiler") {
    if (in->terms.rehearsal) {
      in->compiler = home.spawn<rehearsal_compiler>();
    } else {
      compiler_config config;
      config.context = in->context;
      config.device_code = config_.device_code;
      config.child_front = child_front_;
      config.slots = config_.compile_slots;
      in->compiler = home.spawn<compiler>(std::move(config));
    }
    watch(in->compiler);
  } else if (which == "oracle") {
    if (in->terms.rehearsal)
      in->oracle = home.spawn<rehearsal_oracle>();
    else
      in->oracle = home.spawn<oracle>(oracle_config{in->context, child_front_});
    watch(in->oracle);
  } else {
    in->judge = home.spawn<judge>(judge_config{in->context, child_front_});
    watch(in->judge);
  }
}

void node_agent::end_services(cell& of) {
  auto end = [this](auto& whom) {
    if (whom)
      monitors_.unwatch(this, whom);
    end_actor(whom);
  };
  end(of.compiler);
  end(of.oracle);
  end(of.judge);
}

} // namespace gristmill
