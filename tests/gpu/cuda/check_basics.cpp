#include "gpu/cuda/measuring_ptx.hpp"
#include "gpu/mock/mock_device.hpp"
#include "tests/gpu/cuda/check_support.hpp"

#include <cstring>
#include <numeric>
#include <span>

// The same calls to the mock GPU and to the real one, side by side; and our own kernels.

namespace gristmill::device_check {

namespace {

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
  s.module = must(s.gpu->load_module(mock_ptx()), "load_module");
  s.scale = must(s.gpu->find_function(s.module, "scale"), "find_function");
  s.remember = must(s.gpu->find_function(s.module, "remember"), "find_function");
  s.spin = must(s.gpu->find_function(s.module, "spin"), "find_function");
  return s;
}

std::vector<float> run(scaled& s, uint32_t n) {
  launch_shape shape;
  shape.grid = {(n + 255) / 256, 1, 1};
  shape.block = {256, 1, 1};
  auto report = must(s.gpu->launch(s.scale, shape, parameters(s.in, s.out, n, 1.5F)), "launch");
  auto waited = must(s.gpu->synchronise(), "synchronise");
  check(
    s.gpu->properties().title + ": a sound kernel meets no fault", !report.fault && !waited.fault);
  std::vector<float> out(n);
  must(s.gpu->copy_out(std::as_writable_bytes(std::span(out)), s.out), "copy_out");
  return out;
}

/// The digest as the host makes it.
uint64_t expected_digest(std::span<const std::byte> bytes, uint64_t seed) {
  uint64_t sum = bytes.size();
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
    sum += cuda::digest_word(word, at / 8, seed);
  }
  return sum;
}

} // namespace

void check_basics() {
  std::vector<float> values(100'003);
  std::iota(values.begin(), values.end(), -50'000.0F);
  auto opened = must(open_cuda_device(0, options(true)), "open");
  fmt::print("      {}\n", opened->uuid());
  auto real = set_up(std::move(opened), values);
  const auto& p = real.gpu->properties();
  fmt::print("      {} ({}, {}): {} SMs, {} bytes shared a block, L2 {} MiB, memory {} GiB\n",
    p.title, p.model, p.arch, p.sm_count, p.shared_per_block, p.l2_bytes >> 20,
    p.memory_bytes >> 30);
  auto& gpu = static_cast<cuda_device&>(*real.gpu);
  const auto assembled_by = must(gpu.assembled_by(real.module), "assembled_by");
  check("PTX is assembled by the driver", assembled_by.starts_with("the driver"), assembled_by);
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
  check("a variable that kernels write is found in the cubin", before.size() == 4,
    fmt::format("{} bytes", before.size()));
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
}

void check_kernels() {
  auto gpu = must(open_cuda_device(0, options(false)), "open");
  constexpr size_t bytes = 1'000'005;
  auto a = must(gpu->allocate(bytes, "a"), "allocate");
  auto b = must(gpu->allocate(bytes, "b"), "allocate");
  must(gpu->fill(a, bytes, 7), "fill");
  must(gpu->copy(b, a, bytes), "copy");
  std::vector<std::byte> host(bytes);
  must(gpu->copy_out(host, a), "copy_out");
  uint64_t last = 0;
  std::memcpy(&last, host.data() + 8 * 1000, 8);
  check("the device fills as the host says", last == cuda::fill_word(1000, 7));
  const auto digest = must(gpu->digest(a, bytes, 3), "digest");
  check("a digest is what the host makes of the same bytes", digest == expected_digest(host, 3));
  check("another seed gives another digest", digest != must(gpu->digest(a, bytes, 4), "digest"));
  check("equal buffers have no difference",
    must(gpu->difference(a, b, bytes), "difference").words == 0);
  bool all_seen = true;
  for (const size_t at : {size_t{0}, size_t{500'000}, bytes - 1}) {
    const auto flipped = host[at] ^ std::byte{0x10};
    must(gpu->copy_in(b + at, std::span(&flipped, 1)), "copy_in");
    const auto d = must(gpu->difference(a, b, bytes), "difference");
    all_seen = all_seen && digest != must(gpu->digest(b, bytes, 3), "digest") && d.words == 1
      && d.first == at / 8 * 8;
    must(gpu->copy_in(b + at, std::span(&host[at], 1)), "copy_in");
  }
  check("one flipped bit changes digest and comparison: first, middle, last byte", all_seen);
  check("and put back they agree again", digest == must(gpu->digest(b, bytes, 3), "digest"));
  auto moved = must(gpu->move(a, 12345), "move");
  check("a buffer that is moved has another address and the same content",
    moved != a && digest == must(gpu->digest(moved, bytes, 3), "digest"));
  must(gpu->park(moved), "park");
  check("a parked buffer is out of reach", !gpu->digest(moved, bytes, 3));
  moved = must(gpu->move(moved, 54321), "move");
  check("and comes back whole", digest == must(gpu->digest(moved, bytes, 3), "digest"));
  const auto first = must(gpu->canary_khz(), "canary");
  const auto second = must(gpu->canary_khz(), "canary");
  check("the canary gives a clock", first > 200'000 && first < 4'000'000 && second > 200'000,
    fmt::format("{} and {} kHz", first, second));
}

} // namespace gristmill::device_check
