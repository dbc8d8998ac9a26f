// The real broker and the real executors of mock GPUs under random schedules: holders, executors,
// brokers and children that crash or die slowly, links that deliver late, twice or out of order,
// clocks that go wrong, drains, blame. Whatever happens, no device has two children, no result of a
// lost lease is scored, no device is lost for good, and whoever waits is served or told.

#include "actors/gpu_executor.hpp"
#include "actors/gpu_lease.hpp"
#include "tests/actors/system/lease_relay.hpp"
#include "tests/actors/system/schedule_script.hpp"
#include "tests/support/scripted_probe.hpp"

#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <set>
#include <sstream>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

struct holder_state {
  fake_holder who;
  relay link;
  uint64_t last_request = 0;
  std::set<uint64_t> open;
  size_t grants_seen = 0;
  size_t ended_seen = 0;
  std::vector<reply<measurement>> asked;
  std::vector<std::pair<uint64_t, reply<lease_ticket>>> requested;
};

struct schedule : actor_fixture {
  dice random;
  std::shared_ptr<network> net = std::make_shared<network>();
  fake_journal log = make_fake_journal(*this);
  fake_child_front children = make_fake_child_front(*this);
  gpu_lease_actor broker;
  std::vector<gpu_actor> gpus;
  std::vector<relay> links;
  std::vector<uint32_t> starts;
  std::vector<holder_state> holders;
  uint64_t next_child = 1;
  bool slow_deaths = false;
  bool bad_candidates = false;
  bool skewed = false;
  bool calm = false;
  std::string broken;

  size_t events_seen = 0;
  struct gpu_books {
    uint64_t token = 0;
    uint64_t reserved = 0;
    bool held = false;
    /// What the ledger took last; nothing older is taken.
    uint64_t ledger = 0;
  };
  std::map<std::string, gpu_books> books;
  /// Children of measurements: where and under which token.
  std::map<uint64_t, std::pair<std::string, uint64_t>> work;
  std::set<std::pair<std::string, uint64_t>> given_back, lost, verified, active, scored, begun;
  std::map<std::string, int> kinds;
  uint64_t holder_crashes = 0, executor_crashes = 0, broker_crashes = 0, refused_late = 0;

  explicit schedule(uint64_t seed) : random{seed * 31} {
    time.shuffle(seed);
    slow_deaths = draw(3) == 0;
    bad_candidates = draw(4) == 0;
    skewed = draw(3) == 0;
    net->random.state = seed * 17;
    if (draw(4) != 0) {
      net->delay_percent = 10 + draw(80);
      net->delay_max = std::chrono::milliseconds{std::array{20, 1000, 6000}[draw(3)]};
      net->double_percent = draw(2) == 0 ? 0 : 10 + draw(30);
      net->reorders = draw(2) == 0;
    }
    children->obeys_cancel = !slow_deaths;
    children->obeys_terminate = draw(2) == 0;
    children->script = [this](const child_request& what) { return child(what); };
    starts.resize(1 + draw(3));
    gpus.resize(starts.size());
    links.resize(starts.size());
    start_broker();
    for (size_t i = 0; i < gpus.size(); ++i)
      start_gpu(i);
    auto many = 1 + draw(5);
    for (uint64_t i = 0; i < many; ++i)
      holders.push_back(make_holder());
  }
  ~schedule() {
    gpus.clear();
    end_all();
    net->broker = nullptr;
  }

  void start_broker() {
    read_log();
    gpu_lease_config settings;
    settings.table.caps.fill(20s);
    settings.table.ttl = 6s;
    settings.table.verify_limit = 60s;
    settings.table.waiting_max = 64;
    settings.table.token_block = 64;
    settings.table.epoch = net->start;
    settings.policy = draw(2) == 0 ? make_fifo_policy() : make_stride_policy();
    for (uint64_t i = 0; i < gpus.size(); ++i) {
      gpu_entry entry{.name = name_of(i), .model = "h200"};
      entry.token_floor = books[entry.name].reserved;
      entry.may_hold_lease_of_before = net->start > 1;
      books[entry.name].held = false;
      settings.gpus.push_back(std::move(entry));
    }
    settings.events = event_port{log.handle, start};
    broker = spawn<gpu_lease>(std::move(settings));
    net->broker = broker;
    settle();
  }

  holder_state make_holder() {
    holder_state out{make_fake_holder(*this), make_relay(*this, net), 0, {}, 0, 0, {}, {}};
    out.link->holder = out.who.handle;
    return out;
  }

