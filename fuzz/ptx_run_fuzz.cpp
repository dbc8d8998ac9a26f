// PTX from a stranger: parsed or refused with its line, and what was parsed is executed within
// tight limits, with all checks and without, and gives the same both times.

#include "fuzz/require.hpp"
#include "gpu/mock/ptx/ptx.hpp"

#include <vector>

using namespace gristmill;

namespace {

constexpr uint64_t device = 0x1000'0000;
constexpr uint64_t bytes = 16384;

struct ending {
  ptx::outcome seen;
  std::vector<uint8_t> memory;
};

ending run(const std::shared_ptr<const ptx::module>& code, const ptx::entry_info& entry,
  ptx::check_set checks) {
  ending out;
  out.memory.assign(bytes, 7);
  std::vector<uint8_t> undefined(bytes, 1);
  ptx::launch what;
  what.entry = entry.name;
  what.grid = {2, 1, 1};
  what.block = {entry.max_threads != 0 && entry.max_threads < 64 ? entry.max_threads : 64, 1, 1};
  if (entry.required_block[0] != 0 && entry.max_threads <= 64)
    what.block = entry.required_block;
  if (entry.cluster[0] > 1)
    what.grid[0] = entry.cluster[0];
  what.dynamic_shared = 1024;
  // Every word of the parameters is a pointer that may be used.
  uint32_t end = 0;
  for (const ptx::parameter& p : entry.parameters)
    end = p.offset + p.size > end ? p.offset + p.size : end;
  what.parameters.assign((end + 7) / 8 * 8, 0);
  for (size_t i = 0; i < what.parameters.size(); i += 8)
    for (size_t k = 0; k < 8; ++k)
      what.parameters[i + k] = static_cast<uint8_t>(device >> 8 * k);
  what.memory.push_back({device, out.memory.data(), bytes, true, "memory", undefined.data(), true});
  what.instruction_limit = 4000;
  what.checks = checks;
  what.per_line = checks != 0;
  what.printed_bytes_max = 256;
  out.seen = ptx::run(*ptx::load(code), what);
  return out;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto code = ptx::parse(fuzz::text_of(data, size));
  if (!code) {
    fuzz::require(code.error().what.find("PTX") == 0, "a refusal says where");
    return 0;
  }
  size_t entries = 0;
  for (const ptx::entry_info& entry : ptx::entries(**code)) {
    // Local memory is there for each thread; what asks for much of it is not run here.
    if (++entries > 4 || entry.local_bytes > 4096)
      continue;
    const ending plain = run(*code, entry, 0);
    const ending checked = run(*code, entry, ptx::all_checks);
    fuzz::require(plain.memory == checked.memory, "checks change no memory");
    fuzz::require(plain.seen.done == checked.seen.done, "checks change no count");
    fuzz::require(plain.seen.failed.has_value() == checked.seen.failed.has_value(),
      "checks neither make nor hide a fault");
    fuzz::require(checked.seen.findings.size() <= 33, "findings are bounded");
    fuzz::require(plain.seen.printed.size() <= 256, "printed text is bounded");
    for (const ptx::fault& found : checked.seen.findings)
      fuzz::require(found.ptx_line > 0 && !found.what.empty(), "a finding says where and what");
  }
  return 0;
}
