#include "gpu/lease/table.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>

using namespace gristmill;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

/// A small generator with a seed; its numbers are the same on every machine.
class chance {
public:
  explicit chance(uint64_t seed) : state_(seed * 2 + 1) {}
  uint64_t below(uint64_t n) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return (state_ >> 33) % n;
  }
  bool percent(uint64_t p) { return below(100) < p; }

private:
  uint64_t state_;
};

/// The device side of one GPU: runs one token at a time and refuses old ones. What the table must
/// guarantee is that no newer token ever reaches it while an older one still runs.
struct executor {
  uint64_t running = 0;
  uint64_t highest = 0;
  uint64_t dying_for = 0;
};

enum class letter_kind { measure, active, release, verified, up, down, revoke, cancel, ack };

struct letter {
  letter_kind kind = letter_kind::measure;
  uint32_t gpu = 0;
  uint64_t token = 0;
  holder_id holder = 0;
  uint64_t request = 0;
};

/// A broker, executors and holders, joined by a net that delays, reorders, doubles and loses.
class world {
public:
  explicit world(uint64_t seed)
    : random_(seed), table_(config(), *policy_by_name(seed % 2 == 0 ? "fifo" : "stride")) {
    gpus_ = 1 + static_cast<uint32_t>(random_.below(3));
    holders_ = 1 + random_.below(4);
    executors_.resize(gpus_);
    newest_.resize(gpus_, 0);
    for (uint32_t g = 0; g < gpus_; ++g) {
      table_.add_gpu({fmt::format("g{}", g), g % 2 == 0 ? "even" : "odd", 0}, now_, out_);
      send({letter_kind::up, g, 0, 0, 0});
    }
    carry_out();
  }

  void step() {
    auto what = random_.below(100);
    if (what < 55)
      deliver();
    else if (what < 75)
      ask();
    else if (what < 85)
      pass_time();
    else if (what < 91)
      finish_work();
    else if (what < 94)
      send(
        {letter_kind::cancel, 0, 0, 1 + random_.below(holders_), 1 + random_.below(requests_ + 1)});
    else if (what < 96)
      table_.on_holder_down(1 + random_.below(holders_), now_, out_);
    else if (what < 98)
      restart_executor();
    else
      table_.on_device_down(gpu(), "chance", now_, out_);
    carry_out();
  }

  /// The weather clears: nothing is lost any more, all executors report, time goes on.
  void calm_down() {
    calm_ = true;
    for (int i = 0; i < 400; ++i) {
      if (i % 50 == 0)
        for (uint32_t g = 0; g < gpus_; ++g)
          send({letter_kind::up, g, 0, 0, 0});
      while (!net_.empty()) {
        deliver();
        carry_out();
      }
      finish_work();
      for (auto& e : executors_)
        end_dying(e);
      if (auto due = table_.next_deadline(); due && net_.empty())
        now_ = std::max(now_, *due);
      table_.on_tick(now_, out_);
      carry_out();
    }
  }

  bool quiet() const {
    auto s = table_.snapshot();
    return s.waiting == 0 && std::all_of(s.gpus.begin(), s.gpus.end(), [](const auto& g) {
      return g.phase == gpu_phase::free;
    });
  }

  std::string broken;
  uint64_t grants = 0;

private:
  static lease_table_config config() {
    lease_table_config c;
    c.token_block = 4;
    c.waiting_max = 6;
    c.patience_max = 1h;
    return c;
  }

  uint32_t gpu() { return static_cast<uint32_t>(random_.below(gpus_)); }

  void send(const letter& l) {
    net_.push_back(l);
    if (!calm_ && random_.percent(8))
      net_.push_back(l);
  }

  void ask() {
    lease_request r;
    r.request = ++requests_;
    auto holder = 1 + random_.below(holders_);
    r.flow = {fmt::format("p{}", random_.below(2)), fmt::format("a{}", holder)};
    r.what = static_cast<lease_class>(random_.below(5));
    static const char* needs[] = {"", "even", "odd"};
    r.need = needs[random_.below(gpus_ == 1 ? 2 : 3)];
    r.estimated_hold = std::chrono::seconds{random_.below(30)};
    r.patience = std::chrono::seconds{random_.below(3600)};
    auto ticket = table_.on_request(holder, r, now_, out_);
    if (!ticket && ticket.error().code != errc::queue_full)
      broken = "request refused: " + ticket.error().what;
    if (random_.percent(10)) {
      auto again = table_.on_request(holder, r, now_, out_);
      if (ticket && again && again->ticket != ticket->ticket && grants == 0)
        broken = "a doubled request got a second ticket";
    }
  }

