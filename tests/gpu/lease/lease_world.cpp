#include "tests/gpu/lease/lease_world.hpp"

#include "tests/gpu/lease/lease_world_parts.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace gristmill::test {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

class world {
public:
  world(const world_script& script) : script_(script), random_(script.seed) {
    gpu_count_ = 1 + random_.below(2) * (1 + random_.below(2));
    holder_count_ = 1 + random_.below(4);
    with_boots_ = random_.below(2) == 0;
    with_ttl_ = random_.below(2) == 0;
    static constexpr const char* policies[] = {"fifo", "stride", "fifo", "stride", "las"};
    policy_ = policies[random_.below(5)];
    executors_.resize(gpu_count_);
    truth_.resize(gpu_count_);
    for (auto& e : executors_) {
      skew_.push_back(80 + random_.below(41));
      e.alive = true;
      e.instance = 1;
      e.boot = 1;
    }
    start_broker();
  }

  void take(const world_step& s) {
    auto g = s.a % gpu_count_;
    switch (s.verb) {
    case world_verb::deliver:
      if (!net_.empty())
        deliver(s.a % net_.size());
      break;
    case world_verb::lose:
      // The journal's answers are not lost: without them the run stops.
      if (!net_.empty() && net_[s.a % net_.size()].kind != letter_kind::stored)
        net_.erase(net_.begin() + static_cast<ptrdiff_t>(s.a % net_.size()));
      break;
    case world_verb::twice:
      if (!net_.empty() && net_.size() < 64)
        net_.push_back(net_[s.a % net_.size()]);
      break;
    case world_verb::ask:
      ask(1 + s.a % holder_count_, s.b, s.c);
      break;
    case world_verb::pass:
      // Mostly short; sometimes longer than any limit.
      pass(std::chrono::milliseconds{s.b
        % (s.a % 32 == 0   ? 700'000u
            : s.a % 4 == 0 ? 40'000u
                           : 2'000u)});
      break;
    case world_verb::finish:
      finish(g, static_cast<lease_outcome>(s.b % 4), outcome_of(s.c));
      break;
    case world_verb::killed:
      end_dying(g, outcome_of(s.b));
      break;
    case world_verb::renew:
      renew(g, std::chrono::seconds{s.b % 8});
      break;
    case world_verb::crash:
      crash(g);
      break;
    case world_verb::node:
      node(g);
      break;
    case world_verb::cancel:
      cancel(1 + s.a % holder_count_, s.b);
      break;
    case world_verb::holder_down:
      holder_down(1 + s.a % holder_count_);
      break;
    case world_verb::drain:
    case world_verb::undrain:
      command(g, s.verb == world_verb::drain);
      break;
    case world_verb::restart:
      start_broker();
      break;
    case world_verb::claim:
      claim(1 + s.a % holder_count_, s.b % gpu_count_);
      break;
    case world_verb::quarantine:
      truth_[g].quarantined = true;
      truth_[g].fit = false;
      table_->quarantine(g, "a person", now_, out_);
      break;
    }
    carry_out();
    check();
  }

  /// Nothing is lost any more, probes pass, executors answer, a person undrains, time goes on.
  void calm_down() {
    calm_ = true;
    for (int i = 0; i < 60 && end.broken.empty(); ++i) {
      for (uint32_t g = 0; g < gpu_count_; ++g) {
        auto& e = executors_[g];
        if (i % 10 == 5) {
          auto phase = table_->phase(g);
          // Lost under its boot id, so its node has to start anew.
          if (!e.alive || (phase == gpu_phase::lost && with_boots_ && e.running == 0))
            begin_anew(g, true);
          else
            announce(g);
        }
        finish(g, lease_outcome::fine, probe_outcome::passed);
        end_dying(g, probe_outcome::passed);
        if (i % 10 == 0)
          command(g, false);
        carry_out();
      }
      for (int turns = 0; !net_.empty() && turns < 500; ++turns) {
        deliver(0);
        carry_out();
      }
      if (auto due = table_->next_deadline())
        pass(std::max(*due - now_, nanoseconds{0}));
      carry_out();
      check();
    }
    if (!end.broken.empty())
      return;
    for (uint32_t g = 0; g < gpu_count_; ++g)
      if (table_->phase(g) != gpu_phase::free)
        fails(fmt::format("in calm weather GPU {} stays {}", g, to_string(table_->phase(g))));
    if (!open_.empty())
      fails("in calm weather somebody still waits");
  }

  /// Each open request is listed, once.
  void check_list() {
    auto s = table_->snapshot({10'000}, now_);
    std::set<uint64_t> listed;
    for (const auto& w : s.waiters)
      listed.insert(w.ticket);
    std::set<uint64_t> expected;
    for (const auto& [key, ticket] : open_)
      expected.insert(ticket);
    if (listed != expected || s.waiters.size() != listed.size())
      fails("the list of the waiters is not that of the open requests");
  }

  world_end end;

private:
  void fails(std::string what) {
    if (end.broken.empty())
      end.broken = std::move(what);
  }

  static probe_outcome outcome_of(uint32_t x) {
    x %= 10;
    return x == 0 ? probe_outcome::failed
      : x == 1    ? probe_outcome::could_not
                  : probe_outcome::passed;
  }

  std::string boot_text(uint32_t boot) const {
    return with_boots_ ? fmt::format("boot-{}", boot) : std::string{};
  }

  void start_broker() {
    if (table_)
      ++end.restarts;
    ++epoch_;
    // Its post and its memory die with it; what was stored and what runs stay.
    std::erase_if(net_, [](const letter& l) { return to_the_broker(l.kind); });
    open_.clear();
    failed_on_.clear();
    out_.clear();
    lease_table_config c;
    c.token_block = 4;
    c.waiting_max = 6;
    c.patience_max = 1h;
    c.epoch = epoch_;
    c.ttl = with_ttl_ ? 30s : 0s;
    table_.emplace(c, *policy_by_name(policy_));
    for (uint32_t g = 0; g < gpu_count_; ++g) {
      auto& t = truth_[g];
      t.valid = t.to_score = 0;
      t.up = t.heard = false;
      t.instance = t.last_boot = 0;
      t.fit = true;
      t.drained = t.quarantined = false;
      gpu_entry entry{fmt::format("g{}", g), g % 2 == 0 ? "even" : "odd", t.stored};
      entry.may_hold_lease_of_before = epoch_ > 1;
      table_->add_gpu(entry, now_, out_);
      announce(g);
    }
    carry_out();
  }

  // The first word of an executor to a broker, or after a silence.
  void announce(uint32_t g) {
    auto& e = executors_[g];
    if (!e.alive)
      return;
    letter l{letter_kind::up, g, 0, e.instance, e.boot};
    if (e.running != 0) {
      l.kind = letter_kind::holding;
      l.token = e.running;
      l.time = e.clock - e.started;
      l.request = std::make_shared<lease_request>(e.request);
    }
    net_.push_back(l);
  }

  void begin_anew(uint32_t g, bool another_boot) {
    auto& e = executors_[g];
    auto instance = e.instance + 1;
    auto boot = e.boot + (another_boot ? 1 : 0);
    e = {};
    e.alive = true;
    e.instance = instance;
    e.boot = boot;
    net_.push_back({letter_kind::up, g, 0, instance, boot});
  }

  void crash(uint32_t g) {
    auto& e = executors_[g];
    if (!e.alive)
      return;
    net_.push_back({letter_kind::down, g, 0, e.instance, e.boot});
    begin_anew(g, with_boots_);
  }

  void node(uint32_t g) {
    auto& e = executors_[g];
    if (!e.alive) {
      begin_anew(g, true);
      return;
    }
    net_.push_back({letter_kind::down, g, 0, e.instance, e.boot});
    e.alive = false;
    e.running = e.dying_for = 0;
  }

  void ask(uint64_t holder, uint32_t choice, uint32_t candidate) {
    lease_request r;
    r.request = ++requests_;
    r.flow = {choice % 2 == 0 ? "p0" : "p1", fmt::format("a{}", holder)};
    r.what = static_cast<lease_class>(choice % 5);
    static constexpr const char* needs[] = {"", "even", "model=odd", ""};
    r.need = needs[(choice / 16) % (gpu_count_ == 1 ? 2 : 4)];
    r.patience = std::chrono::seconds{(choice / 64) % 3600};
    if (candidate % 3 == 0)
      r.candidate = fmt::format("c{}", candidate / 3 % 4);
    auto ticket = table_->on_request(holder, r, now_, out_);
    if (!ticket) {
      if (ticket.error().code != errc::queue_full && ticket.error().code != errc::refused)
        fails("a request was not taken: " + ticket.error().what);
      return;
    }
    open_[{holder, r.request}] = ticket->ticket;
    asked_[r.request] = r;
    if (choice % 11 == 0) {
      auto again = table_->on_request(holder, r, now_, out_);
      if (!again || again->ticket != ticket->ticket)
        fails("a doubled request got a second ticket");
    }
  }

  void pass(nanoseconds t) {
    now_ += t;
    for (uint32_t g = 0; g < gpu_count_; ++g) {
      auto& e = executors_[g];
      e.clock += t / 100 * skew_[g];
      // It ends a term by its own clock.
      if (e.running != 0 && e.clock - e.started >= e.term)
        finish(g, lease_outcome::hang, probe_outcome::passed);
    }
    table_->on_tick(now_, out_);
  }

  void finish(uint32_t g, lease_outcome outcome, probe_outcome probe) {
    auto& e = executors_[g];
    if (e.running == 0)
      return;
    letter l{letter_kind::release, g, e.running, e.instance, e.boot};
    l.outcome = outcome;
    net_.push_back(l);
    if (g % 2 == 0) {
      l.kind = letter_kind::ended;
      net_.push_back(l);
    }
    l.kind = letter_kind::verified;
    l.probe = probe;
    net_.push_back(l);
    e.running = 0;
  }

  void end_dying(uint32_t g, probe_outcome probe) {
    auto& e = executors_[g];
    if (e.dying_for == 0)
      return;
    if (e.running <= e.dying_for)
      e.running = 0;
    letter l{letter_kind::verified, g, e.dying_for, e.instance, e.boot};
    l.probe = probe;
    net_.push_back(l);
    e.dying_for = 0;
  }

  void renew(uint32_t g, nanoseconds idle) {
    auto& e = executors_[g];
    if (e.running == 0 || truth_[g].instance != e.instance)
      return;
    auto valid = truth_[g].valid == e.running;
    if (table_->on_renew(g, e.running, idle, now_, out_).applied && !valid)
      fails(fmt::format("token {} of GPU {} was renewed after its end", e.running, g));
  }

  void cancel(uint64_t holder, uint32_t choice) {
    uint64_t request = requests_ == 0 ? 1 : 1 + choice % requests_;
    bool waits = open_.contains({holder, request});
    bool holds = false;
    for (const auto& t : truth_)
      holds = holds || (t.valid != 0 && t.valid_holder == holder && t.valid_request == request);
    if (table_->on_cancel(holder, request, now_, out_).applied != (waits || holds))
      fails(fmt::format("the cancellation of request {} was not answered by what it was", request));
    open_.erase({holder, request});
  }

  void holder_down(uint64_t holder) {
    table_->on_holder_down(holder, now_, out_);
    std::erase_if(open_, [&](const auto& o) { return o.first.first == holder; });
  }

  void command(uint32_t g, bool drain) {
    auto& t = truth_[g];
    t.drained = drain;
    // A person may lift a quarantine; a probe must pass after that.
    if (!drain)
      t.quarantined = false;
    table_->on_broker_command(
      {drain ? broker_verb::drain : broker_verb::undrain, fmt::format("g{}", g), "a person"}, now_,
      out_);
  }

  void claim(uint64_t holder, uint32_t g) {
    auto& t = truth_[g];
    auto request = ++requests_;
    auto token = executors_[g].running;
    bool may = token != 0 && t.valid == token && t.valid_holder == 0;
    if (table_->on_claim(holder, request, g, token, now_, out_).applied != may)
      fails("a claim was not answered by what it was");
    if (may) {
      t.valid_holder = holder;
      t.valid_request = request;
    }
  }

  void deliver(size_t at) {
    auto l = net_[at];
    net_.erase(net_.begin() + static_cast<ptrdiff_t>(at));
    if (to_the_broker(l.kind))
      tell_broker(l);
    else
      tell_executor(l);
  }

  void tell_executor(const letter& l) {
    auto& e = executors_[l.gpu];
    if (l.kind == letter_kind::grant) {
      // The holder goes to the executor that it was told.
      auto m = l;
      m.kind = letter_kind::measure;
      net_.push_back(m);
      return;
    }
    if (!e.alive || l.instance != e.instance)
      return;
    switch (l.kind) {
    case letter_kind::measure:
      if (l.token <= e.fence || e.running != 0)
        break;
      if (l.token < truth_[l.gpu].newest)
        newer_was_granted(l);
      e.running = e.fence = l.token;
      e.started = e.clock;
      e.term = l.time;
      e.request = *l.request;
      net_.push_back({letter_kind::active, l.gpu, l.token, e.instance, e.boot});
      break;
    case letter_kind::revoke:
      e.fence = std::max(e.fence, l.token);
      e.dying_for = std::max(e.dying_for, l.token);
      if (calm_)
        end_dying(l.gpu, probe_outcome::passed);
      break;
    case letter_kind::probe: {
      letter answer{letter_kind::probed, l.gpu, 0, e.instance, e.boot};
      answer.probe = calm_ ? probe_outcome::passed : outcome_of(probes_++ * 7);
      net_.push_back(answer);
      break;
    }
    default:
      break;
    }
  }

  // An older token starts although a newer one may run: only the fence of the executor could
  // prevent that, and by now the table has been told that it is up.
  void newer_was_granted(const letter& l) {
    const auto& t = truth_[l.gpu];
    if (t.valid > l.token)
      fails(
        fmt::format("token {} starts on GPU {} while token {} is valid", l.token, l.gpu, t.valid));
  }

  void tell_broker(const letter& l) {
    auto& t = truth_[l.gpu];
    if (l.kind == letter_kind::stored) {
      table_->on_block_reserved(l.gpu, l.token, now_, out_);
      return;
    }
    // As the actor does: an executor that was replaced is not heard any more, and the first word of
    // another one is the end of the last.
    if (l.instance < t.instance)
      return;
    if (l.kind != letter_kind::up && l.kind != letter_kind::holding && l.instance != t.instance)
      return;
    if (l.instance > t.instance && t.instance != 0) {
      gone(l.gpu);
      table_->on_device_down(l.gpu, "its executor was replaced", now_, out_);
      carry_out();
    }
    t.instance = l.instance;
    device_report r;
    r.gpu = l.gpu;
    r.token = l.token;
    r.boot = boot_text(l.boot);
    r.probe.outcome = l.probe;
    bool was_valid = t.valid == l.token && l.token != 0;
    switch (l.kind) {
    case letter_kind::up: {
      r.state = device_state::up;
      auto before = table_->phase(l.gpu);
      bool fresh = before == gpu_phase::lost || before == gpu_phase::absent
        || before == gpu_phase::quarantined;
      if (fresh && with_boots_ && (before != gpu_phase::absent))
        t.fit = false; // Until a probe has passed.
      if (table_->on_report(r, now_, out_).applied) {
        t.up = t.heard = true;
        // A start of the node that the broker knows to be another one lifts a quarantine.
        if (with_boots_ && t.last_boot != 0 && t.last_boot != l.boot)
          t.quarantined = false;
        t.last_boot = l.boot;
      }
      break;
    }
    case letter_kind::holding: {
      r.state = device_state::holding;
      r.adopted = {*l.request, l.time};
      bool known = was_valid;
      auto ack = table_->on_report(r, now_, out_);
      t.up = true;
      if (!ack.applied || known)
        break;
      ++end.adopted;
      if (t.heard)
        fails(fmt::format("token {} was adopted after GPU {} had been heard of", l.token, l.gpu));
      t.heard = true;
      t.last_boot = l.boot;
      t.valid = l.token;
      t.valid_holder = 0;
      t.valid_candidate = l.request->candidate;
      break;
    }
    case letter_kind::active:
      r.state = device_state::active;
      if (table_->on_report(r, now_, out_).applied != was_valid)
        fails(fmt::format("token {} of GPU {} was started, and the answer is not whether it was "
                          "valid",
          l.token, l.gpu));
      break;
    case letter_kind::ended:
      r.state = device_state::ended;
      table_->on_report(r, now_, out_);
      break;
    case letter_kind::release: {
      auto applied = table_->on_release(l.gpu, l.token, "done", l.outcome, now_, out_).applied;
      if (applied != was_valid)
        fails(fmt::format("token {} of GPU {} was released {}, although it was {}", l.token, l.gpu,
          applied ? "in time" : "too late", was_valid ? "valid" : "over"));
      if (applied) {
        t.to_score = l.token;
        if (l.outcome == lease_outcome::fault || l.outcome == lease_outcome::hang)
          if (!t.valid_candidate.empty())
            failed_on_[t.valid_candidate].insert(l.gpu);
      }
      break;
    }
    case letter_kind::verified: {
      r.state = device_state::verified;
      bool ends = table_->phase(l.gpu) == gpu_phase::releasing
        || table_->phase(l.gpu) == gpu_phase::verifying
        || table_->phase(l.gpu) == gpu_phase::active;
      bool scores = t.to_score == l.token && l.token != 0;
      auto ack = table_->on_report(r, now_, out_);
      if (ack.applied && ends)
        t.fit = l.probe == probe_outcome::passed;
      bool tainted = ack.note.starts_with("tainted");
      if (!ack.applied || !scores)
        break;
      t.to_score = 0;
      if (tainted)
        break;
      if (l.probe == probe_outcome::failed)
        fails(fmt::format(
          "the result of token {} counts, although GPU {} failed its probe", l.token, l.gpu));
      if (l.token <= t.scored)
        fails(fmt::format("token {} of GPU {} was scored twice or late", l.token, l.gpu));
      t.scored = l.token;
      ++end.scored;
      break;
    }
    case letter_kind::probed:
      r.state = device_state::probed;
      ++end.probes;
      if (table_->on_report(r, now_, out_).applied && l.probe == probe_outcome::passed)
        t.fit = true;
      break;
    case letter_kind::down:
      r.state = device_state::down;
      gone(l.gpu);
      table_->on_report(r, now_, out_);
      break;
    default:
      break;
    }
  }

  void gone(uint32_t g) {
    auto& t = truth_[g];
    t.up = false;
    t.valid = 0;
    t.to_score = 0;
  }

  // Does what the table said, and checks what it may say.
  void carry_out() {
    for (size_t i = 0; i < out_.size(); ++i) {
      const auto a = out_[i];
      switch (a.kind) {
      case lease_action_kind::grant:
        on_grant(a);
        break;
      case lease_action_kind::notify_holder:
        if (a.ended.token == 0 && open_.erase({a.holder, a.ended.request}) == 0)
          fails("a wait was ended that was none");
        break;
      case lease_action_kind::revoke: {
        auto& t = truth_[a.revoke.gpu];
        if (t.valid != 0 && t.valid <= a.revoke.token)
          t.valid = 0;
        net_.push_back({letter_kind::revoke, a.revoke.gpu, a.revoke.token, t.instance});
        break;
      }
      case lease_action_kind::reserve:
        truth_[a.reserve.gpu].stored = std::max(truth_[a.reserve.gpu].stored, a.reserve.last);
        net_.push_back({letter_kind::stored, a.reserve.gpu, a.reserve.last});
        break;
      case lease_action_kind::probe:
        net_.push_back({letter_kind::probe, a.probe.gpu, 0, truth_[a.probe.gpu].instance});
        break;
      case lease_action_kind::log:
        // What failed on a GPU in quarantine is forgiven.
        if (a.entry->kind == "gpu_quarantined")
          for (auto& [candidate, gpus] : failed_on_)
            gpus.erase(*table_->gpu_by_name(a.entry->gpu));
        break;
      case lease_action_kind::rerun:
        break;
      }
    }
    out_.clear();
  }

  void on_grant(const lease_action& a) {
    const auto& l = a.granted.granted;
    auto& t = truth_[l.gpu];
    const auto& e = executors_[l.gpu];
    ++end.grants;
    auto says = [&](const char* what) {
      fails(fmt::format("token {} of GPU {} was granted {}", l.token, l.gpu, what));
    };
    if (l.token <= t.newest)
      says("again, or is older than one before");
    if (l.token > t.stored)
      says("before its block was stored");
    if (t.valid != 0)
      says("while another one is valid");
    if (e.running != 0 && e.instance == t.instance)
      says("while an older one still runs");
    if (!t.up)
      says("although its executor is gone or has not been heard of");
    if (t.drained)
      says("although it is drained");
    if (t.quarantined)
      says("although it is in quarantine");
    if (!t.fit)
      says("although it has not passed its probe");
    auto asked = open_.find({a.holder, a.granted.request});
    if (asked == open_.end())
      says("to somebody who does not ask for it");
    else
      open_.erase(asked);
    const auto& r = asked_[a.granted.request];
    if (!r.candidate.empty()) {
      const auto& failed = failed_on_[r.candidate];
      if (failed.size() >= 2)
        says("to a candidate that failed on two GPUs");
      if (failed.contains(l.gpu))
        says("to a candidate that has failed on it");
    }
    t.newest = l.token;
    t.valid = l.token;
    t.valid_holder = a.holder;
    t.valid_request = a.granted.request;
    t.valid_candidate = r.candidate;
    t.to_score = 0;
    letter m{letter_kind::grant, l.gpu, l.token, t.instance};
    m.time = l.term;
    m.request = std::make_shared<lease_request>(r);
    net_.push_back(m);
  }

  void check() {
    if (auto rule = table_->broken_invariant())
      fails(*rule);
    if (table_->waiting() != open_.size())
      fails("the number of those that wait is not that of the open requests");
  }

  world_script script_;
  chance random_;
  uint32_t gpu_count_ = 1;
  uint64_t holder_count_ = 1;
  bool with_boots_ = false;
  bool with_ttl_ = false;
  const char* policy_ = "fifo";
  std::vector<int64_t> skew_;
  std::optional<lease_table> table_;
  lease_actions out_;
  nanoseconds now_{0};
  uint64_t epoch_ = 0;
  std::vector<executor> executors_;
  std::vector<gpu_truth> truth_;
  std::vector<letter> net_;
  /// Requests that were taken and are not over, with their tickets.
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> open_;
  std::map<uint64_t, lease_request> asked_;
  std::map<std::string, std::set<uint32_t>> failed_on_;
  uint64_t requests_ = 0;
  uint32_t probes_ = 0;
  bool calm_ = false;
};

} // namespace

world_end play(const world_script& script, bool calm) {
  world w(script);
  for (size_t i = 0; i < script.steps.size() && w.end.broken.empty(); ++i) {
    w.end.at = i;
    w.take(script.steps[i]);
  }
  if (w.end.broken.empty())
    w.check_list();
  if (calm && w.end.broken.empty()) {
    w.end.at = script.steps.size();
    w.calm_down();
  }
  return w.end;
}

} // namespace gristmill::test
