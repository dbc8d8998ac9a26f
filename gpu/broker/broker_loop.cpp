#include "gpu/broker/broker_loop.hpp"

#include "gpu/broker/client.hpp"
#include "gpu/broker/lease_cleaner.hpp"
#include "gpu/broker/line_buffer.hpp"
#include "gpu/broker/process_tree.hpp"
#include "gpu/broker/short_child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <optional>
#include <poll.h>
#include <pwd.h>
#include <set>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gristmill {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

/// Lines of one client before the others get their turn.
constexpr int lines_per_turn = 64;
/// From SIGTERM to SIGKILL for a client that works under its lease itself.
constexpr seconds holder_grace{5};
/// How often a child that has closed its output is looked at.
constexpr milliseconds child_interval{5};

std::string login_of(uid_t user) {
  std::array<char, 16384> text{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(user, &entry, text.data(), text.size(), &found) == 0 && found)
    return found->pw_name;
  return fmt::format("{}", user);
}

struct client_state {
  int descriptor = -1;
  line_buffer input{client_line_bytes_max};
  std::string output;
  nanoseconds hello_by{0};
  bool heard = false;
  bool closing = false;
  bool dead = false;
};

/// A GPU that is being looked at.
struct probe_state {
  uint32_t gpu = 0;
  std::optional<lease_cleaner> before;
  std::deque<std::vector<std::string>> commands;
  std::vector<probe_answer> answers;
  std::unique_ptr<short_child> child;
  nanoseconds deadline{0};
  bool trivial = false;
};

struct clean_state {
  uint32_t gpu = 0;
  uint64_t token = 0;
  lease_cleaner cleaner;
};

} // namespace

class broker_loop::impl : public broker_outside {
public:
  impl(broker_settings settings, broker_store& store, broker_socket& socket,
    std::unique_ptr<gpu_probe> probe, broker_loop_limits limits)
    : devices_(settings.devices), store_(store), socket_(socket), probe_(std::move(probe)),
      limits_(limits), core_(std::move(settings), *this) {}

  ~impl() override {
    for (auto& [id, c] : clients_)
      ::close(c.descriptor);
    if (signals_ >= 0)
      ::close(signals_);
  }

  result<void> start() {
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
      files.rlim_cur = std::min<rlim_t>(files.rlim_max, limits_.connections_max + 64);
      setrlimit(RLIMIT_NOFILE, &files);
    }
    return core_.start(broker_now());
  }

  void turn(nanoseconds at_most);
  void serve();
  broker_core& core() { return core_; }

  // What the core asks for.
  void send(connection_id to, const broker_line& line) override {
    auto found = clients_.find(to);
    if (found == clients_.end() || found->second.dead)
      return;
    auto& c = found->second;
    c.output += write_broker_line(line) + "\n";
    flush(c);
    if (c.output.size() > limits_.unread_bytes_max)
      c.dead = true; // It does not read; nobody waits for it.
  }
  void close(connection_id which) override {
    if (auto found = clients_.find(which); found != clients_.end())
      found->second.closing = true;
  }
  result<void> save(const broker_memory& memory, bool durable) override {
    return store_.save(memory, durable);
  }
  void save_lease(const lease_record& record) override { (void)store_.save_lease(record); }
  void forget_lease(const std::string& gpu) override { store_.forget_lease(gpu); }
  void note(event entry) override { store_.note(std::move(entry)); }
  void clean(uint32_t gpu, const lease_record& record, bool holder_too) override {
    // A guard that is gone can no longer be asked politely; a client that works by itself can.
    const nanoseconds polite = record.guarded || !holder_too ? seconds{0} : holder_grace;
    cleaning_.push_back(
      {gpu, record.token, lease_cleaner(record, holder_too, polite, broker_now())});
  }
  void probe(uint32_t gpu, const lease_record* last) override;
  std::string fresh_lease_name() override {
    std::array<unsigned char, 16> bytes{};
    if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
      std::abort(); // Never happens with so few bytes; a name that can be guessed must not go out.
    std::string out;
    for (auto b : bytes)
      out += fmt::format("{:02x}", b);
    return out;
  }
  bool keeper_lives(const lease_record& record) override {
    if (record.session != 0)
      return lives(record.session, record.session_started);
    return lives(record.pid, record.started);
  }
  uint64_t session_start(pid_t session, const broker_peer& peer) override {
    auto leader = process_of(session);
    const bool own = leader && leader->session == session
      && (session == peer.pid || leader->parent == peer.pid)
      && owner_of(session) == std::optional(peer.user);
    return own ? leader->started : 0;
  }