  uint64_t draw(uint64_t below) { return random.below(below); }
  static std::string name_of(uint64_t gpu) { return "mock:h200#" + std::to_string(gpu); }
  void broke(const std::string& rule) {
    if (broken.empty())
      broken = fmt::format(
        "{} (at {} s)", rule, std::chrono::duration_cast<std::chrono::seconds>(now()).count());
  }

  std::optional<scripted_child> child(const child_request& what) {
    for (const auto& other : children->requests)
      // A broker that has started anew knows nothing of a canary that the one before has ordered,
      // and an order to probe that comes twice makes two canaries.
      if (other.id != what.id && other.device == what.device
        && ((broker_crashes == 0 && net->doubled == 0)
          || (work.count(what.id) != 0 && work.count(other.id) != 0))
        && children->promises.count(other.id) != 0)
        broke(fmt::format("children {} and {} work on {}", other.id, what.id, what.device));
    scripted_child does;
    does.result = child_that_says({});
    does.after = std::chrono::milliseconds{draw(3000)};
    if (calm)
      return does;
    if (bad_candidates && draw(2) == 0) {
      does.result.end = child_end::no_done;
      does.result.status = 1;
      return does;
    }
    switch (draw(8)) {
    case 0:
      return std::nullopt; // Until it is ended.
    case 1:
      does.after = 1min;
      return does;
    case 2:
      does.result.end = child_end::no_done;
      does.result.status = 1;
      return does;
    case 3:
      does.error = failure{errc::queue_full, "too many"};
      return does;
    default:
      return does;
    }
  }

  void start_gpu(size_t index) {
    gpu_executor_config settings;
    settings.gpu = static_cast<uint32_t>(index);
    settings.name = name_of(index);
    settings.model = "h200";
    settings.boot = "1." + std::to_string(++starts[index]);
    settings.ttl = 6s;
    links[index] = make_relay(*this, net);
    if (skewed) {
      // A slow clock takes six seconds for four, a fast one for nine.
      links[index]->clock_percent = static_cast<int64_t>(60 + draw(90));
      settings.ttl = settings.ttl / 100 * links[index]->clock_percent;
    }
    settings.ladder.quarantine = 20s;
    settings.broker = links[index].handle;
    settings.child_front = children.handle;
    settings.events = event_port{log.handle, start};
    settings.steps.begin = [this](const measure_request& what, std::chrono::nanoseconds deadline) {
      child_request made;
      made.id = next_child++;
      begin(made.id, what.under);
      made.deadline = deadline;
      return result<child_request>{made};
    };
    settings.steps.end = [](const measure_request&, const child_request&, const child_result& how) {
      measurement out;
      if (how.end != child_end::done)
        out.failure_text = to_string(how.end);
      return out;
    };
    settings.probe = std::make_shared<scripted_probe>();
    settings.steps.command = [this](
                               const std::vector<std::string>&, std::chrono::nanoseconds deadline) {
      probe_child made;
      made.request.id = next_child++;
      made.request.deadline = deadline;
      return result<probe_child>{made};
    };
    gpus[index] = spawn<gpu_executor>(std::move(settings));
    links[index]->executor = gpus[index];
    settle();
  }

  void begin(uint64_t id, const lease& under) {
    auto name = name_of(under.gpu);
    work[id] = {name, under.token};
    if (!begun.insert(work[id]).second)
      broke(fmt::format("token {} of {} starts twice", under.token, name));
    if (under.token < books[name].token)
      broke(fmt::format(
        "token {} of {} starts after the grant of {}", under.token, name, books[name].token));
  }

  void request(holder_state& h) {
    lease_request what;
    what.request = ++h.last_request;
    what.what = draw(3) == 0 ? lease_class::correctness : lease_class::timing;
    what.flow = {"p" + std::to_string(draw(2)), "agent"};
    what.patience = std::chrono::seconds{5 + draw(120)};
    what.attempt = std::to_string(what.request);
    if (!calm && draw(2) == 0)
      what.candidate = "c" + std::to_string(draw(3));
    auto copies = !calm && draw(6) == 0 ? 2 : 1;
    h.open.insert(what.request);
    for (int i = 0; i < copies; ++i)
      h.requested.emplace_back(
        what.request, ask_as<lease_ticket>(h.who.handle, h.link.handle, what));
  }

  /// Calls a function with each answer that has come, once.
  template <class T, class Function>
  static void take(std::vector<std::pair<uint64_t, reply<T>>>& from, Function what) {
    std::erase_if(from, [&](const auto& each) {
      if (each.second.slot->has_value())
        what(each.first, **each.second.slot);
      return each.second.slot->has_value();
    });
  }