  void pass_time() {
    now_ += std::chrono::milliseconds{random_.below(20'000)};
    table_.on_tick(now_, out_);
  }

  void finish_work() {
    auto g = gpu();
    auto& e = executors_[g];
    if (e.running == 0)
      return;
    send({letter_kind::release, g, e.running, 0, 0});
    e.running = 0;
  }

  void restart_executor() {
    auto g = gpu();
    // Its process group dies with it, and so does its post.
    executors_[g] = {};
    std::erase_if(net_, [&](const letter& l) {
      return l.gpu == g && (l.kind == letter_kind::measure || l.kind == letter_kind::revoke);
    });
    send({letter_kind::down, g, 0, 0, 0});
    send({letter_kind::up, g, 0, 0, 0});
  }

  void end_dying(executor& e) {
    if (e.dying_for == 0)
      return;
    auto g = static_cast<uint32_t>(&e - executors_.data());
    if (e.running != 0 && e.running <= e.dying_for)
      e.running = 0;
    send({letter_kind::verified, g, e.dying_for, 0, 0});
    e.dying_for = 0;
  }

  void deliver() {
    if (net_.empty())
      return;
    auto at = random_.below(net_.size());
    auto l = net_[at];
    net_.erase(net_.begin() + static_cast<ptrdiff_t>(at));
    // The journal's answers are not lost: without them the run stops.
    if (!calm_ && l.kind != letter_kind::ack && random_.percent(5))
      return;
    auto& e = executors_[std::min<size_t>(l.gpu, executors_.size() - 1)];
    switch (l.kind) {
    case letter_kind::measure:
      if (l.token <= e.highest)
        break;
      if (e.running != 0)
        broken = fmt::format("token {} reached GPU {} while {} runs", l.token, l.gpu, e.running);
      e.running = e.highest = l.token;
      send({letter_kind::active, l.gpu, l.token, 0, 0});
      break;
    case letter_kind::revoke:
      e.highest = std::max(e.highest, l.token);
      e.dying_for = std::max(e.dying_for, l.token);
      if (calm_ || random_.percent(70))
        end_dying(e);
      break;
    case letter_kind::active:
      table_.on_activated(l.gpu, l.token, now_, out_);
      break;
    case letter_kind::release:
      table_.on_release(l.gpu, l.token, "done", now_, out_);
      break;
    case letter_kind::verified:
      table_.on_verified(l.gpu, l.token, now_, out_);
      break;
    case letter_kind::up:
      table_.on_device_up(l.gpu, now_, out_);
      break;
    case letter_kind::down:
      table_.on_device_down(l.gpu, "restarted", now_, out_);
      break;
    case letter_kind::cancel:
      table_.on_cancel(l.holder, l.request, now_, out_);
      break;
    case letter_kind::ack:
      table_.on_block_reserved(l.gpu, l.token, now_, out_);
      break;
    }
  }

  /// Does what the table said, and checks what it may say.
  void carry_out() {
    for (size_t i = 0; i < out_.size(); ++i) {
      const auto a = out_[i];
      if (a.kind == lease_action_kind::grant) {
        const auto& l = a.granted.granted;
        if (l.token <= newest_[l.gpu])
          broken = fmt::format("token {} of GPU {} was granted again", l.token, l.gpu);
        newest_[l.gpu] = l.token;
        ++grants;
        // Some holders never use what they got.
        if (calm_ || !random_.percent(10))
          send({letter_kind::measure, l.gpu, l.token, 0, 0});
      } else if (a.kind == lease_action_kind::revoke) {
        send({letter_kind::revoke, a.revoke.gpu, a.revoke.token, 0, 0});
      } else if (a.kind == lease_action_kind::reserve) {
        send({letter_kind::ack, a.reserve.gpu, a.reserve.last, 0, 0});
      }
    }
    out_.clear();
    if (auto rule = table_.broken_invariant())
      broken = *rule;
  }

  chance random_;
  lease_table table_;
  lease_actions out_;
  nanoseconds now_{0};
  std::vector<executor> executors_;
  std::vector<uint64_t> newest_;
  std::vector<letter> net_;
  uint32_t gpus_ = 1;
  uint64_t holders_ = 1;
  uint64_t requests_ = 0;
  bool calm_ = false;
};

} // namespace

// A sanitizer makes each schedule tens of times slower, which would run into the time limit of a
// test.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t schedules = 10'000;
#else
constexpr uint64_t schedules = 100'000;
#endif

TEST_CASE("no GPU ever has two holders, whatever is late, lost, doubled or dead") {
  if (schedules < 100'000)
    MESSAGE("REDUCED: ", schedules, " schedules instead of 100000, because of the sanitizer");
  uint64_t grants = 0;
  for (uint64_t seed = 1; seed <= schedules; ++seed) {
    world w(seed);
    for (int i = 0; i < 60 && w.broken.empty(); ++i)
      w.step();
    grants += w.grants;
    if (!w.broken.empty()) {
      CAPTURE(seed);
      FAIL(w.broken);
    }
  }
  // Else the schedules would have tested nothing.
  CHECK(grants > 3 * schedules);
}

TEST_CASE("when the weather clears every wait ends and every GPU is free again") {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    world w(seed);
    for (int i = 0; i < 200; ++i)
      w.step();
    w.calm_down();
    REQUIRE_MESSAGE(w.broken.empty(), w.broken);
    REQUIRE(w.quiet());
  }
}
