// Part of a solution that gristmill exported: buffers, and the steps of a launch plan on a stream.
#pragma once

#include "gm_value.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace gm {

inline void check(cudaError_t error, const std::string& what) {
  if (error != cudaSuccess)
    refuse(what + ": " + cudaGetErrorString(error));
}

/// A tensor as the plan sees it. `bytes` is what its storage has.
struct buffer {
  const char* name = "";
  char* data = nullptr;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  bool is_input = false;
};

inline int64_t elements_of(const buffer& of) {
  int64_t out = 1;
  for (int64_t size : of.shape)
    if (__builtin_mul_overflow(out, size, &out))
      overflowed("numel");
  return out;
}

inline value numel(const buffer& of) {
  return integer(elements_of(of));
}

inline value bytes(const buffer& of) {
  return integer(of.bytes);
}

inline value dim(const buffer& of, const value& index) {
  const int64_t rank = static_cast<int64_t>(of.shape.size());
  int64_t at = to_int(index);
  if (at < -rank || at >= rank)
    refuse(std::string("dim(") + of.name + ", " + std::to_string(at) + "): there are "
      + std::to_string(rank) + " dimensions");
  return integer(of.shape[static_cast<size_t>(at < 0 ? at + rank : at)]);
}

/// Bytes of a scratch tensor; a size below 0 or too large is refused.
inline int64_t storage_bytes(const buffer& of, int64_t element_bits) {
  for (int64_t size : of.shape)
    if (size < 0)
      refuse(std::string(of.name) + ": a size is negative");
  int64_t bits = 0;
  if (__builtin_mul_overflow(elements_of(of), element_bits, &bits))
    overflowed("bytes");
  return bits / 8 + (bits % 8 != 0 ? 1 : 0);
}

/// The address of `count` bytes at `offset`, which must lie inside of the buffer.
inline char* range(const buffer& of, const value& offset, int64_t count, bool written) {
  const int64_t begin = to_int(offset);
  if (begin < 0 || count < 0 || begin > of.bytes || count > of.bytes - begin)
    refuse(std::to_string(count) + " bytes at " + std::to_string(begin) + " are outside of " + of.name
      + ", which has " + std::to_string(of.bytes));
  if (written && of.is_input)
    refuse(std::string(of.name) + " is an input: not to be written");
  return of.data + begin;
}

struct device_facts {
  int64_t sm_count = 0, smem_per_block = 0, smem_per_sm = 0, l2_bytes = 0, arch = 0;
};

