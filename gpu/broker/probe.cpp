#include "gpu/probe.hpp"
#include "protocol/device_description.hpp"
#include "protocol/json_document.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <string_view>

namespace gristmill {

namespace {

/// Driver and display use a little more or less of it from time to time.
constexpr uint64_t memory_slack_mib = 512;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  auto from = text.find_first_not_of(blanks);
  if (from == std::string_view::npos)
    return {};
  return text.substr(from, text.find_last_not_of(blanks) - from + 1);
}

/// What a program prints before its answer is for people.
std::string_view last_line(std::string_view text) {
  text = trimmed(text);
  if (auto before = text.rfind('\n'); before != std::string_view::npos)
    text.remove_prefix(before + 1);
  return text;
}

std::optional<uint64_t> number(std::string_view text) {
  text = trimmed(text);
  uint64_t out = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return out;
}

class trivial_probe : public gpu_probe {
public:
  std::vector<std::vector<std::string>> commands(
    const std::string&, probe_occasion) const override {
    return {};
  }
  probe_report judge(const std::string&, const std::vector<probe_answer>&) override { return {}; }
};

/// The canary's last line is {"canary":"passed"} or {"canary":"failed","detail":"…"}.
probe_report judge_canary(const probe_answer& answer) {
  if (!answer.status)
    return {probe_outcome::could_not, "the canary gave no answer in time"};
  auto line = parse_json(last_line(answer.output), "the canary", {.bytes = 64 << 10, .depth = 4});
  auto said = line && line->is_object() && line->contains("canary") ? line->at("canary") : "";
  if (said == "passed" && *answer.status == 0)
    return {};
  if (said == "failed" && *answer.status == 1) {
    auto detail = line->find("detail");
    return {probe_outcome::failed,
      detail != line->end() && detail->is_string() ? "canary: " + detail->get<std::string>()
                                                   : "canary: wrong"};
  }
  return {probe_outcome::could_not,
    fmt::format("the canary ended with {} and without a result", *answer.status)};
}

/// Without the number that tells devices of one name apart.
std::string name_of(const std::string& device) {
  return device.substr(0, device.find('#'));
}

class mock_probe : public gpu_probe {
public:
  explicit mock_probe(std::string runner) : runner_(std::move(runner)) {}

  std::vector<std::vector<std::string>> commands(
    const std::string& device, probe_occasion why) const override {
    if (why == probe_occasion::after_lease)
      return {};
    return {{runner_, "--canary", name_of(device)}};
  }

  probe_report judge(const std::string&, const std::vector<probe_answer>& answers) override {
    return judge_canary(answers.size() == 1 ? answers[0] : probe_answer{});
  }

private:
  std::string runner_;
};

class cuda_probe : public gpu_probe {
public:
  explicit cuda_probe(std::string runner) : runner_(std::move(runner)) {}

  std::vector<std::vector<std::string>> commands(
    const std::string& device, probe_occasion why) const override {
    std::vector<std::vector<std::string>> all{{runner_, "--health", name_of(device)}};
    if (why == probe_occasion::suspicion)
      all.push_back({runner_, "--canary", name_of(device)});
    return all;
  }

  probe_report judge(const std::string& device, const std::vector<probe_answer>& answers) override {
    if (answers.empty() || answers.size() > 2)
      return {probe_outcome::could_not, "the device was not looked at"};
    auto health = judge_health(device, answers[0]);
    if (answers.size() == 1 || health.outcome == probe_outcome::failed)
      return health;
    // A device that computes right may still not tell how it is, and the other way round.
    auto canary = judge_canary(answers[1]);
    return canary.outcome == probe_outcome::passed ? health : canary;
  }

  std::chrono::nanoseconds limit() const override { return std::chrono::seconds{30}; }

private:
  struct normal {
    uint64_t memory_bytes = 0;
    uint64_t uncorrected_errors = 0;
  };

