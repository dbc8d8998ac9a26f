// gristmill-emulate KERNEL PLAN: one kernel on the mock GPU, with all checks. docs/emulate.md.

#include "cli/scratch_folder.hpp"
#include "gpu/mock/emulate_json.hpp"
#include "gpu/toolchain/device_compiler.hpp"
#include "journal/hash.hpp"
#include "kernels/builtin.hpp"
#include "protocol/nearest.hpp"
#include "protocol/problem.hpp"
#include "tensors/generate.hpp"
#include "tensors/tensor_file.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

constexpr size_t kernel_bytes_max = size_t{16} << 20;
constexpr uint64_t tensors_bytes_max = uint64_t{4} << 30;
constexpr int found_nothing = 0, found_fault = 1, not_run = 2;

struct arguments {
  std::string kernel;
  std::string plan;
  std::string problem;
  std::string workload;
  std::vector<std::string> axes;
  std::string checks = "all";
  std::string device = "h200";
  std::string toolchain = "auto";
  std::string outputs;
  uint32_t orders = 0;
  /// 0: as many as there are processors and memory allows.
  uint32_t jobs = 0;
  uint64_t order_seed = 1;
  uint64_t limit = 2'000'000'000;
  bool no_time = false;
  bool json = false;
};

result<ptx::check_set> read_checks(const std::string& text) {
  if (text == "all")
    return ptx::all_checks;
  if (text == "none")
    return ptx::check_set{0};
  ptx::check_set set = 0;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, end - at);
    at = end + 1;
    std::vector<std::string> names = ptx::names_of(ptx::all_checks);
    const auto found = std::find_if(ptx::check_names().begin(), ptx::check_names().end(),
      [&](const auto& one) { return one.name == name; });
    names.insert(names.end(), {"all", "none"});
    if (found == ptx::check_names().end())
      return fail(errc::invalid_input,
        fmt::format(
          "--check {}: there is no check {}{}", text, excerpt(name), suggestion(name, names)));
    set |= static_cast<ptx::check_set>(found->which);
  }
  return set;
}

result<problem> read_problem(const arguments& given) {
  std::error_code error;
  const fs::path beside = fs::path(given.plan).parent_path();
  if (given.problem.empty()) {
    if (fs::exists(beside / "definition.json", error))
      return load_problem(beside.empty() ? fs::path(".") : beside);
    return fail(
      errc::invalid_input, "--problem is missing, and there is no definition.json beside the plan");
  }
  if (fs::is_directory(given.problem, error))
    return load_problem(given.problem);
  return builtin_problem(given.problem);
}

result<uint64_t> tensor_bytes(const definition& def, const axis_values& axes) {
  uint64_t sum = 0;
  for (const auto* list : {&def.inputs, &def.outputs})
    for (const tensor_spec& spec : *list) {
      if (spec.is_scalar)
        continue;
      auto shape = resolve_shape(spec, axes);
      if (!shape)
        return pass(shape);
      auto bytes = storage_bytes(spec.type, *shape);
      if (!bytes)
        return pass(bytes);
      sum += *bytes;
    }
  return sum;
}

/// The one that was named, else the smallest.
result<workload> choose_workload(const problem& target, const std::string& name) {
  const workload* best = nullptr;
  uint64_t least = UINT64_MAX;
  std::vector<std::string> names;
  for (const workload& one : target.workloads) {
    names.push_back(one.uuid);
    if (!name.empty()) {
      if (one.uuid.starts_with(name)) {
        if (best != nullptr)
          return fail(errc::invalid_input,
            fmt::format(
              "--workload {}: both {} and {} begin like that", name, best->uuid, one.uuid));
        best = &one;
      }
      continue;
    }
    const auto axes = resolve_axes(target.def, one.axes);
    const auto bytes = axes ? tensor_bytes(target.def, *axes) : pass(axes);
    if (bytes && *bytes < least) {
      least = *bytes;
      best = &one;
    }
  }
  if (best != nullptr)
    return *best;
  return fail(errc::not_found,
    name.empty()
      ? fmt::format("problem {} has no workload", target.name)
      : fmt::format("--workload {}: there is none like that{}", name, suggestion(name, names)));
}

