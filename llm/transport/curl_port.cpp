#include "llm/transport/curl_port.hpp"

#include "llm/transport/curl_call.hpp"
#include "llm/transport/curl_multis.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <csignal>
#include <fmt/format.h>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gristmill {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

nanoseconds steady_now() {
  return std::chrono::duration_cast<nanoseconds>(
    std::chrono::steady_clock::now().time_since_epoch());
}

class curl_port final : public http_port {
public:
  curl_port(curl_port_options options, http_sink sink)
    : options_(std::move(options)), sink_(std::move(sink)),
      multis_(long{options_.connections_per_host}, long{options_.connections_per_host_http1}),
      thread_([this] { run(); }) {}

  ~curl_port() override {
    stopping_ = true;
    multis_.wake();
    thread_.join();
  }

  void start(http_call call) override {
    order next;
    next.id = call.id;
    if (open_.fetch_add(1) < options_.calls_max) {
      next.what = order::kind::start;
      next.call = std::move(call);
    } else {
      --open_;
      next.what = order::kind::refuse;
    }
    give(std::move(next));
  }

  void cancel(uint64_t id) override { give({order::kind::cancel, id, {}}); }
  void finished(uint64_t id) override { give({order::kind::finished, id, {}}); }

private:
  struct order {
    enum class kind : uint8_t { start, refuse, cancel, finished };
    kind what = kind::start;
    uint64_t id = 0;
    http_call call;
  };
  using calls = std::unordered_map<uint64_t, std::unique_ptr<curl_call>>;

  void give(order next) {
    {
      const std::lock_guard guard(mutex_);
      orders_.push_back(std::move(next));
    }
    multis_.wake();
  }

  std::vector<order> take_orders() {
    const std::lock_guard guard(mutex_);
    return std::exchange(orders_, {});
  }

  void run();
  void obey(order next);
  void begin(http_call call);
  void on_done(CURL* easy, CURLcode code);
  void learn_protocol(const curl_call& call);
  void end_due();
  void arm(curl_call& call);
  void report_news();
  void end(calls::iterator at, http_report last);
  void end_those_that_waited_for(const std::string& server, const http_report& last);
  void end_all();
  milliseconds until_next() const;

  const curl_port_options options_;
  const http_sink sink_;
  curl_multis multis_;
  std::mutex mutex_;
  std::vector<order> orders_;
  std::atomic<uint32_t> open_{0};
  std::atomic<bool> stopping_{false};

  // The rest belongs to the thread.
  call_loop loop_;
  calls calls_;
  alarm_queue alarms_;
  /// Servers that answered in HTTP/1.
  std::set<std::string> http1_servers_;
  std::vector<easy_handle> idle_;

  std::thread thread_;
};

void curl_port::run() {
  // TLS writes without asking for no SIGPIPE, and signals are for the main thread.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (!stopping_) {
    auto orders = take_orders();
    loop_.now = steady_now();
    for (auto& each : orders)
      obey(std::move(each));
    multis_.perform();
    multis_.take_done([this](CURL* easy, CURLcode code) { on_done(easy, code); });
    loop_.now = steady_now();
    report_news();
    end_due();
    multis_.wait(until_next());
  }
  end_all();
}

void curl_port::obey(order next) {
  if (next.what == order::kind::start)
    return begin(std::move(next.call));
  if (next.what == order::kind::refuse) {
    http_report refused;
    refused.id = next.id;
    refused.ended = true;
    refused.how = http_end::not_sent;
    refused.why = fmt::format("{} calls are under way, more are not taken", options_.calls_max);
    return sink_(std::move(refused));
  }
  const auto at = calls_.find(next.id);
  if (at == calls_.end())
    return;
  if (next.what == order::kind::cancel)
    return end(at, at->second->end(http_end::cancelled, "cancelled"));
  at->second->finished_asked = true;
  at->second->deadlines.finished(loop_.now);
  arm(*at->second);
}

void curl_port::begin(http_call call) {
  easy_handle easy;
  if (idle_.empty()) {
    easy.reset(curl_easy_init());
  } else {
    easy = std::move(idle_.back());
    idle_.pop_back();
  }
  const auto id = call.id;
  auto [at, is_new] =
    calls_.emplace(id, std::make_unique<curl_call>(std::move(call), options_, loop_));
  assert(is_new && "an id of a call is never used twice");
  auto& added = *at->second;
  if (const auto prepared = added.prepare(std::move(easy)); !prepared) {
    auto last = added.end(http_end::not_sent, prepared.error().what);
    idle_.push_back(added.release());
    calls_.erase(at);
    --open_;
    return sink_(std::move(last));
  }
  if (!added.url().https || http1_servers_.contains(added.url().server))
    added.lane = curl_multis::lane::many;
  multis_.add(added.easy(), added.lane);
  arm(added);
}

