#include "tests/gpu/cuda/fake_nvidia.hpp"

#include "gpu/cuda/cupti_table.hpp"
#include "gpu/cuda/driver_table.hpp"
#include "gpu/cuda/nvml_table.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

// The functions that our tables ask for, with the least that they must do. What a kernel would
// compute is not done; what a test needs to see is counted.

using namespace gristmill::cuda;

namespace {

struct function {
  std::string name;
};
struct module {
  std::string image;
  std::map<std::string, function> functions;
};

fake_nvidia state;
std::mutex lock;
uint64_t now = 1'000'000;
uint32_t correlation = 0;
bool has_context = false;
std::map<uint32_t, bool> enabled;
std::vector<uint64_t> windows;
std::vector<uint8_t> records;
std::map<uint64_t, size_t> reserved;
cupti_request request = nullptr;
cupti_complete complete = nullptr;

template <class Record>
void put(const Record& record) {
  // Lengths are a multiple of 8 and stand in front, for `cuptiActivityGetNextRecord`.
  const size_t bytes = (sizeof record + 7) / 8 * 8;
  const auto at = records.size();
  records.resize(at + bytes);
  std::memcpy(records.data() + at, &record, sizeof record);
}

size_t size_of(const uint8_t* record) {
  uint32_t kind = 0;
  std::memcpy(&kind, record, sizeof kind);
  const size_t bytes = kind == activity_concurrent_kernel || kind == activity_kernel
    ? sizeof(cupti_kernel)
    : kind == activity_memcpy ? sizeof(cupti_memcpy)
    : kind == activity_memset ? sizeof(cupti_memset)
                              : sizeof(cupti_external);
  return (bytes + 7) / 8 * 8;
}

/// The record of one activity, with its link, unless the test wants it lost.
template <class Record>
void trace(Record record, bool linked = true) {
  record.start = now;
  now += state.launch_ns;
  record.end = now;
  record.correlation = ++correlation;
  // Both kinds of tracing tell of the same kernels.
  if (record.kind == activity_concurrent_kernel && enabled[activity_kernel])
    record.kind = activity_kernel;
  if (!enabled[record.kind])
    return;
  if (state.lose > 0 && !windows.empty() && windows.back() > 1) {
    --state.lose;
    return;
  }
  if (linked && !windows.empty() && enabled[activity_external_correlation])
    put(cupti_external{
      activity_external_correlation, external_custom, windows.back(), record.correlation, 0});
  put(record);
}

cupti_kernel kernel_record(const char* name, const launch_config& config) {
  cupti_kernel r{};
  r.kind = activity_concurrent_kernel;
  r.grid = {static_cast<int>(config.grid_x), static_cast<int>(config.grid_y),
    static_cast<int>(config.grid_z)};
  r.block = {static_cast<int>(config.block_x), static_cast<int>(config.block_y),
    static_cast<int>(config.block_z)};
  // CUPTI's names outlive the module of the kernel, and so do these.
  static std::set<std::string> names;
  r.name = names.insert(name).first->c_str();
  return r;
}

status memset_record(address to, unsigned value, size_t bytes, size_t width) {
  for (size_t i = 0; i < bytes; i += width)
    std::memcpy(reinterpret_cast<uint8_t*>(to) + i, &value, width);
  ++state.memsets;
  cupti_memset r{};
  r.kind = activity_memset;
  r.value = value;
  r.bytes = bytes;
  trace(r);
  return success;
}

} // namespace