inline device_facts facts_of(int device) {
  static std::mutex guard;
  static std::map<int, device_facts> known;
  const std::lock_guard<std::mutex> lock(guard);
  const auto found = known.find(device);
  if (found != known.end())
    return found->second;
  const auto ask = [&](cudaDeviceAttr what) {
    int out = 0;
    check(cudaDeviceGetAttribute(&out, what, device), "asking the device");
    return static_cast<int64_t>(out);
  };
  device_facts out;
  out.sm_count = ask(cudaDevAttrMultiProcessorCount);
  out.smem_per_block = ask(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  out.smem_per_sm = ask(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  out.l2_bytes = ask(cudaDevAttrL2CacheSize);
  out.arch =
    10 * ask(cudaDevAttrComputeCapabilityMajor) + ask(cudaDevAttrComputeCapabilityMinor);
  return known[device] = out;
}

using triple = std::array<int64_t, 3>;

inline triple three(const value& x, const value& y, const value& z) {
  return {to_int(x), to_int(y), to_int(z)};
}

/// The fields of a parameter that is a struct, laid out as C does.
class fields {
public:
  void put(const void* from, size_t size, size_t align) {
    bytes_.resize((bytes_.size() + align - 1) / align * align);
    const auto* begin = static_cast<const unsigned char*>(from);
    bytes_.insert(bytes_.end(), begin, begin + size);
    align_ = align_ < align ? align : align_;
  }
  const std::vector<unsigned char>& finish() {
    bytes_.resize((bytes_.size() + align_ - 1) / align_ * align_);
    return bytes_;
  }
  size_t alignment() const { return align_; }

private:
  std::vector<unsigned char> bytes_;
  size_t align_ = 1;
};

/// The parameters of one launch, each in memory of its own, aligned to 128 bytes.
class arguments {
public:
  void put(const void* from, size_t size, size_t) {
    first_.push_back(store_.size());
    store_.resize(store_.size() + (size + 127) / 128);
    std::memcpy(store_.data() + first_.back(), from, size);
  }
  /// Valid until the next `put`.
  void** pointers() {
    pointers_.clear();
    for (size_t at : first_)
      pointers_.push_back(store_.data() + at);
    return pointers_.data();
  }

private:
  struct alignas(128) chunk {
    unsigned char bytes[128];
  };
  std::vector<chunk> store_;
  std::vector<size_t> first_;
  std::vector<void*> pointers_;
};

template <class To, class T>
void put_plain(To& to, T x) {
  to.put(&x, sizeof x, alignof(T));
}

template <class To>
void put_pointer(To& to, const buffer& of, const value& offset, int64_t element_bytes) {
  char* at = range(of, offset, 0, false);
  if (to_int(offset) % element_bytes != 0)
    refuse(std::string(of.name) + ": the offset is not a multiple of its element's size");
  put_plain(to, static_cast<void*>(at));
}

template <class To>
void put_null(To& to) {
  put_plain(to, static_cast<void*>(nullptr));
}

// One for each type that a plan may write behind a colon.
template <class To> void put_b8(To& to, const value& x) { put_plain(to, to_flag(x)); }
template <class To> void put_i8(To& to, const value& x) { put_plain(to, checked_integer<int8_t>(x, "int8_t")); }
template <class To> void put_u8(To& to, const value& x) { put_plain(to, checked_integer<uint8_t>(x, "uint8_t")); }
template <class To> void put_i16(To& to, const value& x) { put_plain(to, checked_integer<int16_t>(x, "int16_t")); }
template <class To> void put_u16(To& to, const value& x) { put_plain(to, checked_integer<uint16_t>(x, "uint16_t")); }
template <class To> void put_i32(To& to, const value& x) { put_plain(to, checked_integer<int32_t>(x, "int32_t")); }
template <class To> void put_u32(To& to, const value& x) { put_plain(to, checked_integer<uint32_t>(x, "uint32_t")); }
template <class To> void put_i64(To& to, const value& x) { put_plain(to, to_int(x)); }
template <class To> void put_u64(To& to, const value& x) { put_plain(to, checked_integer<uint64_t>(x, "uint64_t")); }
template <class To> void put_f16(To& to, const value& x) { put_plain(to, checked_half(x)); }
template <class To> void put_bf16(To& to, const value& x) { put_plain(to, checked_bfloat16(x)); }
template <class To> void put_f32(To& to, const value& x) { put_plain(to, checked_float(x)); }
template <class To> void put_f64(To& to, const value& x) { put_plain(to, to_real(x)); }

inline void put_fields(arguments& to, fields& from) {
  const auto& bytes = from.finish();
  to.put(bytes.data(), bytes.size(), from.alignment());
}

inline void put_fields(fields& to, fields& from) {
  const auto& bytes = from.finish();
  to.put(bytes.data(), bytes.size(), from.alignment());
}

template <class To>
void put_maps(To& to, const std::vector<CUtensorMap>& maps) {
  to.put(maps.data(), maps.size() * sizeof(CUtensorMap), alignof(CUtensorMap));
}

// ---- driver functions, found when they are first needed, so that nothing links the driver

inline void* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult answer{};
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &answer), name);
#else
  check(cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &answer), name);
#endif
  if (found == nullptr || answer != cudaDriverEntryPointSuccess)
    refuse(std::string("the driver has no ") + name);
  return found;
}

inline void check_driver(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS)
    refuse(std::string(what) + " failed with CUresult " + std::to_string(static_cast<int>(result)));
}

struct map_spec {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  int64_t element_bits = 8;
  /// Innermost first; strides in bytes of the dimensions 1 and up. Empty: the contiguous tensor.
  std::vector<int64_t> dims, strides, box, element_strides;
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapL2promotion l2 = CU_TENSOR_MAP_L2_PROMOTION_NONE;
  CUtensorMapFloatOOBfill oob = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  bool im2col = false;
  std::vector<int64_t> lower, upper;
  int64_t channels = 0, pixels = 0;
};

inline uint32_t u32_of(int64_t x, const char* what) {
  return checked_integer<uint32_t>(integer(x), what);
}