void curl_port::on_done(CURL* easy, CURLcode code) {
  char* owner = nullptr;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &owner);
  auto& call = *reinterpret_cast<curl_call*>(owner);
  learn_protocol(call);
  auto last = call.end_by_transfer(code);
  const auto server = call.url().server;
  end(calls_.find(call.id()), last);
  if (last.how == http_end::not_sent)
    end_those_that_waited_for(server, last);
}

/// Calls wait for a connection of a server that turns out to carry only one call each: they go to
/// where there are more of those. Nothing of them has been sent.
void curl_port::learn_protocol(const curl_call& call) {
  if (call.lane == curl_multis::lane::many || !call.is_http1()
    || !http1_servers_.insert(call.url().server).second)
    return;
  for (auto& [id, other] : calls_) {
    if (other->lane == curl_multis::lane::many || other->url().server != call.url().server
      || other->deadlines.where() != call_deadlines::phase::waiting)
      continue;
    multis_.remove(other->easy(), other->lane);
    other->lane = curl_multis::lane::many;
    multis_.add(other->easy(), other->lane);
  }
}

void curl_port::report_news() {
  for (const auto id : std::exchange(loop_.touched, {})) {
    const auto at = calls_.find(id);
    if (at == calls_.end())
      continue;
    auto& call = *at->second;
    call.seen_by_loop();
    arm(call);
    learn_protocol(call);
    if (call.has_news())
      sink_(call.take_news());
  }
}

/// Sees to it that the alarms look at the call no later than at its next deadline.
void curl_port::arm(curl_call& call) {
  const auto due = call.deadlines.next();
  if (!due || (call.armed_at != nanoseconds{0} && call.armed_at <= due->at))
    return;
  call.armed_at = due->at;
  alarms_.arm(call.id(), due->at);
}

void curl_port::end_due() {
  while (const auto id = alarms_.take_due(loop_.now)) {
    const auto at = calls_.find(*id);
    if (at == calls_.end())
      continue;
    auto& call = *at->second;
    call.armed_at = nanoseconds{0};
    const auto due = call.deadlines.next();
    if (!due || due->at > loop_.now) {
      arm(call);
      continue;
    }
    const auto server = call.url().server;
    auto last = call.end(due->how, call.deadlines.explain(due->how));
    end(at, last);
    if (due->how == http_end::connect_timeout)
      end_those_that_waited_for(server, last);
  }
}

/// Others wait for the connection that has just failed. Left alone they would try one after the
/// other, each with a whole deadline.
void curl_port::end_those_that_waited_for(const std::string& server, const http_report& last) {
  std::vector<uint64_t> waiting;
  for (const auto& [id, call] : calls_) {
    if (call->url().server != server)
      continue;
    if (call->deadlines.where() != call_deadlines::phase::waiting)
      return; // Somebody still connects, or is connected.
    waiting.push_back(id);
  }
  for (const auto id : waiting) {
    const auto at = calls_.find(id);
    end(at, at->second->end(last.how, last.why));
  }
}

void curl_port::end(calls::iterator at, http_report last) {
  auto& call = *at->second;
  multis_.remove(call.easy(), call.lane);
  constexpr size_t idle_max = 64;
  auto easy = call.release();
  if (idle_.size() < idle_max)
    idle_.push_back(std::move(easy));
  calls_.erase(at);
  --open_;
  sink_(std::move(last));
}

void curl_port::end_all() {
  while (!calls_.empty()) {
    const auto at = calls_.begin();
    end(at, at->second->end(http_end::cancelled, "the transport is closing"));
  }
  // A reader may have answered with a new call.
  for (auto left = take_orders(); !left.empty(); left = take_orders()) {
    for (const auto& each : left) {
      if (each.what != order::kind::start && each.what != order::kind::refuse)
        continue;
      http_report last;
      last.id = each.id;
      last.ended = true;
      last.how = http_end::not_sent;
      last.why = "the transport is closing";
      sink_(std::move(last));
    }
  }
}

milliseconds curl_port::until_next() const {
  constexpr milliseconds longest = std::chrono::seconds{10};
  const auto next = alarms_.next();
  if (!next)
    return longest;
  return std::clamp(std::chrono::ceil<milliseconds>(*next - loop_.now), milliseconds{0}, longest);
}

} // namespace

std::unique_ptr<http_port> make_curl_port(curl_port_options options, http_sink sink) {
  // Once in a process; the libcurl of Debian 12 allows it from any thread.
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)ready;
  return std::make_unique<curl_port>(std::move(options), std::move(sink));
}

} // namespace gristmill