extern "C" {

fake_nvidia* fake_nvidia_state() {
  return &state;
}

// ---- driver ----

status cuInit(unsigned) {
  return success;
}
status cuDriverGetVersion(int* version) {
  return *version = 13000, success;
}
status cuGetErrorName(status error, const char** text) {
  return *text = error == error_illegal_address ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR",
         success;
}
status cuGetErrorString(status, const char** text) {
  return *text = "as the test wants it", success;
}
status cuDeviceGetCount(int* count) {
  return *count = 1, success;
}
status cuDeviceGet(device_id* device, int ordinal) {
  return *device = ordinal, success;
}
status cuDeviceGetName(char* name, int bytes, device_id) {
  std::strncpy(name, "NVIDIA F100", static_cast<size_t>(bytes));
  return success;
}
status cuDeviceGetAttribute(int* value, int attribute, device_id) {
  *value = attribute == compute_capability_major ? 9
    : attribute == compute_capability_minor      ? 0
    : attribute == l2_cache_size                 ? 1 << 16
    : attribute == multiprocessor_count          ? 4
    : attribute == max_shared_per_block_optin    ? 4096
                                                 : 1024;
  return success;
}
status cuDeviceTotalMem_v2(size_t* bytes, device_id) {
  return *bytes = size_t{1} << 30, success;
}
status cuDeviceGetUuid_v2(uint8_t (*uuid)[16], device_id) {
  for (uint8_t i = 0; i < 16; ++i)
    (*uuid)[i] = i;
  return success;
}
status cuDeviceGetPCIBusId(char* text, int bytes, device_id) {
  std::strncpy(text, "0000:18:00.0", static_cast<size_t>(bytes));
  return success;
}
status cuDevicePrimaryCtxRetain(context_handle*, device_id) {
  return has_context = true, success;
}
status cuDevicePrimaryCtxRelease_v2(device_id) {
  return has_context = false, success;
}
status cuCtxSetCurrent(context_handle) {
  return success;
}
status cuCtxSynchronize() {
  return success;
}
status cuCtxResetPersistingL2Cache() {
  return ++state.l2_resets, success;
}
status cuMemGetAllocationGranularity(size_t* bytes, const allocation_properties*, int) {
  return *bytes = 4096, success;
}
status cuMemAddressReserve(address* at, size_t bytes, size_t, address, unsigned long long) {
  void* made = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  reserved[*at = reinterpret_cast<address>(made)] = bytes;
  return success;
}
status cuMemAddressFree(address at, size_t bytes) {
  reserved.erase(at);
  return munmap(reinterpret_cast<void*>(at), bytes);
}
status cuMemCreate(
  memory_handle* memory, size_t bytes, const allocation_properties*, unsigned long long) {
  if (bytes > size_t{1} << 30)
    return error_out_of_memory;
  const int file = memfd_create("fake device memory", 0);
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0)
    return error_out_of_memory;
  return *memory = static_cast<memory_handle>(file), success;
}
status cuMemRelease(memory_handle memory) {
  return close(static_cast<int>(memory));
}
status cuMemMap(address at, size_t bytes, size_t, memory_handle memory, unsigned long long) {
  ++state.maps;
  mmap(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
    static_cast<int>(memory), 0);
  return success;
}
status cuMemUnmap(address at, size_t bytes) {
  ++state.unmaps;
  mmap(
    reinterpret_cast<void*>(at), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return success;
}
status cuMemSetAccess(address, size_t, const access_description*, size_t) {
  return success;
}
status cuMemAlloc_v2(address* at, size_t bytes) {
  void* const memory =
    bytes > size_t{1} << 30 ? nullptr : std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  *at = reinterpret_cast<address>(memory);
  return memory == nullptr ? error_out_of_memory : success;
}
status cuMemFree_v2(address at) {
  std::free(reinterpret_cast<void*>(at));
  return success;
}
status cuMemcpyHtoD_v2(address to, const void* from, size_t bytes) {
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), success;
}
status cuMemcpyDtoH_v2(void* to, address from, size_t bytes) {
  return std::memcpy(to, reinterpret_cast<const void*>(from), bytes), success;
}
status cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, stream_handle) {
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  cupti_memcpy r{};
  r.kind = activity_memcpy;
  r.bytes = bytes;
  trace(r);
  return success;
}
status cuMemsetD8Async(address to, unsigned char value, size_t count, stream_handle) {
  return memset_record(to, value, count, 1);
}
status cuMemsetD16Async(address to, unsigned short value, size_t count, stream_handle) {
  return memset_record(to, value, count * 2, 2);
}
status cuMemsetD32Async(address to, unsigned value, size_t count, stream_handle) {
  return memset_record(to, value, count * 4, 4);
}
status cuModuleLoadDataEx(module_handle* made, const void* image, unsigned, int*, void**) {
  auto* loaded = new module;
  loaded->image = static_cast<const char*>(image);
  return *made = reinterpret_cast<module_handle>(loaded), success;
}
status cuModuleUnload(module_handle which) {
  delete reinterpret_cast<module*>(which);
  return success;
}
status cuModuleGetFunction(function_handle* made, module_handle which, const char* name) {
  auto* in = reinterpret_cast<module*>(which);
  // Of a cubin it reads no symbols.
  if (!in->image.starts_with("\x7f")
    && in->image.find(std::string(".entry ") + name) == in->image.npos)
    return error_not_found;
  auto& f = in->functions[name];
  f.name = name;
  return *made = reinterpret_cast<function_handle>(&f), success;
}
status cuModuleGetGlobal_v2(address*, size_t*, module_handle, const char*) {
  return error_not_found;
}
status cuFuncGetAttribute(int* value, int, function_handle) {
  return *value = 0, success;
}
status cuFuncSetAttribute(function_handle, int, int) {
  return success;
}
status cuFuncGetParamInfo(function_handle, size_t, size_t*, size_t*) {
  return error_not_found;
}
status cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, function_handle, int, size_t) {
  return *blocks = 2, success;
}
status cuLaunchKernelEx(const launch_config* config, function_handle which, void**, void** extra) {
  if (state.launch_fails != 0)
    return state.launch_fails;
  const auto* f = reinterpret_cast<function*>(which);
  ++state.launches;
  state.scrubs += f->name == "gm_scrub" ? 1 : 0;
  if (f->name == "gm_canary") {
    const auto* parameters = static_cast<const uint64_t*>(extra[1]);
    auto* out = reinterpret_cast<uint64_t*>(parameters[0]);
    out[1] = parameters[1];
    out[0] = parameters[1] / 1000 * state.canary_cycles;
    state.canary_cycles += state.canary_drift;
  }
  trace(kernel_record(f->name.c_str(), *config));
  if (state.extra > 0 && !windows.empty() && windows.back() > 1) {
    --state.extra;
    trace(kernel_record("stowaway", *config));
  }
  if (state.stray > 0) {
    --state.stray;
    trace(kernel_record("stray", *config), false);
  }
  return success;
}
status cuStreamCreate(stream_handle* made, unsigned) {
  return *made = reinterpret_cast<stream_handle>(++state.streams), success;
}
status cuStreamDestroy_v2(stream_handle) {
  return success;
}
status cuStreamSynchronize(stream_handle) {
  return success;
}
status cuStreamWaitEvent(stream_handle, event_handle, unsigned) {
  return ++state.waits, success;
}
status cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  return *memory = std::calloc(1, bytes), success;
}
status cuMemFreeHost(void* memory) {
  return std::free(memory), success;
}
status cuMemHostGetDevicePointer_v2(address* at, void* memory, unsigned) {
  return *at = reinterpret_cast<address>(memory), success;
}
status cuStreamWaitValue32_v2(stream_handle, address, uint32_t, unsigned) {
  return success;
}
status cuEventCreate(event_handle* made, unsigned) {
  return *made = reinterpret_cast<event_handle>(new uint64_t(0)), success;
}
status cuEventDestroy_v2(event_handle event) {
  delete reinterpret_cast<uint64_t*>(event);
  return success;
}
status cuEventRecord(event_handle event, stream_handle) {
  return *reinterpret_cast<uint64_t*>(event) = now, success;
}
status cuEventSynchronize(event_handle) {
  return success;
}
status cuEventElapsedTime(float* milliseconds, event_handle from, event_handle to) {
  *milliseconds =
    static_cast<float>(*reinterpret_cast<uint64_t*>(to) - *reinterpret_cast<uint64_t*>(from))
    / 1e6F;
  return success;
}
status cuTensorMapEncodeTiled(void*, int, unsigned, void*, const uint64_t*, const uint64_t*,
  const uint32_t*, const uint32_t*, int, int, int, int) {
  return success;
}