inline CUtensorMap encode_map(const buffer& of, const value& offset, map_spec spec) {
  if (spec.dims.empty())
    spec.dims.assign(of.shape.rbegin(), of.shape.rend());
  const size_t rank = spec.dims.size();
  if (rank < 1 || rank > 5)
    refuse(std::string("tensor map of ") + of.name + ": it takes 1 to 5 dimensions");
  if (spec.strides.empty()) {
    int64_t bits = spec.element_bits;
    for (size_t n = 0; n + 1 < rank; ++n) {
      if (__builtin_mul_overflow(bits, spec.dims[n], &bits))
        overflowed("strides");
      spec.strides.push_back(bits / 8);
    }
  }
  if (spec.element_strides.empty())
    spec.element_strides.assign(rank, 1);
  if (spec.strides.size() != rank - 1 || spec.element_strides.size() != rank
    || (!spec.im2col && spec.box.size() != rank))
    refuse(std::string("tensor map of ") + of.name + ": lists of different lengths");
  std::vector<cuuint64_t> dims, strides;
  std::vector<cuuint32_t> box, steps;
  for (int64_t x : spec.dims)
    dims.push_back(checked_integer<uint64_t>(integer(x), "a dimension"));
  for (int64_t x : spec.strides)
    strides.push_back(checked_integer<uint64_t>(integer(x), "a stride"));
  for (int64_t x : spec.box)
    box.push_back(u32_of(x, "a box"));
  for (int64_t x : spec.element_strides)
    steps.push_back(u32_of(x, "an element stride"));
  void* address = range(of, offset, 0, false);
  CUtensorMap out{};
  if (spec.im2col) {
    using encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
      const cuuint64_t*, const int*, const int*, cuuint32_t, cuuint32_t, const cuuint32_t*,
      CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    static const auto call = reinterpret_cast<encode>(driver_function("cuTensorMapEncodeIm2col"));
    std::vector<int> lower, upper;
    for (int64_t x : spec.lower)
      lower.push_back(checked_integer<int>(integer(x), "a corner"));
    for (int64_t x : spec.upper)
      upper.push_back(checked_integer<int>(integer(x), "a corner"));
    if (rank < 3 || lower.size() != rank - 2 || upper.size() != rank - 2)
      refuse(std::string("tensor map of ") + of.name + ": im2col takes a corner for each inner dimension");
    check_driver(call(&out, spec.type, static_cast<cuuint32_t>(rank), address, dims.data(),
                   strides.data(), lower.data(), upper.data(), u32_of(spec.channels, "channels"),
                   u32_of(spec.pixels, "pixels"), steps.data(), spec.interleave, spec.swizzle,
                   spec.l2, spec.oob),
      "cuTensorMapEncodeIm2col");
    return out;
  }
  using encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
    const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
    CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
  static const auto call = reinterpret_cast<encode>(driver_function("cuTensorMapEncodeTiled"));
  check_driver(call(&out, spec.type, static_cast<cuuint32_t>(rank), address, dims.data(),
                 strides.data(), box.data(), steps.data(), spec.interleave, spec.swizzle, spec.l2,
                 spec.oob),
    "cuTensorMapEncodeTiled");
  return out;
}

// ---- steps

struct launch_spec {
  const void* function = nullptr;
  /// The step, for messages.
  const char* step = "";
  triple grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  int64_t shared = 0;
  bool cooperative = false, pdl = false;
  int carveout = -1;
};

/// Raises the limit of dynamic shared memory where a launch needs it, once a kernel and device.
inline void prepare(const launch_spec& spec) {
  static std::mutex guard;
  static std::map<std::pair<const void*, int>, int64_t> allowed;
  if (spec.function == nullptr)
    refuse(std::string(spec.step) + ": this kernel is not in the compiled unit");
  if (spec.carveout >= 0)
    check(cudaFuncSetAttribute(spec.function, cudaFuncAttributePreferredSharedMemoryCarveout,
            spec.carveout),
      spec.step);
  if (spec.shared <= 0)
    return;
  int device = 0;
  check(cudaGetDevice(&device), spec.step);
  const std::lock_guard<std::mutex> lock(guard);
  int64_t& most = allowed[{spec.function, device}];
  if (most >= spec.shared)
    return;
  check(cudaFuncSetAttribute(spec.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
          static_cast<int>(spec.shared)),
    spec.step);
  most = spec.shared;
}

inline void check_range(const launch_spec& spec, const char* field, const triple& x, const triple& most) {
  for (size_t n = 0; n < 3; ++n)
    if (x[n] < (field[0] == 'g' ? 0 : 1) || x[n] > most[n])
      refuse(std::string(spec.step) + ": " + field + "." + std::to_string(n) + " is "
        + std::to_string(x[n]));
}

inline dim3 dim3_of(const triple& x) {
  return dim3(static_cast<unsigned>(x[0]), static_cast<unsigned>(x[1]), static_cast<unsigned>(x[2]));
}

