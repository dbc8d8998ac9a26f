#include "actors/node_agent.hpp"

#include "actors/child_job.hpp"
#include "actors/cluster_words.hpp"
#include "actors/judge.hpp"
#include "actors/measure_key.hpp"
#include "actors/runner_steps.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

void add(std::vector<blob_ref>& all, const blob_ref& ref) {
  if (!ref.sha256.empty() && std::find(all.begin(), all.end(), ref) == all.end())
    all.push_back(ref);
}

void add(std::vector<blob_ref>& all, const candidate_ref& candidate,
  const std::vector<compiled_unit>& units) {
  add(all, candidate.source);
  add(all, candidate.plan);
  for (const auto& unit : units)
    add(all, unit.code);
}

/// What a task reads.
std::vector<blob_ref> blobs_of(const node_task& what) {
  std::vector<blob_ref> out;
  switch (what.kind) { // no default: the compiler reports a missing case
  case node_task_kind::compile:
    add(out, what.compile.candidate, {});
    break;
  case node_task_kind::prepare:
    add(out, what.prepare.candidate, {});
    break;
  case node_task_kind::measure:
    add(out, what.measure.candidate, what.measure.units);
    if (what.measure.against)
      add(out, what.measure.against->candidate, what.measure.against->units);
    break;
  case node_task_kind::judge:
    add(out, what.judge.candidate, {});
    break;
  case node_task_kind::end_draw:
  case node_task_kind::quiet:
  case node_task_kind::probe:
    break;
  }
  return out;
}

/// A hub runs no program of its choice here: a device is looked at by our own one.
bool is_probe(const std::vector<std::string>& command) {
  return command.size() >= 2 && command[0] == "gristmill-runner"
    && (command[1] == "--health" || command[1] == "--canary");
}

} // namespace

const node_agent_device* node_agent::find_device(const std::string& name) const {
  auto found = std::find_if(config_.devices.begin(), config_.devices.end(),
    [&](const node_agent_device& one) { return one.what.name == name; });
  return found == config_.devices.end() ? nullptr : &*found;
}

void node_agent::on_task(const node_task& what) {
  if (!hub_)
    return; // Of a hub that is given up: it counts this node as lost.
  auto ticket = tasks_.admit(what, now());
  if (!ticket) {
    node_answer no;
    no.id = what.id;
    no.failed = true;
    no.code = ticket.error().code;
    no.what = ticket.error().what;
    seam::tell(this, hub_, std::move(no));
    return;
  }
  if (*ticket == 0)
    return; // Doubled.
  busy_last_ = now();
  auto blobs = blobs_of(what);
  if (blobs.empty() || cell_->terms.rehearsal || !keeper_) {
    begin(*ticket, what);
    return;
  }
  // Before the fetch, so that nothing that is here already goes meanwhile.
  if (config_.cache)
    pins_[*ticket] = config_.cache->pin(blobs);
  seam::ask(this, keeper_,
    blob_fetch{std::move(blobs), std::min(what.deadline, config_.times.fetch)}, hub_keeper_)
    .then(
      [this, ticket = *ticket, what](const blobs_fetched&) {
        if (tasks_.is_open(ticket))
          begin(ticket, what);
        else if (what.kind == node_task_kind::judge && cell_)
          remove_outputs(*cell_->context, what.judge.measured);
      },
      [this, ticket = *ticket, what](const caf::error& why) {
        if (what.kind == node_task_kind::judge && cell_ && tasks_.is_open(ticket)) {
          held_.judge(what.judge.measured.output_folder);
          remove_outputs(*cell_->context, what.judge.measured);
        }
        // Also when it took too long: `timed_out` is of the work itself.
        refuse(ticket, {errc::io_failed, "its files did not arrive: " + seam::show(system(), why)});
      });
}

void node_agent::begin(uint64_t ticket, const node_task& what) {
  if (tasks_.is_ending(ticket)) { // Cancelled while its blobs were on their way.
    node_answer ended;
    ended.ended.end = child_end::cancelled;
    ended.measured.failure_text = "ended before it had begun";
    const bool runs = what.kind == node_task_kind::measure || what.kind == node_task_kind::probe;
    ended.failed = !runs;
    ended.code = errc::timed_out;
    ended.what = ended.measured.failure_text;
    answer(ticket, std::move(ended));
    return;
  }
  switch (what.kind) { // no default: the compiler reports a missing case
  case node_task_kind::compile:
    do_compile(ticket, what.compile);
    break;
  case node_task_kind::prepare:
    do_prepare(ticket, what.prepare);
    break;
  case node_task_kind::end_draw:
    if (cell_->oracle)
      seam::tell(this, cell_->oracle, what.over);
    answer(ticket, {});
    break;
  case node_task_kind::measure:
    do_measure(ticket, what);
    break;
  case node_task_kind::judge:
    do_judge(ticket, what.judge);
    break;
  case node_task_kind::quiet:
    do_quiet(ticket, what.device);
    break;
  case node_task_kind::probe:
    do_probe(ticket, what);
    break;
  }
}