result<void> change_axes(
  workload& work, const std::vector<std::string>& given, const definition& def) {
  std::vector<std::string> names;
  for (const axis& one : def.axes)
    names.push_back(one.name);
  for (const std::string& text : given) {
    const size_t at = text.find('=');
    const std::string name = text.substr(0, at);
    int64_t value = 0;
    const std::string number = at == std::string::npos ? "" : text.substr(at + 1);
    const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
    if (number.empty() || read.ec != std::errc() || read.ptr != number.data() + number.size()
      || value < 0)
      return fail(errc::invalid_input, fmt::format("--axis {}: NAME=NUMBER is needed", text));
    if (std::find(names.begin(), names.end(), name) == names.end())
      return fail(errc::invalid_input,
        fmt::format(
          "--axis {}: there is no axis {}{}", text, excerpt(name), suggestion(name, names)));
    const auto same = std::find_if(
      work.axes.begin(), work.axes.end(), [&](const auto& each) { return each.first == name; });
    if (same != work.axes.end())
      same->second = value;
    else
      work.axes.emplace_back(name, value);
  }
  return {};
}

/// Always the same for the same tensor.
tensor_key key_of(const problem& target, const workload& work, const std::string& tensor) {
  const std::string hex =
    sha256_hex(fmt::format("gristmill-emulate\n{}\n{}\n{}", target.name, work.uuid, tensor));
  tensor_key key;
  for (size_t i = 0; i < key.bytes.size(); ++i)
    key.bytes[i] = static_cast<uint8_t>(std::strtoul(hex.substr(2 * i, 2).c_str(), nullptr, 16));
  return key;
}

struct drawn_inputs {
  std::vector<std::vector<std::byte>> tensors;
  std::vector<std::pair<std::string, scalar_value>> numbers;
};

result<drawn_inputs> draw(const problem& target, const workload& work, const axis_values& axes) {
  drawn_inputs out;
  for (const tensor_spec& spec : target.def.inputs) {
    const input_spec* given = work.find_input(spec.name);
    const input_kind kind = given == nullptr ? input_kind::random : given->kind;
    if (kind == input_kind::safetensors || kind == input_kind::custom)
      return fail(errc::unsupported,
        fmt::format("inputs.{}: only random inputs and numbers are made here, not {}", spec.name,
          kind == input_kind::custom ? "those of a custom entry point" : "safetensors"));
    const tensor_key key = key_of(target, work, spec.name);
    const auto shape = spec.is_scalar ? result<std::vector<int64_t>>{} : resolve_shape(spec, axes);
    if (!shape)
      return pass(shape);
    const auto how =
      choose_distribution(spec.name, spec.description, spec.type, *shape, target.def.op_type);
    if (spec.is_scalar) {
      if (kind == input_kind::scalar) {
        auto value = make_scalar(spec.type, given->value);
        if (!value)
          return fail(
            value.error().code, fmt::format("inputs.{}: {}", spec.name, value.error().what));
        out.numbers.emplace_back(spec.name, *value);
        continue;
      }
      const drawn_number drawn = generate_number(how, spec.type, key);
      out.numbers.emplace_back(
        spec.name, scalar_value{spec.type, drawn.number, drawn.integer, drawn.is_integer});
      continue;
    }
    auto bytes = storage_bytes(spec.type, *shape);
    if (!bytes)
      return pass(bytes);
    out.tensors.emplace_back(*bytes);
    generate(how, spec.type, *shape, key, 0, out.tensors.back());
  }
  return out;
}

device_facts facts_of(const gpu_profile& gpu) {
  device_facts facts;
  facts.sm_count = gpu.sm_count;
  facts.smem_per_block = static_cast<uint32_t>(gpu.shared_per_block);
  facts.smem_per_sm = static_cast<uint32_t>(gpu.shared_per_sm);
  facts.l2_bytes = gpu.l2_bytes;
  facts.arch = static_cast<uint32_t>(std::atoi(gpu.arch.c_str() + std::string_view("sm_").size()));
  return facts;
}

