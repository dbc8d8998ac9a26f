// The runner on a real device, tried on a stand-in for one: the mock behind the same table.

#include "gpu/children/runner_workloads.hpp"
#include "protocol/child_answers.hpp"
#include "tensors/tensor_file.hpp"
#include "tests/gpu/children/child_fixture.hpp"
#include "tests/gpu/children/doubling.hpp"
#include "tests/gpu/children/fake_cuda_device.hpp"

#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

using namespace gristmill;

namespace {

/// With one that writes beyond its output.
const std::string kernels =
  std::string(doubling_ptx) + R"(.visible .entry beyond(.param .u64 in, .param .u64 out)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, 7;
  st.global.u32 [%rd2+1048576], %r1;
  ret;
}
)";

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct timed_fixture : child_fixture {
  job_directory& folder = new_job();
  job what;
  fake_cuda_device gpu;

  timed_fixture() {
    what.kind = job_kind::run;
    what.nonce = nonce;
    auto& run = what.run;
    run.device = "cuda:0";
    run.instruction_limit = 1;
    run.samples = 20;
    run.timing.order.bytes.fill(9);
    run.timing.written_share = 0;
    run.timing.written_max = 4;
    REQUIRE(folder.write("unit.ptx", kernels));
    run_unit unit{"unit", "unit.ptx", {}};
    for (const char* name : {"doubled", "beyond", "nothing"})
      unit.entries.push_back({name, name});
    run.units = {unit};
    for (int c = 0; c < 3; ++c) {
      std::vector<float> values;
      for (int i = 0; i < 128; ++i)
        values.push_back(static_cast<float>(1000 * (c + 1) + i));
      REQUIRE(write_tensor_file(folder.file("x" + std::to_string(c)), bytes_of(values)));
    }
  }

  static run_pass pass_of(const std::string& entry, int c, const std::string& output) {
    run_pass in;
    in.unit = "unit";
    in.buffers = {make_run_buffer(
                    small_buffer(resolved_buffer::role::input, "x"), "x" + std::to_string(c), 512),
      make_run_buffer(small_buffer(resolved_buffer::role::output, "y"), output, 0),
      make_run_buffer(small_buffer(resolved_buffer::role::scratch, "lock", "restored"), "", 0),
      make_run_buffer(small_buffer(resolved_buffer::role::scratch, "part", "undefined"), "", 0)};
    in.steps = {launch_of(entry)};
    return in;
  }

  run_workload& add(const std::string& entry, int cases = 3) {
    run_workload work;
    work.uuid = entry;
    for (int c = 0; c < cases; ++c) {
      work.cases.push_back({"set", pass_of(entry, c, entry + std::to_string(c) + ".out")});
      work.timed_on.push_back(static_cast<uint32_t>(c));
    }
    work.has_clock = true;
    work.clock = pass_of(entry, 0, "");
    what.run.workloads.push_back(work);
    return what.run.workloads.back();
  }

  run_answers run_all() {
    const auto path = folder.file("lines");
    const int descriptor = open_lines(path);
    {
      auto channel = child_channel::open(nonce, descriptor);
      REQUIRE(channel);
      child_context context{folder.path(), what, **channel};
      auto units = unit_store::read(context);
      REQUIRE_MESSAGE(units, units.error().what);
      workload_runner(context, {&gpu, &gpu, {}}, std::move(*units)).run_all();
      (*channel)->done();
    }
    std::vector<std::string> lines;
    const auto text = read_file(path);
    for (size_t at = 0; at < text.size();) {
      const auto end = text.find('\n', at);
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    auto read = read_run_answers(lines, nonce);
    REQUIRE_MESSAGE(read, read.error().what);
    return *read;
  }

  static int open_lines(const std::string& path) {
    return open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  }

  static device_pointer argument(const call_step& step, size_t index) {
    device_pointer out = 0;
    std::memcpy(&out, step.parameters.data() + index * sizeof out, sizeof out);
    return out;
  }

  std::vector<float> floats(const std::string& file) {
    auto mapped = mapped_file::open(folder.file(file), 512);
    REQUIRE_MESSAGE(mapped, mapped.error().what);
    std::vector<float> values(128);
    std::memcpy(values.data(), mapped->bytes().data(), 512);
    return values;
  }
};

} // namespace

TEST_CASE_FIXTURE(
  timed_fixture, "an honest kernel: every timed call is digested, and all are equal") {
  add("doubled");
  const auto found = run_all();
  REQUIRE(found.workloads.size() == 1);
  const auto& measured = found.workloads[0];
  CHECK_MESSAGE(measured.status == verdict_status::passed, measured.detail);
  CHECK(measured.samples_ns.size() == 20);
  CHECK(measured.time_ns == 1000);
  CHECK(measured.timing.method == "cupti");
  CHECK(measured.timing.digested == 60);
  CHECK(measured.timing.digests_equal == 60);
  CHECK(measured.timing.written_out == 0);
  CHECK(measured.written.size() == 3);
  CHECK(measured.detail.empty());
  CHECK(found.findings.empty());
  CHECK(gpu.modules_loaded == 1);
  CHECK(floats("doubled2.out")[5] == 2 * 3005);
  // All memory has been given back.
  CHECK(gpu.allocated() == 0);
}

