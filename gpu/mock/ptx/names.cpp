#include "gpu/mock/ptx/kernel.hpp"
#include "gpu/mock/ptx/ptx.hpp"

namespace gristmill::ptx {

std::string one_line(std::string_view text) {
  constexpr size_t length_max = 200;
  std::string result;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!blank)
      result += c;
    else if (!result.empty() && result.back() != ' ')
      result += ' ';
    if (result.size() >= length_max)
      return result + " ...";
  }
  return result;
}

const std::vector<check_name>& check_names() {
  static const std::vector<check_name> names{{check::shared_races, "shared-races"},
    {check::global_races, "global-races"}, {check::uninitialised, "uninitialised"},
    {check::outputs, "outputs"}, {check::fences, "fences"}, {check::wgmma, "wgmma"},
    {check::mbarriers, "mbarriers"}};
  return names;
}

std::vector<std::string> names_of(check_set set) {
  std::vector<std::string> names;
  for (const check_name& one : check_names())
    if (has(set, one.which))
      names.emplace_back(one.name);
  return names;
}

std::string to_string(fault_kind kind) {
  switch (kind) {
  case fault_kind::none:
    return "none";
  case fault_kind::out_of_bounds:
    return "out of bounds";
  case fault_kind::misaligned:
    return "misaligned";
  case fault_kind::write_to_read_only:
    return "write to read-only memory";
  case fault_kind::barrier_divergence:
    return "barrier divergence";
  case fault_kind::bad_mask:
    return "bad mask";
  case fault_kind::deadlock:
    return "deadlock";
  case fault_kind::instruction_limit:
    return "instruction limit";
  case fault_kind::assertion:
    return "assertion";
  case fault_kind::trap:
    return "trap";
  case fault_kind::bad_launch:
    return "bad launch";
  case fault_kind::unsupported:
    return "unsupported";
  case fault_kind::tensor_memory:
    return "tensor memory";
  case fault_kind::missing_tensor_wait:
    return "missing tensor wait";
  case fault_kind::missing_tensor_fence:
    return "missing tensor fence";
  case fault_kind::shared_race:
    return "shared memory race";
  case fault_kind::global_race:
    return "global memory race";
  case fault_kind::uninitialised:
    return "uninitialised value";
  case fault_kind::read_before_write:
    return "output read before written";
  case fault_kind::missing_proxy_fence:
    return "missing proxy fence";
  case fault_kind::missing_wgmma_fence:
    return "missing wgmma fence";
  case fault_kind::missing_wgmma_wait:
    return "missing wgmma wait";
  case fault_kind::mbarrier_phase:
    return "mbarrier phase";
  case fault_kind::order_dependent:
    return "order dependent";
  }
  return "unknown";
}

std::string to_string(category which) {
  switch (which) {
  case category::integer:
    return "integer";
  case category::fp32:
    return "fp32";
  case category::fp16:
    return "fp16";
  case category::fp64:
    return "fp64";
  case category::sfu:
    return "sfu";
  case category::convert:
    return "convert";
  case category::load_global:
    return "load_global";
  case category::store_global:
    return "store_global";
  case category::atomic_global:
    return "atomic_global";
  case category::load_shared:
    return "load_shared";
  case category::store_shared:
    return "store_shared";
  case category::atomic_shared:
    return "atomic_shared";
  case category::load_local:
    return "load_local";
  case category::store_local:
    return "store_local";
  case category::barrier:
    return "barrier";
  case category::shuffle:
    return "shuffle";
  case category::branch:
    return "branch";
  case category::mma:
    return "mma";
  case category::async:
    return "async";
  case category::other:
    return "other";
  case category::count:
    break;
  }
  return "unknown";
}

} // namespace gristmill::ptx
