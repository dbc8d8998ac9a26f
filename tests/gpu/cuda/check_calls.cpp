#include "tests/gpu/cuda/check_support.hpp"

#include <span>

// The whole launch plan: branches, dependent and cooperative launches, clusters, memsets, copies;
// and what a tracer sees of them.

namespace gristmill::device_check {

namespace {

timing_protocol short_protocol(bool trace) {
  timing_protocol how;
  how.warm_up = std::chrono::milliseconds{50};
  how.samples = 10;
  how.trace = trace;
  return how;
}

std::string told(const measured_call& out) {
  return fmt::format("{:.1f} us by {}, {:.1f} us by events, {} activities, {} taken again{}{}",
    median(out.samples_ns) / 1e3, out.record.method, median(out.record.device_ns) / 1e3,
    out.record.activities.size(), out.record.taken_again,
    out.record.fallback.empty() ? "" : ", fallback: ", out.record.fallback);
}

} // namespace

void check_calls() {
  auto gpu = must(open_cuda_device(0, options(true)), "open");
  const auto& p = gpu->properties();
  auto module = must(gpu->load_module(kernels_ptx), "load_module");
  auto wait_ns = must(gpu->find_function(module, "wait_ns"), "find_function");
  auto scale = must(gpu->find_function(module, "scale"), "find_function");
  auto arrive = must(gpu->find_function(module, "arrive"), "find_function");
  constexpr uint64_t wait = 200'000;
  const auto one = launch_step(wait_ns, 1, 32, parameters(wait));

  auto chain = std::vector<call_step>(4, one);
  for (uint32_t i = 1; i < 4; ++i)
    chain[i].after = {i - 1};
  const auto serial = measure(*gpu, chain, short_protocol(true));
  check("four waits of 200 us one after the other take 800 us",
    median(serial.record.device_ns) > 800e3 && median(serial.record.device_ns) < 860e3,
    told(serial));
  // One step, two branches, one step that waits for both, and a lonely branch.
  std::vector<call_step> fork(5, one);
  fork[1].after = {0};
  fork[2].after = {0};
  fork[3].after = {1, 2};
  const auto branched = measure(*gpu, fork, short_protocol(true));
  check("branches run at the same time: 1, 2 + 2, 3 and a lonely one take 600 us",
    median(branched.record.device_ns) > 600e3 && median(branched.record.device_ns) < 660e3,
    told(branched));
  check("the tracer sees the five kernels of the branches, and no other",
    branched.record.method == "cupti" && branched.record.activities.size() == 5
      && branched.findings.empty(),
    branched.findings.empty() ? told(branched) : branched.findings[0].detail);

  constexpr uint64_t bytes = 1 << 20;
  auto a = must(gpu->allocate(bytes, "a"), "allocate");
  auto b = must(gpu->allocate(bytes, "b"), "allocate");
  std::vector<call_step> mixed(3);
  mixed[0].what = call_step::op::memset;
  mixed[0].to = a, mixed[0].bytes = bytes, mixed[0].width = 4, mixed[0].value = 0x3f800000;
  mixed[1].what = call_step::op::copy;
  mixed[1].to = b, mixed[1].from = a, mixed[1].bytes = bytes, mixed[1].after = {0};
  mixed[2] =
    launch_step(scale, bytes / 1024, 256, parameters(b, a, uint32_t{bytes / 4}, 2.0F), {1});
  const auto with_memory = measure(*gpu, mixed, short_protocol(true));
  const auto& seen = with_memory.record.activities;
  check("a memset, a copy and a kernel are traced as such",
    seen.size() == 3 && seen[0].kind == "memset" && seen[1].kind == "copy"
      && seen[2].name == "scale" && with_memory.findings.empty(),
    with_memory.findings.empty() ? told(with_memory) : with_memory.findings[0].detail);
  std::vector<float> values(bytes / 4);
  must(gpu->copy_out(std::as_writable_bytes(std::span(values)), a), "copy_out");
  check("and do what they say", values.front() == 2.0F && values.back() == 2.0F);

  auto counter = must(gpu->allocate(256, "counter"), "allocate");
  const uint32_t resident = must(gpu->occupancy(arrive, 128, 0), "occupancy") * p.sm_count;
  std::vector<call_step> together(2);
  together[0].what = call_step::op::memset;
  together[0].to = counter, together[0].bytes = 4;
  together[1] = launch_step(arrive, resident, 128, parameters(counter, resident), {0});
  together[1].shape.cooperative = true;
  must(gpu->enqueue_call(together), "cooperative");
  check("a cooperative launch of all that fits meets at a barrier",
    !must(gpu->synchronise(), "synchronise").fault, fmt::format("{} blocks", resident));
  together[1].shape.grid[0] = resident + 1;
  auto refused = gpu->enqueue_call(together);
  check("one block more is refused", !refused && refused.error().code == errc::refused,
    refused ? "accepted" : refused.error().what);
  (void)gpu->synchronise();

  auto large = one;
  large.shape.dynamic_shared = static_cast<uint32_t>(p.shared_per_block);
  large.carveout = 100;
  check("all shared memory of a block can be had, with a carveout",
    gpu->enqueue_call(std::span(&large, 1)).has_value() && gpu->synchronise().has_value(),
    fmt::format("{} bytes", p.shared_per_block));

  if (p.arch.compare(0, 5, "sm_90") < 0)
    return;
  auto dependent = must(gpu->load_module(dependent_ptx), "load_module");
  auto early = must(gpu->find_function(dependent, "early"), "find_function");
  auto cluster = must(gpu->find_function(dependent, "cluster"), "find_function");
  std::vector<call_step> pair(2, launch_step(early, 1, 32, parameters(wait)));
  pair[1].after = {0};
  const auto without = measure(*gpu, pair, short_protocol(false));
  pair[1].pdl = true;
  const auto with = measure(*gpu, pair, short_protocol(false));
  check("a dependent launch begins before the one before it ends",
    median(without.samples_ns) > 400e3 && median(with.samples_ns) < 300e3,
    fmt::format("{:.1f} us without, {:.1f} us with", median(without.samples_ns) / 1e3,
      median(with.samples_ns) / 1e3));
  const auto traced = measure(*gpu, pair, short_protocol(true));
  check("and does so while it is traced",
    traced.record.method == "cupti" && median(traced.samples_ns) < 300e3, told(traced));
  pair[0].pdl = true;
  refused = gpu->enqueue_call(pair);
  check("it is refused on the first launch of a call",
    !refused && refused.error().code == errc::invalid_input);
  for (const uint32_t size : {2U, 8U, 16U}) {
    auto in_cluster = launch_step(cluster, 2 * size, 32, parameters(counter));
    in_cluster.shape.cluster = {size, 1, 1};
    uint32_t told_size = 0;
    auto asked = gpu->enqueue_call(std::span(&in_cluster, 1));
    (void)gpu->synchronise();
    (void)gpu->copy_out(std::as_writable_bytes(std::span(&told_size, 1)), counter);
    check(fmt::format("a cluster of {} blocks", size), asked.has_value() && told_size == size,
      asked ? "" : asked.error().what);
  }
}

} // namespace gristmill::device_check