private:
  void flush(client_state& c);
  void accept_all();
  void read_from(connection_id id);
  void bury();
  void step_children();
  nanoseconds next_instant() const;

  std::vector<broker_device> devices_;
  broker_store& store_;
  broker_socket& socket_;
  std::unique_ptr<gpu_probe> probe_;
  broker_loop_limits limits_;
  std::map<connection_id, client_state> clients_;
  connection_id last_id_ = 0;
  std::vector<clean_state> cleaning_;
  std::vector<probe_state> probing_;
  int signals_ = -1;
  broker_core core_;
};

void broker_loop::impl::probe(uint32_t gpu, const lease_record* last) {
  probe_state p;
  p.gpu = gpu;
  p.trivial = !devices_[gpu].cuda;
  if (!p.trivial) {
    // Whatever went through another parent but carries the lease. Not by session: its guard is the
    // leader of that and still waits for our answer.
    if (last) {
      auto by_name = *last;
      by_name.session = 0;
      p.before.emplace(std::move(by_name), false, seconds{0}, broker_now());
    }
    auto why = last ? probe_occasion::after_lease : probe_occasion::suspicion;
    for (auto& command : probe_->commands(devices_[gpu].visible, why))
      p.commands.push_back(std::move(command));
  }
  p.deadline = broker_now() + probe_->limit();
  probing_.push_back(std::move(p));
}

void broker_loop::impl::flush(client_state& c) {
  while (!c.output.empty()) {
    auto sent = ::send(c.descriptor, c.output.data(), c.output.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      c.output.erase(0, static_cast<size_t>(sent));
      continue;
    }
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
      c.dead = true;
    return;
  }
}