  probe_report judge_health(const std::string& device, const probe_answer& answer) {
    if (!answer.status)
      return {probe_outcome::could_not, "the look at its health gave no answer in time"};
    if (*answer.status != 0)
      return {probe_outcome::could_not,
        fmt::format("the look at its health ended with {}", *answer.status)};
    auto seen = health_from_json(last_line(answer.output));
    if (!seen)
      return {probe_outcome::could_not, seen.error().what};
    if (!seen->processes.empty())
      return {probe_outcome::failed, fmt::format("process {} is on it", seen->processes[0].pid)};
    auto [at, first] =
      normal_.try_emplace(device, normal{seen->memory_used_bytes, seen->uncorrected_errors});
    auto& usual = at->second;
    if (seen->uncorrected_errors > usual.uncorrected_errors)
      return {probe_outcome::failed,
        fmt::format("{} errors of its memory that could not be corrected, {} before",
          seen->uncorrected_errors, usual.uncorrected_errors)};
    if (seen->memory_used_bytes > usual.memory_bytes + (memory_slack_mib << 20))
      return {probe_outcome::failed,
        fmt::format("{} MiB in use, {} MiB when idle", seen->memory_used_bytes >> 20,
          usual.memory_bytes >> 20)};
    usual.memory_bytes = std::min(usual.memory_bytes, seen->memory_used_bytes);
    return {};
  }

  std::string runner_;
  std::map<std::string, normal> normal_;
};

class smi_probe : public gpu_probe {
public:
  std::vector<std::vector<std::string>> commands(
    const std::string& device, probe_occasion) const override {
    return {{"nvidia-smi", "--id=" + device, "--query-compute-apps=pid,used_memory",
              "--format=csv,noheader,nounits"},
      {"nvidia-smi", "--id=" + device, "--query-gpu=memory.used", "--format=csv,noheader,nounits"}};
  }

  probe_report judge(const std::string& device, const std::vector<probe_answer>& answers) override {
    for (const auto& answer : answers)
      if (!answer.status || *answer.status != 0)
        return {probe_outcome::could_not,
          answer.status ? fmt::format("nvidia-smi ended with {}", *answer.status)
                        : "nvidia-smi gave no answer in time"};
    if (answers.size() != 2)
      return {probe_outcome::could_not, "nvidia-smi was not asked"};
    // One line a process: "4711, 1024".
    std::string_view apps = answers[0].output;
    while (!apps.empty()) {
      auto line = trimmed(apps.substr(0, apps.find('\n')));
      apps.remove_prefix(std::min(apps.size(),
        apps.find('\n') == std::string_view::npos ? apps.size() : apps.find('\n') + 1));
      if (line.empty())
        continue;
      auto pid = number(line.substr(0, line.find(',')));
      if (!pid)
        return {probe_outcome::could_not, "nvidia-smi wrote something else than processes"};
      return {probe_outcome::failed, fmt::format("foreign process {}", *pid)};
    }
    auto used = number(answers[1].output);
    if (!used)
      return {probe_outcome::could_not, "nvidia-smi tells no memory in use"};
    auto [at, first] = idle_mib_.try_emplace(device, *used);
    if (*used > at->second + memory_slack_mib)
      return {
        probe_outcome::failed, fmt::format("{} MiB in use, {} MiB when idle", *used, at->second)};
    at->second = std::min(at->second, *used);
    return {};
  }

private:
  /// Least memory that was in use while nobody worked, by device.
  std::map<std::string, uint64_t> idle_mib_;
};

} // namespace

std::unique_ptr<gpu_probe> make_trivial_probe() {
  return std::make_unique<trivial_probe>();
}

std::unique_ptr<gpu_probe> make_mock_probe(std::string runner) {
  return std::make_unique<mock_probe>(std::move(runner));
}

std::unique_ptr<gpu_probe> make_cuda_probe(std::string runner) {
  return std::make_unique<cuda_probe>(std::move(runner));
}

std::unique_ptr<gpu_probe> make_smi_probe() {
  return std::make_unique<smi_probe>();
}

} // namespace gristmill
