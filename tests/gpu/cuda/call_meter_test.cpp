#include "gpu/cuda/cuda_device.hpp"
#include "gpu/cuda/cuda_facts.hpp"
#include "gpu/cuda/device_health.hpp"
#include "gpu/cuda/device_properties.hpp"
#include "gpu/toolchain/shared_library.hpp"
#include "tests/gpu/cuda/fake_nvidia.hpp"

#include <doctest/doctest.h>

#include <span>

// The measuring loop over a library that stands for driver, CUPTI and NVML: what happens when
// records lack, when something runs that nobody planned, and when the tracer is not allowed.

using namespace gristmill;

namespace {

constexpr const char* code =
  ".version 8.0\n.target sm_90\n.address_size 64\n"
  ".visible .entry first() { ret; }\n.visible .entry second() { ret; }\n";

struct fake {
  fake_nvidia& state;
  std::unique_ptr<cuda_device> gpu;
  function_handle first, second;
  std::vector<call_step> steps;
  std::vector<std::pair<uint32_t, call_use>> prepared, looked_at;

  static fake_nvidia& state_of_library() {
    auto library = shared_library::open("libcuda.so.1");
    REQUIRE(library);
    auto get = library->function<fake_nvidia*()>("fake_nvidia_state");
    REQUIRE_MESSAGE(get, "this is a real driver, which the test must not use");
    return *(*get)();
  }

  explicit fake(bool trace = true) : state(state_of_library()) {
    state = {};
    cuda_options how;
    how.trace = trace;
    auto opened = open_cuda_device(0, how);
    REQUIRE_MESSAGE(opened, opened.error().what);
    gpu = std::move(*opened);
    auto module = gpu->load_module(code);
    REQUIRE(module);
    first = *gpu->find_function(*module, "first");
    second = *gpu->find_function(*module, "second");
    steps.resize(2);
    steps[0].function = first;
    steps[1].function = second;
    steps[1].after = {0};
  }

  call_script script() {
    return {[this](uint32_t number, call_use use) -> result<std::span<const call_step>> {
              prepared.emplace_back(number, use);
              return std::span<const call_step>(steps);
            },
      [this](uint32_t number, call_use use) -> result<void> {
        looked_at.emplace_back(number, use);
        return {};
      }};
  }

  static timing_protocol protocol() {
    timing_protocol how;
    how.warm_up = std::chrono::nanoseconds{0};
    how.samples = 6;
    return how;
  }

  measured_call measure(const timing_protocol& how = protocol()) {
    auto out = gpu->measure(script(), how);
    REQUIRE_MESSAGE(out, out.error().what);
    return std::move(*out);
  }
};

} // namespace

TEST_CASE("a traced call is timed by its activities, and its script sees every timed call") {
  fake f;
  const auto out = f.measure();
  CHECK(out.record.method == "cupti");
  CHECK(out.record.fallback.empty());
  CHECK(out.samples_ns == std::vector<uint64_t>(6, 2000));
  CHECK(out.record.taken_again == 0);
  CHECK(out.findings.empty());
  CHECK(out.canary_stable);
  CHECK(out.record.canary_khz_before == 1'500'000);
  CHECK(out.record.canary_khz_after == 1'500'000);
  REQUIRE(out.record.activities.size() == 2);
  CHECK(out.record.activities[0] == device_activity{"kernel", "first", {1, 1, 1}, {1, 1, 1}, 0});
  // Beside them, by events: six behind a wait and six spans.
  CHECK(out.record.device_ns == std::vector<uint64_t>(6, 2000));
  CHECK(out.record.span_ns.size() == 6);
  REQUIRE(f.prepared.size() == 1 + 18);
  CHECK(f.prepared[0] == std::pair{0U, call_use::warm_up});
  CHECK(f.prepared[1] == std::pair{0U, call_use::traced});
  CHECK(f.prepared[18] == std::pair{17U, call_use::span});
  CHECK(f.looked_at.size() == 18);
  CHECK(f.state.scrubs == 19);
  CHECK(f.state.l2_resets == 18);
}

TEST_CASE("a sample whose records lack is taken again, and counted") {
  fake f;
  f.state.lose = 3;
  const auto out = f.measure();
  CHECK(out.record.method == "cupti");
  CHECK(out.samples_ns.size() == 6);
  CHECK(out.record.taken_again == 2);
  CHECK(out.findings.empty());
  // Each call has a number of its own, also those that did not count.
  CHECK(f.looked_at.size() == 20);
}

TEST_CASE("dropped records mean: again") {
  fake f;
  call_script script = f.script();
  const auto prepare = script.prepare;
  script.prepare = [&](uint32_t number, call_use use) {
    if (number == 2)
      f.state.dropped = 4;
    return prepare(number, use);
  };
  const auto out = f.gpu->measure(script, fake::protocol());
  REQUIRE(out);
  CHECK(out->record.taken_again == 1);
  CHECK(out->samples_ns.size() == 6);
}

