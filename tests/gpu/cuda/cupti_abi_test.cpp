#include "gpu/cuda/cupti_table.hpp"
#include "tests/gpu/cuda/same_shape.hpp"

#include <doctest/doctest.h>

#include <cstddef>

#ifdef GRISTMILL_HAS_CUPTI_HEADER
#include <cupti.h>
#endif

using namespace gristmill;

#ifdef GRISTMILL_HAS_CUPTI_HEADER
namespace {

using table = cuda::cupti_table;

} // namespace

#define GRISTMILL_SAME(ours, theirs)                                                               \
  static_assert(same_shape<decltype(table::ours), decltype(&theirs)>::value)
GRISTMILL_SAME(version, cuptiGetVersion);
GRISTMILL_SAME(result_text, cuptiGetResultString);
GRISTMILL_SAME(enable, cuptiActivityEnable);
GRISTMILL_SAME(disable, cuptiActivityDisable);
GRISTMILL_SAME(register_callbacks, cuptiActivityRegisterCallbacks);
GRISTMILL_SAME(flush_all, cuptiActivityFlushAll);
GRISTMILL_SAME(next_record, cuptiActivityGetNextRecord);
GRISTMILL_SAME(dropped, cuptiActivityGetNumDroppedRecords);
GRISTMILL_SAME(push_external, cuptiActivityPushExternalCorrelationId);
GRISTMILL_SAME(pop_external, cuptiActivityPopExternalCorrelationId);
static_assert(same_shape<cuda::cupti_request, CUpti_BuffersCallbackRequestFunc>::value);
static_assert(same_shape<cuda::cupti_complete, CUpti_BuffersCallbackCompleteFunc>::value);

// The kernel record of the oldest and of the newest interface that we read.
#define GRISTMILL_KERNEL(record)                                                                   \
  static_assert(offsetof(cuda::cupti_kernel, start) == offsetof(record, start));                   \
  static_assert(offsetof(cuda::cupti_kernel, end) == offsetof(record, end));                       \
  static_assert(offsetof(cuda::cupti_kernel, grid) == offsetof(record, gridX));                    \
  static_assert(offsetof(cuda::cupti_kernel, block) == offsetof(record, blockX));                  \
  static_assert(offsetof(cuda::cupti_kernel, correlation) == offsetof(record, correlationId));     \
  static_assert(offsetof(cuda::cupti_kernel, name) == offsetof(record, name));                     \
  static_assert(sizeof(cuda::cupti_kernel) <= sizeof(record))
GRISTMILL_KERNEL(CUpti_ActivityKernel8);
GRISTMILL_KERNEL(CUpti_ActivityKernel9);
GRISTMILL_KERNEL(CUpti_ActivityKernel10);

#define GRISTMILL_MEMORY(ours, record)                                                             \
  static_assert(offsetof(cuda::ours, bytes) == offsetof(record, bytes));                           \
  static_assert(offsetof(cuda::ours, start) == offsetof(record, start));                           \
  static_assert(offsetof(cuda::ours, end) == offsetof(record, end));                               \
  static_assert(offsetof(cuda::ours, correlation) == offsetof(record, correlationId))
GRISTMILL_MEMORY(cupti_memcpy, CUpti_ActivityMemcpy5);
GRISTMILL_MEMORY(cupti_memcpy, CUpti_ActivityMemcpy6);
GRISTMILL_MEMORY(cupti_memset, CUpti_ActivityMemset4);
static_assert(offsetof(cuda::cupti_external, external_kind)
  == offsetof(CUpti_ActivityExternalCorrelation, externalKind));
static_assert(offsetof(cuda::cupti_external, external_id)
  == offsetof(CUpti_ActivityExternalCorrelation, externalId));
static_assert(offsetof(cuda::cupti_external, correlation)
  == offsetof(CUpti_ActivityExternalCorrelation, correlationId));

static_assert(cuda::activity_memcpy == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_MEMCPY));
static_assert(cuda::activity_memset == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_MEMSET));
static_assert(cuda::activity_kernel == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_KERNEL));
static_assert(cuda::activity_driver == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_DRIVER));
static_assert(
  cuda::activity_concurrent_kernel == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
static_assert(cuda::activity_external_correlation
  == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION));
static_assert(cuda::external_custom == static_cast<int>(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0));
static_assert(cuda::no_more_records == static_cast<int>(CUPTI_ERROR_MAX_LIMIT_REACHED));
static_assert(cuda::flush_forced == static_cast<uint32_t>(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
#endif

TEST_CASE("our declarations of CUPTI's interface agree with NVIDIA's header") {
#ifdef GRISTMILL_HAS_CUPTI_HEADER
  // The assertions above are the test.
  CHECK(CUPTI_API_VERSION >= 19);
#else
  MESSAGE("SKIPPED: cupti.h is not on this machine, so nothing was compared");
#endif
}
