#include "actors/cluster_middleman.hpp"

#include <algorithm>
#include <atomic>
#include <caf/io/all.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman_actor_impl.hpp>
#include <caf/io/network/acceptor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/stream_impl.hpp>
#include <map>
#include <mutex>
#include <spdlog/spdlog.h>
#include <stdexcept>
#include <sys/random.h>
#include <sys/socket.h>

namespace gristmill {

namespace {

namespace net = caf::io::network;

/// How CAF's streams read and write a wire.
class wire_policy {
public:
  explicit wire_policy(wire_ptr line) : line_(std::move(line)) {}

  net::rw_state read_some(size_t& bytes, net::native_socket, void* buffer, size_t size) {
    return outcome(bytes, size == 0 ? wire::progress{} : line_->read(buffer, size), size);
  }

  net::rw_state write_some(size_t& bytes, net::native_socket, const void* buffer, size_t size) {
    const auto state =
      outcome(bytes, size == 0 ? wire::progress{} : line_->write(buffer, size), size);
    line_->note_unsent(size - bytes);
    return state;
  }

  bool must_read_more(net::native_socket, size_t threshold) {
    return line_->waiting() >= threshold;
  }

private:
  static net::rw_state outcome(size_t& bytes, wire::progress made, size_t size) {
    bytes = made.bytes;
    if (size == 0)
      return net::rw_state::indeterminate;
    const bool broken = made.what == wire::state::ended || made.what == wire::state::failed;
    return broken ? net::rw_state::failure : net::rw_state::success;
  }

  wire_ptr line_;
};

/// Handles of CAF's own connections are numbers of sockets, which come again as soon as one is
/// closed, while messages about the old one may still be on their way. Ours never come again.
int64_t next_handle() {
  static std::atomic<int64_t> last{int64_t{1} << 40};
  return ++last;
}

/// One connection, with bounds.
class wire_scribe final : public caf::io::scribe {
public:
  wire_scribe(net::default_multiplexer& loop, wire_ptr line)
    : scribe(caf::io::connection_handle::from_int(next_handle())), line_(line),
      stream_(loop, line->give_socket_away(), line) {}

  /// Before the stream closes the socket.
  ~wire_scribe() override { line_->gone(); }

  void configure_read(caf::io::receive_policy::config config) override {
    // Nothing has been allocated yet. The stream finds the connection at its end.
    if (config.second > wire_message_max) {
      spdlog::warn(
        "a peer announces a message of {} bytes, {} are allowed: its connection is closed",
        config.second, wire_message_max);
      line_->shut();
      config.second = 1;
    }
    stream_.configure_read(config);
    if (!std::exchange(launched_, true))
      stream_.start(this);
  }

  bool consume(caf::execution_unit* context, const void* data, size_t size) override {
    if (!std::exchange(heard_, true))
      line_->heard();
    return scribe::consume(context, data, size);
  }

  void flush() override {
    if (stream_.wr_buf().size() > wire_backlog_max && !std::exchange(behind_, true)) {
      spdlog::warn("a peer does not read what it is sent: its connection is closed");
      line_->shut();
    }
    if (!stream_.wr_buf().empty())
      line_->note_unsent(stream_.wr_buf().size());
    stream_.flush(this);
  }

  void graceful_shutdown() override {
    stream_.graceful_shutdown();
    detach(&stream_.backend(), false);
  }

  void ack_writes(bool enable) override { stream_.ack_writes(enable); }
  std::vector<char>& wr_buf() override { return stream_.wr_buf(); }
  std::vector<char>& rd_buf() override { return stream_.rd_buf(); }
  std::string addr() const override { return {}; }
  uint16_t port() const override { return 0; }
  void add_to_loop() override { stream_.activate(this); }
  void remove_from_loop() override { stream_.passivate(); }

private:
  wire_ptr line_;
  net::stream_impl<wire_policy> stream_;
  bool launched_ = false;
  bool heard_ = false;
  bool behind_ = false;
};

/// Takes connections from the gate: one for each byte of its socket.
class gate_policy {
public:
  explicit gate_policy(std::shared_ptr<wire_ptr> taken, std::shared_ptr<cluster_gate> gate)
    : taken_(std::move(taken)), gate_(std::move(gate)) {}

  bool try_accept(net::native_socket& out, net::native_socket ready) {
    char byte = 0;
    if (::recv(ready, &byte, 1, 0) != 1)
      return false;
    auto next = gate_->next();
    if (!next)
      return false;
    out = next->line->socket();
    *taken_ = std::move(next->line);
    return true;
  }

private:
  std::shared_ptr<wire_ptr> taken_;
  std::shared_ptr<cluster_gate> gate_;
};

class gate_doorman final : public caf::io::doorman {
public:
  gate_doorman(net::default_multiplexer& loop, const std::shared_ptr<cluster_gate>& gate)
    : gate_doorman(loop, gate, gate->take_ready_socket()) {}