/// A grid with a 0 is no launch at all.
inline void launch(cudaStream_t stream, const launch_spec& spec, arguments& args) {
  check_range(spec, "grid", spec.grid, {2147483647, 65535, 65535});
  check_range(spec, "block", spec.block, {1024, 1024, 64});
  check_range(spec, "cluster", spec.cluster, {8, 8, 8});
  if (spec.grid[0] == 0 || spec.grid[1] == 0 || spec.grid[2] == 0)
    return;
  int device = 0;
  check(cudaGetDevice(&device), spec.step);
  const device_facts facts = facts_of(device);
  if (spec.shared < 0 || spec.shared > facts.smem_per_block)
    refuse(std::string(spec.step) + ": " + std::to_string(spec.shared) + " bytes of shared memory");
  prepare(spec);
  cudaLaunchAttribute attributes[3]{};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3_of(spec.grid);
  config.blockDim = dim3_of(spec.block);
  config.dynamicSmemBytes = static_cast<size_t>(spec.shared);
  config.stream = stream;
  config.attrs = attributes;
  if (spec.cluster[0] * spec.cluster[1] * spec.cluster[2] > 1) {
    auto& at = attributes[config.numAttrs++];
    at.id = cudaLaunchAttributeClusterDimension;
    at.val.clusterDim.x = static_cast<unsigned>(spec.cluster[0]);
    at.val.clusterDim.y = static_cast<unsigned>(spec.cluster[1]);
    at.val.clusterDim.z = static_cast<unsigned>(spec.cluster[2]);
  }
  if (spec.cooperative) {
    auto& at = attributes[config.numAttrs++];
    at.id = cudaLaunchAttributeCooperative;
    at.val.cooperative = 1;
  }
  if (spec.pdl) {
    auto& at = attributes[config.numAttrs++];
    at.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    at.val.programmaticStreamSerializationAllowed = 1;
  }
  check(cudaLaunchKernelExC(&config, spec.function, args.pointers()), spec.step);
}

/// Resident blocks per SM.
inline value occupancy(const launch_spec& spec) {
  prepare(spec);
  int blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, spec.function,
          static_cast<int>(spec.block[0] * spec.block[1] * spec.block[2]),
          static_cast<size_t>(spec.shared)),
    spec.step);
  return integer(blocks);
}

inline void set(cudaStream_t stream, const char* step, const buffer& to, const value& offset,
  const value& count, int width, uint32_t what) {
  const int64_t bytes = to_int(count);
  char* at = range(to, offset, bytes, true);
  if (bytes % width != 0 || to_int(offset) % width != 0)
    refuse(std::string(step) + ": bytes and offset must be multiples of the width");
  if (bytes == 0)
    return;
  const uint32_t low = what & 0xffu;
  const bool same = width == 1 || (width == 2 && what == low * 0x101u)
    || (width == 4 && what == low * 0x1010101u);
  if (same) {
    check(cudaMemsetAsync(at, static_cast<int>(low), static_cast<size_t>(bytes), stream), step);
    return;
  }
  const auto address = reinterpret_cast<CUdeviceptr>(at);
  if (width == 2) {
    using fill = CUresult (*)(CUdeviceptr, unsigned short, size_t, CUstream);
    static const auto call = reinterpret_cast<fill>(driver_function("cuMemsetD16Async"));
    check_driver(call(address, static_cast<unsigned short>(what), static_cast<size_t>(bytes / 2), stream), step);
    return;
  }
  using fill = CUresult (*)(CUdeviceptr, unsigned int, size_t, CUstream);
  static const auto call = reinterpret_cast<fill>(driver_function("cuMemsetD32Async"));
  check_driver(call(address, what, static_cast<size_t>(bytes / 4), stream), step);
}

inline void copy(cudaStream_t stream, const char* step, const buffer& to, const value& to_offset,
  const buffer& from, const value& from_offset, const value& count) {
  const int64_t bytes = to_int(count);
  char* target = range(to, to_offset, bytes, true);
  const char* source = range(from, from_offset, bytes, false);
  if (bytes == 0)
    return;
  if (target < source + bytes && source < target + bytes)
    refuse(std::string(step) + ": source and destination overlap");
  check(cudaMemcpyAsync(target, source, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream), step);
}

/// Integers to the host: waits for everything before them on the stream.
inline std::vector<value> read(cudaStream_t stream, const char* step, const buffer& from,
  int64_t element_bytes, const std::vector<value>& at) {
  std::vector<int64_t> raw(at.size(), 0);
  for (size_t n = 0; n < at.size(); ++n)
    check(cudaMemcpyAsync(&raw[n],
            range(from, multiply(at[n], integer(element_bytes)), element_bytes, false),
            static_cast<size_t>(element_bytes), cudaMemcpyDeviceToHost, stream),
      step);
  check(cudaStreamSynchronize(stream), step);
  std::vector<value> out;
  const int shift = static_cast<int>(64 - 8 * element_bytes);
  for (int64_t x : raw) // Little-endian: the low bytes came first. Extends the sign.
    out.push_back(integer(static_cast<int64_t>(static_cast<uint64_t>(x) << shift) >> shift));
  return out;
}

} // namespace gm
