#pragma once

#include "protocol/job.hpp"
#include "protocol/strict_json.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The parts of `job.json` by themselves, for job.cpp and job_run.cpp only. Each `read_` answers a
/// default once the sink of its object holds a failure.
namespace gristmill::job_parts {

ordered_json write(const compile_unit& unit);
compile_unit read_unit(const ordered_json& value, std::string path, std::optional<failure>& sink);

ordered_json write(const std::vector<compiled_entry>& entries);
std::vector<compiled_entry> read_entries(strict_object& object, std::string_view key);

ordered_json write(const run_job& run);
run_job read_run(strict_object& object);

dtype read_dtype(strict_object& object);
/// Shape and bytes; the bytes must be those of the contiguous tensor.
std::vector<int64_t> read_shape(strict_object& object, dtype type, uint64_t bytes);

tensor_key read_key(strict_object& object, std::string_view key);
std::string key_text(const tensor_key& key);

/// A file name: not empty, without a zero byte.
std::string read_file_name(strict_object& object, std::string_view key);

constexpr size_t name_bytes = 1024;
constexpr size_t path_bytes = 4096;

} // namespace gristmill::job_parts
