#pragma once

#include "gpu/cuda/cuda_device.hpp"
#include "tests/gpu/kernel_parameters.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What the parts of gristmill-device-check share.
namespace gristmill::device_check {

/// Kernels of the checks: scale, remember, spin, add, store, load, work, wait_ns, arrive.
extern const char* const kernels_ptx;
/// The first three of them, which the mock is asked for too.
std::string mock_ptx();
/// early: lets the launch behind it begin, then takes `ns`; cluster: stores the size of its
/// cluster. Only for sm_90 and newer.
extern const char* const dependent_ptx;

/// Prints one line, and counts the failure.
void check(const std::string& rule, bool holds, const std::string& detail = "");
int failures();

/// The library folders of the command line, and tracing.
cuda_options options(bool trace);
void set_library_folders(std::vector<std::string> folders);

[[noreturn]] void give_up(const char* what, const std::string& why);

template <class T>
T must(result<T> value, const char* what) {
  if (!value)
    give_up(what, value.error().what);
  return std::move(*value);
}

inline void must(const result<void>& value, const char* what) {
  if (!value)
    give_up(what, value.error().what);
}

call_step launch_step(function_handle function, uint32_t blocks, uint32_t threads,
  std::vector<uint8_t> bytes, std::vector<uint32_t> after = {});

/// Measures steps that stay the same.
measured_call measure(
  cuda_device& gpu, const std::vector<call_step>& steps, const timing_protocol& how);

double median(std::vector<uint64_t> values);
/// Median of the distances to the median.
double scatter(const std::vector<uint64_t>& values);

/// The parts, each in a process of its own; they return by their failures.
void check_basics();
void check_kernels();
void check_calls();
void check_agreement();
void check_moving();
void check_foreign();
/// Prints "median_ns N" of one kernel.
void measure_once();
void fault_illegal(bool write_input);
void fault_endless();
void fault_memory();
/// Measures until it is killed.
void work_for_ever();

} // namespace gristmill::device_check
