#include "actors/remote_steps.hpp"

#include "actors/child_job.hpp"

namespace gristmill {

void remote_book::ask(uint64_t child, measure_request what) {
  std::lock_guard lock{guard_};
  entries_[child].asked = std::move(what);
}

std::optional<measure_request> remote_book::asked(uint64_t child) const {
  std::lock_guard lock{guard_};
  auto found = entries_.find(child);
  if (found == entries_.end())
    return std::nullopt;
  return found->second.asked;
}

void remote_book::measured(uint64_t child, measurement what) {
  std::lock_guard lock{guard_};
  if (auto found = entries_.find(child); found != entries_.end())
    found->second.measured = std::move(what);
}

std::optional<measurement> remote_book::take(uint64_t child) {
  std::lock_guard lock{guard_};
  auto found = entries_.find(child);
  if (found == entries_.end())
    return std::nullopt;
  auto out = std::move(found->second.measured);
  entries_.erase(found);
  return out;
}

size_t remote_book::size() const {
  std::lock_guard lock{guard_};
  return entries_.size();
}

measure_steps remote_steps(
  std::shared_ptr<remote_book> book, std::shared_ptr<std::atomic<uint64_t>> ids) {
  measure_steps out;
  out.begin = [book, ids](const measure_request& request,
                std::chrono::nanoseconds deadline) -> result<child_request> {
    child_request child;
    child.id = ids->fetch_add(1);
    child.deadline = deadline;
    book->ask(child.id, request);
    return child;
  };
  out.command = [ids](const std::vector<std::string>& command,
                  std::chrono::nanoseconds deadline) -> result<probe_child> {
    probe_child child;
    child.request.id = ids->fetch_add(1);
    child.request.argv = command;
    child.request.deadline = deadline;
    return child;
  };
  out.end = [book](const measure_request&, const child_request& child, const child_result& ended) {
    auto measured = book->take(child.id).value_or(measurement{});
    // Its machine may have seen it end well after its term was over by the clock of the executor,
    // which decides.
    bool unheard =
      measured.workloads.empty() && measured.failure_text.empty() && ended.end != child_end::done;
    if (unheard || (ended.end == child_end::deadline && measured.failure_text.empty())) {
      measured.workloads.clear();
      measured.output_folder.clear();
      measured.failure_text =
        ended.log.empty() ? describe_end("runner", ended) : "runner: " + ended.log;
    }
    return measured;
  };
  return out;
}

namespace {

class probe_elsewhere final : public gpu_probe {
public:
  explicit probe_elsewhere(std::unique_ptr<gpu_probe> there) : there_(std::move(there)) {}

  std::vector<std::vector<std::string>> commands(
    const std::string& device, probe_occasion why) const override {
    return there_->commands(name_there(device), why);
  }
  probe_report judge(const std::string& device, const std::vector<probe_answer>& answers) override {
    return there_->judge(name_there(device), answers);
  }
  std::chrono::nanoseconds limit() const override { return there_->limit() + way_and_back; }

private:
  static constexpr std::chrono::seconds way_and_back{5};

  static std::string name_there(const std::string& device) {
    return device.substr(device.find('/') + 1);
  }

  std::unique_ptr<gpu_probe> there_;
};

} // namespace

std::shared_ptr<gpu_probe> remote_probe(std::unique_ptr<gpu_probe> there) {
  return std::make_shared<probe_elsewhere>(std::move(there));
}

} // namespace gristmill