struct device_code {
  std::string ptx;
  std::vector<compiled_entry> entries;
  std::string toolchain;
};

result<device_code> read_code(const arguments& given, const compile_unit& unit,
  const plan_options& options, const std::string& arch) {
  auto text = read_text_file(given.kernel, kernel_bytes_max);
  if (!text)
    return pass(text);
  if (given.kernel.ends_with(".ptx"))
    return device_code{std::move(*text), {}, "ptx"};
  if (!given.kernel.ends_with(".cu"))
    return fail(errc::invalid_input, given.kernel + ": a .cu or a .ptx file is needed");
  std::error_code error;
  const fs::path programs = fs::read_symlink("/proc/self/exe", error).parent_path();
  const auto environment = [](const char* name) -> const char* { return std::getenv(name); };
  const auto compiler = find_device_compiler(given.toolchain, programs, environment);
  if (!compiler)
    return pass(compiler);
  const auto folder = scratch_folder::create("gristmill-emulate-");
  if (!folder)
    return pass(folder);
  auto compiled = compile_device_code({*text, unit, options, arch, true}, folder->path(), *compiler,
    compiler->is_nvrtc() ? (programs / nvrtc_program_name).string() : compiler->path);
  if (!compiled)
    return pass(compiled);
  if (compiled->status != verdict_status::passed)
    return fail(errc::invalid_input, "the kernel does not compile:\n" + compiled->log);
  return device_code{std::move(compiled->ptx), std::move(compiled->entries), compiler->version};
}

result<std::vector<emulated_output>> write_outputs(
  const resolved_workload& work, const emulation& seen, const std::string& folder) {
  std::vector<emulated_output> all;
  for (const resolved_buffer& buffer : work.buffers) {
    if (buffer.kind != resolved_buffer::role::output)
      continue;
    emulated_output one{
      buffer.name, std::string(name(buffer.type)), buffer.shape, buffer.bytes, ""};
    if (!folder.empty()) {
      one.file = (fs::path(folder) / (buffer.name + ".bin")).string();
      if (auto written = write_tensor_file(one.file, seen.outputs.at(all.size())); !written)
        return pass(written);
    }
    all.push_back(std::move(one));
  }
  return all;
}

/// Runs at once. Each has buffers of its own but for the inputs; together they keep within what one
/// call may have.
uint32_t jobs_for(const resolved_workload& work, uint32_t asked) {
  if (asked != 0)
    return asked;
  uint64_t bytes = 1;
  for (const resolved_buffer& buffer : work.buffers)
    bytes += buffer.kind == resolved_buffer::role::input ? 0 : buffer.bytes;
  const uint64_t room = std::max<uint64_t>(1, tensors_bytes_max / bytes);
  return static_cast<uint32_t>(
    std::min<uint64_t>(room, std::max(1U, std::thread::hardware_concurrency())));
}

struct report {
  emulation seen;
  std::vector<emulated_output> outputs;
};