  bool new_connection() override {
    auto line = std::exchange(*taken_, nullptr);
    if (detached() || !line)
      return false;
    auto& loop = acceptor_.backend();
    auto made = caf::make_counted<wire_scribe>(loop, std::move(line));
    const auto handle = made->hdl();
    parent()->add_scribe(std::move(made));
    return doorman::new_connection(&loop, handle);
  }

  void launch() override { acceptor_.start(this); }
  void graceful_shutdown() override {
    acceptor_.graceful_shutdown();
    detach(&acceptor_.backend(), false);
  }
  std::string addr() const override { return {}; }
  uint16_t port() const override { return port_; }
  void add_to_loop() override { acceptor_.activate(this); }
  void remove_from_loop() override { acceptor_.passivate(); }

private:
  gate_doorman(net::default_multiplexer& loop, const std::shared_ptr<cluster_gate>& gate, int ready)
    : doorman(caf::io::accept_handle::from_int(next_handle())),
      taken_(std::make_shared<wire_ptr>()), port_(gate->port()),
      acceptor_(loop, ready, taken_, gate) {}

  std::shared_ptr<wire_ptr> taken_;
  uint16_t port_;
  net::acceptor_impl<gate_policy> acceptor_;
};

} // namespace

/// Shared by the module and the actor that CAF asks for connections.
class cluster_middleman::state {
public:
  std::mutex mutex;
  std::shared_ptr<cluster_gate> gate;
  /// Connections that are made and wait to be taken, by a name that never comes again.
  std::map<std::string, wire_ptr> made;
  std::map<std::string, std::weak_ptr<wire>> attached;
  /// Connections of gates that are closed.
  std::vector<std::weak_ptr<wire>> earlier;
  uint64_t tickets = 0;
  caf::io::middleman_actor actor;
};

namespace {

/// CAF's own actor for networking, except that it makes no connections but takes ours.
class wire_middleman final : public caf::io::middleman_actor_impl {
public:
  wire_middleman(caf::actor_config& config, caf::actor broker,
    std::function<wire_ptr(const std::string&)> take,
    std::function<std::shared_ptr<cluster_gate>()> gate)
    : middleman_actor_impl(config, std::move(broker)), take_(std::move(take)),
      gate_(std::move(gate)) {}

  const char* name() const override { return "cluster-middleman"; }

protected:
  caf::expected<caf::io::scribe_ptr> connect(const std::string& ticket, uint16_t) override {
    auto line = take_(ticket);
    if (!line)
      return caf::make_error(caf::sec::cannot_connect_to_node);
    return caf::make_counted<wire_scribe>(loop(), std::move(line));
  }

  caf::expected<caf::io::doorman_ptr> open(uint16_t, const char*, bool) override {
    auto gate = gate_();
    if (!gate)
      return caf::make_error(caf::sec::cannot_open_port);
    return caf::make_counted<gate_doorman>(loop(), gate);
  }

private:
  net::default_multiplexer& loop() {
    return static_cast<net::default_multiplexer&>(system().middleman().backend());
  }

  std::function<wire_ptr(const std::string&)> take_;
  std::function<std::shared_ptr<cluster_gate>()> gate_;
};

} // namespace

} // namespace gristmill

namespace caf::net {

/// CAF 0.17 declares this class as a friend of the actor system and does not define it: the one way
/// to replace the node id after CAF's middleman has made its own (modules start in the order of
/// their numbers, this one last).
class middleman final : public actor_system::module, public gristmill::cluster_middleman {
public:
  middleman(actor_system& system, std::string tls) : cluster_middleman(system, std::move(tls)) {}

  void init(actor_system_config&) override {
    node_id::default_data::host_id_type host{};
    uint32_t process = 0;
    if (getrandom(host.data(), host.size(), 0) != static_cast<ssize_t>(host.size())
      || getrandom(&process, sizeof(process), 0) != sizeof(process))
      throw std::runtime_error("getrandom failed");
    system_.node_ = make_node_id(1 + (process & 0x7ffffffe), host);
  }

  void start() override { cluster_middleman::start(); }
  void stop() override { end(); }
  id_t id() const override { return network_manager; }
  void* subtype_ptr() override { return this; }
};

} // namespace caf::net

