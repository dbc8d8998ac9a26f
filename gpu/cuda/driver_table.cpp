#include "gpu/cuda/driver_table.hpp"

#include "gpu/cuda/function_loader.hpp"

#include <fmt/format.h>

namespace gristmill::cuda {

result<std::shared_ptr<const driver>> driver::load() {
  auto library = shared_library::open("libcuda.so.1");
  if (!library)
    return fail(errc::unsupported, "no NVIDIA driver: " + library.error().what);
  auto out = std::make_shared<driver>();
  auto& t = out->table_;
  function_loader from(*library);
  // The names are those of the ABI, which cuda.h hides behind macros.
  from.take(t.init, "cuInit")
    .take(t.driver_version, "cuDriverGetVersion")
    .take(t.error_name, "cuGetErrorName")
    .take(t.error_string, "cuGetErrorString")
    .take(t.device_count, "cuDeviceGetCount")
    .take(t.device_get, "cuDeviceGet")
    .take(t.device_name, "cuDeviceGetName")
    .take(t.device_attribute, "cuDeviceGetAttribute")
    .take(t.device_memory, "cuDeviceTotalMem_v2")
    .take(t.device_uuid, "cuDeviceGetUuid_v2")
    .take(t.device_pci, "cuDeviceGetPCIBusId")
    .take(t.primary_retain, "cuDevicePrimaryCtxRetain")
    .take(t.primary_release, "cuDevicePrimaryCtxRelease_v2")
    .take(t.set_current, "cuCtxSetCurrent")
    .take(t.synchronise, "cuCtxSynchronize")
    .take(t.reset_persisting_l2, "cuCtxResetPersistingL2Cache")
    .take(t.memory_granularity, "cuMemGetAllocationGranularity")
    .take(t.address_reserve, "cuMemAddressReserve")
    .take(t.address_free, "cuMemAddressFree")
    .take(t.memory_create, "cuMemCreate")
    .take(t.memory_release, "cuMemRelease")
    .take(t.memory_map, "cuMemMap")
    .take(t.memory_unmap, "cuMemUnmap")
    .take(t.set_access, "cuMemSetAccess")
    .take(t.allocate, "cuMemAlloc_v2")
    .take(t.free, "cuMemFree_v2")
    .take(t.copy_in, "cuMemcpyHtoD_v2")
    .take(t.copy_out, "cuMemcpyDtoH_v2")
    .take(t.copy, "cuMemcpyDtoDAsync_v2")
    .take(t.memset8, "cuMemsetD8Async")
    .take(t.memset16, "cuMemsetD16Async")
    .take(t.memset32, "cuMemsetD32Async")
    .take(t.module_load, "cuModuleLoadDataEx")
    .take(t.module_unload, "cuModuleUnload")
    .take(t.module_function, "cuModuleGetFunction")
    .take(t.module_global, "cuModuleGetGlobal_v2")
    .take(t.function_get, "cuFuncGetAttribute")
    .take(t.function_set, "cuFuncSetAttribute")
    .take(t.function_parameter, "cuFuncGetParamInfo")
    .take(t.occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor")
    .take(t.launch, "cuLaunchKernelEx")
    .take(t.stream_create, "cuStreamCreate")
    .take(t.stream_destroy, "cuStreamDestroy_v2")
    .take(t.stream_synchronise, "cuStreamSynchronize")
    .take(t.stream_wait_event, "cuStreamWaitEvent")
    .take(t.host_allocate, "cuMemHostAlloc")
    .take(t.host_free, "cuMemFreeHost")
    .take(t.host_device_address, "cuMemHostGetDevicePointer_v2")
    .take(t.wait_value, "cuStreamWaitValue32_v2")
    .take(t.event_create, "cuEventCreate")
    .take(t.event_destroy, "cuEventDestroy_v2")
    .take(t.event_record, "cuEventRecord")
    .take(t.event_synchronise, "cuEventSynchronize")
    .take(t.event_elapsed, "cuEventElapsedTime")
    .take(t.encode_tiled, "cuTensorMapEncodeTiled");
  if (from.missing())
    return fail(errc::unsupported,
      fmt::format("the NVIDIA driver is too old, 12.4 is needed: {}", from.missing()->what));
  if (auto bad = t.init(0); bad != success)
    return fail(
      errc::unsupported, fmt::format("the NVIDIA driver does not start: {}", out->describe(bad)));
  if (auto bad = t.driver_version(&out->version_); bad != success)
    return fail(errc::unsupported,
      fmt::format("the NVIDIA driver does not tell its version: {}", out->describe(bad)));
  return out;
}

std::string driver::describe(status error) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (table_.error_name(error, &name) != success || name == nullptr)
    return fmt::format("CUDA error {}", error);
  if (table_.error_string(error, &text) != success || text == nullptr)
    return name;
  return fmt::format("{}: {}", name, text);
}

std::string driver::version_text() const {
  return fmt::format("{}.{}", version_ / 1000, version_ % 1000 / 10);
}

std::optional<std::string> fault_word(status error) {
  switch (error) {
  case error_illegal_address:
    return "illegal address";
  case error_misaligned_address:
    return "misaligned";
  case error_assert:
    return "assertion";
  case error_illegal_instruction:
    return "trap";
  case error_hardware_stack:
    return "stack";
  case error_invalid_address_space:
    return "address space";
  case error_invalid_pc:
    return "program counter";
  case error_launch_failed:
    return "launch failed";
  default:
    return std::nullopt;
  }
}

tl::unexpected<failure> failure_of(const driver& api, const std::string& during, status bad) {
  return fail(
    fault_word(bad) ? errc::device_fault : errc::io_failed, during + ": " + api.describe(bad));
}

status copy_in_and_wait(const driver_table& table, address to, const void* from, size_t bytes) {
  const auto bad = table.copy_in(to, from, bytes);
  return bad != success ? bad : table.stream_synchronise(nullptr);
}

std::string uuid_text(const uint8_t (&bytes)[16]) {
  std::string out = "GPU-";
  for (size_t i = 0; i < 16; ++i)
    out += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
  return out;
}

} // namespace gristmill::cuda