TEST_CASE_FIXTURE(
  timed_fixture, "addresses vary for the same content, and contents under the same address") {
  what.run.samples = 400;
  add("doubled");
  std::map<float, std::set<device_pointer>> addresses_of;
  std::map<device_pointer, std::set<float>> contents_at;
  std::set<float> poisons;
  gpu.instead = [&](fake_cuda_device& on, const call_step& step, uint32_t) {
    float x = 0, y = 0;
    (void)on.copy_out(std::as_writable_bytes(std::span(&x, 1)), argument(step, 0));
    (void)on.copy_out(std::as_writable_bytes(std::span(&y, 1)), argument(step, 1));
    CHECK(argument(step, 0) % 256 == 0);
    CHECK(argument(step, 1) % 256 == 0);
    addresses_of[x].insert(argument(step, 0));
    contents_at[argument(step, 0)].insert(x);
    // Another case's output, never the right one.
    CHECK(y != 2 * x);
    poisons.insert(y);
    return false;
  };
  CHECK(run_all().workloads[0].timing.digests_equal == 1200);
  CHECK(addresses_of.size() == 3);
  for (const auto& [content, addresses] : addresses_of)
    CHECK(addresses.size() > 100);
  CHECK(std::count_if(contents_at.begin(), contents_at.end(), [](const auto& one) {
    return one.second.size() > 1;
  }) > 100);
  CHECK(poisons == std::set<float>{2000, 4000, 6000});
}

TEST_CASE_FIXTURE(
  timed_fixture, "nothing that a kernel leaves beside its buffers is there at the next call") {
  add("doubled");
  uint32_t found_again = 0;
  gpu.instead = [&](fake_cuda_device& on, const call_step&, uint32_t) {
    for (uint64_t at = 0; at < shift_room; at += 2048) {
      uint64_t word = 0;
      const auto bytes = std::as_writable_bytes(std::span(&word, 1));
      (void)on.copy_out(bytes, on.named("part") + at);
      found_again += word == 0x1234567890abcdef ? 1 : 0;
      word = 0x1234567890abcdef;
      (void)on.copy_in(on.named("part") + at, bytes);
    }
    return false;
  };
  CHECK(run_all().workloads[0].status == verdict_status::passed);
  CHECK(found_again == 0);
}

TEST_CASE_FIXTURE(
  timed_fixture, "a call that leaves its output as it was is digested, written out and named") {
  add("doubled");
  gpu.instead = [](fake_cuda_device&, const call_step&, uint32_t number) { return number == 17; };
  const auto measured = run_all().workloads[0];
  CHECK(measured.status == verdict_status::passed); // The judge decides.
  CHECK(measured.timing.digests_equal == 59);
  CHECK(measured.timing.written_out == 1);
  REQUIRE(measured.written.size() == 4);
  CHECK(measured.written[3].call == "timed 17");
  CHECK(measured.detail == "1 of 60 timed calls gave other bits than the checked call");
  const auto check = measured.written[3].check;
  const auto left = floats(written_file("doubled" + std::to_string(check) + ".out", "timed 17"));
  CHECK(left[0] != static_cast<float>(2000 * (check + 1)));
}

TEST_CASE_FIXTURE(
  timed_fixture, "of many calls that differ only so many are written, and it says so") {
  add("doubled");
  gpu.instead = [&](fake_cuda_device& on, const call_step& step, uint32_t) {
    const float noise = 1;
    (void)on.copy_in(argument(step, 1), std::as_bytes(std::span(&noise, 1)));
    return true;
  };
  const auto measured = run_all().workloads[0];
  CHECK(measured.timing.digested == 60);
  CHECK(measured.timing.digests_equal == 0);
  CHECK(measured.timing.written_out == 4);
  CHECK(measured.detail.find("60 of 60 timed calls") == 0);
  CHECK(measured.detail.find("4 of them, drawn at random") != std::string::npos);
  size_t files = 0;
  for (const auto& each : std::filesystem::directory_iterator(folder.path()))
    files += each.path().string().find(".timed-") != std::string::npos ? 1 : 0;
  CHECK(files == 4); // What was written and displaced is gone.
}

TEST_CASE_FIXTURE(timed_fixture, "a secret share of the equal calls is written out too") {
  what.run.timing.written_share = 1024;
  what.run.timing.written_max = 6;
  add("doubled");
  const auto measured = run_all().workloads[0];
  CHECK(measured.timing.written_out == 6);
  CHECK(measured.timing.digests_equal == 60);
  CHECK(measured.detail.empty());
  for (size_t i = 3; i < measured.written.size(); ++i)
    CHECK(floats(written_file("doubled" + std::to_string(measured.written[i].check) + ".out",
            measured.written[i].call))
      == floats("doubled" + std::to_string(measured.written[i].check) + ".out"));
}

