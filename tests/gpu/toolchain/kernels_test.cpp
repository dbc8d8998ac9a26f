#include "gpu/mock/mock_device.hpp"
#include "tests/gpu/toolchain/compile_fixture.hpp"
#include "tests/gpu/toolchain/kernel_cases.hpp"
#include "tests/gpu/toolchain/nvrtc_fixture.hpp"

#include <cstring>

using namespace gristmill;
using namespace gristmill::test;

namespace {

/// Compiles the ten kernels with that compiler and runs them on the mock device.
template <class Compiler>
void run_the_ten(const Compiler& compiler) {
  for (const std::string& name : case_names()) {
    CAPTURE(name);
    const auto source = source_file("tests/corpus/kernels/" + name + ".cu");
    if (!source)
      return;
    const kernel_case kernel = make_case(name, false);
    compile_input input;
    input.source = *source;
    input.unit = kernel.unit;
    input.arch = "sm_90a";
    const compile_output compiled = compile_or_fail(input, compiler);
    REQUIRE_MESSAGE(compiled.status == verdict_status::passed, compiled.log);
    REQUIRE(compiled.entries.size() == 1);
    CHECK(compiled.entries[0].symbol == name);
    CHECK(compiled.findings.empty());

    auto device = make_mock_device({*profile("h200"), 4'000'000'000, {}});
    const auto module = device->load_module(compiled.ptx);
    REQUIRE_MESSAGE(module, (module ? "" : module.error().what));
    const auto function = device->find_function(*module, compiled.entries[0].symbol);
    REQUIRE(function);
    std::vector<device_pointer> addresses;
    for (const case_buffer& buffer : kernel.buffers) {
      const auto base = buffer.input
        ? device->map_input(std::as_bytes(std::span(buffer.content)), buffer.name)
        : device->allocate(buffer.bytes, buffer.name);
      REQUIRE(base);
      addresses.push_back(*base);
    }
    const auto parameters = kernel.parameters(addresses);
    launch_shape shape;
    shape.grid = kernel.grid;
    shape.block = kernel.block;
    shape.dynamic_shared = kernel.dynamic_shared;
    const auto report = device->launch(*function, shape, parameters);
    REQUIRE_MESSAGE(report, (report ? "" : report.error().what));
    REQUIRE_MESSAGE(!report->fault, report->fault->what);
    std::vector<std::vector<uint8_t>> outputs;
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      if (kernel.buffers[i].input)
        continue;
      outputs.emplace_back(kernel.buffers[i].bytes);
      REQUIRE(device->copy_out(std::as_writable_bytes(std::span(outputs.back())), addresses[i]));
    }
    CHECK(kernel.error(outputs) <= 1.0);
  }
}

} // namespace

TEST_CASE("the ten kernels compile with clang and give right numbers on the mock device") {
  if (const auto clang = clang_or_skip())
    run_the_ten(*clang);
}

TEST_CASE("the ten kernels compile with NVRTC and give right numbers on the mock device") {
  if (const auto nvrtc = nvrtc_or_skip())
    run_the_ten(*nvrtc);
}
