#include "protocol/child_channel.hpp"

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace gristmill {

namespace {

constexpr std::array<std::string_view, 6> kind_names{
  "hello", "phase", "heartbeat", "sample", "fault", "done"};

} // namespace

std::string_view to_string(child_line_kind kind) {
  return kind_names[static_cast<size_t>(kind)];
}

result<child_line> parse_child_line(std::string_view line, std::string_view nonce) {
  auto parsed = parse_json(line, "line of a child", {child_line_bytes_max, 16, 4096});
  if (!parsed)
    return pass(parsed);
  if (!parsed->is_object())
    return fail(errc::invalid_input,
      fmt::format("line of a child: expected an object, found {}", kind_text(*parsed)));
  auto take = [&](const char* key) -> std::string {
    auto found = parsed->find(key);
    if (found == parsed->end() || !found->is_string())
      return {};
    auto text = found->get<std::string>();
    parsed->erase(found);
    return text;
  };
  if (nonce.empty() || take("nonce") != nonce)
    return fail(errc::invalid_input, "line of a child: wrong or missing nonce");
  const auto kind = take("line");
  for (size_t i = 0; i < kind_names.size(); ++i)
    if (kind == kind_names[i])
      return child_line{static_cast<child_line_kind>(i), std::move(*parsed)};
  return fail(errc::invalid_input,
    fmt::format("line of a child: {} is none of {}", excerpt(kind), fmt::join(kind_names, ", ")));
}

struct child_channel::state {
  std::string nonce;
  int descriptor = -1;
  std::mutex mutex;
  std::condition_variable wake;
  bool ended = false;
  std::thread beat;

  // One write for a whole line where the pipe takes it; the rest follows under the same lock, so
  // lines of two threads never mix.
  void write_locked(child_line_kind kind, const ordered_json& body) {
    ordered_json line = ordered_json::object();
    line["line"] = to_string(kind);
    line["nonce"] = nonce;
    for (const auto& [key, value] : body.items())
      line[key] = value;
    // Bytes that are no UTF-8 (a file name, a compiler's message) must not end the child.
    const auto text = line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
    size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t n = ::write(descriptor, text.data() + sent, text.size() - sent);
      if (n < 0 && errno == EINTR)
        continue;
      // SIGPIPE has ended us unless somebody ignores it; then nobody listens and nothing is left to
      // do.
      if (n < 0)
        _exit(1);
      sent += static_cast<size_t>(n);
    }
  }

  void write(child_line_kind kind, const ordered_json& body) {
    std::lock_guard guard(mutex);
    if (ended)
      return;
    write_locked(kind, body);
    ended = kind == child_line_kind::done;
  }

  void beat_until_end() {
    std::unique_lock guard(mutex);
    while (!wake.wait_for(guard, heartbeat_interval, [this] { return ended; }))
      write_locked(child_line_kind::heartbeat, ordered_json::object());
  }

  void end() {
    {
      std::lock_guard guard(mutex);
      ended = true;
    }
    wake.notify_all();
    if (beat.joinable())
      beat.join();
  }
};

result<std::unique_ptr<child_channel>> child_channel::open(std::string nonce, int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
    return fail(errc::refused,
      fmt::format(
        "descriptor {} is not open for writing: this program is started by gristmill only",
        descriptor));
  // Helpers that the child starts must not hold the pipe open.
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  auto inner = std::make_unique<state>();
  inner->nonce = std::move(nonce);
  inner->descriptor = descriptor;
  inner->beat = std::thread([raw = inner.get()] { raw->beat_until_end(); });
  return std::unique_ptr<child_channel>(new child_channel(std::move(inner)));
}

child_channel::child_channel(std::unique_ptr<state> inner) : state_(std::move(inner)) {}

child_channel::~child_channel() {
  state_->end();
  ::close(state_->descriptor);
}

void child_channel::hello(
  std::string_view program, std::string_view network, std::string_view protections) {
  state_->write(child_line_kind::hello,
    {{"program", program}, {"network", network}, {"protections", protections},
      {"pid", static_cast<int64_t>(::getpid())}});
}

void child_channel::phase(std::string_view name) {
  state_->write(child_line_kind::phase, {{"name", name}});
}

void child_channel::sample(const ordered_json& body) {
  state_->write(child_line_kind::sample, body);
}

void child_channel::fault(const ordered_json& body) {
  state_->write(child_line_kind::fault, body);
}

void child_channel::done(const ordered_json& body) {
  state_->write(child_line_kind::done, body);
}

} // namespace gristmill
