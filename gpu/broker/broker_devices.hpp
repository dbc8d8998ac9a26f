#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// One GPU that the broker lends.
struct broker_device {
  /// "cuda:0", "mock:h200#0", "sleep#3".
  std::string name;
  /// "h200"; "sleep" for a sleep device.
  std::string model;
  /// Value for CUDA_VISIBLE_DEVICES: the UUID of a real GPU, else the index.
  std::string visible;
  bool cuda = false;
  uint64_t memory_bytes = 0;
  /// "sm_90"; empty when not known.
  std::string arch;

  friend bool operator==(const broker_device&, const broker_device&) = default;
};

/// What `--gpus` asks for, before anybody has looked at the machine.
struct device_wish {
  enum class kind : uint8_t { mock, sleep, cuda };
  kind what = kind::mock;
  std::string model;
  uint32_t count = 1;
  /// Of cuda; empty means all.
  std::vector<uint32_t> indices;

  friend bool operator==(const device_wish&, const device_wish&) = default;
};

/// "cuda:all", "cuda:0,2", "mock:h200:2", "sleep:4"; several with blanks or semicolons between. At
/// most 1,024 in all. Errors: `invalid_input` with the forms that are known.
result<std::vector<device_wish>> parse_device_wishes(std::string_view text);

/// Reads what `nvidia-smi --query-gpu=index,uuid,name,memory.total,compute_cap` writes as CSV
/// without header and units. Errors: `invalid_input` for anything else.
result<std::vector<broker_device>> parse_smi_list(std::string_view text);

/// The GPUs of this machine, from `nvidia-smi` in a child with a deadline, else from
/// /proc/driver/nvidia. Errors: `not_found` with what was tried.
result<std::vector<broker_device>> find_cuda_devices();

/// The devices of all wishes. `cuda` is what the machine has. Errors: `not_found` for an index that
/// is not there, `invalid_input` for one that is named twice.
result<std::vector<broker_device>> resolve_wishes(
  const std::vector<device_wish>& wishes, const std::vector<broker_device>& cuda);

} // namespace gristmill