void node_agent::do_compile(uint64_t ticket, const compile_request& what) {
  if (!cell_->compiler) {
    refuse(ticket, {errc::unsupported, "this node has no compile slots"});
    return;
  }
  seam::ask(this, cell_->compiler, what)
    .then(
      [this, ticket](const compiled_candidate& made) {
        node_answer out;
        out.compiled = made;
        answer(ticket, std::move(out));
      },
      [this, ticket](const caf::error& why) { pass_on(ticket, why); });
}

void node_agent::do_prepare(uint64_t ticket, const prepare_request& what) {
  if (!cell_->oracle) {
    refuse(ticket, {errc::unsupported, "this node has no oracle"});
    return;
  }
  // A coordinator that starts again asks for what is here still.
  if (auto known = cell_->prepared.find(what.problem);
      what.draw.empty() && known != cell_->prepared.end()) {
    node_answer out;
    out.prepared = known->second;
    answer(ticket, std::move(out));
    return;
  }
  seam::ask(this, cell_->oracle, what)
    .then(
      [this, ticket, of = cell_, what](const prepared_problem& made) {
        if (what.draw.empty() && made.status == verdict_status::passed)
          of->prepared[what.problem] = made;
        node_answer out;
        out.prepared = made;
        answer(ticket, std::move(out));
      },
      [this, ticket](const caf::error& why) { pass_on(ticket, why); });
}

void node_agent::do_measure(uint64_t ticket, const node_task& what) {
  const auto& device = *find_device(what.device); // `admit` has looked.
  const bool rehearsal = cell_->terms.rehearsal;
  if (rehearsal != device.runner_name.empty()
    || (!rehearsal && device.what.label != cell_->terms.device_label)) {
    refuse(ticket,
      {errc::invalid_input,
        fmt::format("{} is a {}, the run is on {}", what.device, device.what.label,
          cell_->terms.device_label)});
    return;
  }
  held_result out;
  out.key = measure_key(what.measure);
  out.device = what.device;
  const auto belongs_to = [](measurement& measured, const measure_request& request) {
    measured.attempt = request.attempt;
    measured.token = request.under.token;
    measured.part = request.part;
  };
  if (auto known = held_.hand_in(out.key)) {
    belongs_to(known->measured, what.measure);
    measured(ticket, std::move(*known), std::string(handed_in_answer));
    return;
  }
  if (device.runner_name.empty()) {
    belongs_to(out.measured, what.measure);
    sleep_instead(ticket, std::move(out), device.what);
    return;
  }
  auto steps = runner_steps(cell_->context, device.runner_name);
  auto child = steps.begin(what.measure, what.deadline);
  if (!child) {
    refuse(ticket, child.error());
    return;
  }
  child->device = what.device;
  children_[ticket] = child->id;
  seam::ask(this, child_front_, *child)
    .then(
      [this, ticket, of = cell_, steps, out, belongs_to, request = what.measure, child = *child](
        const child_result& ended) mutable {
        out.measured = steps.end(request, child, ended);
        belongs_to(out.measured, request);
        out.ended = ended;
        out.ended.lines.clear();
        if (of == cell_)
          measured(ticket, std::move(out));
        else // Its run is over.
          remove_outputs(*of->context, out.measured);
      },
      [this, ticket, folder = child->job_directory](const caf::error& why) {
        children_.erase(ticket);
        std::error_code error; // What stays behind goes with the run.
        std::filesystem::remove_all(folder, error);
        pass_on(ticket, why);
      });
}

void node_agent::sleep_instead(uint64_t ticket, held_result what, const node_device& device) {
  what.measured.device = device.label;
  what.measured.origin = time_origin::not_a_measurement;
  const auto began = now();
  sleeping_[ticket] = {began + std::chrono::nanoseconds{static_cast<int64_t>(device.sleep_ns)},
    began, std::move(what)};
  arm();
}

void node_agent::end_sleep(uint64_t ticket, child_end how) {
  auto found = sleeping_.extract(ticket);
  if (found.empty())
    return;
  auto& one = found.mapped();
  one.result.ended.end = how;
  one.result.ended.wall = now() - one.began;
  one.result.measured.held = one.result.ended.wall;
  if (how != child_end::done)
    one.result.measured.failure_text = to_string(how);
  measured(ticket, std::move(one.result));
}