TEST_CASE("a tracer that loses most calls is given up, and the record says so") {
  fake f;
  f.state.lose = 1000;
  const auto out = f.measure();
  CHECK(out.record.method == "events");
  CHECK(out.record.fallback.find("had to be taken again") != std::string::npos);
  CHECK(out.samples_ns == out.record.device_ns);
  CHECK(out.samples_ns.size() == 6);
  CHECK(out.record.taken_again == 11);
}

TEST_CASE("a kernel that the plan does not name is a finding, whether in a call or beside it") {
  fake f;
  f.state.extra = 1;
  auto out = f.measure();
  REQUIRE(out.findings.size() == 1);
  CHECK(out.findings[0].rule == "extra_activity");
  CHECK(out.findings[0].detail.find("stowaway") != std::string::npos);
  fake g;
  call_script script = g.script();
  const auto prepare = script.prepare;
  script.prepare = [&](uint32_t number, call_use use) {
    g.state.stray = number == 3 && use == call_use::traced ? 1 : 0;
    return prepare(number, use);
  };
  auto stray = g.gpu->measure(script, fake::protocol());
  REQUIRE(stray);
  REQUIRE(stray->findings.size() == 1);
  CHECK(stray->findings[0].rule == "activity_outside_call");
}

TEST_CASE("without tracing times are those of events, and the record says why") {
  fake f(false);
  auto out = f.measure();
  CHECK(out.record.method == "events");
  CHECK(out.record.fallback == "the device was not opened for tracing");
  CHECK(out.record.device_ns.size() == 6);
  fake g;
  auto how = fake::protocol();
  how.trace = false;
  CHECK(g.measure(how).record.fallback == "tracing was not asked for");
  g.state.enable_fails = 35;
  CHECK(g.measure().record.fallback.find("CUPTI does not record") != std::string::npos);
}

TEST_CASE("a call that does nothing on the device is timed by events") {
  fake f;
  f.steps.clear();
  const auto out = f.measure();
  CHECK(out.record.method == "events");
  CHECK(out.record.fallback.find("does nothing") != std::string::npos);
}

TEST_CASE("branches are forked behind the wait and joined before the end") {
  fake f;
  f.steps.resize(3);
  f.steps[2].function = f.first;
  f.steps[1].after = {};
  f.steps[2].after = {0};
  const auto streams = f.state.streams;
  REQUIRE(f.gpu->enqueue_call(f.steps));
  CHECK(f.state.streams == streams + 1);
  CHECK(f.state.waits == 2);
}

TEST_CASE("the warm-up goes on until the canary is stable, and a canary that never is is told") {
  auto how = fake::protocol();
  how.warm_up_calls = 1;
  fake still;
  auto out = still.measure(how);
  CHECK(out.canary_stable);
  CHECK(out.record.warm_up_calls == 2);
  fake drifting;
  drifting.state.canary_drift = 20;
  out = drifting.measure(how);
  CHECK_FALSE(out.canary_stable);
  CHECK(out.record.warm_up_calls == 10);
  CHECK(out.record.canary_khz_after > out.record.canary_khz_before);
  // The steps grow smaller against the whole: at last they are within one percent.
  fake settling;
  settling.state.canary_cycles = 1950;
  settling.state.canary_drift = 19;
  CHECK(settling.measure(how).canary_stable);
}

TEST_CASE("a kernel's fault ends the measurement as a fault") {
  fake f;
  f.state.launch_fails = 700;
  auto out = f.gpu->measure(f.script(), fake::protocol());
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::device_fault);
  CHECK(out.error().what.find("ILLEGAL_ADDRESS") != std::string::npos);
  f.state.launch_fails = 0;
}

TEST_CASE("what the script refuses ends the measurement with its words") {
  fake f;
  auto script = f.script();
  script.after = [](uint32_t number, call_use) -> result<void> {
    return number < 2 ? result<void>{} : fail(errc::refused, "enough");
  };
  auto out = f.gpu->measure(script, fake::protocol());
  REQUIRE_FALSE(out);
  CHECK(out.error().what == "enough");
}

