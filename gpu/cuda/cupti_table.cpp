#include "gpu/cuda/cupti_table.hpp"

#include "gpu/cuda/function_loader.hpp"
#include "gpu/cuda/library_search.hpp"

#include <fmt/format.h>

namespace gristmill::cuda {

result<cupti> cupti::load(const std::vector<std::string>& folders) {
  auto library = find_library({"libcupti.so.13", "libcupti.so.12"}, folders);
  if (!library)
    return fail(errc::not_found, "no CUPTI: " + library.error().what);
  cupti out;
  auto& t = out.table_;
  function_loader from(*library);
  from.take(t.version, "cuptiGetVersion")
    .take(t.result_text, "cuptiGetResultString")
    .take(t.enable, "cuptiActivityEnable")
    .take(t.disable, "cuptiActivityDisable")
    .take(t.register_callbacks, "cuptiActivityRegisterCallbacks")
    .take(t.flush_all, "cuptiActivityFlushAll")
    .take(t.next_record, "cuptiActivityGetNextRecord")
    .take(t.dropped, "cuptiActivityGetNumDroppedRecords")
    .take(t.push_external, "cuptiActivityPushExternalCorrelationId")
    .take(t.pop_external, "cuptiActivityPopExternalCorrelationId");
  if (from.missing())
    return fail(errc::unsupported, "CUPTI lacks a function: " + from.missing()->what);
  if (auto bad = t.version(&out.version_); bad != 0)
    return fail(errc::unsupported, "CUPTI does not tell its version: " + out.describe(bad));
  // Numbers of releases up to 12.9 (19 is 12.0), and from 13.0 on the toolkit's, such as 130001.
  if (out.version_ < 19)
    return fail(errc::unsupported,
      fmt::format("CUPTI's interface {} is too old: CUDA 12.0 or newer is needed", out.version_));
  return out;
}

std::string cupti::describe(cupti_status bad) const {
  const char* text = nullptr;
  if (table_.result_text(bad, &text) != 0 || text == nullptr)
    return fmt::format("CUPTI error {}", bad);
  return fmt::format("{} ({})", text, bad);
}

} // namespace gristmill::cuda
