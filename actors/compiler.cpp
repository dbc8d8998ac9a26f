#include "actors/compiler.hpp"

#include "actors/run_events.hpp"

namespace gristmill {

compiler::compiler(caf::actor_config& actor, compiler_config config)
  : compiler_actor::base(actor), config_(std::move(config)) {}

void compiler::on_exit() {
  for (auto& work : waiting_)
    work.reply.deliver(to_error({errc::shutting_down, "the compiler has ended"}));
  waiting_.clear();
  for (auto& [child, work] : running_) {
    seam::post(config_.child_front, child_cancel{child});
    work.reply.deliver(to_error({errc::shutting_down, "the compiler has ended"}));
  }
  running_.clear();
  config_.child_front = nullptr;
  config_.events.close();
}

compiler_actor::behavior_type compiler::make_behavior() {
  seam::end_on_exception(this);
  return {[this](const compile_request& request) -> caf::result<compiled_candidate> {
    if (waiting_.size() >= config_.waiting_max)
      return to_error({errc::queue_full,
        std::to_string(waiting_.size()) + " candidates wait to be compiled already"});
    auto reply = make_response_promise<compiled_candidate>();
    waiting_.push_back({request, reply});
    serve();
    return reply;
  }};
}

void compiler::serve() {
  while (running_.size() < config_.slots && !waiting_.empty()) {
    auto work = std::move(waiting_.front());
    waiting_.pop_front();
    begin(std::move(work));
  }
}

void compiler::begin(open_request work) {
  auto candidate =
    resolve_candidate(*config_.context, work.request.attempt.problem, work.request.candidate);
  if (!candidate) {
    refuse(work, candidate.error());
    return;
  }
  auto units = keyed_units(*config_.context, *candidate, config_.device_code);
  for (const auto& unit : units)
    if (!has(unit)) {
      compile(std::move(work), *candidate, std::move(units));
      return;
    }
  answer(work, units, true);
}

bool compiler::has(const keyed_unit& unit) const {
  auto found = cache_.find(unit.cache_key);
  // On a node the cache of blobs may have let its code go.
  return found != cache_.end()
    && (found->second.status != verdict_status::passed
      || config_.context->blobs->has(found->second.unit.code));
}

void compiler::compile(
  open_request work, const resolved_candidate& candidate, std::vector<keyed_unit> units) {
  std::vector<compile_unit> missing;
  for (const auto& unit : units)
    if (!has(unit))
      missing.push_back(unit.what);
  job what;
  what.kind = job_kind::compile;
  what.compile = build_compile_job(*config_.context, candidate, config_.device_code, missing);
  auto child = make_child_job(*config_.context, child_profile::compiler, "gristmill-compiler",
    std::move(what), config_.deadline);
  if (child)
    if (auto written = child->folder.write("candidate.cu", candidate.source); !written)
      child = pass(written);
  if (!child) {
    fail_request(work, to_error(child.error()));
    return;
  }
  auto id = child->request.id;
  running_.emplace(id, std::move(work));
  auto folder = std::make_shared<job_directory>(std::move(child->folder));
  seam::ask(this, config_.child_front, child->request)
    .then(
      [this, id, folder, units, nonce = child->request.nonce](const child_result& ended) {
        on_child(id, units, ended, nonce, folder->path());
        serve();
      },
      [this, id, folder](const caf::error& error) {
        auto open = take(id);
        fail_request(open, error);
        serve();
      });
}

void compiler::on_child(uint64_t child, const std::vector<keyed_unit>& units,
  const child_result& ended, const std::string& nonce, const std::string& folder) {
  auto open = take(child);
  if (ended.end != child_end::done) {
    fail_request(open, to_error({errc::child_failed, describe_end("compiler", ended)}));
    return;
  }
  auto made = read_compile_result(*config_.context, ended, nonce, folder);
  if (!made) {
    fail_request(open, to_error(made.error()));
    return;
  }
  for (const auto& unit : units)
    if (auto found = made->find(unit.what.key); found != made->end())
      cache_[unit.cache_key] = found->second;
  answer(open, units, false);
}

compiler::open_request compiler::take(uint64_t child) {
  return std::move(running_.extract(child).mapped());
}

void compiler::answer(open_request& work, const std::vector<keyed_unit>& units, bool all_cached) {
  std::vector<cached_unit> states;
  for (const auto& unit : units) {
    auto found = cache_.find(unit.cache_key);
    if (found == cache_.end()) {
      fail_request(work,
        to_error(
          {errc::child_failed, "the compiler gave no answer for unit '" + unit.what.key + "'"}));
      return;
    }
    states.push_back(found->second);
  }
  tell(work, assemble(work.request.candidate.hash, states, all_cached));
}

void compiler::refuse(open_request& work, const failure& why) {
  if (why.code == errc::io_failed || why.code == errc::not_found) {
    fail_request(work, to_error(why));
    return;
  }
  compiled_candidate refused;
  refused.candidate = work.request.candidate.hash;
  refused.status = verdict_status::compile_error;
  refused.log = why.what;
  tell(work, std::move(refused));
}

void compiler::tell(open_request& work, compiled_candidate compiled) {
  compiled.toolchain = config_.device_code.version;
  config_.events.note(this, compiled_event(work.request, compiled));
  work.reply.deliver(std::move(compiled));
}

void compiler::fail_request(open_request& work, const caf::error& why) {
  work.reply.deliver(why);
}

} // namespace gristmill
