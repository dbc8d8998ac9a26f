#pragma once

#include "messages/measure.hpp"
#include "messages/result.hpp"
#include "messages/tensor_map.hpp"
#include "messages/verdict.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

namespace ptx {
struct counts;
}

/// An address in device memory; 0 is the null pointer.
using device_pointer = uint64_t;

/// What a plan may ask about a device, and what a result says about it.
struct device_properties {
  /// "h200"; what a lease asks for.
  std::string model;
  /// "NVIDIA H200 (modelled)"; for people.
  std::string title;
  /// Compilation target, "sm_90a".
  std::string arch;
  uint32_t sm_count = 0;
  /// Largest shared memory of one block, with the opt-in.
  uint64_t shared_per_block = 0;
  uint64_t shared_per_sm = 0;
  uint64_t l2_bytes = 0;
  uint64_t memory_bytes = 0;
  uint32_t threads_per_block = 1024;
  /// modelled or measured: what every time of this device is.
  time_origin origin = time_origin::none;
  /// Stands beside every time of this device, such as "MODELLED mock-clock/1 uncalibrated, h200".
  std::string time_label;
};

/// A module on the device; valid until it is unloaded or the device is reset.
struct module_handle {
  uint32_t id = 0;
};

/// An entry point of a loaded module; valid as long as the module.
struct function_handle {
  uint32_t module = 0;
  uint32_t index = 0;
};

/// Where a parameter lies among the bytes that a launch passes.
struct parameter_place {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

struct function_properties {
  std::string name;
  /// In order; empty on devices that do not tell.
  std::vector<parameter_place> parameters;
  /// Bytes that a launch must pass, up to the end of the last parameter.
  uint32_t parameter_bytes = 0;
  uint32_t static_shared = 0;
  uint32_t local_bytes = 0;
  uint32_t registers = 0;
  /// Largest block, from launch bounds or the device.
  uint32_t max_threads = 0;
};

/// Shape of one launch. All numbers are at least 1.
struct launch_shape {
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  std::array<uint32_t, 3> cluster{1, 1, 1};
  uint32_t dynamic_shared = 0;
  bool cooperative = false;
};

/// The kernel's fault, not ours: the candidate gets the blame.
struct device_fault {
  /// "out of bounds", "instruction limit", …: the words of `ptx::to_string(fault_kind)`.
  std::string kind;
  /// A whole sentence: where and what.
  std::string what;
  int ptx_line = 0;
  /// True when the kernel ran too long instead of doing something forbidden.
  bool timeout = false;
};

/// What is known after a launch, or after `synchronise` on devices that run behind our back.
struct launch_report {
  std::optional<device_fault> fault;
  /// Null on devices that do not count.
  std::shared_ptr<const ptx::counts> counts;
};

/// Time of everything between `begin_timing` and `end_timing`.
struct call_time {
  uint64_t ns = 0;
  /// Where the time goes; for a model the terms overlap, so they do not add up to `ns`.
  std::vector<time_term> terms;
  /// Name of the largest term.
  std::string bound;
};

/// A GPU as the driver shows it. One thread at a time. The mock and a real one stand behind this,
/// so that runner and checks are the same code.
///
/// Failures are ours or the caller's (`invalid_input`: a bad handle or range; `refused`: a limit of
/// the device; `unsupported`: this device cannot do that). What a kernel does wrong comes back as
/// `launch_report::fault`, and memory then holds whatever had been written until the fault.
class device {
public:
  device() = default;
  device(const device&) = delete;
  device& operator=(const device&) = delete;
  virtual ~device() = default;

  virtual const device_properties& properties() const = 0;

  /// Fresh memory, not initialised. The base is a multiple of 256; `name` appears in faults.
  virtual result<device_pointer> allocate(uint64_t bytes, std::string name) = 0;
  /// Makes the caller's bytes readable for kernels. They must stay as they are until `free`.
  /// Kernels cannot write them where the device supports that (`launch_report::fault` otherwise).
  virtual result<device_pointer> map_input(std::span<const std::byte> host, std::string name) = 0;
  /// A read-only buffer of `total_bytes` that holds the first `pattern_bytes` of the file over and
  /// over: an input of a GB for the clock costs the memory of its pattern. `pattern_bytes` is a
  /// multiple of the page size, or at least `total_bytes`.
  virtual result<device_pointer> map_repeated(
    const std::string& path, uint64_t pattern_bytes, uint64_t total_bytes, std::string name) = 0;
  /// Takes the base of an allocation or mapping.
  virtual result<void> free(device_pointer base) = 0;
  /// Frees all memory and modules. Afterwards the same sequence of calls gives the same addresses,
  /// and on a modelled device the same times, whatever had happened before.
  virtual void reset() = 0;

  virtual result<void> copy_in(device_pointer to, std::span<const std::byte> from) = 0;
  virtual result<void> copy_out(std::span<std::byte> to, device_pointer from) = 0;
  virtual result<void> copy(device_pointer to, device_pointer from, uint64_t bytes) = 0;
  /// Fills with a value of `width` 1, 2 or 4 bytes; `to` and `bytes` are multiples of it.
  virtual result<void> memset(
    device_pointer to, uint64_t bytes, uint32_t width, uint32_t value) = 0;

  /// The tensor map of a tensor at `base`, as bytes that a kernel takes by value. Fails with
  /// `invalid_input` naming the rule of the encoder that the map breaks. On hardware this is
  /// cuTensorMapEncodeTiled.
  virtual result<std::array<uint8_t, tensor_map_bytes>> encode_tensor_map(
    device_pointer base, const tensor_map_spec& spec) = 0;

  /// Takes device code: PTX text for the mock. Fails with `invalid_input` or `unsupported`.
  virtual result<module_handle> load_module(std::string_view code) = 0;
  virtual result<void> unload_module(module_handle module) = 0;
  /// Fails with `not_found`, naming the entries that exist.
  virtual result<function_handle> find_function(module_handle module, std::string_view name) = 0;
  virtual result<function_properties> describe(function_handle function) const = 0;
  /// Blocks of that size that an SM holds at once; 0 when not even one fits.
  virtual result<uint32_t> occupancy(
    function_handle function, uint32_t threads, uint32_t dynamic_shared) const = 0;
  /// The bytes of all variables of the module that kernels can write; to compare before and after.
  virtual result<std::vector<uint8_t>> globals(module_handle module) const = 0;
  virtual result<void> restore_globals(module_handle module, const std::vector<uint8_t>& bytes) = 0;

  /// `parameters` is laid out as the entry's parameters are, at least
  /// `function_properties::parameter_bytes` long.
  virtual result<launch_report> launch(
    function_handle function, const launch_shape& shape, std::span<const uint8_t> parameters) = 0;
  /// Waits for everything launched; a fault that was not reported yet is reported here.
  virtual result<launch_report> synchronise() = 0;

  /// From here on launches, memsets and copies are timed. A modelled device then executes only as
  /// much of each as its model needs: the memory that they write holds nothing meaningful
  /// afterwards.
  virtual result<void> begin_timing() = 0;
  /// Fails with `refused` when there was nothing to time, with `device_fault` when a kernel
  /// faulted.
  virtual result<call_time> end_timing() = 0;
};

} // namespace gristmill
