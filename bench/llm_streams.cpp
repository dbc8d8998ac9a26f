// Memory and time of hundreds of calls at once over TLS and HTTP/2, against a server in a process
// of its own on the same machine. Prints goals beside figures; decides nothing.
//
//   gristmill-bench-llm-streams [--calls 500] [--rounds 20] [--repeat 3] [--body 16]
//
// Each repetition is a fresh process, so that memory kept from one does not flatter the next.

#include "llm/transport/curl_port.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <curl/curl.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <spawn.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <unordered_set>
#include <vector>

extern char** environ;

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

using clock_type = std::chrono::steady_clock;

double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

/// A line of /proc/self/status, in its own unit.
long status_of(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":"))
      return std::atol(line.c_str() + field.size() + 1);
  return -1;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

/// What one repetition found out; sent through a pipe.
struct figures {
  double last_first_event_s = 0;
  double took_s = 0;
  double kib_per_call = 0;
  double cpu_s = 0;
  long transport_threads = 0;
  long connections = 0;
  long wrong = 0;
};

/// The server's process. It ends when its stdin does, so also with us.
class server {
public:
  explicit server(const std::filesystem::path& program) {
    auto name = (std::filesystem::temp_directory_path() / "gristmill-bench-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    int to[2];
    int from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0)
      std::exit(1);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, to[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, from[1], STDOUT_FILENO);
    auto path = program.string();
    auto file = certificate();
    std::array<char*, 3> arguments{path.data(), file.data(), nullptr};
    if (::posix_spawn(&child_, path.c_str(), &files, nullptr, arguments.data(), environ) != 0) {
      std::fprintf(stderr, "%s does not start\n", path.c_str());
      std::exit(1);
    }
    ::posix_spawn_file_actions_destroy(&files);
    ::close(to[0]);
    ::close(from[1]);
    stdin_ = to[1];
    FILE* said = ::fdopen(from[0], "r");
    if (std::fscanf(said, "%d", &port_) != 1)
      std::exit(1);
    std::fclose(said);
  }
  ~server() {
    ::close(stdin_);
    ::waitpid(child_, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }

  std::string certificate() const { return (folder_ / "certificate.pem").string(); }
  std::string url(const std::string& path) const {
    return "https://127.0.0.1:" + std::to_string(port_) + path;
  }

private:
  std::filesystem::path folder_;
  pid_t child_ = -1;
  int stdin_ = -1;
  int port_ = 0;
};

/// Starts calls, answers their ends with more, and measures.
class crowd {
public:
  crowd(const server& at, const std::string& path, int agents, int rounds, size_t body_bytes)
    : path_(at.url(path)), body_bytes_(body_bytes), agents_(agents), left_(agents * rounds),
      unstarted_(agents * (rounds - 1)), resident_before_(status_of("VmRSS")),
      cpu_before_(cpu_seconds()) {
    curl_port_options options;
    options.ca_file = at.certificate();
    options.calls_max = static_cast<uint32_t>(agents) + 8;
    port_ = make_curl_port(options, [this](http_report report) { on_report(std::move(report)); });
    counting_url_ = at.url("/connections");
  }

  figures run() {
    start_ = clock_type::now();
    for (int i = 0; i < agents_; ++i)
      port_->start(call(path_));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return int(seen_.size()) >= agents_ || left_ == 0; });
    // All are open now, none has ended when they are long enough.
    out_.kib_per_call = double(status_of("VmRSS") - resident_before_) / agents_;
    out_.transport_threads = status_of("Threads") - 1;
    changed_.wait(lock, [&] { return left_ == 0; });
    out_.took_s = seconds_since(start_);
    out_.cpu_s = cpu_seconds() - cpu_before_;
    left_ = 1;
    lock.unlock();
    auto counting = call(counting_url_);
    counting_ = counting.id;
    port_->start(std::move(counting));
    lock.lock();
    changed_.wait(lock, [&] { return left_ == 0; });
    return out_;
  }

private:
  http_call call(const std::string& url) {
    http_call out;
    out.id = ++next_;
    out.url = url;
    out.body = std::string(body_bytes_, 'p');
    return out;
  }

  void on_report(http_report report) {
    bool more = false;
    {
      const std::lock_guard guard(mutex_);
      if (!report.events.empty() && int(seen_.size()) < agents_ && seen_.insert(report.id).second)
        out_.last_first_event_s = seconds_since(start_);
      if (report.ended) {
        if (report.id == counting_)
          out_.connections = std::atol(report.body.c_str());
        if (report.how != http_end::complete || report.status != 200) {
          if (out_.wrong++ == 0)
            std::fprintf(stderr, "first call that failed: %s\n", report.why.c_str());
        }
        --left_;
        more = unstarted_ > 0;
        unstarted_ -= more ? 1 : 0;
      }
      changed_.notify_all();
    }
    if (more)
      port_->start(call(path_));
  }

  std::string path_;
  std::string counting_url_;
  size_t body_bytes_;
  int agents_;
  int left_;
  int unstarted_;
  long resident_before_;
  double cpu_before_;
  clock_type::time_point start_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_set<uint64_t> seen_;
  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> counting_{0};
  figures out_;
  std::unique_ptr<http_port> port_;
};

