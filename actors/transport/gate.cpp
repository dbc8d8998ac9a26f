#include "actors/transport/gate.hpp"

#include "actors/transport/loopback_owner.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace gristmill {

namespace {

using namespace std::chrono_literals;

/// How long a refused one has to read why.
constexpr auto farewell = 1s;
constexpr size_t farewell_bytes_max = 4096;
/// For the actor library to forget an older connection of the same process.
constexpr auto replaced = 2s;
constexpr auto replaced_pause = 100ms;
constexpr auto note_pause = 10s;

half_open::instant now_steady() {
  return std::chrono::steady_clock::now();
}

int64_t now_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
    std::chrono::system_clock::now().time_since_epoch())
    .count();
}

std::string new_nonce() {
  unsigned char bytes[16] = {};
  // Never fewer than asked for, for so few.
  [[maybe_unused]] const auto got = getrandom(bytes, sizeof(bytes), 0);
  assert(got == sizeof(bytes));
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

std::string address_of(const sockaddr_storage& end, socklen_t size) {
  char host[NI_MAXHOST] = {};
  getnameinfo(
    reinterpret_cast<const sockaddr*>(&end), size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return host;
}

} // namespace

struct cluster_gate::guest {
  enum class stage { tls, talk, replacing, farewell };

  guest(uint64_t number, int socket, join_identity ours)
    : id(number), line(std::make_shared<wire>(socket)), talk(std::move(ours), new_nonce()) {}

  uint64_t id;
  wire_ptr line;
  door_talk talk;
  std::string address;
  std::string name;
  stage at = stage::talk;
  std::string out;
  short events = POLLIN;
  size_t thrown_away = 0;
  /// Older connections of the same process, which go first.
  std::vector<wire_ptr> older;
  half_open::instant until{};
  bool over = false;
};

cluster_gate::cluster_gate(gate_settings settings) : settings_(std::move(settings)) {}

result<std::unique_ptr<cluster_gate>> cluster_gate::open(
  gate_settings settings, std::optional<listening_socket> port) {
  std::unique_ptr<cluster_gate> gate{new cluster_gate(std::move(settings))};
  if (auto fine = gate->check(); !fine)
    return pass(fine);
  if (!port) {
    auto taken = listening_socket::at(gate->settings_.address);
    if (!taken)
      return pass(taken);
    port = std::move(*taken);
  }
  if (auto started = gate->start(std::move(*port)); !started)
    return pass(started);
  return gate;
}

result<void> cluster_gate::load_identity() {
  auto stamp = tls_folder_stamp(settings_.tls);
  auto loaded = load_tls_folder(settings_.tls, tls_role::coordinator, now_seconds());
  if (!loaded)
    return pass(loaded);
  identity_ = std::move(*loaded);
  stamp_ = std::move(stamp);
  const auto days = (identity_->not_after - now_seconds()) / (24 * 3600);
  if (days < 30)
    spdlog::warn("--tls {}/cert.pem ends in {} days; `gristmill cluster renew` makes a new one",
      settings_.tls, days);
  return {};
}

result<void> cluster_gate::check() {
  if (settings_.tls.empty()) {
    if (!is_loopback(settings_.address))
      return fail(errc::invalid_input,
        "--listen " + to_string(settings_.address) + ": needs --tls FOLDER beyond loopback");
    if (!can_tell_users())
      return fail(errc::invalid_input,
        "--listen " + to_string(settings_.address)
          + ": /proc/net/tcp cannot be read, so nobody can tell whose process connects; give --tls "
            "FOLDER (`gristmill cluster init` makes one)");
  } else if (auto loaded = load_identity(); !loaded) {
    return loaded;
  }
  return {};
}

result<void> cluster_gate::start(listening_socket port) {
  port_ = port.port();
  listener_ = port.release();
  int pair[2] = {-1, -1};
  stop_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stop_ < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
    return fail(errc::io_failed, std::string("gate: ") + std::strerror(errno));
  ready_in_ = pair[0];
  ready_out_ = pair[1];
  waiting_.emplace(settings_.half_open_max, settings_.patience);
  thread_ = std::thread([this] { run(); });
  return {};
}

void cluster_gate::stop() {
  if (!thread_.joinable())
    return;
  const uint64_t one = 1;
  [[maybe_unused]] auto told = ::write(stop_, &one, sizeof(one));
  thread_.join();
  guests_.clear();
  close(std::exchange(listener_, -1));
  std::lock_guard lock{mutex_};
  arrivals_ = {};
}

cluster_gate::~cluster_gate() {
  stop();
  for (int each : {listener_, stop_, ready_in_, ready_out_})
    if (each >= 0)
      close(each);
}

int cluster_gate::take_ready_socket() {
  return std::exchange(ready_out_, -1);
}

std::optional<arrival> cluster_gate::next() {
  std::lock_guard lock{mutex_};
  if (arrivals_.empty())
    return std::nullopt;
  auto out = std::move(arrivals_.front());
  arrivals_.pop();
  return out;
}

std::vector<std::string> cluster_gate::names_of(const std::string& process) const {
  std::lock_guard lock{mutex_};
  std::vector<std::string> out;
  for (const auto& each : members_)
    if (auto line = each.line.lock(); line && !line->is_gone() && each.process == process)
      out.push_back(each.name);
  return out;
}

std::vector<wire_ptr> cluster_gate::lines() const {
  std::lock_guard lock{mutex_};
  std::vector<wire_ptr> out;
  for (const auto& each : members_)
    if (auto line = each.line.lock(); line && !line->is_gone())
      out.push_back(std::move(line));
  return out;
}

void cluster_gate::run() {
  std::vector<pollfd> polled;
  std::vector<uint64_t> ids;
  while (true) {
    auto now = now_steady();
    const bool accepts = now >= accept_again_;
    polled.assign({{stop_, POLLIN, 0}, {accepts ? listener_ : -1, POLLIN, 0}});
    ids.clear();
    auto wake = now + 1s;
    if (auto next = waiting_->next_deadline())
      wake = std::min(wake, *next);
    if (!accepts)
      wake = std::min(wake, accept_again_);
    for (const auto& [id, one] : guests_) {
      // One that waits for an older connection would be told of its end over and over.
      const bool waits = one->at == guest::stage::replacing;
      polled.push_back({waits ? -1 : one->line->socket(), one->events, 0});
      ids.push_back(id);
      if (waits)
        wake = std::min(wake, now + 50ms);
      if (one->at == guest::stage::farewell)
        wake = std::min(wake, one->until);
    }
    const auto pause = std::chrono::ceil<std::chrono::milliseconds>(wake - now).count();
    poll(polled.data(), polled.size(), static_cast<int>(std::max<int64_t>(0, pause)));
    if (polled[0].revents != 0)
      return;
    now = now_steady();
    for (auto id : waiting_->expired(now))
      if (auto found = guests_.find(id); found != guests_.end()) {
        note_refusal(*found->second, "it did not say in time who it is", now);
        found->second->over = true;
      }
    for (size_t i = 0; i < ids.size(); ++i) {
      auto& one = *guests_.at(ids[i]);
      if (!one.over && (polled[i + 2].revents != 0 || one.at == guest::stage::replacing))
        step(one, now);
      if (one.at == guest::stage::farewell && now >= one.until)
        one.over = true;
    }
    if (polled[1].revents != 0)
      accept_some(now);
    std::erase_if(guests_, [this](const auto& entry) {
      if (entry.second->over)
        waiting_->remove(entry.first);
      return entry.second->over;
    });
    if (now >= swept_ + 1s) {
      swept_ = now;
      close_silent(now);
    }
  }
}

void cluster_gate::accept_some(half_open::instant now) {
  for (int taken = 0; taken < 16; ++taken) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    const int socket =
      accept4(listener_, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
      // Out of descriptors or memory: those that wait in line stay there for a moment.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        spdlog::warn("no connection can be taken: {}", std::strerror(errno));
        accept_again_ = now + 500ms;
      }
      return;
    }
    const auto id = ++next_id_;
    auto one = std::make_unique<guest>(id, socket, settings_.ours);
    one->address = address_of(peer, size);
    if (!settings_.tls.empty()) {
      if (tls_folder_stamp(settings_.tls) != stamp_)
        if (auto loaded = load_identity(); !loaded) {
          spdlog::warn("{}; what was loaded before stays in use", loaded.error().what);
          stamp_ = tls_folder_stamp(settings_.tls);
        }
      one->at = guest::stage::tls;
      if (!one->line->start_tls(identity_->context.get(), true, {}))
        continue;
    }
    if (auto victim = waiting_->add(id, one->address, now))
      if (auto found = guests_.find(*victim); found != guests_.end()) {
        note_refusal(*found->second, "too many connections that do not say who they are", now);
        found->second->over = true;
      }
    guests_.emplace(id, std::move(one));
  }
}