namespace gristmill {

namespace {

constexpr std::chrono::seconds local_patience{10};
/// Of 10 ms.
constexpr int last_words_rounds = 100;

tl::unexpected<failure> middleman_failure(
  caf::actor_system& system, const std::string& where, const caf::error& error) {
  if (error == caf::sec::request_timeout)
    return fail(
      errc::timed_out, where + ": the coordinator let us in and then said nothing in time");
  return fail(
    errc::node_lost, where + ": the connection broke (" + seam::show(system, error) + ")");
}

} // namespace

cluster_middleman::cluster_middleman(caf::actor_system& system, std::string tls)
  : system_(system), tls_(std::move(tls)), state_(std::make_shared<state>()) {}

cluster_middleman* cluster_middleman::of(caf::actor_system& system) {
  return system.has_network_manager() ? &system.network_manager() : nullptr;
}

void cluster_middleman::start() {
  auto broker = system_.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  state_->actor = system_.spawn<wire_middleman, caf::hidden>(
    broker,
    [state = state_](const std::string& ticket) -> wire_ptr {
      std::lock_guard lock{state->mutex};
      auto found = state->made.extract(ticket);
      return found ? std::move(found.mapped()) : nullptr;
    },
    [state = state_] {
      std::lock_guard lock{state->mutex};
      return state->gate;
    });
}

void cluster_middleman::end() {
  std::vector<wire_ptr> lines;
  if (auto open = gate()) {
    open->stop();
    lines = open->lines();
  }
  {
    std::lock_guard lock{state_->mutex};
    for (const auto& [address, attached] : state_->attached)
      state_->earlier.push_back(attached);
    for (const auto& each : state_->earlier)
      if (auto line = each.lock())
        lines.push_back(std::move(line));
  }
  // Last words may go out; CAF would wait for ever for a peer that does not read them.
  const auto busy = [](const wire_ptr& line) { return !line->is_gone() && line->unsent() != 0; };
  for (int round = 0, idle = 0; round < last_words_rounds && idle < 3 && !lines.empty(); ++round) {
    lines.front()->wait_gone(10);
    idle = std::any_of(lines.begin(), lines.end(), busy) ? 0 : idle + 1;
  }
  for (const auto& line : lines)
    line->shut();
  if (state_->actor)
    caf::anon_send_exit(state_->actor, caf::exit_reason::kill);
  state_->actor = nullptr;
  std::lock_guard lock{state_->mutex};
  state_->gate = nullptr;
  state_->made.clear();
}

std::shared_ptr<cluster_gate> cluster_middleman::gate() const {
  std::lock_guard lock{state_->mutex};
  return state_->gate;
}

result<void> cluster_middleman::publish(const caf::strong_actor_ptr& door,
  std::set<std::string> signatures, std::unique_ptr<cluster_gate> gate) {
  caf::scoped_actor self{system_};
  if (auto before = this->gate()) {
    before->stop();
    {
      std::lock_guard lock{state_->mutex};
      for (const auto& line : before->lines())
        state_->earlier.push_back(line);
    }
    self->request(state_->actor, local_patience, caf::close_atom_v, before->port())
      .receive([] {},
        [&](const caf::error& error) {
          spdlog::warn("closing port {}: {}", before->port(), seam::show(system_, error));
        });
  }
  {
    std::lock_guard lock{state_->mutex};
    state_->gate = std::move(gate);
    if (!state_->gate)
      return {};
  }
  result<void> out;
  self
    ->request(state_->actor, local_patience, caf::publish_atom_v, uint16_t{0}, door,
      std::move(signatures), std::string(), false)
    .receive([](uint16_t) {},
      [&](const caf::error& error) {
        out = fail(errc::io_failed, "publishing the coordinator: " + seam::show(system_, error));
      });
  return out;
}

result<caf::strong_actor_ptr> cluster_middleman::attach(wire_ptr line, const std::string& address,
  const std::set<std::string>& signatures, std::chrono::nanoseconds deadline, bool& premature) {
  detach(address);
  std::string ticket;
  {
    std::lock_guard lock{state_->mutex};
    ticket = "connection-" + std::to_string(++state_->tickets);
    state_->made[ticket] = line;
    state_->attached[address] = line;
  }
  result<caf::strong_actor_ptr> out;
  caf::scoped_actor self{system_};
  self->request(state_->actor, caf::timespan{deadline}, caf::connect_atom_v, ticket, uint16_t{0})
    .receive(
      [&](
        const caf::node_id&, const caf::strong_actor_ptr& door, const std::set<std::string>& its) {
        if (!door || !system_.assignable(its, signatures))
          out = fail(errc::refused, address + ": what is published there is no coordinator");
        else
          out = door;
      },
      [&](const caf::error& error) {
        premature = error == caf::sec::connection_timeout;
        out = middleman_failure(system_, address, error);
      });
  if (!out)
    line->shut();
  return out;
}

void cluster_middleman::detach(const std::string& address) {
  wire_ptr line;
  {
    std::lock_guard lock{state_->mutex};
    if (auto found = state_->attached.extract(address))
      line = found.mapped().lock();
  }
  if (!line)
    return;
  line->shut();
  line->wait_gone(1000);
}

void load_middleman(caf::actor_system_config& config, std::chrono::nanoseconds heartbeat,
  std::chrono::nanoseconds timeout, std::string tls) {
  config.set("middleman.heartbeat-interval", caf::timespan{heartbeat});
  config.set("middleman.connection-timeout", caf::timespan{timeout});
  config.load<caf::io::middleman>();
  config.module_factories.push_back(
    [tls = std::move(tls)](caf::actor_system& system) -> caf::actor_system::module* {
      return new caf::net::middleman(system, tls);
    });
}

} // namespace gristmill