/// Runs `what` in a process of its own.
template <class Function>
figures in_child(Function what) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0)
    std::exit(1);
  const pid_t child = ::fork();
  if (child == 0) {
    const figures found = what();
    const auto written = ::write(pipe[1], &found, sizeof found);
    std::_Exit(written == ssize_t(sizeof found) ? 0 : 1);
  }
  ::close(pipe[1]);
  figures out;
  if (::read(pipe[0], &out, sizeof out) != ssize_t(sizeof out)) {
    std::fprintf(stderr, "a repetition has failed\n");
    std::exit(1);
  }
  ::close(pipe[0]);
  ::waitpid(child, nullptr, 0);
  return out;
}

void print_row(const char* what, const std::vector<figures>& all, double figures::*field,
  const char* unit, const char* goal) {
  std::vector<double> values;
  for (const auto& each : all)
    values.push_back(each.*field);
  std::sort(values.begin(), values.end());
  std::printf("| %-44s | %9.2f | %9.2f | %9.2f | %-3s | %-8s |\n", what, values.front(),
    values[values.size() / 2], values.back(), unit, goal);
}

void print_counts(
  const char* what, const std::vector<figures>& all, long figures::*field, const char* goal) {
  std::vector<long> values;
  for (const auto& each : all)
    values.push_back(each.*field);
  std::sort(values.begin(), values.end());
  std::printf("| %-44s | %9ld | %9ld | %9ld | %-3s | %-8s |\n", what, values.front(),
    values[values.size() / 2], values.back(), "", goal);
}

int number(const char* text) {
  const int value = std::atoi(text);
  if (value < 1) {
    std::fprintf(stderr, "%s is no positive number\n", text);
    std::exit(2);
  }
  return value;
}

} // namespace

int main(int argc, char** argv) {
  int calls = 500;
  int rounds = 20;
  int repeat = 3;
  int body_kib = 16;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    int* what = nullptr;
    if (word == "--calls")
      what = &calls;
    else if (word == "--rounds")
      what = &rounds;
    else if (word == "--repeat")
      what = &repeat;
    else if (word == "--body")
      what = &body_kib;
    if (what == nullptr || i + 1 == argc) {
      std::fprintf(stderr,
        "usage: gristmill-bench-llm-streams [--calls N] [--rounds N] [--repeat N] "
        "[--body KIB]\n");
      return 2;
    }
    *what = number(argv[++i]);
  }
  const auto program =
    std::filesystem::read_symlink("/proc/self/exe").parent_path() / "gristmill-bench-llm-server";
  const auto body_bytes = static_cast<size_t>(body_kib) * 1024;
  std::vector<figures> streams;
  std::vector<figures> agents;
  for (int i = 0; i < repeat; ++i) {
    {
      const server at(program);
      streams.push_back(in_child([&] { return crowd(at, "/stream", calls, 1, body_bytes).run(); }));
    }
    const server at(program);
    agents.push_back(in_child([&] { return crowd(at, "/call", calls, rounds, body_bytes).run(); }));
  }
  double load = 0;
  if (::getloadavg(&load, 1) != 1)
    load = -1;
  std::printf(
    "measured, %d repetitions, each in a fresh process; libcurl %s; %u processors shared with "
    "the server\n(HTTP/2 over TLS, 100 streams a connection, same machine); bodies of %zu KiB; "
    "load average at the end %.1f\n\n",
    repeat, curl_version_info(CURLVERSION_NOW)->version, std::thread::hardware_concurrency(),
    body_bytes / 1024, load);
  std::printf(
    "| %-44s | %9s | %9s | %9s | %-3s | %-8s |\n", "", "min", "median", "max", "", "goal");
  std::printf("|%s|%s|%s|%s|%s|%s|\n", std::string(46, '-').c_str(), std::string(11, '-').c_str(),
    std::string(11, '-').c_str(), std::string(11, '-').c_str(), std::string(5, '-').c_str(),
    std::string(10, '-').c_str());
  const auto title = std::to_string(calls) + " streams: ";
  print_row(
    (title + "memory of each, all open").c_str(), streams, &figures::kib_per_call, "KiB", "<= 60");
  print_row(
    (title + "last first event").c_str(), streams, &figures::last_first_event_s, "s", "<= 1");
  print_row((title + "20 events over 1.9 s").c_str(), streams, &figures::took_s, "s", "");
  print_row((title + "CPU of the client").c_str(), streams, &figures::cpu_s, "s", "");
  print_counts(
    (title + "threads of the transport").c_str(), streams, &figures::transport_threads, "1");
  print_counts((title + "connections").c_str(), streams, &figures::connections, "<= 6");
  print_counts((title + "calls that failed").c_str(), streams, &figures::wrong, "0");
  const auto second = std::to_string(calls) + " agents x " + std::to_string(rounds) + " calls: ";
  print_row((second + "all").c_str(), agents, &figures::took_s, "s", "<= 4.6");
  print_row((second + "CPU").c_str(), agents, &figures::cpu_s, "s", "");
  print_counts((second + "connections over time").c_str(), agents, &figures::connections, "");
  print_counts((second + "failed").c_str(), agents, &figures::wrong, "0");
}