bool cluster_gate::flush(guest& one) {
  while (!one.out.empty()) {
    const auto sent = one.line->write(one.out.data(), one.out.size());
    if (sent.what == wire::state::done) {
      one.out.erase(0, sent.bytes);
      continue;
    }
    if (sent.what == wire::state::want_read || sent.what == wire::state::want_write)
      one.events = sent.what == wire::state::want_read ? POLLIN : POLLOUT;
    else
      one.over = true;
    return false;
  }
  one.events = POLLIN;
  return true;
}

void cluster_gate::refuse(guest& one, const std::string& text, const std::string& reason) {
  const auto now = now_steady();
  note_refusal(one, reason, now);
  one.out += text;
  one.at = guest::stage::farewell;
  one.until = now + farewell;
  flush(one);
  // The last words arrive only if what the peer has sent is read; that comes to an end soon.
  ::shutdown(one.line->socket(), SHUT_WR);
}

void cluster_gate::step(guest& one, half_open::instant now) {
  if (one.at == guest::stage::tls) {
    const auto made = one.line->handshake();
    switch (made.what) {
    case wire::state::done:
      one.name = one.line->peer_name();
      one.at = guest::stage::talk;
      one.events = POLLIN;
      break;
    case wire::state::want_read:
      one.events = POLLIN;
      return;
    case wire::state::want_write:
      one.events = POLLOUT;
      return;
    case wire::state::ended:
      note_refusal(one, "it went away during the TLS handshake", now);
      one.over = true;
      return;
    case wire::state::failed:
      if (one.line->speaks_no_tls()) {
        // A process of ours that was started without reads this line.
        const auto line = refusal_line("the coordinator speaks TLS; give --tls FOLDER");
        ::send(one.line->socket(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      }
      refuse(one, {}, one.line->failure_text());
      return;
    }
  }
  bool more = true;
  while (more && !one.over) {
    switch (one.at) {
    case guest::stage::tls:
      return;
    case guest::stage::talk:
      more = step_talk(one, now);
      break;
    case guest::stage::replacing:
      more = step_wait(one, now);
      break;
    case guest::stage::farewell: {
      char rest[512];
      const auto got = ::recv(one.line->socket(), rest, sizeof(rest), 0);
      one.thrown_away += static_cast<size_t>(std::max<ssize_t>(0, got));
      more = got > 0 && one.thrown_away < farewell_bytes_max;
      one.over = !more && !(got < 0 && errno == EAGAIN);
      break;
    }
    }
  }
}

bool cluster_gate::step_talk(guest& one, half_open::instant now) {
  if (!flush(one))
    return false;
  char byte = 0;
  const auto got = one.line->read(&byte, 1);
  if (got.what == wire::state::want_read || got.what == wire::state::want_write) {
    one.events = got.what == wire::state::want_read ? POLLIN : POLLOUT;
    return false;
  }
  if (got.what != wire::state::done) {
    if (one.line->tls_refused())
      refuse(one, {}, one.line->failure_text());
    else
      note_refusal(one, "it went away before it had said who it is", now);
    one.over = one.at != guest::stage::farewell;
    return false;
  }
  auto step = one.talk.feed(byte);
  switch (step.what) {
  case talk_step::next::more:
    return true;
  case talk_step::next::say:
    one.out = step.text;
    return true;
  case talk_step::next::refuse:
    refuse(one, step.text, step.reason);
    return false;
  case talk_step::next::admit:
    break;
  }
  // It has read our nonce, so a process holds that end, and the table of connections knows whose.
  if (settings_.tls.empty()) {
    const auto user = peer_user(one.line->socket());
    if (!user || !is_trusted_user(*user)) {
      const std::string reason = user
        ? "it is a process of another user (" + std::to_string(*user) + ")"
        : "the system does not say whose process it is";
      refuse(one, refusal_line("without TLS only processes of the same user may join: " + reason),
        reason);
      return false;
    }
  }
  size_t alive = 0;
  {
    std::lock_guard lock{mutex_};
    for (const auto& each : members_) {
      auto line = each.line.lock();
      if (!line || line->is_gone())
        continue;
      ++alive;
      if (each.process == one.talk.theirs().process)
        one.older.push_back(line);
    }
  }
  if (alive >= settings_.connections_max + one.older.size()) {
    const std::string reason =
      "there are " + std::to_string(alive) + " connections already, as many as may be";
    refuse(one, refusal_line(reason), reason);
    return false;
  }
  one.out = step.text;
  for (const auto& line : one.older)
    line->shut();
  one.until = now + (one.older.empty() ? half_open::instant::duration{0} : replaced);
  one.at = guest::stage::replacing;
  one.events = 0;
  return true;
}

bool cluster_gate::step_wait(guest& one, half_open::instant now) {
  if (!one.older.empty() && now < one.until) {
    if (!std::all_of(
          one.older.begin(), one.older.end(), [](const auto& l) { return l->is_gone(); }))
      return false;
    one.older.clear();
    one.until = now + replaced_pause;
  }
  if (now < one.until)
    return false;
  if (flush(one))
    hand_over(one, now);
  return false;
}

void cluster_gate::hand_over(guest& one, half_open::instant now) {
  {
    std::lock_guard lock{mutex_};
    std::erase_if(members_, [](const member& each) {
      auto line = each.line.lock();
      return !line || line->is_gone();
    });
    members_.push_back({one.line, one.talk.theirs().process, one.name, now});
    arrivals_.push({one.line, one.talk.theirs().process, one.name});
  }
  spdlog::debug(
    "a process of {} is let in{}{}", one.address, one.name.empty() ? "" : " as ", one.name);
  const char byte = 1;
  [[maybe_unused]] auto told = ::send(ready_in_, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  one.over = true;
}

void cluster_gate::close_silent(half_open::instant now) {
  std::lock_guard lock{mutex_};
  for (const auto& each : members_)
    if (auto line = each.line.lock();
        line && !line->is_gone() && !line->was_heard() && now >= each.since + settings_.silence)
      line->shut();
}

void cluster_gate::note_refusal(
  const guest& one, const std::string& reason, half_open::instant now) {
  ++refused_since_;
  if (noted_ != half_open::instant{} && now < noted_ + note_pause)
    return;
  const auto others = refused_since_ - 1;
  spdlog::warn("a connection from {} was refused: {}{}", one.address, reason,
    others == 0 ? "" : fmt::format(" ({} others before it)", others));
  noted_ = now;
  refused_since_ = 0;
}

} // namespace gristmill
