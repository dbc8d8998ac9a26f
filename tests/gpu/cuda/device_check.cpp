// gristmill-device-check: the same calls to the mock GPU and to the real one of this machine, side
// by side, and what the real one does with kernels that misbehave. One line a check on the standard
// output; exit code 0 when all hold, 1 otherwise, 77 without a GPU.

#include "gpu/cuda/cuda_device.hpp"
#include "gpu/mock/mock_device.hpp"

#include <cmath>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <numeric>
#include <poll.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace gristmill;

namespace {

constexpr const char* scale_ptx = R"(.version 7.8
.target sm_80
.address_size 64
.global .align 4 .u32 calls;
.visible .entry scale(.param .u64 in, .param .u64 out, .param .u32 n, .param .f32 by)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %d<6>;
  ld.param.u64 %d0, [in];
  ld.param.u64 %d1, [out];
  ld.param.u32 %r0, [n];
  ld.param.f32 %f0, [by];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %p0, %r4, %r0;
  @%p0 bra end;
  mul.wide.u32 %d2, %r4, 4;
  add.u64 %d3, %d0, %d2;
  add.u64 %d4, %d1, %d2;
  ld.global.f32 %f1, [%d3];
  mul.f32 %f2, %f1, %f0;
  st.global.f32 [%d4], %f2;
end:
  ret;
}
.visible .entry remember()
{
  .reg .b64 %d<2>;
  .reg .b32 %r<3>;
  mov.u64 %d0, calls;
  atom.global.add.u32 %r0, [%d0], 1;
  ret;
}
.visible .entry spin(.param .u64 flag)
{
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  ld.param.u64 %d0, [flag];
again:
  ld.volatile.global.u32 %r0, [%d0];
  setp.eq.u32 %p0, %r0, 0;
  @%p0 bra again;
  ret;
}
)";

int failures = 0;

void check(const std::string& rule, bool holds, const std::string& detail = "") {
  failures += holds ? 0 : 1;
  fmt::print("{}  {}{}{}\n", holds ? "ok  " : "FAIL", rule, detail.empty() ? "" : ": ", detail);
  std::fflush(stdout);
}

template <class T>
T must(result<T> value, const char* what) {
  if (value)
    return std::move(*value);
  fmt::print("FAIL  {}: {}\n", what, value.error().what);
  std::exit(1);
}

void must(const result<void>& value, const char* what) {
  if (value)
    return;
  fmt::print("FAIL  {}: {}\n", what, value.error().what);
  std::exit(1);
}

std::vector<uint8_t> scale_parameters(device_pointer in, device_pointer out, uint32_t n, float by) {
  std::vector<uint8_t> bytes(24);
  std::memcpy(bytes.data(), &in, 8);
  std::memcpy(bytes.data() + 8, &out, 8);
  std::memcpy(bytes.data() + 16, &n, 4);
  std::memcpy(bytes.data() + 20, &by, 4);
  return bytes;
}

struct scaled {
  std::unique_ptr<device> gpu;
  device_pointer in = 0, out = 0;
  function_handle scale, remember, spin;
  module_handle module;
};

scaled set_up(std::unique_ptr<device> gpu, const std::vector<float>& values) {
  scaled s;
  s.gpu = std::move(gpu);
  const auto bytes = std::as_bytes(std::span(values));
  s.in = must(s.gpu->map_input(bytes, "in"), "map_input");
  s.out = must(s.gpu->allocate(bytes.size(), "out"), "allocate");
  s.module = must(s.gpu->load_module(scale_ptx), "load_module");
  s.scale = must(s.gpu->find_function(s.module, "scale"), "find_function");
  s.remember = must(s.gpu->find_function(s.module, "remember"), "find_function");
  s.spin = must(s.gpu->find_function(s.module, "spin"), "find_function");
  return s;
}

