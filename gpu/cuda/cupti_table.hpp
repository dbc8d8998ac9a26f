#pragma once

#include "gpu/toolchain/shared_library.hpp"
#include "messages/result.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// The few declarations that we need of CUPTI's activity interface, versions 12 and 13. Records have
// grown at their end only; a test compares what we read with NVIDIA's header where there is one.

namespace gristmill::cuda {

/// CUptiResult: 0 is success.
using cupti_status = int;

/// CUpti_ActivityKind
constexpr uint32_t activity_memcpy = 1, activity_memset = 2, activity_kernel = 3,
                   activity_driver = 4, activity_concurrent_kernel = 10,
                   activity_external_correlation = 39;
constexpr int external_custom = 3;           // CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0
constexpr cupti_status no_more_records = 12; // CUPTI_ERROR_MAX_LIMIT_REACHED
constexpr uint32_t flush_forced = 1;         // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED

/// Beginning of CUpti_ActivityKernel5 and newer.
struct cupti_kernel {
  uint32_t kind;
  uint8_t cache_config;
  uint8_t shared_config;
  uint16_t registers;
  uint32_t partitioned_requested;
  uint32_t partitioned_executed;
  uint64_t start;
  uint64_t end;
  uint64_t completed;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  std::array<int32_t, 3> grid;
  std::array<int32_t, 3> block;
  int32_t static_shared;
  int32_t dynamic_shared;
  uint32_t local_per_thread;
  uint32_t local_total;
  uint32_t correlation;
  int64_t grid_id;
  const char* name;
};

/// Beginning of CUpti_ActivityMemcpy4 and newer.
struct cupti_memcpy {
  uint32_t kind;
  uint8_t copy_kind;
  uint8_t from_kind;
  uint8_t to_kind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
};

/// Beginning of CUpti_ActivityMemset3 and newer.
struct cupti_memset {
  uint32_t kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
};

/// CUpti_ActivityExternalCorrelation
struct cupti_external {
  uint32_t kind;
  int external_kind;
  uint64_t external_id;
  uint32_t correlation;
  uint32_t reserved;
};

using cupti_request = void (*)(uint8_t** buffer, size_t* bytes, size_t* records_max);
using cupti_complete = void (*)(
  void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid_bytes);

struct cupti_table {
  cupti_status (*version)(uint32_t* version);
  cupti_status (*result_text)(cupti_status, const char** text);
  cupti_status (*enable)(uint32_t kind);
  cupti_status (*disable)(uint32_t kind);
  cupti_status (*register_callbacks)(cupti_request, cupti_complete);
  cupti_status (*flush_all)(uint32_t flag);
  cupti_status (*next_record)(uint8_t* buffer, size_t valid_bytes, uint8_t** record);
  cupti_status (*dropped)(void* context, uint32_t stream, size_t* records);
  cupti_status (*push_external)(int kind, uint64_t id);
  cupti_status (*pop_external)(int kind, uint64_t* last);
};

/// CUPTI, loaded; it stays until the process ends.
class cupti {
public:
  /// Looks for libcupti.so.13, then .12. `not_found` without it, `unsupported` for other versions
  /// and where a function lacks.
  static result<cupti> load(const std::vector<std::string>& folders);

  const cupti_table& operator*() const { return table_; }
  const cupti_table* operator->() const { return &table_; }
  /// Such as 130001.
  uint32_t version() const { return version_; }
  std::string describe(cupti_status bad) const;

private:
  cupti_table table_{};
  uint32_t version_ = 0;
};

} // namespace gristmill::cuda
