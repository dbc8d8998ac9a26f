#include "simulation/sweep/lab_runner.hpp"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace gristmill {

namespace {

class plan_runner {
public:
  plan_runner(const lab_plan& plan, const run_set& have, const runner_options& options)
    : plan_(plan), options_(options), parts_(std::max(1u, options.jobs), 0.0) {
    for (size_t v = 0; v < plan.variants.size(); ++v)
      for (uint32_t s = 0; s < plan.seeds; ++s)
        if (!have.contains({v, plan.first_seed + s}))
          tasks_.emplace_back(v, plan.first_seed + s);
    finished_ = plan.runs() - tasks_.size();
  }

  result<void> run() {
    tell();
    {
      std::vector<std::jthread> threads;
      for (size_t t = 0; t < std::min(parts_.size(), tasks_.size()); ++t)
        threads.emplace_back([this, t] { work(t); });
    }
    if (failure_)
      return tl::unexpected<failure>(*failure_);
    return {};
  }

private:
  bool must_end() {
    if (options_.stop != nullptr && options_.stop->load())
      return true;
    return ended_.load();
  }

  void work(size_t thread) {
    for (;;) {
      if (must_end()) {
        end_with({errc::shutting_down, "interrupted"});
        return;
      }
      std::pair<size_t, uint64_t> task;
      {
        std::lock_guard lock(mutex_);
        if (next_ == tasks_.size())
          return;
        task = tasks_[next_++];
      }
      if (!run_one(thread, task.first, task.second))
        return;
    }
  }

  bool run_one(size_t thread, size_t variant, uint64_t seed) {
    lab_options options;
    options.world.seed = seed;
    options.stop = [this] { return must_end(); };
    options.progress = [this, thread](double share) {
      std::lock_guard lock(mutex_);
      parts_[thread] = std::clamp(share, 0.0, 1.0);
      tell();
    };
    result<lab_result> run;
    try {
      run = options_.run(plan_.variants[variant].what, plan_.engine, std::move(options));
    } catch (const std::exception& error) {
      run = fail(errc::refused, std::string("the engine failed: ") + error.what());
    }
    if (!run) {
      const bool stopped = run.error().code == errc::shutting_down;
      end_with(stopped
          ? run.error()
          : failure{run.error().code,
            fmt::format("{}, seed {}: {}", plan_.label(variant), seed, run.error().what)});
      return false;
    }
    auto row = row_of(variant, seed, *run);
    std::lock_guard lock(mutex_);
    if (auto kept = options_.on_row(std::move(row)); !kept) {
      end_locked(kept.error());
      return false;
    }
    parts_[thread] = 0;
    ++finished_;
    tell();
    return true;
  }

  void end_with(failure why) {
    std::lock_guard lock(mutex_);
    end_locked(std::move(why));
  }

  /// The first failure is the one that is told.
  void end_locked(failure why) {
    if (!failure_)
      failure_ = std::move(why);
    ended_ = true;
  }

  /// Called with the mutex held, or before there are threads.
  void tell() {
    if (options_.done == nullptr)
      return;
    double done = static_cast<double>(finished_);
    for (double part : parts_)
      done += part;
    options_.done->store(done);
  }

  const lab_plan& plan_;
  const runner_options& options_;
  std::vector<std::pair<size_t, uint64_t>> tasks_;
  std::mutex mutex_;
  size_t next_ = 0;
  uint64_t finished_ = 0;
  std::vector<double> parts_;
  std::optional<failure> failure_;
  std::atomic<bool> ended_ = false;
};

} // namespace

result<void> run_plan(const lab_plan& plan, const run_set& have, const runner_options& options) {
  return plan_runner(plan, have, options).run();
}

result<void> check_plan(const lab_plan& plan, const lab_run& run) {
  for (size_t v = 0; v < plan.variants.size(); ++v) {
    lab_options options;
    options.world.seed = plan.first_seed;
    options.stop = [] { return true; };
    auto begun = run(plan.variants[v].what, plan.engine, std::move(options));
    if (!begun && begun.error().code != errc::shutting_down)
      return fail(begun.error().code, fmt::format("{}: {}", plan.label(v), begun.error().what));
  }
  return {};
}

result<lab_result> run_with_events(const lab_variant& variant, uint64_t seed, lab_engine engine,
  const lab_run& run, const std::function<bool(event&&)>& on_event, const std::atomic<bool>* stop) {
  lab_options options;
  options.world.seed = seed;
  bool enough = false;
  options.journal = [&](event&& e) {
    if (!enough)
      enough = !on_event(std::move(e));
  };
  options.stop = [&] { return enough || (stop != nullptr && stop->load()); };
  return run(variant.what, engine, std::move(options));
}

} // namespace gristmill