void node_agent::measured(uint64_t ticket, held_result what, const std::string& note) {
  children_.erase(ticket);
  pins_.erase(ticket);
  busy_last_ = now();
  auto was = tasks_.finish(ticket);
  const auto device = what.device;
  if (was && was->orphan) {
    held_.held(std::move(what));
  } else if (was && hub_) {
    node_answer out;
    out.id = was->id;
    out.what = note;
    out.measured = what.measured;
    out.ended = what.ended;
    seam::tell(this, hub_, std::move(out));
    held_.answered(std::move(what));
  } else { // Answered otherwise: it came after its deadline.
    remove_outputs(*cell_->context, what.measured);
  }
  remove_dropped();
  if (tasks_.at_work(device))
    return;
  auto [first, last] = quiet_waiting_.equal_range(device);
  std::vector<uint64_t> quiet;
  for (auto i = first; i != last; ++i)
    quiet.push_back(i->second);
  quiet_waiting_.erase(first, last);
  for (auto waiting : quiet)
    answer(waiting, {});
}

void node_agent::do_judge(uint64_t ticket, const judge_request& what) {
  if (cell_->terms.rehearsal) {
    answer(ticket, {});
    return;
  }
  const auto& folder = what.measured.output_folder;
  if (!folder.empty() && !is_job_folder(*cell_->context, folder)) {
    refuse(ticket,
      {errc::invalid_input,
        fmt::format("measurement.output_folder: no runner of this node made '{}'", folder)});
    return;
  }
  if (!cell_->judge || (!folder.empty() && !held_.judge(folder))) {
    // Of an earlier start of this node, or dropped: then it is to be measured again.
    refuse(ticket, {errc::node_lost, "the outputs of this measurement are not here any more"});
    return;
  }
  seam::ask(this, cell_->judge, what)
    .then(
      [this, ticket](const evaluation& judged) {
        node_answer out;
        out.judged = judged;
        answer(ticket, std::move(out));
      },
      [this, ticket](const caf::error& why) { pass_on(ticket, why); });
}

void node_agent::do_quiet(uint64_t ticket, const std::string& device) {
  if (tasks_.at_work(device)) {
    quiet_waiting_.emplace(device, ticket);
    return;
  }
  if (find_device(device)->runner_name.empty()) {
    answer(ticket, {});
    return;
  }
  seam::ask(this, child_front_, device_quiet_query{device})
    .then([this, ticket](const device_quiet&) { answer(ticket, {}); },
      [this, ticket](const caf::error& why) { pass_on(ticket, why); });
}

void node_agent::do_probe(uint64_t ticket, const node_task& what) {
  if (!is_probe(what.command)) {
    refuse(ticket,
      {errc::refused,
        fmt::format("node_task.command: '{}' is no probe of a device",
          what.command.empty() ? "" : what.command[0])});
    return;
  }
  const auto& device = *find_device(what.device);
  if (device.runner_name.empty()) { // Nothing is there that could be wrong.
    answer(ticket, {});
    return;
  }
  auto child =
    runner_steps(cell_->context, device.runner_name).command(what.command, what.deadline);
  if (!child) {
    refuse(ticket, child.error());
    return;
  }
  child->request.device = what.device;
  children_[ticket] = child->request.id;
  seam::ask(this, child_front_, child->request)
    .then(
      [this, ticket, folder = child->folder](const child_result& ended) {
        children_.erase(ticket);
        node_answer out;
        out.ended = ended;
        out.ended.lines.clear();
        answer(ticket, std::move(out));
      },
      [this, ticket, folder = child->folder](const caf::error& why) {
        children_.erase(ticket);
        pass_on(ticket, why);
      });
}

void node_agent::end_child(uint64_t ticket, bool gently) {
  if (sleeping_.count(ticket) != 0)
    end_sleep(ticket, child_end::cancelled);
  else if (auto child = children_.find(ticket); child != children_.end())
    seam::tell(this, child_front_, child_cancel{child->second, gently});
}

void node_agent::answer(uint64_t ticket, node_answer with) {
  pins_.erase(ticket);
  busy_last_ = now();
  auto was = tasks_.finish(ticket);
  if (!was || was->orphan || !hub_)
    return;
  with.id = was->id;
  seam::tell(this, hub_, std::move(with));
}

void node_agent::refuse(uint64_t ticket, const failure& why) {
  node_answer no;
  no.failed = true;
  no.code = why.code;
  no.what = why.what;
  answer(ticket, std::move(no));
}

void node_agent::pass_on(uint64_t ticket, const caf::error& why) {
  refuse(ticket, from_error(system(), why));
}

void node_agent::remove_dropped() {
  for (const auto& folder : held_.take_dropped()) {
    measurement of;
    of.output_folder = folder;
    if (cell_)
      remove_outputs(*cell_->context, of);
  }
}

} // namespace gristmill