std::vector<float> run(scaled& s, uint32_t n) {
  launch_shape shape;
  shape.grid = {(n + 255) / 256, 1, 1};
  shape.block = {256, 1, 1};
  auto report =
    must(s.gpu->launch(s.scale, shape, scale_parameters(s.in, s.out, n, 1.5F)), "launch");
  auto waited = must(s.gpu->synchronise(), "synchronise");
  check(
    s.gpu->properties().title + ": a sound kernel meets no fault", !report.fault && !waited.fault);
  std::vector<float> out(n);
  must(s.gpu->copy_out(std::as_writable_bytes(std::span(out)), s.out), "copy_out");
  return out;
}

/// In a process of its own, because its context is lost. Returns what the child said.
std::string in_child(const std::function<std::string()>& what, int seconds, bool& ended) {
  int ends[2];
  if (pipe(ends) != 0)
    return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    auto said = what();
    (void)!write(ends[1], said.data(), said.size());
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  ended = false;
  // The child says all it has to say at once, and its end closes the pipe.
  pollfd pipe_end{ends[0], POLLIN, 0};
  while (!ended && poll(&pipe_end, 1, seconds * 1000) > 0) {
    char buffer[4096];
    const ssize_t n = read(ends[0], buffer, sizeof buffer);
    if (n > 0)
      said.append(buffer, static_cast<size_t>(n));
    else
      ended = true;
  }
  if (!ended)
    kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  close(ends[0]);
  return said;
}

std::string misbehave(bool write_input) {
  std::vector<float> values(1000, 1.0F);
  auto s = set_up(must(open_cuda_device(0), "open"), values);
  // One element more than there is room for; or the input as the output.
  const auto to = write_input ? s.in : s.out;
  const uint32_t n = write_input ? 1000 : 1 << 22;
  launch_shape shape;
  shape.grid = {(n + 255) / 256, 1, 1};
  shape.block = {256, 1, 1};
  auto report = s.gpu->launch(s.scale, shape, scale_parameters(s.in, to, n, 2.0F));
  auto waited = s.gpu->synchronise();
  if (waited && waited->fault)
    return waited->fault->kind;
  return waited ? "nothing" : waited.error().what;
}

double median(std::vector<uint64_t> v) {
  std::sort(v.begin(), v.end());
  return static_cast<double>(v[v.size() / 2]);
}

void time_it(flush_kind flush) {
  auto gpu = must(open_cuda_device(0), "open");
  const uint32_t n = 1 << 26;
  auto in = must(gpu->allocate(uint64_t{n} * 4, "in"), "allocate");
  auto out = must(gpu->allocate(uint64_t{n} * 4, "out"), "allocate");
  must(gpu->memset(in, uint64_t{n} * 4, 4, 0x3f800000), "memset");
  auto module = must(gpu->load_module(scale_ptx), "load_module");
  auto scale = must(gpu->find_function(module, "scale"), "find_function");
  launch_shape shape;
  shape.grid = {n / 256, 1, 1};
  shape.block = {256, 1, 1};
  const auto parameters = scale_parameters(in, out, n, 1.5F);
  timing_protocol how;
  how.flush = flush;
  std::vector<double> medians;
  for (int repeat = 0; repeat < 5; ++repeat) {
    auto taken = must(gpu->time_calls(
                        [&]() -> result<void> {
                          auto r = gpu->launch(scale, shape, parameters);
                          return r ? result<void>{} : result<void>(pass(r));
                        },
                        how),
      "time_calls");
    medians.push_back(median(taken.device_ns));
    fmt::print(
      "      scale 2^26 floats, flush {}: device {:.2f} us, span {:.2f} us, medians of {}, "
      "{} calls of warm-up, {:.0f} GB/s\n",
      to_string(flush), median(taken.device_ns) / 1e3, median(taken.span_ns) / 1e3,
      taken.device_ns.size(), taken.warm_up_calls, n * 8.0 / median(taken.device_ns));
  }
  auto [least, most] = std::minmax_element(medians.begin(), medians.end());
  check("five repeats of one kernel spread under 2 %", *most / *least < 1.02,
    fmt::format("{:.2f} %", 100 * (*most / *least - 1)));
}

} // namespace