  void measure(holder_state& h, const holder_memory::grant& grant) {
    if (!grant.executor)
      return;
    measure_request what;
    what.under = grant.what.granted;
    what.attempt = {"p", "cuda", 1};
    h.asked.push_back(
      ask_as<measurement>(h.who.handle, caf::actor_cast<gpu_actor>(grant.executor), what));
  }

  /// Holders take note of what came; grants are acted on with some delay, or never.
  void read_mail(holder_state& h, bool act) {
    take(h.requested, [&](uint64_t request, const auto& ticket) {
      if (!ticket)
        h.open.erase(request);
    });
    while (h.ended_seen < h.who->ended.size())
      h.open.erase(h.who->ended[h.ended_seen++].request);
    while (h.grants_seen < h.who->grants.size()) {
      auto grant = h.who->grants[h.grants_seen];
      h.open.erase(grant.what.request);
      if (!act)
        break;
      ++h.grants_seen;
      measure(h, grant);
      if (!calm && draw(8) == 0)
        measure(h, grant); // Twice.
    }
    std::erase_if(h.asked, [&](const auto& asked) {
      if (answered(asked) && **asked.slot && (**asked.slot)->failure_text.empty())
        score(***asked.slot);
      return answered(asked);
    });
  }

  void score(const measurement& m) {
    read_log();
    std::pair<std::string, uint64_t> key{name_of(m.gpu), m.token};
    auto& newest = books[key.first].ledger;
    if (m.token <= newest && scored.count(key) == 0) {
      ++refused_late; // As the scorer does.
      return;
    }
    newest = m.token;
    if (!scored.insert(key).second)
      broke("a token is scored twice");
    if (lost.count(key) != 0)
      broke("scored under a lease that was taken back");
    if (given_back.count(key) == 0)
      broke("scored under a lease that was never given back");
  }

  void read_log() {
    for (; events_seen < log->events.size(); ++events_seen) {
      const auto& e = log->events[events_seen];
      ++kinds[e.kind];
      if (e.gpu.empty())
        continue;
      auto& g = books[e.gpu];
      std::pair<std::string, uint64_t> key{e.gpu, e.token};
      if (e.kind == "token_block") {
        g.reserved = e.token;
      } else if (e.kind == "lease_adopt") {
        if (g.held)
          broke(fmt::format("{} is adopted although it is held", e.gpu));
        // It was exclusive all the time, also when the broker before had just taken it back.
        lost.erase(key);
        g.held = true;
      } else if (e.kind == "lease_grant") {
        if (g.held)
          broke(fmt::format("{} has two holders", e.gpu));
        if (e.token <= g.token)
          broke("a token came back");
        g.token = e.token;
        g.held = true;
      } else if (e.kind == "lease_active") {
        active.insert(key);
      } else if (e.kind == "lease_release") {
        (e.reason == "the device ended without a release" || e.reason == "cancelled" ? lost
                                                                                     : given_back)
          .insert(key);
      } else if (e.kind == "lease_revoke" || e.kind == "lease_withdraw"
        || e.kind == "lease_tainted") {
        lost.insert(key);
      } else if (e.kind == "gpu_free" || e.kind == "gpu_draining" || e.kind == "gpu_suspect"
        || e.kind == "gpu_quarantined") {
        if (e.kind == "gpu_free")
          verified.insert(key);
        g.held = false;
      }
    }
  }

  void stale_report() {
    auto gpu = draw(gpus.size());
    device_report what;
    what.gpu = static_cast<uint32_t>(gpu);
    const auto& old = draw(2) == 0 ? verified : active;
    what.state = &old == &verified ? device_state::verified : device_state::active;
    std::vector<uint64_t> tokens;
    for (const auto& [name, token] : old)
      if (name == name_of(gpu) && token < books[name].token)
        tokens.push_back(token);
    if (tokens.empty() || !alive(gpus[gpu]))
      return;
    what.token = tokens[draw(tokens.size())];
    ask_as<lease_ack>(gpus[gpu], links[gpu].handle, what);
  }

  /// Nothing runs under an old token once a newer one was granted, whoever reported what.
  void look_at_children() {
    for (const auto& [id, promise] : children->promises)
      if (auto found = work.find(id); found != work.end()) {
        const auto& [name, token] = found->second;
        if (token < books[name].token)
          broke(fmt::format(
            "token {} of {} still runs after the grant of {}", token, name, books[name].token));
      }
  }