// ---- CUPTI ----

cupti_status cuptiGetVersion(uint32_t* version) {
  return *version = 130001, 0;
}
cupti_status cuptiGetResultString(cupti_status, const char** text) {
  return *text = "as the test wants it", 0;
}
cupti_status cuptiActivityEnable(uint32_t kind) {
  if (state.enable_fails != 0)
    return state.enable_fails;
  return enabled[kind] = true, 0;
}
cupti_status cuptiActivityDisable(uint32_t kind) {
  return enabled[kind] = false, 0;
}
cupti_status cuptiActivityRegisterCallbacks(cupti_request ask, cupti_complete give) {
  return request = ask, complete = give, 0;
}
cupti_status cuptiActivityFlushAll(uint32_t) {
  if (records.empty())
    return 0;
  uint8_t* buffer = nullptr;
  size_t bytes = 0, records_max = 0;
  request(&buffer, &bytes, &records_max);
  if (buffer == nullptr || bytes < records.size())
    return 1;
  std::memcpy(buffer, records.data(), records.size());
  const auto valid = std::exchange(records, {}).size();
  complete(nullptr, 0, buffer, bytes, valid);
  return 0;
}
cupti_status cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes, uint8_t** record) {
  uint8_t* next = *record == nullptr ? buffer : *record + size_of(*record);
  if (next >= buffer + valid_bytes)
    return no_more_records;
  return *record = next, 0;
}
cupti_status cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* count) {
  return *count = std::exchange(state.dropped, 0), 0;
}
cupti_status cuptiActivityPushExternalCorrelationId(int, uint64_t id) {
  return windows.push_back(id), 0;
}
cupti_status cuptiActivityPopExternalCorrelationId(int, uint64_t* last) {
  *last = windows.back();
  return windows.pop_back(), 0;
}

