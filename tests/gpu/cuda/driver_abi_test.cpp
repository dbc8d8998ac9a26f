#include "gpu/cuda/driver_table.hpp"
#include "tests/gpu/cuda/same_shape.hpp"

#include <doctest/doctest.h>

#ifdef GRISTMILL_HAS_CUDA_HEADER
#include <cuda.h>
#endif

using namespace gristmill;

#ifdef GRISTMILL_HAS_CUDA_HEADER
// Numbers and layouts that we wrote down ourselves are those of NVIDIA's header.
static_assert(sizeof(cuda::launch_config) == sizeof(CUlaunchConfig));
static_assert(offsetof(cuda::launch_config, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(cuda::launch_config, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(sizeof(cuda::launch_attribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(cuda::launch_attribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(cuda::attribute_cooperative == static_cast<int>(CU_LAUNCH_ATTRIBUTE_COOPERATIVE));
static_assert(cuda::attribute_cluster == static_cast<int>(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION));
static_assert(cuda::attribute_dependent_launch
  == static_cast<int>(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION));
static_assert(sizeof(cuda::allocation_properties) == sizeof(CUmemAllocationProp));
static_assert(
  offsetof(cuda::allocation_properties, location) == offsetof(CUmemAllocationProp, location));
static_assert(sizeof(cuda::access_description) == sizeof(CUmemAccessDesc));
static_assert(cuda::access_read == static_cast<int>(CU_MEM_ACCESS_FLAGS_PROT_READ));
static_assert(cuda::access_read_write == static_cast<int>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
static_assert(
  cuda::max_threads_per_block == static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
static_assert(
  cuda::multiprocessor_count == static_cast<int>(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
static_assert(cuda::l2_cache_size == static_cast<int>(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
static_assert(
  cuda::compute_capability_major == static_cast<int>(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
static_assert(
  cuda::compute_capability_minor == static_cast<int>(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
static_assert(cuda::max_shared_per_multiprocessor
  == static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
static_assert(
  cuda::pageable_memory_access == static_cast<int>(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS));
static_assert(cuda::max_shared_per_block_optin
  == static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
static_assert(cuda::function_registers == static_cast<int>(CU_FUNC_ATTRIBUTE_NUM_REGS));
static_assert(cuda::function_dynamic_shared_max
  == static_cast<int>(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
static_assert(cuda::function_non_portable_cluster
  == static_cast<int>(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED));
static_assert(cuda::error_illegal_address == static_cast<int>(CUDA_ERROR_ILLEGAL_ADDRESS));
static_assert(cuda::error_misaligned_address == static_cast<int>(CUDA_ERROR_MISALIGNED_ADDRESS));
static_assert(cuda::error_assert == static_cast<int>(CUDA_ERROR_ASSERT));
static_assert(cuda::error_illegal_instruction == static_cast<int>(CUDA_ERROR_ILLEGAL_INSTRUCTION));
static_assert(cuda::error_launch_failed == static_cast<int>(CUDA_ERROR_LAUNCH_FAILED));
static_assert(cuda::error_not_found == static_cast<int>(CUDA_ERROR_NOT_FOUND));
static_assert(cuda::jit_error_buffer == static_cast<int>(CU_JIT_ERROR_LOG_BUFFER));
static_assert(cuda::jit_error_bytes == static_cast<int>(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES));
static_assert(cuda::wait_value_equal == static_cast<int>(CU_STREAM_WAIT_VALUE_EQ));
static_assert(cuda::host_device_map == static_cast<int>(CU_MEMHOSTALLOC_DEVICEMAP));
static_assert(cuda::stream_non_blocking == static_cast<int>(CU_STREAM_NON_BLOCKING));
static_assert(
  cuda::function_carveout == static_cast<int>(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT));
static_assert(cuda::event_without_time == static_cast<int>(CU_EVENT_DISABLE_TIMING));
static_assert(cuda::error_not_supported == static_cast<int>(CUDA_ERROR_NOT_SUPPORTED));

// The functions take what NVIDIA's declarations say; its macros choose the version that we load.
#define GRISTMILL_SAME(ours, theirs)                                                               \
  static_assert(same_shape<decltype(cuda::driver_table::ours), decltype(&theirs)>::value)
GRISTMILL_SAME(init, cuInit);
GRISTMILL_SAME(driver_version, cuDriverGetVersion);
GRISTMILL_SAME(error_name, cuGetErrorName);
GRISTMILL_SAME(error_string, cuGetErrorString);
GRISTMILL_SAME(device_count, cuDeviceGetCount);
GRISTMILL_SAME(device_get, cuDeviceGet);
GRISTMILL_SAME(device_name, cuDeviceGetName);
GRISTMILL_SAME(device_attribute, cuDeviceGetAttribute);
GRISTMILL_SAME(device_memory, cuDeviceTotalMem);
GRISTMILL_SAME(device_uuid, cuDeviceGetUuid);
GRISTMILL_SAME(device_pci, cuDeviceGetPCIBusId);
GRISTMILL_SAME(primary_retain, cuDevicePrimaryCtxRetain);
GRISTMILL_SAME(primary_release, cuDevicePrimaryCtxRelease);
GRISTMILL_SAME(set_current, cuCtxSetCurrent);
GRISTMILL_SAME(synchronise, cuCtxSynchronize);
GRISTMILL_SAME(reset_persisting_l2, cuCtxResetPersistingL2Cache);
GRISTMILL_SAME(memory_granularity, cuMemGetAllocationGranularity);
GRISTMILL_SAME(address_reserve, cuMemAddressReserve);
GRISTMILL_SAME(address_free, cuMemAddressFree);
GRISTMILL_SAME(memory_create, cuMemCreate);
GRISTMILL_SAME(memory_release, cuMemRelease);
GRISTMILL_SAME(memory_map, cuMemMap);
GRISTMILL_SAME(memory_unmap, cuMemUnmap);
GRISTMILL_SAME(set_access, cuMemSetAccess);
GRISTMILL_SAME(allocate, cuMemAlloc);
GRISTMILL_SAME(free, cuMemFree);
GRISTMILL_SAME(copy_in, cuMemcpyHtoD);
GRISTMILL_SAME(copy_out, cuMemcpyDtoH);
GRISTMILL_SAME(copy, cuMemcpyDtoDAsync);
GRISTMILL_SAME(memset8, cuMemsetD8Async);
GRISTMILL_SAME(memset16, cuMemsetD16Async);
GRISTMILL_SAME(memset32, cuMemsetD32Async);
GRISTMILL_SAME(module_load, cuModuleLoadDataEx);
GRISTMILL_SAME(module_unload, cuModuleUnload);
GRISTMILL_SAME(module_function, cuModuleGetFunction);
GRISTMILL_SAME(module_global, cuModuleGetGlobal);
GRISTMILL_SAME(function_get, cuFuncGetAttribute);
GRISTMILL_SAME(function_set, cuFuncSetAttribute);
GRISTMILL_SAME(function_parameter, cuFuncGetParamInfo);
GRISTMILL_SAME(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor);
GRISTMILL_SAME(launch, cuLaunchKernelEx);
GRISTMILL_SAME(stream_create, cuStreamCreate);
GRISTMILL_SAME(stream_destroy, cuStreamDestroy);
GRISTMILL_SAME(stream_synchronise, cuStreamSynchronize);
GRISTMILL_SAME(stream_wait_event, cuStreamWaitEvent);
GRISTMILL_SAME(host_allocate, cuMemHostAlloc);
GRISTMILL_SAME(host_free, cuMemFreeHost);
GRISTMILL_SAME(host_device_address, cuMemHostGetDevicePointer);
GRISTMILL_SAME(wait_value, cuStreamWaitValue32);
GRISTMILL_SAME(event_create, cuEventCreate);
GRISTMILL_SAME(event_destroy, cuEventDestroy);
GRISTMILL_SAME(event_record, cuEventRecord);
GRISTMILL_SAME(event_synchronise, cuEventSynchronize);
GRISTMILL_SAME(event_elapsed, cuEventElapsedTime);
GRISTMILL_SAME(encode_tiled, cuTensorMapEncodeTiled);
#endif

TEST_CASE("our declarations of the driver's interface agree with NVIDIA's header") {
#ifdef GRISTMILL_HAS_CUDA_HEADER
  // The assertions above are the test; here is what the preprocessor alone knows.
  CHECK(cuda::param_buffer == CU_LAUNCH_PARAM_BUFFER_POINTER);
  CHECK(cuda::param_size == CU_LAUNCH_PARAM_BUFFER_SIZE);
  CHECK(cuda::param_end == CU_LAUNCH_PARAM_END);
#else
  MESSAGE("SKIPPED: cuda.h is not on this machine, so nothing was compared");
#endif
}
