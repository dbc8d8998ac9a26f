#include "gpu/cuda/weather_station.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using cuda::own_process;
using cuda::weather_log;
using cuda::weather_reading;

// NVML's header comes with no toolkit, so what was read in its documentation is held here.
static_assert(sizeof(cuda::nvml_memory) == 24);
static_assert(sizeof(cuda::nvml_process) == 24);
static_assert(sizeof(cuda::nvml_pci) == 68);

TEST_CASE(
  "our own process is the one with our number, or the only one that came with the context") {
  CHECK(own_process({}, {7, 9}, 9) == 9);
  // A container numbers processes differently.
  CHECK(own_process({7}, {7, 4000}, 9) == 4000);
  CHECK(own_process({7}, {7}, 9) == std::nullopt);
  CHECK(own_process({}, {4000, 4001}, 9) == std::nullopt);
}

TEST_CASE("foreign are all processes but ours, at most at one time") {
  weather_log known(9);
  weather_reading reading;
  reading.processes = {7, 9};
  known.add(reading);
  reading.processes = {9};
  known.add(reading);
  CHECK(known.summary().foreign_processes == 1);
  reading.processes = {7};
  weather_log gone(9);
  gone.add(reading);
  CHECK(gone.summary().foreign_processes == 1);
  // Where we do not know which one we are, one of them is.
  weather_log unknown(std::nullopt);
  reading.processes = {7, 8};
  unknown.add(reading);
  CHECK(unknown.summary().foreign_processes == 1);
  weather_log untold(std::nullopt);
  reading.processes = std::nullopt;
  untold.add(reading);
  reading.processes = std::vector<uint32_t>{};
  untold.add(reading);
  CHECK(untold.summary().foreign_processes == 0);
  CHECK(untold.summary().readings == 2);
}

TEST_CASE("what is not told is no minimum, and every reason of throttling is kept") {
  weather_log log(std::nullopt);
  log.add({0, 0, 100, 30, 1, {}});
  log.add({1980, 3201, 700'000, 55, 4, {}});
  log.add({1700, 3201, 650'000, 60, 0, {}});
  const auto& all = log.summary();
  CHECK(all.sm_mhz_min == 1700);
  CHECK(all.sm_mhz_max == 1980);
  CHECK(all.memory_mhz_min == 3201);
  CHECK(all.power_mw_max == 700'000);
  CHECK(all.temperature_c_max == 60);
  CHECK(all.throttle_bits == 5);
}