void broker_loop::impl::accept_all() {
  while (true) {
    const int descriptor =
      accept4(socket_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor < 0)
      return;
    ucred who{};
    socklen_t size = sizeof who;
    if (clients_.size() >= limits_.connections_max
      || getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
      broker_line no;
      no.say = broker_say::error;
      no.code = errc::queue_full;
      no.what = "the broker has as many connections as it may; ask again later";
      auto text = write_broker_line(no) + "\n";
      (void)!::send(descriptor, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      ::close(descriptor);
      continue;
    }
    broker_peer peer;
    peer.user = who.uid;
    peer.pid = who.pid;
    auto seen = process_of(who.pid);
    peer.started = seen ? seen->started : 0;
    peer.login = login_of(who.uid);
    peer.trusted = who.uid == 0 || who.uid == geteuid();
    auto id = ++last_id_;
    auto& c = clients_[id];
    c.descriptor = descriptor;
    c.hello_by = broker_now() + limits_.hello_limit;
    core_.on_connect(id, peer, broker_now());
  }
}

void broker_loop::impl::read_from(connection_id id) {
  auto& c = clients_.at(id);
  std::array<char, 16384> part{};
  auto got = recv(c.descriptor, part.data(), part.size(), MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
    c.dead = true;
    return;
  }
  if (got > 0)
    c.input.append({part.data(), static_cast<size_t>(got)});
  for (int n = 0; n < lines_per_turn && !c.closing && !c.dead; ++n) {
    auto line = c.input.next();
    if (!line)
      break;
    c.heard = true;
    core_.on_line(id, *line, broker_now());
  }
  if (c.input.overflowed())
    c.dead = true;
}

/// Connections that are over. Their leases are dealt with in here.
void broker_loop::impl::bury() {
  const auto now = broker_now();
  std::vector<connection_id> gone;
  for (auto& [id, c] : clients_)
    if (c.dead || (c.closing && c.output.empty()) || (!c.heard && now >= c.hello_by))
      gone.push_back(id);
  for (auto id : gone) {
    ::close(clients_.at(id).descriptor);
    clients_.erase(id);
    core_.on_gone(id, now);
  }
}

void broker_loop::impl::step_children() {
  // In two passes: what the core does on an answer may start another.
  auto cleaning = std::move(cleaning_);
  cleaning_.clear();
  for (auto& c : cleaning) {
    auto done = c.cleaner.step(broker_now());
    if (done)
      core_.on_cleaned(c.gpu, c.token, done->found, done->ended, broker_now());
    else
      cleaning_.push_back(std::move(c));
  }
  auto probing = std::move(probing_);
  probing_.clear();
  for (auto& p : probing) {
    const auto now = broker_now();
    if (p.trivial) {
      core_.on_probed(p.gpu, {}, now);
      continue;
    }
    if (p.before && now < p.deadline) {
      if (p.before->step(now))
        p.before.reset();
      if (p.before) {
        probing_.push_back(std::move(p));
        continue;
      }
    }
    if (!p.child && !p.commands.empty()) {
      p.child = std::make_unique<short_child>(p.commands.front());
      p.commands.pop_front();
    }
    if (p.child && p.child->pump()) {
      p.answers.push_back(p.child->answer());
      p.child.reset();
    } else if (p.child && now >= p.deadline) {
      p.answers.push_back({});
      p.child.reset();
      p.commands.clear();
    }
    if (p.child || !p.commands.empty()) {
      probing_.push_back(std::move(p));
      continue;
    }
    core_.on_probed(p.gpu, probe_->judge(devices_[p.gpu].visible, p.answers), now);
  }
}

nanoseconds broker_loop::impl::next_instant() const {
  auto out = nanoseconds::max();
  if (auto due = core_.next_deadline())
    out = *due;
  for (const auto& c : cleaning_)
    out = std::min(out, c.cleaner.due());
  for (const auto& p : probing_)
    out = std::min(
      out, p.trivial || (!p.child && !p.before) ? nanoseconds{0} : broker_now() + child_interval);
  for (const auto& [id, c] : clients_)
    if (!c.heard)
      out = std::min(out, c.hello_by);
  return out;
}

void broker_loop::impl::turn(nanoseconds at_most) {
  std::vector<pollfd> watched{{socket_.descriptor(), POLLIN, 0}, {signals_, POLLIN, 0}};
  std::vector<connection_id> ids;
  for (const auto& [id, c] : clients_) {
    short events = c.closing ? 0 : POLLIN;
    if (!c.output.empty())
      events = static_cast<short>(events | POLLOUT);
    watched.push_back({c.descriptor, events, 0});
    ids.push_back(id);
  }
  const auto wait = std::clamp<nanoseconds>(next_instant() - broker_now(), nanoseconds{0}, at_most);
  poll(watched.data(), watched.size(),
    static_cast<int>(std::chrono::ceil<milliseconds>(wait).count()));
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto seen = watched[i + 2].revents;
    auto& c = clients_.at(ids[i]);
    if ((seen & POLLOUT) != 0)
      flush(c);
    if ((seen & (POLLIN | POLLHUP | POLLERR)) != 0 && !c.closing)
      read_from(ids[i]);
    else if ((seen & (POLLHUP | POLLERR)) != 0)
      c.dead = true;
  }
  // Before new clients: what just ended frees a GPU for somebody who waits already.
  step_children();
  bury();
  if (watched[0].revents != 0)
    accept_all();
  core_.on_tick(broker_now());
  step_children();
  bury();
}

void broker_loop::impl::serve() {
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGTERM);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGHUP);
  sigprocmask(SIG_BLOCK, &ours, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signals_ = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
  int asked = 0;
  while (asked < 2 && !(asked == 1 && core_.at_rest())) {
    turn(seconds{60});
    signalfd_siginfo seen{};
    while (read(signals_, &seen, sizeof seen) == sizeof seen) {
      // The terminal of its start may go; the broker stays.
      if (seen.ssi_signo == SIGHUP)
        continue;
      ++asked;
      core_.drain(broker_now());
    }
  }
  core_.save_all();
}

broker_loop::broker_loop(broker_settings settings, broker_store& store, broker_socket& socket,
  std::unique_ptr<gpu_probe> probe, broker_loop_limits limits)
  : impl_(std::make_unique<impl>(std::move(settings), store, socket, std::move(probe), limits)) {}

broker_loop::~broker_loop() = default;

result<void> broker_loop::start() {
  return impl_->start();
}

void broker_loop::turn(nanoseconds at_most) {
  impl_->turn(at_most);
}

void broker_loop::serve() {
  impl_->serve();
}

broker_core& broker_loop::core() {
  return impl_->core();
}

} // namespace gristmill