int main() {
  // Children first: a process that has started the driver must not fork.
  bool ended = false;
  auto said = in_child(
    [] {
      auto count = cuda_device_count();
      return count ? std::string() : count.error().what;
    },
    60, ended);
  if (!ended || !said.empty()) {
    fmt::print("skipped: {}\n", ended ? said : "the driver does not answer");
    return 77;
  }
  said = in_child([] { return misbehave(false); }, 60, ended);
  check("a write beyond its buffer is an illegal address", said == "illegal address", said);
  said = in_child([] { return misbehave(true); }, 60, ended);
  check("a write to an input is an illegal address", said == "illegal address", said);
  said = in_child(
    [] {
      std::vector<float> values(256, 0.0F);
      auto s = set_up(must(open_cuda_device(0), "open"), values);
      std::vector<uint8_t> flag(8);
      std::memcpy(flag.data(), &s.in, 8);
      (void)s.gpu->launch(s.spin, {}, flag);
      (void)s.gpu->synchronise();
      return std::string("ended");
    },
    5, ended);
  check("an endless kernel is ended with its process", !ended && said.empty(), said);

  std::vector<float> values(100'003);
  std::iota(values.begin(), values.end(), -50'000.0F);
  auto real = set_up(must(open_cuda_device(0), "open"), values);
  const auto& p = real.gpu->properties();
  fmt::print("      {} ({}, {}): {} SMs, {} bytes shared a block, L2 {} MiB, memory {} GiB\n",
    p.title, p.model, p.arch, p.sm_count, p.shared_per_block, p.l2_bytes >> 20,
    p.memory_bytes >> 30);
  mock_device_config config;
  config.profile = must(profile(p.model == "h200" ? "h200" : "h100"), "profile");
  auto mock = set_up(make_mock_device(config), values);
  const auto n = static_cast<uint32_t>(values.size());
  check("mock and real device give equal numbers", run(real, n) == run(mock, n));
  const auto described = must(real.gpu->describe(real.scale), "describe");
  const auto expected = must(mock.gpu->describe(mock.scale), "describe");
  check("the driver tells where the parameters lie, as the mock does",
    described.parameter_bytes == expected.parameter_bytes
      && described.parameters.size() == expected.parameters.size(),
    fmt::format("{} bytes, {} registers", described.parameter_bytes, described.registers));
  check("the occupancy is that of the mock",
    must(real.gpu->occupancy(real.scale, 256, 0), "occupancy")
      == must(mock.gpu->occupancy(mock.scale, 256, 0), "occupancy"));
  auto before = must(real.gpu->globals(real.module), "globals");
  must(real.gpu->launch(real.remember, {}, {}), "launch");
  must(real.gpu->synchronise(), "synchronise");
  check("a counter that a kernel keeps between calls is seen",
    must(real.gpu->globals(real.module), "globals") != before);
  must(real.gpu->restore_globals(real.module, before), "restore_globals");
  check("and can be put back", must(real.gpu->globals(real.module), "globals") == before);
  tensor_map_spec map;
  map.type = tensor_map_type::float32;
  map.dims = {64, 64};
  map.strides = {256};
  map.box = {32, 32};
  map.element_strides = {1, 1};
  map.swizzle = tensor_map_swizzle::by_128;
  auto encoded = real.gpu->encode_tensor_map(real.out, map);
  check(
    "the driver encodes a tensor map", encoded.has_value(), encoded ? "" : encoded.error().what);
  real.gpu->reset();
  check("after a reset old handles are refused", !real.gpu->describe(real.scale));
  time_it(flush_kind::official);
  time_it(flush_kind::clean);
  fmt::print("{} checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}
