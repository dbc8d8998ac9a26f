#pragma once

#include "gpu/toolchain/shared_library.hpp"
#include "messages/result.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

// The few declarations that we need of cuda.h, so that no toolkit is needed to build and no driver
// to start: one binary serves laptop and GPU host. tests/gpu/cuda compares them with NVIDIA's
// header where there is one. CUDA Driver API, versions 12.4 to 13.

namespace gristmill::cuda {

using device_id = int;
using context_handle = struct context_tag*;
using module_handle = struct module_tag*;
using function_handle = struct function_tag*;
using stream_handle = struct stream_tag*;
using event_handle = struct event_tag*;
using address = unsigned long long;
using memory_handle = unsigned long long;

/// CUresult: 0 is success.
using status = int;
constexpr status success = 0;
constexpr status error_out_of_memory = 2;
constexpr status error_not_found = 500;
constexpr status error_illegal_address = 700;
constexpr status error_assert = 710;
constexpr status error_hardware_stack = 714;
constexpr status error_illegal_instruction = 715;
constexpr status error_misaligned_address = 716;
constexpr status error_invalid_address_space = 717;
constexpr status error_invalid_pc = 718;
constexpr status error_launch_failed = 719;
constexpr status error_not_supported = 801;

/// CUdevice_attribute
enum device_attribute : int {
  max_threads_per_block = 1,
  multiprocessor_count = 16,
  l2_cache_size = 38,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  max_shared_per_multiprocessor = 81,
  pageable_memory_access = 88,
  max_shared_per_block_optin = 97,
};

/// CUfunction_attribute
enum function_attribute : int {
  function_max_threads = 0,
  function_static_shared = 1,
  function_local_bytes = 3,
  function_registers = 4,
  function_dynamic_shared_max = 8,
  function_carveout = 9,
  function_non_portable_cluster = 14,
};

/// CUmemLocation, CUmemAllocationProp, CUmemAccessDesc
struct memory_location {
  int type = 1; // CU_MEM_LOCATION_TYPE_DEVICE
  int id = 0;
};
struct allocation_properties {
  int type = 1; // CU_MEM_ALLOCATION_TYPE_PINNED
  int handle_types = 0;
  memory_location location;
  void* win32 = nullptr;
  std::array<uint8_t, 8> flags{};
};
struct access_description {
  memory_location location;
  int flags = 0;
};
constexpr int access_read = 1, access_read_write = 3;
constexpr int granularity_minimum = 0;

/// CUlaunchAttribute: an id and a union of 64 bytes.
struct launch_attribute {
  int id = 0;
  std::array<uint8_t, 4> pad{};
  alignas(8) std::array<uint8_t, 64> value{};
};
constexpr int attribute_cooperative = 2, attribute_cluster = 4, attribute_dependent_launch = 6;

/// CUlaunchConfig
struct launch_config {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  stream_handle stream = nullptr;
  launch_attribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
/// CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END
inline void* const param_end = nullptr;
inline void* const param_buffer = reinterpret_cast<void*>(1);
inline void* const param_size = reinterpret_cast<void*>(2);

constexpr unsigned host_portable = 1, host_device_map = 2;
constexpr unsigned wait_value_equal = 1;
constexpr unsigned stream_non_blocking = 1;
constexpr unsigned event_without_time = 2;

/// cuModuleLoadDataEx
constexpr int jit_error_buffer = 5, jit_error_bytes = 6;

/// Entry points of the driver, all of them there or the table is not made.
struct driver_table {
  status (*init)(unsigned flags);
  status (*driver_version)(int* version);
  status (*error_name)(status error, const char** text);
  status (*error_string)(status error, const char** text);
  status (*device_count)(int* count);
  status (*device_get)(device_id* device, int ordinal);
  status (*device_name)(char* name, int bytes, device_id device);
  status (*device_attribute)(int* value, int attribute, device_id device);
  status (*device_memory)(size_t* bytes, device_id device);
  status (*device_uuid)(uint8_t (*uuid)[16], device_id device);
  status (*device_pci)(char* text, int bytes, device_id device);
  status (*primary_retain)(context_handle* context, device_id device);
  status (*primary_release)(device_id device);
  status (*set_current)(context_handle context);
  status (*synchronise)();
  status (*reset_persisting_l2)();
  status (*memory_granularity)(size_t* bytes, const allocation_properties*, int option);
  status (*address_reserve)(
    address* at, size_t bytes, size_t align, address hint, unsigned long long flags);
  status (*address_free)(address at, size_t bytes);
  status (*memory_create)(
    memory_handle* memory, size_t bytes, const allocation_properties*, unsigned long long flags);
  status (*memory_release)(memory_handle memory);
  status (*memory_map)(
    address at, size_t bytes, size_t offset, memory_handle memory, unsigned long long flags);
  status (*memory_unmap)(address at, size_t bytes);
  status (*set_access)(address at, size_t bytes, const access_description*, size_t count);
  status (*allocate)(address* at, size_t bytes);
  status (*free)(address at);
  status (*copy_in)(address to, const void* from, size_t bytes);
  status (*copy_out)(void* to, address from, size_t bytes);
  status (*copy)(address to, address from, size_t bytes, stream_handle stream);
  status (*memset8)(address to, unsigned char value, size_t count, stream_handle stream);
  status (*memset16)(address to, unsigned short value, size_t count, stream_handle stream);
  status (*memset32)(address to, unsigned value, size_t count, stream_handle stream);
  status (*module_load)(
    module_handle* module, const void* image, unsigned options, int* names, void** values);
  status (*module_unload)(module_handle module);
  status (*module_function)(function_handle* function, module_handle module, const char* name);
  status (*module_global)(address* at, size_t* bytes, module_handle module, const char* name);
  status (*function_get)(int* value, int attribute, function_handle function);
  status (*function_set)(function_handle function, int attribute, int value);
  status (*function_parameter)(
    function_handle function, size_t index, size_t* offset, size_t* bytes);
  status (*occupancy)(int* blocks, function_handle function, int threads, size_t shared);
  status (*launch)(const launch_config*, function_handle function, void** parameters, void** extra);
  status (*stream_create)(stream_handle* stream, unsigned flags);
  status (*stream_destroy)(stream_handle stream);
  status (*stream_synchronise)(stream_handle stream);
  status (*stream_wait_event)(stream_handle stream, event_handle event, unsigned flags);
  status (*host_allocate)(void** memory, size_t bytes, unsigned flags);
  status (*host_free)(void* memory);
  status (*host_device_address)(address* at, void* memory, unsigned flags);
  status (*wait_value)(stream_handle stream, address at, uint32_t value, unsigned flags);
  status (*event_create)(event_handle* event, unsigned flags);
  status (*event_destroy)(event_handle event);
  status (*event_record)(event_handle event, stream_handle stream);
  status (*event_synchronise)(event_handle event);
  status (*event_elapsed)(float* milliseconds, event_handle from, event_handle to);
  status (*encode_tiled)(void* map, int type, unsigned rank, void* base, const uint64_t* dims,
    const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides, int interleave,
    int swizzle, int l2, int oob);
};

/// The driver, loaded and initialised once for the process; it stays until the process ends.
class driver {
public:
  /// Looks for libcuda.so.1. `unsupported` when there is no driver, it is too old, or it refuses to
  /// start; the text says which.
  static result<std::shared_ptr<const driver>> load();

  const driver_table& operator*() const { return table_; }
  const driver_table* operator->() const { return &table_; }
  /// Such as 13000 for 13.0.
  int version() const { return version_; }
  /// "13.0"
  std::string version_text() const;
  /// "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"
  std::string describe(status error) const;

private:
  driver_table table_{};
  int version_ = 0;
};

using driver_ptr = std::shared_ptr<const driver>;

/// What a kernel did wrong, where the driver tells it; nothing for every other error.
std::optional<std::string> fault_word(status error);

/// A driver error as a failure: `device_fault` for what a kernel did, else `io_failed`.
tl::unexpected<failure> failure_of(const driver& api, const std::string& during, status bad);

/// Copies to the device and waits until the bytes are there. The driver's own copy of pageable
/// memory returns when it has read the source: the last transfer may still be under way, and our
/// streams do not wait for it. A buffer that is then made read-only faults in the copy engine.
status copy_in_and_wait(const driver_table& table, address to, const void* from, size_t bytes);

/// "GPU-01234567-…", as nvidia-smi and NVML write it.
std::string uuid_text(const uint8_t (&bytes)[16]);

} // namespace gristmill::cuda
