#pragma once

#include "messages/result.hpp"
#include "tensors/dtype.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// What a file may ask for before it is refused.
struct safetensors_limits {
  static constexpr uint64_t header_bytes = uint64_t{16} << 20;
  static constexpr size_t tensors = size_t{1} << 16;
  static constexpr size_t dimensions = 16;
  static constexpr size_t name_bytes = 4096;
  /// Of values under keys that we do not know.
  static constexpr int depth = 16;
};

/// One tensor of a safetensors file.
struct safetensor {
  std::string name;
  /// As the file says: "BF16", "F8_E4M3", "F4", ...
  std::string stored_dtype;
  /// Ours, or nothing for a type that the interchange format lacks ("U8", "F8_E8M0", ...).
  std::optional<dtype> type;
  /// Counted in elements, for packed types too.
  std::vector<int64_t> shape;
  /// From the start of the file; the content is contiguous, row by row, little-endian.
  uint64_t offset = 0;
  uint64_t bytes = 0;

  friend bool operator==(const safetensor&, const safetensor&) = default;
};

/// Reads the header of a whole file: eight bytes with the header's size, the header (JSON), the
/// data. Tensors come in the order of the header; `__metadata__` is skipped, keys that we do not
/// know too.
///
/// `invalid_input`, with the tensor's name where there is one, for everything else that is not as
/// it must be: a size beyond the file or `safetensors_limits`, text that is no JSON, an unknown
/// dtype, a shape that does not fit its bytes, a name that comes twice, and data that overlap,
/// leave a hole or do not end with the file.
result<std::vector<safetensor>> parse_safetensors(std::span<const std::byte> file);

/// The tensor under that key in the file's bytes, checked against what a problem declares. `file`
/// names it in messages. `invalid_input` when there is no such key or when shape or dtype differ;
/// the message names both.
result<std::span<const std::byte>> find_safetensor(const std::vector<safetensor>& tensors,
  std::span<const std::byte> content, std::string_view key, dtype type,
  const std::vector<int64_t>& shape, const std::string& file);

/// The name of a dtype in such files; both fp4 types are "F4".
std::string_view safetensors_dtype(dtype type);

/// A tensor to write.
struct safetensor_source {
  std::string name;
  dtype type = dtype::float32;
  std::vector<int64_t> shape;
  std::span<const std::byte> content;
};

/// A file with these tensors, in that order. `invalid_input` for content of the wrong size or a
/// name that comes twice.
result<std::vector<std::byte>> make_safetensors(std::span<const safetensor_source> tensors);

/// Where a workload's file may lie, best first (specification 2.5): for each root, the path with 0,
/// 1, 2, ... of its leading components removed. An absolute path stands for itself.
std::vector<std::filesystem::path> blob_places(
  const std::filesystem::path& path, std::span<const std::filesystem::path> roots);

/// The first of them that exists. `not_found` with "blob missing: ..." otherwise: nobody's failure
/// but the data set's.
result<std::filesystem::path> find_blob(const std::filesystem::path& path,
  std::span<const std::filesystem::path> roots,
  const std::function<bool(const std::filesystem::path&)>& exists);

} // namespace gristmill
