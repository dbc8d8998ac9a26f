#include "simulation/core/engine.hpp"

#include "simulation/core/holder_book.hpp"
#include "simulation/core/timer_tree.hpp"

#include <algorithm>
#include <vector>

namespace gristmill {

namespace {

using std::chrono::nanoseconds;

enum class letter_kind : uint8_t {
  // To the broker.
  request = 0,
  cancel,
  up,
  down,
  activated,
  verified,
  probed,
  release,
  reserved,
  // From it.
  granted,
  ended,
  revoke,
  probe,
  refused,
};

/// What is on its way at this instant. Places are used again and again, so that no text is
/// allocated for each.
struct letter {
  letter_kind kind = letter_kind::request;
  lease_outcome outcome = lease_outcome::fine;
  /// Agent or GPU.
  uint32_t who = 0;
  /// Request or token.
  uint64_t number = 0;
  uint64_t token = 0;
  const lease_request* asked = nullptr;
  lease_granted granted;
  nanoseconds limit{0};
  probe_report probe;
  std::string text;
};

/// First in, first out; empty at the end of every instant.
class mail {
public:
  letter& add(letter_kind kind, uint32_t who, uint64_t number) {
    if (end_ == letters_.size())
      letters_.emplace_back();
    auto& out = letters_[end_++];
    out.kind = kind;
    out.who = who;
    out.number = number;
    return out;
  }
  /// Nothing when all have been taken; then the places are free again. What it points to holds
  /// until the next `add`.
  letter* take() {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = 0;
      return nullptr;
    }
    return &letters_[begin_++];
  }

private:
  std::vector<letter> letters_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

class core_engine final : public world_port {
public:
  core_engine(lease_table_config config, std::unique_ptr<lease_policy> policy, world& of,
    const lab_options& options)
    : table_(std::move(config), std::move(policy)), world_(of), options_(options),
      timers_(of.entity_count()), holders_(of.agent_count()), gpus_(of.gpu_count()) {}

  result<void> run(nanoseconds end) {
    for (uint32_t gpu = 0; gpu < gpus_.size(); ++gpu) {
      table_.add_gpu(world_.gpu(gpu), now_, actions_);
      post_actions();
    }
    deliver();
    world_.start(*this);
    deliver();
    for (uint64_t turn = 1;; ++turn) {
      const auto timer = timers_.first();
      const auto deadline = table_.next_deadline();
      // Of one instant the timers of entities come first, then the table's.
      const bool of_table = deadline && *deadline < timer.at;
      now_ = of_table ? std::max(*deadline, now_) : timer.at;
      if (now_ > end)
        break;
      if (of_table) {
        table_.on_tick(now_, actions_);
        post_actions();
      } else {
        timers_.set(timer.entity, timer_tree::never);
        world_.on_timer(timer.entity, now_, *this);
      }
      deliver();
      if (turn % looks_every != 0)
        continue;
      if (auto good = look(end); !good)
        return good;
    }
    return broken();
  }

  void set_timer(lab_entity entity, nanoseconds at) override { timers_.set(entity, at); }
  void request(uint32_t agent, const lease_request& what) override {
    mail_.add(letter_kind::request, agent, what.request).asked = &what;
  }
  void cancel(uint32_t agent, uint64_t request) override {
    mail_.add(letter_kind::cancel, agent, request);
  }
  void up(uint32_t gpu, const std::string& boot) override {
    mail_.add(letter_kind::up, gpu, 0).text = boot;
  }
  void down(uint32_t gpu, const std::string& reason) override {
    mail_.add(letter_kind::down, gpu, 0).text = reason;
  }
  void activated(uint32_t gpu, uint64_t token) override {
    mail_.add(letter_kind::activated, gpu, token);
  }
  void verified(uint32_t gpu, uint64_t token) override {
    mail_.add(letter_kind::verified, gpu, token);
  }
  void probed(uint32_t gpu, const probe_report& what) override {
    mail_.add(letter_kind::probed, gpu, 0).probe = what;
  }
  void release(
    uint32_t gpu, uint64_t token, const std::string& reason, lease_outcome outcome) override {
    auto& to = mail_.add(letter_kind::release, gpu, token);
    to.text = reason;
    to.outcome = outcome;
  }

private:
  /// As the broker actor remembers it: whose lease a GPU has.
  struct gpu_tenant {
    uint64_t holder = 0;
    uint64_t token = 0;
    uint64_t request = 0;
  };

  /// Events between two looks at what the caller wants.
  static constexpr uint64_t looks_every = 1 << 14;

  result<void> broken() const {
    if (!world_.broken().empty())
      return fail(errc::refused, world_.broken());
    return {};
  }

  result<void> look(nanoseconds end) {
    if (auto good = broken(); !good)
      return good;
    if (options_.stop && options_.stop())
      return fail(errc::shutting_down, "the run was stopped");
    if (options_.progress)
      options_.progress(static_cast<double>(now_.count()) / static_cast<double>(end.count()));
    return {};
  }

  void deliver() {
    while (letter* next = mail_.take())
      deliver(*next);
  }