  void crash_gpu(uint64_t gpu, bool link_first) {
    ++executor_crashes;
    auto old = links[gpu];
    old->up.reset();
    old->dead = true;
    auto wait = [&] {
      if (draw(2) == 0)
        advance(std::chrono::milliseconds{draw(2000)});
    };
    auto news = std::chrono::milliseconds{draw(2) == 0 ? 0 : draw(4000)};
    if (link_first) {
      old->leave(0s);
      wait();
    }
    end(gpus[gpu], caf::exit_reason::kill);
    if (!link_first)
      old->leave(news);
    wait();
    start_gpu(gpu);
  }

  void crash_broker() {
    ++broker_crashes;
    ++net->start;
    net->broker = nullptr;
    end(broker, caf::exit_reason::kill);
    read_log();
    for (size_t i = 0; i < links.size(); ++i)
      links[i]->void_up_to = books[name_of(i)].reserved;
    if (draw(2) == 0)
      advance(std::chrono::milliseconds{draw(8000)});
    start_broker();
    for (auto& link : links) {
      if (draw(3) == 0)
        advance(std::chrono::milliseconds{draw(3000)});
      if (link->attach)
        link->attach();
      settle();
    }
  }

  void step(const script_step& what) {
    random.state = what.seed;
    auto& h = holders[draw(holders.size())];
    switch (what.verb) {
    case 0:
      request(h);
      break;
    case 1:
      read_mail(h, true);
      break;
    case 2:
      if (!h.who->grants.empty())
        measure(h, h.who->grants[draw(h.who->grants.size())]); // Late, or once more.
      break;
    case 3: {
      lease_command cancel;
      cancel.verb = lease_verb::cancel;
      cancel.request = draw(h.last_request + 1); // 0 is none.
      h.open.erase(cancel.request); // Served, cancelled or not: nobody waits for it any more.
      ask_as<lease_ack>(h.who.handle, h.link.handle, cancel);
      break;
    }
    case 4:
      if (!h.who->grants.empty()) {
        const auto& grant = h.who->grants[draw(h.who->grants.size())].what;
        lease_command back;
        back.gpu = grant.granted.gpu;
        back.token = grant.granted.token;
        back.outcome = lease_outcome::hang; // Not for a holder to say.
        back.reason = "cancelled";
        ask_as<lease_ack>(h.who.handle, h.link.handle, back);
      }
      break;
    case 5:
      if (draw(4) == 0) {
        ++holder_crashes;
        end(h.who.handle, caf::exit_reason::kill);
        h.link->leave(std::chrono::milliseconds{draw(2) == 0 ? 0 : draw(4000)});
        settle();
        h = make_holder();
      }
      break;
    case 6:
      if (draw(3) == 0)
        crash_gpu(draw(gpus.size()), false);
      break;
    case 7:
      stale_report();
      break;
    case 8:
      if (draw(4) == 0)
        ask<lease_ack>(broker,
          broker_command{draw(2) == 0 ? broker_verb::drain : broker_verb::undrain,
            draw(2) == 0 ? std::string{} : name_of(draw(gpus.size())), "test"});
      break;
    case 9:
      if (draw(6) == 0)
        crash_broker();
      break;
    case 11:
      if (draw(4) == 0)
        crash_gpu(draw(gpus.size()), true);
      break;
    default:
      advance(std::chrono::milliseconds{draw(8000)});
      break;
    }
    read_log();
    look_at_children();
    for (auto& each : holders)
      read_mail(each, false);
  }

  /// Everything obeys from now on: whoever waits must be served or told.
  void come_to_rest() {
    calm = true;
    net->clear_up();
    children->obeys_cancel = true;
    children->obeys_terminate = true;
    for (int minute = 0; minute < 40; ++minute) {
      auto open = children->promises;
      for (const auto& [id, promise] : open) {
        auto gone = child_that_says({}, child_end::cancelled);
        gone.id = id;
        children.finish(*this, gone);
      }
      for (size_t i = 0; i < gpus.size(); ++i)
        ask<lease_ack>(broker, broker_command{broker_verb::undrain, name_of(i), "test"});
      for (int i = 0; i < 60; ++i) {
        advance(1s);
        for (auto& each : holders)
          read_mail(each, true);
      }
      read_log();
      look_at_children();
    }
    for (const auto& h : holders)
      if (!h.open.empty())
        broke(fmt::format("request {} was neither served nor told", *h.open.begin()));
    auto seen = answer(ask<broker_snapshot>(broker, broker_query{10}));
    if (seen->waiting != 0)
      broke("somebody still waits");
    for (const auto& g : seen->gpus)
      if (g.phase != gpu_phase::free)
        broke(fmt::format("{} is {}: {}", g.name, to_string(g.phase), g.reason));
  }

  void go(const script& what) {
    for (const auto& each : what.steps)
      if (broken.empty())
        step(each);
    if (broken.empty())
      come_to_rest();
  }
};

