#include "gpu/probe.hpp"
#include "protocol/json_document.hpp"

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

class mock_probe : public gpu_probe {
public:
  explicit mock_probe(std::string runner) : runner_(std::move(runner)) {}

  std::vector<std::vector<std::string>> commands(
    const std::string& device, probe_occasion why) const override {
    if (why == probe_occasion::after_lease)
      return {};
    return {{runner_, "--canary", device.substr(0, device.find('#'))}};
  }

  /// The canary's last line is {"canary":"passed"} or {"canary":"failed","detail":"…"}.
  probe_report judge(const std::string&, const std::vector<probe_answer>& answers) override {
    if (answers.size() != 1 || !answers[0].status)
      return {probe_outcome::could_not, "the canary gave no answer in time"};
    auto status = *answers[0].status;
    std::string_view text = trimmed(answers[0].output);
    if (auto before = text.rfind('\n'); before != std::string_view::npos)
      text.remove_prefix(before + 1);
    auto line = parse_json(text, "the canary", {.bytes = 64 << 10, .depth = 4});
    auto said = line && line->is_object() && line->contains("canary") ? line->at("canary") : "";
    if (said == "passed" && status == 0)
      return {};
    if (said == "failed" && status == 1) {
      auto detail = line->find("detail");
      return {probe_outcome::failed,
        detail != line->end() && detail->is_string() ? "canary: " + detail->get<std::string>()
                                                     : "canary: wrong"};
    }
    return {probe_outcome::could_not,
      fmt::format("the canary ended with {} and without a result", status)};
  }

private:
  std::string runner_;
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

std::unique_ptr<gpu_probe> make_smi_probe() {
  return std::make_unique<smi_probe>();
}

} // namespace gristmill