TEST_CASE("the weather is read while samples are taken, and others on the device are counted") {
  fake alone;
  CHECK(alone.measure().record.weather.foreign_processes == 0);
  fake f;
  f.state.foreign = 2;
  const auto weather = f.measure().record.weather;
  CHECK(weather.readings >= 1);
  CHECK(weather.sm_mhz_max == 1980);
  CHECK(weather.power_mw_max == 500'000);
  CHECK(weather.foreign_processes == 2);
}

TEST_CASE("a buffer that is moved keeps its content; a parked one is out of reach") {
  fake f;
  const auto base = *f.gpu->allocate(1000, "data");
  const uint64_t value = 0x0123456789abcdef;
  REQUIRE(f.gpu->copy_in(base, std::as_bytes(std::span(&value, 1))));
  const auto moved = f.gpu->move(base, 5);
  REQUIRE(moved);
  CHECK(*moved != base);
  CHECK(*moved % 256 == 0);
  uint64_t read = 0;
  CHECK_FALSE(f.gpu->copy_out(std::as_writable_bytes(std::span(&read, 1)), base));
  REQUIRE(f.gpu->copy_out(std::as_writable_bytes(std::span(&read, 1)), *moved));
  CHECK(read == value);
  const auto again = f.gpu->move(*moved, 6);
  REQUIRE(again);
  CHECK(*again == *moved + 4096);
  REQUIRE(f.gpu->park(*again));
  const auto refused = f.gpu->copy_out(std::as_writable_bytes(std::span(&read, 1)), *again);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what.find("parked") != std::string::npos);
  const auto back = f.gpu->move(*again, 7);
  REQUIRE(back);
  read = 0;
  REQUIRE(f.gpu->copy_out(std::as_writable_bytes(std::span(&read, 1)), *back));
  CHECK(read == value);
  CHECK_FALSE(f.gpu->move(base, 1));
}

TEST_CASE("for a sanitizer a buffer is an allocation of its own size that stays where it is") {
  auto& state = fake::state_of_library();
  state = {};
  cuda_options how;
  how.watch = false;
  how.plain_memory = true;
  auto gpu = open_cuda_device(0, how);
  REQUIRE_MESSAGE(gpu, gpu.error().what);
  const std::vector<std::byte> content(100, std::byte{7});
  auto input = (*gpu)->map_input(content, "input");
  auto output = (*gpu)->allocate(100, "output");
  REQUIRE(input);
  REQUIRE(output);
  CHECK(state.maps == 0);
  CHECK(*(*gpu)->move(*output, 5) == *output);
  CHECK((*gpu)->park(*output));
  std::vector<std::byte> read(100);
  CHECK((*gpu)->copy_out(read, *input));
  CHECK(read == content);
  CHECK_FALSE((*gpu)->copy_out(std::span(read), *input + 1));
  CHECK((*gpu)->free(*output));
  CHECK_FALSE((*gpu)->free(*output));
  CHECK_FALSE((*gpu)->allocate(uint64_t{2} << 30, "large"));
  // The other kind maps.
  fake other(false);
  CHECK(other.gpu->allocate(100, "guarded"));
  CHECK(state.maps > 0);
}

TEST_CASE("memory that is not there is refused") {
  fake f;
  const auto much = f.gpu->allocate(uint64_t{4} << 30, "much");
  REQUIRE_FALSE(much);
  CHECK(much.error().code == errc::refused);
}

TEST_CASE("addresses of digests and fills are multiples of eight, within a buffer") {
  fake f;
  const auto base = *f.gpu->allocate(64, "data");
  CHECK_FALSE(f.gpu->digest(base + 4, 8, 0));
  CHECK_FALSE(f.gpu->fill(base, 65, 0));
  CHECK_FALSE(f.gpu->difference(base, base + 64, 8));
  CHECK(f.gpu->digest(base, 64, 0));
}

TEST_CASE("a device's health is read without a context, and what is not told is named") {
  fake f;
  auto health = read_device_health(f.gpu->uuid());
  REQUIRE(health);
  CHECK(health->uuid == f.gpu->uuid());
  CHECK(health->memory_used == 400);
  CHECK(health->ecc_corrected == 5);
  CHECK(health->power_mw == 500'000);
  CHECK(health->processes == std::vector<uint32_t>{1234});
  CHECK(health->not_told
    == std::vector<std::string>{
      "name", "driver", "pci", "remapped_rows", "mig", "temperature", "throttle_reasons"});
  CHECK(read_device_health("0"));
  auto other = read_device_health("GPU-none");
  REQUIRE_FALSE(other);
  CHECK(other.error().code == errc::not_found);
}

TEST_CASE("what a machine has is told library by library") {
  fake f;
  auto facts = read_cuda_facts(0);
  REQUIRE(facts);
  CHECK(facts->driver_api == 13000);
  REQUIRE(facts->libraries.size() == 4);
  CHECK(facts->libraries[2].name == "cupti");
  CHECK(facts->libraries[2].detail == "130001");
  CHECK(facts->libraries[3].found);
  auto none = read_cuda_facts(3);
  REQUIRE_FALSE(none);
  CHECK(none.error().code == errc::not_found);
}

TEST_CASE("a device is told by its number, and a number beyond the last by how many there are") {
  fake f;
  const auto api = cuda::driver::load();
  REQUIRE(api);
  CHECK(cuda::count_devices(**api) == 1);
  const auto found = cuda::find_device(**api, 0);
  REQUIRE(found);
  CHECK(found->pci == "0000:18:00.0");
  CHECK(found->uuid == f.gpu->uuid());
  const auto none = cuda::find_device(**api, 1);
  REQUIRE_FALSE(none);
  CHECK(none.error().what == "there is no device cuda:1; this machine has 1");
}