/// Everything from the files to the report; fills in what `asked` says of it on the way.
result<report> work_on(const arguments& given, emulate_request& asked) {
  const auto checks = read_checks(given.checks);
  if (!checks)
    return pass(checks);
  asked.checks = *checks;
  auto gpu = profile(given.device);
  if (!gpu)
    return pass(gpu);
  auto plan_text = read_text_file(given.plan, plan_limits::text_bytes);
  if (!plan_text)
    return pass(plan_text);
  const auto parsed = parse_plan(*plan_text);
  if (!parsed)
    return fail(parsed.error().code, given.plan + ": " + parsed.error().what);
  const auto target = read_problem(given);
  if (!target)
    return pass(target);
  asked.problem = target->name;
  auto chosen = choose_workload(*target, given.workload);
  if (!chosen)
    return pass(chosen);
  if (auto changed = change_axes(*chosen, given.axes, target->def); !changed)
    return pass(changed);
  asked.workload = chosen->uuid;
  const auto axes = resolve_axes(target->def, chosen->axes);
  if (!axes)
    return pass(axes);
  asked.axes = *axes;
  const auto bytes = tensor_bytes(target->def, *axes);
  if (!bytes)
    return pass(bytes);
  if (*bytes > tensors_bytes_max)
    return fail(errc::refused,
      fmt::format("the tensors have {} bytes; at most {} are emulated: --axis makes them smaller",
        *bytes, tensors_bytes_max));
  const auto inputs = draw(*target, *chosen, *axes);
  if (!inputs)
    return pass(inputs);
  const auto resolved =
    resolve(*parsed, target->def, *axes, inputs->numbers, facts_of(*gpu), nullptr);
  if (!resolved)
    return fail(resolved.error().code, given.plan + ": " + resolved.error().what);
  const auto code = read_code(given, resolved->unit, parsed->options, gpu->arch);
  if (!code)
    return pass(code);
  asked.toolchain = code->toolchain;

  emulate_settings how;
  how.profile = std::move(*gpu);
  how.checks = *checks;
  how.orders = given.orders;
  how.order_seed = given.order_seed;
  how.jobs = jobs_for(*resolved, given.jobs);
  how.instruction_limit = given.limit;
  how.time = !given.no_time;
  how.allowed = chosen->allowed;
  auto seen = emulate(code->ptx, code->entries, *resolved, inputs->tensors, how);
  if (!seen)
    return pass(seen);
  if (!given.outputs.empty()) {
    std::error_code error;
    fs::create_directories(given.outputs, error);
    if (error)
      return fail(errc::io_failed, given.outputs + ": " + error.message());
  }
  auto outputs = write_outputs(*resolved, *seen, given.outputs);
  if (!outputs)
    return pass(outputs);
  return report{std::move(*seen), std::move(*outputs)};
}

void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void put(const ordered_json& document) {
  put(document.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

int run(const arguments& given) {
  emulate_request asked;
  asked.kernel = given.kernel;
  asked.plan = given.plan;
  asked.device = given.device;
  asked.order_seed = given.order_seed;
  const auto done = work_on(given, asked);
  if (!done) {
    if (given.json)
      put(refused_to_json(asked, done.error().what));
    else
      fmt::print(stderr, "gristmill-emulate: {}\n", done.error().what);
    return not_run;
  }
  if (given.json)
    put(to_json(asked, done->seen, done->outputs));
  else
    put(to_text(asked, done->seen));
  return done->seen.has_fault() ? found_fault : found_nothing;
}

} // namespace

} // namespace gristmill

int main(int argc, char** argv) {
  gristmill::arguments given;
  CLI::App app{
    "Runs one kernel on the mock GPU and says what it found: faults that a GPU would hide, "
    "the modelled time, and where that time goes."};
  app.add_option("KERNEL", given.kernel, "A .cu or .ptx file")->required();
  app.add_option("PLAN", given.plan, "The launch plan")->required();
  app.add_option("--problem", given.problem,
    "A built-in problem or a folder with definition.json and workload.jsonl");
  app.add_option("--workload", given.workload, "UUID, or how it begins; the smallest without it");
  app.add_option("--axis", given.axes, "NAME=NUMBER, as often as needed");
  app.add_option("--check", given.checks, "Checks with commas between, or all, or none");
  app.add_option("--device", given.device, "A profile of the mock");
  app.add_option("--toolchain", given.toolchain, "auto, clang or nvrtc");
  app.add_option("--orders", given.orders, "Further runs in shuffled orders")
    ->check(CLI::Range(0, 64));
  app.add_option("--order-seed", given.order_seed, "Of the first of them");
  app.add_option("--jobs", given.jobs, "How many of them run at once; without it one a processor")
    ->check(CLI::Range(1, 64));
  app.add_option("--limit", given.limit, "Warp instructions of one launch");
  app.add_option("--outputs", given.outputs, "Folder to write the outputs to");
  app.add_flag("--no-time", given.no_time, "Does not model the time");
  app.add_flag("--json", given.json, "One JSON document instead of words");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : gristmill::not_run;
  }
  return gristmill::run(given);
}