std::string play(const script& what, bool tell = false) {
  schedule s{what.seed};
  s.go(what);
  if (tell)
    for (const auto& e : s.log->events)
      MESSAGE(std::chrono::duration_cast<std::chrono::milliseconds>(e.t).count(), " ms ", e.kind,
        " ", e.gpu, " ", e.token, " ", e.reason, " ", e.data);
  return s.broken;
}

/// Leaves out what the failure does not need, in ever smaller pieces.
script shrink(script what) {
  for (auto piece = what.steps.size() / 2; piece > 0; piece /= 2)
    for (size_t at = 0; at < what.steps.size();) {
      auto less = what;
      auto from = less.steps.begin() + static_cast<std::ptrdiff_t>(at);
      less.steps.erase(
        from, from + static_cast<std::ptrdiff_t>(std::min(piece, less.steps.size() - at)));
      if (play(less).empty())
        at += piece;
      else
        what = std::move(less);
    }
  return what;
}

// A sanitizer makes each schedule many times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t schedules_usual = 300;
#else
constexpr uint64_t schedules_usual = 2000;
#endif

/// A number of the environment; 0 when there is none.
uint64_t number_of(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

} // namespace

// GRISTMILL_ACTOR_SCHEDULES asks for more schedules, such as 100000; GRISTMILL_FAULT_SEED for one.
TEST_CASE(
  "whatever breaks: one token runs on a GPU, nothing stale is scored, nobody is forgotten") {
  auto only = number_of("GRISTMILL_FAULT_SEED");
  auto asked = number_of("GRISTMILL_ACTOR_SCHEDULES");
  auto first = only == 0 ? 1 : only;
  auto last = only != 0 ? only : asked != 0 ? asked : schedules_usual;
  std::map<std::string, int> kinds;
  uint64_t scored = 0, refused = 0, holders = 0, executors = 0, brokers = 0;
  network sum;
  for (uint64_t seed = first; seed <= last; ++seed) {
    auto what = random_script(seed);
    std::string broken;
    {
      schedule s{seed};
      s.go(what);
      broken = s.broken;
      scored += s.scored.size();
      refused += s.refused_late;
      holders += s.holder_crashes;
      executors += s.executor_crashes;
      brokers += s.broker_crashes;
      sum.carried += s.net->carried;
      sum.delayed += s.net->delayed;
      sum.doubled += s.net->doubled;
      sum.overtaken += s.net->overtaken;
      sum.lost += s.net->lost;
      for (const auto& [kind, n] : s.kinds)
        kinds[kind] += n;
    }
    if (broken.empty())
      continue;
    auto small = shrink(what);
    MESSAGE(
      "seed ", seed, ": ", broken, "; replay with GRISTMILL_ACTOR_SCRIPT=file:\n", to_text(small));
    FAIL(play(small));
  }
  if (only != 0)
    return;
  MESSAGE(last, " schedules: ", kinds["lease_grant"], " grants, ", kinds["lease_adopt"],
    " leases adopted, ", scored, " results scored, ", refused,
    " refused as too late; crashes: ", holders, " holders, ", executors, " executors, ", brokers,
    " brokers; messages: ", sum.carried, ", late ", sum.delayed, ", doubled ", sum.doubled,
    ", overtaking ", sum.overtaken, ", lost with a broker ", sum.lost);
  CHECK(scored > 2 * last);
  CHECK(sum.overtaken > last);
  CHECK(sum.doubled > last);
  CHECK(brokers > last / 10);
  // A test of faults that never happen would prove nothing.
  for (const std::string kind :
    {"lease_withdraw", "lease_revoke", "lease_wait_end", "lease_adopt", "gpu_down", "gpu_probe",
      "gpu_suspect", "gpu_drain", "candidate_failed", "candidate_poison", "gpu_verifying", "alarm"})
    CHECK_MESSAGE(kinds[kind] > 0, "never happened: ", kind);
}

TEST_CASE("a script of this test is printed and read as the same script") {
  auto what = random_script(4711);
  std::istringstream text{to_text(what)};
  auto read = parse_script(text);
  CHECK(to_text(read) == to_text(what));
  CHECK(play(read) == play(what));
}

// GRISTMILL_ACTOR_SCRIPT: a file that a failure has printed.
TEST_CASE("the script that the environment names holds every rule") {
  const char* file = std::getenv("GRISTMILL_ACTOR_SCRIPT");
  if (file == nullptr)
    return;
  std::ifstream in{file};
  REQUIRE_MESSAGE(in, "cannot read ", file);
  CHECK(play(parse_script(in), true) == "");
}
