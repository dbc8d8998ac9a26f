#include "cli/mcp_server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace gristmill {

namespace {

/// With so much to write, nothing more is read: a client that does not listen is not served.
constexpr size_t unwritten_max = size_t{16} << 20;

} // namespace

mcp_server::mcp_server(mcp_session session, mcp_tools& tools, int in, int out)
  : session_(std::move(session)), tools_(tools), in_(in), out_(out),
    wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

mcp_server::~mcp_server() {
  for (auto& call : calls_)
    call.control.cancelled = true;
  for (auto& call : calls_)
    call.thread.join();
  close(wake_);
}

mcp_server::ending mcp_server::serve(const sigset_t& interrupts) {
  const int signals = signalfd(-1, &interrupts, SFD_CLOEXEC | SFD_NONBLOCK);
  bool reading = true;
  auto how = ending::input_closed;
  while (reading || !calls_.empty() || !unwritten_.empty()) {
    const bool listens = reading && unwritten_.size() < unwritten_max;
    std::array<pollfd, 4> wait{{{listens ? in_ : -1, POLLIN, 0},
      {unwritten_.empty() ? -1 : out_, POLLOUT, 0}, {wake_, POLLIN, 0}, {signals, POLLIN, 0}}};
    if (poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR)
      break;
    if (wait[3].revents != 0) {
      how = ending::interrupted;
      break;
    }
    if (wait[2].revents != 0)
      take_words();
    if (wait[1].revents != 0 && !write_some()) {
      how = ending::output_closed;
      break;
    }
    if (wait[0].revents != 0) {
      std::array<char, 65536> bytes;
      auto n = read(in_, bytes.data(), bytes.size());
      if (n > 0)
        take_input({bytes.data(), static_cast<size_t>(n)});
      else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        reading = false;
    }
  }
  close(signals);
  return how;
}

void mcp_server::take_input(std::string_view bytes) {
  while (!bytes.empty()) {
    auto end = bytes.find('\n');
    auto part = bytes.substr(0, end);
    if (!skipping_)
      partial_ += part;
    if (partial_.size() > session_.limits().message_bytes) {
      // Its rest is thrown away as it comes.
      skipping_ = true;
      partial_.clear();
      follow(session_.on_too_long());
    }
    if (end == std::string_view::npos)
      return;
    if (!std::exchange(skipping_, false))
      follow(session_.on_line(partial_));
    partial_.clear();
    bytes.remove_prefix(end + 1);
  }
}

void mcp_server::follow(const mcp_step& step) {
  queue(step.lines);
  for (auto number : step.cancelled)
    for (auto& call : calls_)
      if (call.number == number)
        call.control.cancelled = true;
  for (const auto& call : step.calls)
    start(call);
}

void mcp_server::start(const mcp_call& call) {
  auto& running = calls_.emplace_back();
  running.number = call.number;
  running.control.progress = [this, number = call.number, wanted = call.wants_progress](
                               double done, const std::string& message) {
    if (wanted)
      say({number, false, {}, done, message});
  };
  running.thread = std::thread([this, call, &running] {
    mcp_outcome outcome;
    try {
      outcome = tools_.call(call, running.control);
    } catch (const std::exception& error) {
      outcome = {std::string("a mistake of ours: ") + error.what(), nullptr, true};
    }
    say({call.number, true, std::move(outcome), 0, {}});
  });
}

void mcp_server::say(word what) {
  {
    std::lock_guard lock(mutex_);
    words_.push_back(std::move(what));
  }
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);
}

void mcp_server::take_words() {
  uint64_t drained = 0;
  (void)!read(wake_, &drained, sizeof drained);
  std::deque<word> words;
  {
    std::lock_guard lock(mutex_);
    words.swap(words_);
  }
  for (const auto& what : words) {
    if (!what.is_outcome) {
      queue(session_.on_progress(what.call, what.done, what.message));
      continue;
    }
    queue(session_.on_outcome(what.call, what.outcome));
    auto over = std::find_if(
      calls_.begin(), calls_.end(), [&](const running_call& c) { return c.number == what.call; });
    over->thread.join();
    calls_.erase(over);
  }
}

void mcp_server::queue(const std::vector<std::string>& lines) {
  for (const auto& line : lines)
    unwritten_ += line + '\n';
}

bool mcp_server::write_some() {
  // A pipe that is ready takes this much without blocking.
  auto n = write(out_, unwritten_.data(), std::min<size_t>(unwritten_.size(), PIPE_BUF));
  if (n < 0)
    return errno == EINTR || errno == EAGAIN;
  unwritten_.erase(0, static_cast<size_t>(n));
  return true;
}

} // namespace gristmill
