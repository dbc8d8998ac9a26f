#include "report/run_timeline.hpp"

#include "messages/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace gristmill {

namespace {

using nlohmann::json;

double seconds(const event& e) {
  return std::chrono::duration<double>(e.t).count();
}

class timeline_reader {
public:
  void take(const event& e) {
    out_.end_seconds = std::max(out_.end_seconds, seconds(e));
    if (e.kind == "verdict")
      take_verdict(e);
    else if (e.kind == "attempt_finished")
      take_attempt(e);
    else if (e.kind == "lease_request")
      asked_[e.attempt] = seconds(e);
    else if (!e.gpu.empty())
      take_gpu(e);
  }

  run_timeline finished() {
    for (size_t gpu = 0; gpu < open_.size(); ++gpu)
      close(gpu, out_.end_seconds);
    std::stable_sort(out_.spans.begin(), out_.spans.end(),
      [](const gpu_span& a, const gpu_span& b) { return a.from < b.from; });
    // The denominator is known only now.
    for (auto& point : out_.progress)
      point.geomean =
        logs_.empty() ? 1 : std::exp(point.geomean / static_cast<double>(logs_.size()));
    return std::move(out_);
  }

private:
  void take_verdict(const event& e) {
    const auto data = json::parse(e.data);
    if (data.at("status").get<std::string>() != to_string(verdict_status::passed)
      || data.value("effort", std::string{"full"}) != "full"
      || data.value("incumbent_stays", false))
      return;
    const double speedup = data.at("speedup").get<double>();
    const bool is_baseline = data.at("kind").get<std::string>() == "baseline";
    if (!is_baseline && !(speedup > 0))
      return; // Nothing to compare with.
    double& best = logs_[e.problem];
    const double gain = is_baseline ? 0 : std::log(speedup);
    if (gain > best) {
      sum_ += gain - best;
      best = gain;
    }
  }

  void take_attempt(const event& e) {
    gpu_seconds_ += json::parse(e.data).at("gpu_ns").get<double>() / 1e9;
    out_.progress.push_back({seconds(e), gpu_seconds_, sum_});
  }

  void take_gpu(const event& e) {
    static const std::map<std::string_view, std::optional<gpu_activity>> meanings = {
      {"gpu_up", std::nullopt}, {"gpu_free", std::nullopt}, {"gpu_down", std::nullopt},
      {"lease_grant", gpu_activity::granted}, {"lease_adopt", gpu_activity::working},
      {"lease_active", gpu_activity::working}, {"lease_release", gpu_activity::verifying},
      {"lease_revoke", gpu_activity::verifying}, {"lease_withdraw", gpu_activity::verifying},
      {"gpu_verifying", gpu_activity::verifying}, {"gpu_suspect", gpu_activity::out_of_service},
      {"gpu_quarantined", gpu_activity::out_of_service},
      {"gpu_draining", gpu_activity::out_of_service}};
    const auto found = meanings.find(e.kind);
    if (found == meanings.end())
      return;
    if (e.kind == "lease_grant") {
      if (const auto asked = asked_.find(e.attempt); asked != asked_.end()) {
        out_.waits.push_back(seconds(e) - asked->second);
        asked_.erase(asked);
      }
    }
    const size_t gpu = index_of(e.gpu);
    auto& open = open_[gpu];
    // A GPU that drains works on until its lease is over.
    if (e.kind == "gpu_draining" && open)
      return;
    close(gpu, seconds(e));
    if (found->second) {
      const bool is_out = *found->second == gpu_activity::out_of_service;
      open =
        gpu_span{gpu, *found->second, seconds(e), 0, is_out ? e.kind + " " + e.reason : e.attempt};
    }
  }

  size_t index_of(const std::string& gpu) {
    const auto [at, is_new] = indices_.try_emplace(gpu, out_.gpus.size());
    if (is_new) {
      out_.gpus.push_back(gpu);
      open_.emplace_back();
    }
    return at->second;
  }

  void close(size_t gpu, double now) {
    if (!open_[gpu])
      return;
    open_[gpu]->to = std::max(now, open_[gpu]->from);
    out_.spans.push_back(std::move(*open_[gpu]));
    open_[gpu].reset();
  }

  run_timeline out_;
  std::map<std::string, size_t> indices_;
  std::vector<std::optional<gpu_span>> open_;
  /// When an attempt asked for a lease.
  std::map<std::string, double> asked_;
  /// Logarithm of the best speed-up of each problem that has a T_b, and their sum.
  std::map<std::string, double> logs_;
  double sum_ = 0;
  double gpu_seconds_ = 0;
};

} // namespace

std::string_view to_string(gpu_activity activity) {
  switch (activity) { // no default: the compiler reports a missing case
  case gpu_activity::granted:
    return "lent";
  case gpu_activity::working:
    return "measuring";
  case gpu_activity::verifying:
    return "verifying";
  case gpu_activity::out_of_service:
    return "out of service";
  }
  return "unknown";
}

result<run_timeline> read_timeline(std::span<const event> events) {
  timeline_reader reader;
  for (const auto& e : events) {
    try {
      reader.take(e);
    } catch (const json::exception& error) {
      return fail(errc::invalid_input,
        "event " + std::to_string(e.seq) + " (" + e.kind
          + "): its data is not what this kind has: " + error.what());
    }
  }
  return reader.finished();
}

} // namespace gristmill
