// gristmill-device-check: what a real GPU of this machine does, how far its times can be relied on,
// and that what goes wrong ends with its process. One line a check on the standard output; exit
// code 0 when all hold, 1 otherwise, 77 without a GPU. Folders in which CUPTI, NVML and nvJitLink
// are looked for first may stand as arguments, and `--only PART`, again and again, for some of
// basics, kernels, calls, agreement, moving, faults and neighbours.
//
// This process starts no driver, because one that has must not fork: each part is this program
// again.

#include "tests/gpu/cuda/check_support.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <map>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace gristmill;
using device_check::check;

namespace {

std::vector<std::string> folders;

const std::map<std::string, void (*)()> parts{
  {"basics", device_check::check_basics},
  {"kernels", device_check::check_kernels},
  {"calls", device_check::check_calls},
  {"agreement", device_check::check_agreement},
  {"moving", device_check::check_moving},
  {"foreign", device_check::check_foreign},
  {"measure", device_check::measure_once},
  {"overrun", [] { device_check::fault_illegal(false); }},
  {"input", [] { device_check::fault_illegal(true); }},
  {"endless", device_check::fault_endless},
  {"memory", device_check::fault_memory},
  {"for-ever", device_check::work_for_ever},
};

/// A part in a process of its own.
class child {
public:
  explicit child(const std::string& part) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0)
      device_check::give_up("pipe", "none to be had");
    std::vector<std::string> words{"/proc/self/exe", "--part", part};
    words.insert(words.end(), folders.begin(), folders.end());
    std::vector<char*> arguments;
    for (auto& word : words)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    id_ = fork();
    if (id_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      execv("/proc/self/exe", arguments.data());
      _exit(127);
    }
    close(ends[1]);
    from_ = ends[0];
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child() {
    stop();
    close(from_);
  }

  /// Reads until it ends or `text` has come; false when neither happens in time.
  bool read_until(const std::string& text, int seconds) {
    pollfd end{from_, POLLIN, 0};
    while (text.empty() || said_.find(text) == said_.npos) {
      if (poll(&end, 1, seconds * 1000) <= 0)
        return false;
      std::array<char, 4096> buffer{};
      const auto n = read(from_, buffer.data(), buffer.size());
      if (n <= 0) {
        wait_for_it();
        return true;
      }
      said_.append(buffer.data(), static_cast<size_t>(n));
    }
    return true;
  }

  void stop() {
    if (ended_)
      return;
    kill(id_, SIGKILL);
    wait_for_it();
  }

  const std::string& said() const { return said_; }
  /// -1: killed by a signal.
  int status() const { return status_; }

private:
  void wait_for_it() {
    int status = 0;
    waitpid(id_, &status, 0);
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ended_ = true;
  }

  pid_t id_ = -1;
  int from_ = -1;
  std::string said_;
  int status_ = -1;
  bool ended_ = false;
};

int failed = 0;

/// Runs a part that checks by itself, and shows what it says.
void run_part(const std::string& part) {
  child one(part);
  const bool in_time = one.read_until("", 240);
  if (!in_time)
    one.stop();
  fmt::print("{}", one.said());
  if (!in_time)
    fmt::print("FAIL  {}: not done within 240 s without a word\n", part);
  else if (one.status() != 0)
    fmt::print("      {}: {} checks failed\n", part, one.status());
  failed += !in_time || one.status() < 0 ? 1 : one.status();
  std::fflush(stdout);
}

/// The word behind `name` in what a part said; empty when there is none.
std::string word_after(const std::string& said, const std::string& name) {
  const auto at = said.find(name + " ");
  if (at == said.npos)
    return "";
  const auto from = at + name.size() + 1;
  return said.substr(from, said.find('\n', from) - from);
}

double fresh_median() {
  child one("measure");
  (void)one.read_until("", 120);
  const auto word = word_after(one.said(), "median_ns");
  if (word.empty())
    fmt::print("      no measurement: {}\n", one.said());
  return word.empty() ? 0 : std::stod(word);
}

void check_faults() {
  const double before = fresh_median();
  fmt::print("\n      {:<34} {:>10.2f} us\n", "before any fault", before / 1e3);
  auto after = [&](const char* what) {
    const double now = fresh_median();
    check(fmt::format("after {} the next process measures within 2 % of before", what),
      before > 0 && std::abs(now / before - 1) < 0.02,
      fmt::format("{:.2f} us, {:+.2f} %", now / 1e3, 100 * (now / before - 1)));
  };
  for (const auto& [part, what] :
    {std::pair{"overrun", "a write beyond its buffer"}, {"input", "a write to an input"}}) {
    child one(part);
    (void)one.read_until("", 60);
    check(fmt::format("{} is a fault that the measurement tells", what),
      one.said().find("said fault") != one.said().npos
        && one.said().find("ILLEGAL_ADDRESS") != one.said().npos,
      word_after(one.said(), "said").substr(0, 100));
    after(what);
  }
  {
    child endless("endless");
    (void)endless.read_until("begun", 60);
    const bool ended = endless.read_until("ended", 3);
    endless.stop();
    check("an endless kernel is ended with its process", !ended);
  }
  after("an endless kernel");
  {
    child memory("memory");
    (void)memory.read_until("", 120);
    check("memory that is not there is refused",
      memory.status() == 0 && memory.said().find("said refused") != memory.said().npos,
      word_after(memory.said(), "said"));
  }
  after("a process that took all memory");
  {
    child victim("for-ever");
    (void)victim.read_until("begun", 60);
    (void)victim.read_until("ended", 2);
    victim.stop();
    check("a process is killed while it measures", victim.status() == -1);
  }
  after("a process that was killed with -9");
}

void check_neighbours() {
  auto foreign_seen = [](bool with_other) {
    std::unique_ptr<child> other;
    if (with_other) {
      other = std::make_unique<child>("for-ever");
      (void)other->read_until("begun", 60);
    }
    child one("foreign");
    (void)one.read_until("", 120);
    fmt::print("{}", one.said());
    return word_after(one.said(), "foreign");
  };
  const auto alone = foreign_seen(false), together = foreign_seen(true);
  check("alone there is no foreign process", alone == "0", alone);
  check("another process on the device is seen", together == "1", together);
}

} // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() >= 2 && words[0] == "--part") {
    device_check::set_library_folders({words.begin() + 2, words.end()});
    if (words[1] == "count") {
      auto count = cuda_device_count();
      fmt::print("{}\n", count ? "" : count.error().what);
      return count && *count > 0 ? 0 : 77;
    }
    const auto part = parts.find(words[1]);
    if (part == parts.end()) {
      fmt::print(stderr, "gristmill-device-check: there is no part `{}`\n", words[1]);
      return 2;
    }
    part->second();
    return device_check::failures();
  }
  std::vector<std::string> wanted;
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i] == "--only" && i + 1 < words.size())
      wanted.push_back(words[++i]);
    else
      folders.push_back(words[i]);
  {
    child count("count");
    if (!count.read_until("", 60) || count.status() != 0) {
      fmt::print(
        "skipped: {}", count.said().empty() ? "the driver does not answer\n" : count.said());
      return 77;
    }
  }
  auto want = [&](const char* part) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), part) != wanted.end();
  };
  for (const char* part : {"basics", "kernels", "calls", "agreement", "moving"})
    if (want(part))
      run_part(part);
  if (want("faults"))
    check_faults();
  if (want("neighbours"))
    check_neighbours();
  failed += device_check::failures();
  fmt::print("{} checks failed\n", failed);
  return failed == 0 ? 0 : 1;
}