// ---- NVML, which a thread of its own asks ----

nvml_status nvmlInit_v2() {
  return 0;
}
const char* nvmlErrorString(nvml_status) {
  return "as the test wants it";
}
nvml_status nvmlDeviceGetHandleByUUID(const char* uuid, nvml_device* made) {
  if (std::strcmp(uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f") != 0)
    return nvml_not_found;
  return *made = reinterpret_cast<nvml_device>(1), 0;
}
nvml_status nvmlDeviceGetHandleByPciBusId_v2(const char*, nvml_device*) {
  return nvml_not_found;
}
nvml_status nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device* made) {
  if (index > 0)
    return nvml_not_found;
  return *made = reinterpret_cast<nvml_device>(1), 0;
}
nvml_status nvmlDeviceGetUUID(nvml_device, char* text, unsigned bytes) {
  std::strncpy(text, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f", bytes);
  return 0;
}
nvml_status nvmlDeviceGetMemoryInfo(nvml_device, nvml_memory* memory) {
  return *memory = {1000, 600, 400}, 0;
}
nvml_status nvmlDeviceGetComputeRunningProcesses_v3(
  nvml_device, unsigned* count, nvml_process* to) {
  std::vector<unsigned> all(state.foreign, 77);
  if (has_context)
    all.push_back(1234);
  for (unsigned i = 0; i < all.size() && i < *count; ++i)
    to[i].pid = all[i];
  return *count = static_cast<unsigned>(all.size()), 0;
}
nvml_status nvmlDeviceGetClockInfo(nvml_device, int which, unsigned* mhz) {
  return *mhz = which == nvml_clock_sm ? 1980 : 3201, 0;
}
nvml_status nvmlDeviceGetPowerUsage(nvml_device, unsigned* milliwatts) {
  return *milliwatts = 500'000, 0;
}
nvml_status nvmlDeviceGetTotalEccErrors(nvml_device, int kind, int, unsigned long long* errors) {
  return *errors = kind == nvml_ecc_corrected ? 5 : 0, 0;
}

} // extern "C"