TEST_CASE_FIXTURE(timed_fixture, "an input that a timed call changes is a proof, and told once") {
  add("doubled");
  gpu.instead = [&](fake_cuda_device& on, const call_step& step, uint32_t number) {
    const float seven = 7;
    if (number >= 5)
      (void)on.copy_in(argument(step, 0) + 16, std::as_bytes(std::span(&seven, 1)));
    return false;
  };
  const auto found = run_all();
  REQUIRE(found.findings.size() == 1);
  CHECK(found.findings[0].rule == "writes_input");
  CHECK(found.findings[0].fatal);
  CHECK(found.findings[0].workload == "doubled");
  CHECK(found.findings[0].detail.find("`x`") != std::string::npos);
  CHECK(found.findings[0].detail.find("byte 16") != std::string::npos);
}

TEST_CASE_FIXTURE(
  timed_fixture, "restored scratch that is not zero after a timed call is the candidate's error") {
  add("doubled");
  gpu.instead = [&](fake_cuda_device& on, const call_step&, uint32_t number) {
    if (number == 3)
      for (device_pointer at = 0; at < 8; ++at) {
        // Somewhere in its room is enough.
        const float one = 1;
        (void)on.copy_in(on.named("lock") + 4096 * at, std::as_bytes(std::span(&one, 1)));
      }
    return false;
  };
  const auto measured = run_all().workloads[0];
  CHECK(measured.status == verdict_status::runtime_error);
  CHECK(measured.detail.find("`lock`") != std::string::npos);
  CHECK(measured.time_ns == 0);
}

TEST_CASE_FIXTURE(
  timed_fixture, "what does not fit into the device's memory is left out, and it says so") {
  add("doubled");
  // The reserve, four work spaces, one case and a half.
  gpu.memory_bytes =
    (uint64_t{512} << 20) + 2 * gpu.properties().l2_bytes + 4 * (512 + shift_room) + 3 * 512;
  const auto measured = run_all().workloads[0];
  CHECK(measured.status == verdict_status::passed);
  CHECK(measured.detail.find("first 1 of 3 cases") != std::string::npos);
  CHECK(measured.timing.digests_equal == 60);
  gpu.memory_bytes = 1 << 20;
  what.run.workloads.clear();
  add("doubled");
  CHECK(run_all().workloads[0].status == verdict_status::infrastructure);
}

TEST_CASE_FIXTURE(
  timed_fixture, "a fault takes the context with it: the rest is not run, and says why") {
  add("doubled");
  add("beyond");
  add("nothing");
  const auto found = run_all();
  REQUIRE(found.workloads.size() == 3);
  CHECK(found.workloads[0].status == verdict_status::passed);
  CHECK(found.workloads[1].status == verdict_status::runtime_error);
  CHECK(found.workloads[2].status == verdict_status::not_checked);
  CHECK(found.workloads[2].detail.find("lost with workload beyond") != std::string::npos);
}

TEST_CASE_FIXTURE(timed_fixture, "one case alone is poisoned with values of nobody") {
  add("nothing", 1);
  const auto measured = run_all().workloads[0];
  CHECK(measured.status == verdict_status::passed);
  CHECK(measured.timing.digests_equal == 0);
}

TEST_CASE_FIXTURE(
  timed_fixture, "without cases to time on the clock's own inputs are used, and it says so") {
  auto& work = add("doubled");
  work.timed_on.clear();
  const auto measured = run_all().workloads[0];
  CHECK(measured.status == verdict_status::passed);
  CHECK(measured.time_ns == 1000);
  CHECK(measured.timing.digested == 0);
  CHECK(measured.detail.find("nobody has checked") != std::string::npos);
}

TEST_CASE_FIXTURE(
  timed_fixture, "who gives up for a workload that does not end answers for the rest too") {
  add("doubled");
  add("nothing");
  const auto path = folder.file("lines");
  {
    auto channel = child_channel::open(nonce, open_lines(path));
    REQUIRE(channel);
    child_context context{folder.path(), what, **channel};
    auto units = unit_store::read(context);
    REQUIRE(units);
    workload_runner all(context, {&gpu, &gpu, {}}, std::move(*units));
    CHECK(all.give_up("it did not end"));
    CHECK_FALSE(all.give_up("again"));
    all.run_all(); // Comes too late.
  }
  const auto text = read_file(path);
  CHECK(text.find("\"TIMEOUT\"") != std::string::npos);
  CHECK(text.find("not run: workload doubled did not end") != std::string::npos);
  CHECK(text.find("\"PASSED\"") == std::string::npos);
}