  void deliver(letter& what) {
    switch (what.kind) { // no default: the compiler reports a missing case
    case letter_kind::request: {
      const auto holder = holders_.open(what.who);
      const auto agent = what.who;
      const auto number = what.number;
      const auto ticket = table_.on_request(holder, *what.asked, now_, actions_);
      post_actions();
      if (!ticket) {
        holders_.close(holder);
        mail_.add(letter_kind::refused, agent, number);
      }
      break;
    }
    case letter_kind::cancel:
      cancel_at_table(what.who, what.number);
      break;
    case letter_kind::up:
      table_.on_device_up(what.who, what.text, now_, actions_);
      after_report(what.who);
      break;
    case letter_kind::down:
      table_.on_device_down(what.who, what.text, now_, actions_);
      after_report(what.who);
      break;
    case letter_kind::activated:
      table_.on_activated(what.who, what.number, now_, actions_);
      post_actions();
      break;
    case letter_kind::verified:
      table_.on_verified(what.who, what.number, now_, actions_);
      after_report(what.who);
      break;
    case letter_kind::probed:
      table_.on_probed(what.who, what.probe, now_, actions_);
      after_report(what.who);
      break;
    case letter_kind::release:
      table_.on_release(what.who, what.number, what.text, what.outcome, now_, actions_);
      post_actions();
      break;
    case letter_kind::reserved:
      table_.on_block_reserved(what.who, what.number, now_, actions_);
      post_actions();
      break;
    case letter_kind::granted: {
      const auto granted = what.granted;
      world_.on_granted(what.who, granted, now_, *this);
      break;
    }
    case letter_kind::ended:
      world_.on_ended(what.who, {what.number, what.token, what.text}, now_, *this);
      break;
    case letter_kind::revoke:
      world_.on_revoke({what.who, what.number, what.text}, now_, *this);
      break;
    case letter_kind::probe:
      world_.on_probe({what.who, what.limit}, now_, *this);
      break;
    case letter_kind::refused:
      world_.on_refused(what.who, what.number, now_, *this);
      break;
    }
  }

  void cancel_at_table(uint32_t agent, uint64_t request) {
    const auto holder = holders_.holder_of(agent);
    if (holder == 0)
      return;
    if (table_.on_cancel(holder, request, now_, actions_).applied) {
      for (auto& g : gpus_)
        if (g.holder == holder && g.request == request)
          g.holder = 0;
      holders_.close(holder);
    }
    post_actions();
  }

  /// As in the broker actor: the last word to the old holder comes before it is forgotten, and the
  /// next grant of this GPU after it.
  void after_report(uint32_t gpu) {
    for (auto& action : actions_)
      if (action.kind == lease_action_kind::notify_holder)
        post(action);
    auto& tenant = gpus_[gpu];
    if (tenant.holder != 0 && !table_.in_use(gpu, tenant.token)) {
      holders_.close(tenant.holder);
      tenant.holder = 0;
    }
    for (auto& action : actions_)
      if (action.kind != lease_action_kind::notify_holder)
        post(action);
    actions_.clear();
  }

  void post_actions() {
    for (auto& action : actions_)
      post(action);
    actions_.clear();
  }

  void post(lease_action& action) {
    switch (action.kind) { // no default: the compiler reports a missing case
    case lease_action_kind::grant: {
      const auto& lease = action.granted.granted;
      gpus_[lease.gpu] = {action.holder, lease.token, action.granted.request};
      uint32_t agent = 0;
      if (holders_.agent_of(action.holder, agent))
        mail_.add(letter_kind::granted, agent, 0).granted = action.granted;
      break;
    }
    case lease_action_kind::notify_holder: {
      uint32_t agent = 0;
      if (!holders_.agent_of(action.holder, agent))
        break;
      auto& to = mail_.add(letter_kind::ended, agent, action.ended.request);
      to.token = action.ended.token;
      to.text = action.ended.reason;
      // With a token it held a GPU, which is still to be verified.
      if (action.ended.token == 0)
        holders_.close(action.holder);
      break;
    }
    case lease_action_kind::revoke:
      mail_.add(letter_kind::revoke, action.revoke.gpu, action.revoke.token).text =
        action.revoke.reason;
      break;
    case lease_action_kind::reserve:
      if (options_.journal)
        options_.journal(action.entry.take());
      mail_.add(letter_kind::reserved, action.reserve.gpu, action.reserve.last);
      break;
    case lease_action_kind::log:
      if (options_.journal)
        options_.journal(action.entry.take());
      break;
    case lease_action_kind::probe:
      mail_.add(letter_kind::probe, action.probe.gpu, 0).limit = action.probe.limit;
      break;
    case lease_action_kind::rerun:
      break; // Nobody names a candidate here, so nobody is blamed.
    }
  }

  lease_table table_;
  world& world_;
  const lab_options& options_;
  timer_tree timers_;
  holder_book holders_;
  std::vector<gpu_tenant> gpus_;
  nanoseconds now_{0};
  mail mail_;
  lease_actions actions_;
};

} // namespace

result<std::unique_ptr<lease_policy>> policy_of(const scenario& what, const lab_options& options) {
  if (options.make_policy)
    return options.make_policy();
  auto policy = policy_from_text(what.lease_policy);
  if (!policy)
    return fail(policy.error().code, "lease_policy: " + policy.error().what);
  return policy;
}

result<lab_result> run_core(const scenario& what, lab_options options) {
  auto made = world::make(what, options.world);
  if (!made)
    return pass(made);
  auto policy = policy_of(what, options);
  if (!policy)
    return pass(policy);
  auto config = table_config_for(what);
  config.log_events = static_cast<bool>(options.journal);
  core_engine engine(config, std::move(*policy), **made, options);
  const auto end = time_of(what.duration_s);
  if (auto ran = engine.run(end); !ran)
    return pass(ran);
  return (*made)->finish(end);
}

} // namespace gristmill
