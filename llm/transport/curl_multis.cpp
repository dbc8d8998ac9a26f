#include "llm/transport/curl_multis.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <new>
#include <sys/epoll.h>
#include <system_error>
#include <unistd.h>

namespace gristmill {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

nanoseconds steady_now() {
  return std::chrono::duration_cast<nanoseconds>(
    std::chrono::steady_clock::now().time_since_epoch());
}

CURLM* new_multi(long per_host) {
  CURLM* multi = curl_multi_init();
  if (multi == nullptr)
    throw std::bad_alloc{};
  curl_multi_setopt(multi, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX));
  curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, per_host);
  // Idle connections to keep: as many as a few servers need at once.
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 4 * per_host);
  return multi;
}

} // namespace

curl_multis::curl_multis(long few_per_host, long many_per_host)
  : few_(new_multi(few_per_host)), many_(new_multi(many_per_host)),
    epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0)
    throw std::system_error(errno, std::generic_category(), "epoll_create1");
  curl_multi_setopt(many_, CURLMOPT_SOCKETFUNCTION, &curl_multis::on_socket);
  curl_multi_setopt(many_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(many_, CURLMOPT_TIMERFUNCTION, &curl_multis::on_timer);
  curl_multi_setopt(many_, CURLMOPT_TIMERDATA, this);
}

curl_multis::~curl_multis() {
  curl_multi_cleanup(few_);
  curl_multi_cleanup(many_);
  ::close(epoll_);
}

int curl_multis::on_socket(CURL*, curl_socket_t socket, int what, void* self, void*) {
  auto& multis = *static_cast<curl_multis*>(self);
  if (what == CURL_POLL_REMOVE) {
    // It may be closed already, and then it is gone from the set as well.
    ::epoll_ctl(multis.epoll_, EPOLL_CTL_DEL, socket, nullptr);
    return 0;
  }
  epoll_event wanted{};
  wanted.data.fd = socket;
  if (what & CURL_POLL_IN)
    wanted.events |= EPOLLIN;
  if (what & CURL_POLL_OUT)
    wanted.events |= EPOLLOUT;
  if (::epoll_ctl(multis.epoll_, EPOLL_CTL_MOD, socket, &wanted) != 0
    && ::epoll_ctl(multis.epoll_, EPOLL_CTL_ADD, socket, &wanted) != 0)
    return -1;
  return 0;
}

int curl_multis::on_timer(CURLM*, long timeout_ms, void* self) {
  auto& timer = static_cast<curl_multis*>(self)->timer_;
  timer.reset();
  if (timeout_ms >= 0)
    timer = steady_now() + milliseconds{timeout_ms};
  return 0;
}

void curl_multis::add(CURL* easy, lane where) {
  [[maybe_unused]] const auto done = curl_multi_add_handle(where == lane::few ? few_ : many_, easy);
  assert(done == CURLM_OK);
}

void curl_multis::remove(CURL* easy, lane where) {
  [[maybe_unused]] const auto done =
    curl_multi_remove_handle(where == lane::few ? few_ : many_, easy);
  assert(done == CURLM_OK);
}

void curl_multis::perform() {
  int running = 0;
  curl_multi_perform(few_, &running);
  std::array<epoll_event, 256> ready;
  const int count = ::epoll_wait(epoll_, ready.data(), int(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const auto& each = ready[static_cast<size_t>(i)];
    int what = 0;
    if (each.events & EPOLLIN)
      what |= CURL_CSELECT_IN;
    if (each.events & EPOLLOUT)
      what |= CURL_CSELECT_OUT;
    if (each.events & (EPOLLERR | EPOLLHUP))
      what |= CURL_CSELECT_IN | CURL_CSELECT_ERR;
    curl_multi_socket_action(many_, each.data.fd, what, &running);
  }
  if (timer_ && *timer_ <= steady_now()) {
    timer_.reset();
    curl_multi_socket_action(many_, CURL_SOCKET_TIMEOUT, 0, &running);
  }
}

void curl_multis::take_done(const std::function<void(CURL*, CURLcode)>& done) {
  for (CURLM* multi : {few_, many_}) {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
      // `done` removes the handle, and the message with it.
      CURL* easy = message->easy_handle;
      const auto code = message->data.result;
      if (message->msg == CURLMSG_DONE)
        done(easy, code);
    }
  }
}

void curl_multis::wait(milliseconds timeout) {
  if (timer_) {
    const auto left = std::chrono::ceil<milliseconds>(*timer_ - steady_now());
    timeout = std::clamp(left, milliseconds{0}, timeout);
  }
  curl_waitfd many_ready{epoll_, CURL_WAIT_POLLIN, 0};
  int ready = 0;
  curl_multi_poll(few_, &many_ready, 1, int(timeout.count()), &ready);
}

void curl_multis::wake() {
  curl_multi_wakeup(few_);
}

} // namespace gristmill
