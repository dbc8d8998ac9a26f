#pragma once

#include "tests/cli/program.hpp"

#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gristmill::test {

/// A broker as a user starts it, with its socket and state in a folder of its own.
class broker_process {
public:
  explicit broker_process(std::vector<std::string> flags, variables environment = {})
    : flags_(std::move(flags)), environment_(std::move(environment)) {
    start();
  }

  void start() {
    std::vector<std::string> words = {
      "broker", "--socket", socket(), "--state", (folder / "state").string()};
    words.insert(words.end(), flags_.begin(), flags_.end());
    broker_ = std::make_unique<program>(words, environment_);
    REQUIRE_MESSAGE(eventually([&] { return broker_->err().find("lends") != std::string::npos; }),
      broker_->err());
  }
  /// As a power cut would: no word, no clean-up.
  void kill_it() {
    broker_->signal(SIGKILL);
    CHECK(broker_->wait() == 128 + SIGKILL);
  }

  std::string socket() const { return (folder / "s").string(); }
  program& process() { return *broker_; }

  std::vector<std::string> lease_words(
    std::vector<std::string> flags, std::vector<std::string> command) const {
    std::vector<std::string> words = {"lease", "--socket", socket()};
    words.insert(words.end(), flags.begin(), flags.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }
  std::unique_ptr<program> lease(
    std::vector<std::string> flags, std::vector<std::string> command) const {
    return std::make_unique<program>(lease_words(std::move(flags), std::move(command)));
  }
  /// Runs a shell under a lease to its end; the exit code.
  int run(const std::string& script, std::vector<std::string> flags = {}) const {
    return lease(std::move(flags), {"sh", "-c", script})->wait(std::chrono::seconds{30});
  }
  nlohmann::json status() const {
    program p({"broker", "status", "--json", "--socket", socket()});
    REQUIRE(p.wait() == 0);
    return nlohmann::json::parse(p.out());
  }
  /// Nothing is held any more, within a few seconds.
  bool all_free() const {
    return eventually([&] {
      const auto now = status();
      for (const auto& gpu : now["gpus"])
        if (gpu["phase"] != "free")
          return false;
      return true;
    });
  }
  std::vector<nlohmann::json> journal() const {
    std::vector<nlohmann::json> out;
    std::ifstream in(folder / "state" / "journal.jsonl");
    for (std::string line; std::getline(in, line);)
      out.push_back(nlohmann::json::parse(line));
    return out;
  }

  scratch folder;

private:
  std::vector<std::string> flags_;
  variables environment_;
  std::unique_ptr<program> broker_;
};

/// A number that a script has written to a file; waits for it.
inline pid_t number_in(const std::filesystem::path& file) {
  long number = 0;
  REQUIRE(eventually([&] { return static_cast<bool>(std::ifstream(file) >> number); }));
  return static_cast<pid_t>(number);
}

/// Whether it is gone, or a zombie that nobody can reap here.
inline bool gone(pid_t pid) {
  return eventually([&] {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    if (!std::getline(in, text))
      return true;
    auto at = text.rfind(") ");
    return at != std::string::npos && text[at + 2] == 'Z';
  });
}

inline pid_t parent_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(in, text);
  return static_cast<pid_t>(std::stol(text.substr(text.rfind(") ") + 4)));
}

} // namespace gristmill::test
