#include "protocol/config_file.hpp"

#include "protocol/emit.hpp"
#include "protocol/field_reader.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr size_t bytes_max = size_t{1} << 20;

const std::vector<std::string> known_keys{
  "warmup_runs", "iterations", "lock_clocks", "benchmark_reference", "seed"};

} // namespace

result<config_file> parse_config_file(std::string_view text, const std::string& file_name) {
  json_limits limits;
  limits.bytes = bytes_max;
  auto document = parse_json_object(text, file_name, limits);
  if (!document)
    return pass(document);
  field_reader fields;
  config_file out;
  out.warmup_runs = fields.integer(*document, "", "warmup_runs", out.warmup_runs);
  if (out.warmup_runs < 0)
    fields.error("warmup_runs", fmt::format("must be 0 or more, not {}", out.warmup_runs));
  out.iterations = fields.integer(*document, "", "iterations", out.iterations);
  if (out.iterations <= 0)
    fields.error("iterations", fmt::format("must be 1 or more, not {}", out.iterations));
  out.lock_clocks = fields.boolean(*document, "", "lock_clocks", out.lock_clocks);
  out.benchmark_reference =
    fields.boolean(*document, "", "benchmark_reference", out.benchmark_reference);
  out.seed = fields.integer(*document, "", "seed", out.seed);
  for (const auto& [key, value] : document->items())
    if (std::find(known_keys.begin(), known_keys.end(), key) == known_keys.end())
      fields.error(key, "unknown key" + suggestion(key, known_keys));
  if (fields.failed())
    return tl::unexpected(fields.collected(file_name, text));
  return out;
}

result<config_file> load_config_file(const std::filesystem::path& path) {
  auto text = read_text_file(path, bytes_max);
  if (!text)
    return pass(text);
  return parse_config_file(*text, path.string());
}

std::string to_json(const config_file& given) {
  ordered_json out = ordered_json::object();
  out["warmup_runs"] = given.warmup_runs;
  out["iterations"] = given.iterations;
  out["lock_clocks"] = given.lock_clocks;
  out["benchmark_reference"] = given.benchmark_reference;
  out["seed"] = given.seed;
  return dump_json(out, true);
}

} // namespace gristmill
