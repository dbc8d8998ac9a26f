#include "gpu/cuda/cuda_device.hpp"
#include "gpu/cuda/module_globals.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

TEST_CASE("without a driver a device is refused in words, and nothing is thrown") {
  auto count = cuda_device_count();
  if (count) {
    MESSAGE("SKIPPED: this machine has a driver with " << *count << " devices");
    return;
  }
  CHECK(count.error().code == errc::unsupported);
  CHECK(count.error().what.find("NVIDIA driver") != std::string::npos);
  auto device = open_cuda_device(0);
  REQUIRE_FALSE(device);
  CHECK(device.error().code == errc::unsupported);
}

TEST_CASE("what kernels can write and keep is named, tables and shared memory are not") {
  auto names = cuda::writable_globals(R"(.version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 calls;
.visible .global .align 8 .b8 store[64];
.const .align 4 .f32 table[2] = {0f3F800000, 0f40000000};
.shared .align 4 .b8 tile[256];
.visible .entry k() { ret; }
)");
  REQUIRE(names.size() == 2);
  CHECK(names[0] == "calls");
  CHECK(names[1] == "store");
  CHECK(cuda::writable_globals("this is no module").empty());
}
