#include "cli/candidate_bench.hpp"

#include "actors/child_job.hpp"
#include "actors/compile_jobs.hpp"
#include "actors/prepare_jobs.hpp"

#include <chrono>
#include <future>

namespace gristmill {

result<std::unique_ptr<candidate_bench>> candidate_bench::open(
  run_setup setup, const std::string& gpus, std::array<uint32_t, 5> parallel) {
  const auto now =
    std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  if (auto made = open_run_directory(setup, now); !made)
    return pass(made);
  std::unique_ptr<candidate_bench> out(new candidate_bench);
  out->device_ = setup.devices.front().what == device_group::kind::cuda
    ? gpus
    : "mock:" + setup.context.device_model;
  out->compiler_ = setup.compiler;
  out->context_ = std::make_shared<const run_context>(std::move(setup.context));
  child_loop_limits limits;
  limits.program_folder = out->context_->programs.string();
  limits.parallel = parallel;
  out->children_ = std::make_unique<child_loop>(std::move(limits));
  return out;
}

candidate_bench::~candidate_bench() {
  if (children_)
    children_->stop();
}

child_result candidate_bench::wait_for(const child_request& request) {
  std::promise<child_result> promise;
  auto answer = promise.get_future();
  auto sent =
    children_->submit(request, [&](child_result ended) { promise.set_value(std::move(ended)); });
  if (sent)
    return answer.get();
  child_result out;
  out.id = request.id;
  out.log = sent.error().what;
  return out;
}

result<prepared_problem> candidate_bench::prepare(const problem& target, prepare_job work) {
  job what;
  what.kind = job_kind::prepare;
  what.prepare = std::move(work);
  auto child = make_child_job(
    *context_, child_profile::oracle, "gristmill-oracle", std::move(what), bench_child_deadline);
  if (!child)
    return pass(child);
  const auto ended = wait_for(child->request);
  if (ended.end != child_end::done)
    return fail(errc::child_failed, describe_end("oracle", ended));
  auto out = finish_prepare(*context_, target, ended, child->request.nonce, child->folder.path());
  if (out && out->status != verdict_status::passed)
    return fail(errc::child_failed, out->reason);
  return out;
}

result<compiled_candidate> candidate_bench::compile(
  const resolved_candidate& resolved, const std::string& candidate) {
  job what;
  what.kind = job_kind::compile;
  what.compile = build_compile_job(*context_, resolved, compiler_, resolved.units);
  auto child = make_child_job(*context_, child_profile::compiler, "gristmill-compiler",
    std::move(what), bench_child_deadline);
  if (!child)
    return pass(child);
  if (auto written = child->folder.write("candidate.cu", resolved.source); !written)
    return pass(written);
  const auto ended = wait_for(child->request);
  if (ended.end != child_end::done)
    return fail(errc::child_failed, describe_end("compiler", ended));
  const auto guard = lock_stores();
  auto made = read_compile_result(*context_, ended, child->request.nonce, child->folder.path());
  if (!made)
    return pass(made);
  std::vector<cached_unit> units;
  for (const auto& unit : resolved.units) {
    auto found = made->find(unit.key);
    if (found == made->end())
      return fail(errc::child_failed, "the compiler gave no answer for unit '" + unit.key + "'");
    units.push_back(found->second);
  }
  return assemble(candidate, units, false);
}

} // namespace gristmill
