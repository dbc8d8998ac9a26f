#include "cli/baseline_jobs.hpp"

#include "cli/resolved_tensors.hpp"
#include "journal/hash.hpp"
#include "kernels/work_count.hpp"
#include "messages/embedded_file.hpp"
#include "protocol/op_graph.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <span>

namespace gristmill {

/// `cli/baseline/*.py`.
std::span<const embedded_file> baseline_scripts();

namespace {

namespace fs = std::filesystem;

result<void> write_file(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file)
    return fail(errc::io_failed, path.string() + ": cannot be written");
  return {};
}

ordered_json tensor_json(const resolved_tensor& tensor) {
  return {{"name", tensor.spec->name}, {"dtype", name(tensor.spec->type)}, {"shape", tensor.shape}};
}

result<ordered_json> input_json(const resolved_tensor& input) {
  if (input.source.kind == input_kind::scalar) {
    auto one = ordered_json{{"name", input.spec->name}};
    std::visit([&](const auto& value) { one["value"] = value; }, input.source.value);
    return one;
  }
  if (input.source.kind != input_kind::random || input.spec->is_scalar)
    return fail(errc::unsupported,
      fmt::format(
        "{}: is {}, but a baseline draws its inputs anew for each set: only random tensors "
        "and scalars with a value",
        input.field, kind_name(input.source.kind)));
  auto one = tensor_json(input);
  one["draw"] =
    input.drawn && input.drawn->kind == distribution::scaled_normal ? "fan_in" : "normal";
  return one;
}

ordered_json protocol_json(const baseline_protocol& how, const fs::path& folder) {
  return {{"device", how.on_cpu ? "cpu" : "cuda"}, {"folder", folder.string()},
    {"flush", how.flush}, {"samples", how.samples}, {"warm_up_s", how.warm_up_s},
    {"sets", how.sets}, {"seed", how.seed}};
}

result<fs::path> fresh_folder(const fs::path& scratch, const std::string& label) {
  std::error_code error;
  for (int i = 0;; ++i) {
    const auto folder = scratch / fmt::format("{}-{}", label, i);
    if (fs::create_directories(folder, error))
      return folder;
    if (error)
      return fail(errc::io_failed, folder.string() + ": " + error.message());
  }
}

} // namespace

const std::vector<std::string>& general_baseline_modes() {
  static const std::vector<std::string> modes{"eager", "compile", "graph", "max-autotune"};
  return modes;
}

std::vector<std::pair<std::string, fs::path>> problem_baseline_modes(const problem& target) {
  std::vector<std::pair<std::string, fs::path>> out;
  std::error_code error;
  if (target.folder.empty())
    return out;
  for (fs::directory_iterator it(target.folder / "baseline", error), end; !error && it != end;
       it.increment(error))
    if (it->path().extension() == ".py")
      out.emplace_back(it->path().stem().string(), it->path());
  std::sort(out.begin(), out.end());
  return out;
}

result<baseline_table::row> baseline_row(const problem& target, const workload& work) {
  const auto named = [&](const failure& why) {
    return fail(why.code, fmt::format("{}, workload {}: {}", target.name, work.uuid, why.what));
  };
  auto axes = resolve_axes(target.def, work.axes);
  if (!axes)
    return named(axes.error());
  std::optional<op_graph> graph;
  if (!target.graph_json.empty()) {
    auto parsed = parse_op_graph(target.graph_json);
    if (!parsed)
      return named({parsed.error().code, "graph.json: " + parsed.error().what});
    graph = std::move(*parsed);
  }
  auto counted = count_work(target.def, graph ? &*graph : nullptr, *axes);
  if (!counted)
    return named(counted.error());
  return baseline_table::row{
    target.name, target.def.op_type, work.uuid, {counted->bytes, counted->flops, counted->macs}};
}

result<baseline_task> write_baseline_job(const problem& target, const workload& work,
  const std::string& mode, const std::string& code, uint64_t copy_bytes,
  const baseline_protocol& how, const fs::path& scratch) {
  const auto named = [&](const failure& why) {
    return fail(why.code, fmt::format("{}, workload {}: {}", target.name, work.uuid, why.what));
  };
  auto tensors = resolve_tensors(target.def, work);
  if (!tensors)
    return named(tensors.error());
  auto folder = fresh_folder(scratch, mode);
  if (!folder)
    return pass(folder);
  auto job = protocol_json(how, *folder);
  job["mode"] = mode;
  job["problem"] = target.name;
  job["reference"] = (*folder / "reference.py").string();
  job["code"] = code;
  job["copy_bytes"] = copy_bytes;
  job["tolerance"] = {{"atol", work.allowed.atol}, {"rtol", work.allowed.rtol},
    {"ratio", work.allowed.matched_ratio}, {"cap", nullptr}};
  if (work.allowed.error_cap)
    job["tolerance"]["cap"] = *work.allowed.error_cap;
  job["inputs"] = ordered_json::array();
  for (const auto& input : tensors->inputs) {
    auto one = input_json(input);
    if (!one)
      return named(one.error());
    job["inputs"].push_back(std::move(*one));
  }
  job["outputs"] = ordered_json::array();
  for (const auto& output : tensors->outputs)
    job["outputs"].push_back(tensor_json(output));
  if (auto written = write_file(*folder / "reference.py", target.def.reference); !written)
    return pass(written);
  const auto file = *folder / "job.json";
  if (auto written = write_file(file, job.dump(1)); !written)
    return pass(written);
  return baseline_task{target.name, work.uuid, mode, file.string()};
}

result<baseline_task> write_rates_job(const baseline_protocol& how, const fs::path& scratch) {
  auto folder = fresh_folder(scratch, "rates");
  if (!folder)
    return pass(folder);
  auto job = protocol_json(how, *folder);
  job["mode"] = "rates";
  const auto file = *folder / "job.json";
  if (auto written = write_file(file, job.dump(1)); !written)
    return pass(written);
  return baseline_task{{}, {}, "rates", file.string()};
}

result<std::string> write_baseline_scripts(const fs::path& scratch) {
  std::string main_script;
  for (const auto& each : baseline_scripts()) {
    const auto path = scratch / std::string(each.path);
    if (auto written = write_file(path, each.content); !written)
      return pass(written);
    if (each.path == "baseline_mode.py")
      main_script = path.string();
  }
  return main_script;
}

std::string baseline_scripts_hash() {
  std::string all;
  for (const auto& each : baseline_scripts())
    all += fmt::format("{}\n{}\n", each.path, each.content);
  return sha256_hex(all);
}

} // namespace gristmill
