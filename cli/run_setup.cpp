#include "cli/run_setup.hpp"

#include "actors/candidate.hpp"
#include "cli/commands.hpp"
#include "cli/device_setup.hpp"
#include "cli/find_program.hpp"
#include "cli/flag_choice.hpp"
#include "gpu/lease/policy.hpp"
#include "journal/hash.hpp"
#include "kernels/builtin.hpp"
#include "planning/allocation/allocation_text.hpp"
#include "protocol/bounds.hpp"
#include "protocol/duration_text.hpp"
#include "protocol/nearest.hpp"
#include "report/score_traces.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <spdlog/spdlog.h>
#include <sstream>
#include <sys/random.h>
#include <unistd.h>

namespace gristmill {

namespace {

/// When nothing is asked for: what a first look may take on a laptop.
constexpr const char* default_budget = "150s";

result<problem> find_problem(const std::string& given) {
  std::error_code error;
  if (std::filesystem::is_directory(given, error))
    return load_problem(given);
  if (given.find('/') != std::string::npos || given.starts_with("."))
    return fail(errc::invalid_input, given + ": no such folder");
  auto found = builtin_problem(given);
  if (found)
    return found;
  return fail(errc::invalid_input, found.error().what + "; no folder of that name either");
}

/// Axes and shapes that do not resolve would end the problem later; here they end the command.
result<void> check_workloads(const problem& p) {
  auto where = p.folder.empty() ? p.name : (p.folder / "workload.jsonl").string();
  if (p.workloads.empty())
    return fail(errc::invalid_input, where + ": there is no workload");
  for (const auto& work : p.workloads) {
    auto axes = resolve_axes(p.def, work.axes);
    if (!axes)
      return fail(
        errc::invalid_input, where + ": workload " + work.uuid + ": " + axes.error().what);
    for (const auto* specs : {&p.def.inputs, &p.def.outputs})
      for (const auto& spec : *specs)
        if (auto shape = resolve_shape(spec, *axes); !shape)
          return fail(
            errc::invalid_input, where + ": workload " + work.uuid + ": " + shape.error().what);
  }
  return {};
}

/// Of what the run depends on; an operator graph that is shipped belongs to it.
result<std::string> hash_of(const problem& p) {
  if (p.folder.empty())
    return std::string{};
  sha256_stream stream;
  for (const char* name : {"definition.json", "workload.jsonl"}) {
    std::ifstream in(p.folder / name, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in)
      return fail(errc::io_failed, (p.folder / name).string() + ": cannot be read");
    stream.update(sha256_hex(text.str()));
  }
  stream.update(p.graph_json);
  return stream.finish_hex();
}

/// One problem into the setup. A message names the problem as it was given.
result<void> load_one(run_setup& setup, const std::string& given) {
  auto loaded = find_problem(given);
  if (!loaded)
    return pass(loaded);
  if (auto fine = check_workloads(*loaded); !fine)
    return fine;
  for (const auto& warning : loaded->warnings)
    spdlog::debug("{}: {}", loaded->name, warning);
  auto name = loaded->name;
  auto hash = hash_of(*loaded);
  if (!hash)
    return pass(hash);
  if (!setup.context.problems.emplace(name, std::move(*loaded)).second)
    return fail(errc::invalid_input, given + ": a problem called '" + name + "' was given already");
  setup.problem_hashes[name] = *hash;
  setup.problems.push_back({name, {}});
  return {};
}

/// All of them are looked at before the first mistake ends the command, so that one start tells
/// every mistake.
result<void> load_problems(run_setup& setup) {
  auto& s = setup.settings;
  if (s.problems.empty())
    for (const auto name : default_problems())
      s.problems.emplace_back(name);
  else if (s.problems == std::vector<std::string>{"built-in"}) {
    s.problems.clear();
    for (const auto& p : builtin_problems())
      s.problems.push_back(p.name);
  }
  std::vector<std::string> fine;
  for (const auto& given : s.problems) {
    if (auto loaded = load_one(setup, given); loaded)
      fine.push_back(given);
    else
      setup.skipped.push_back({given, loaded.error().what});
  }
  if (setup.skipped.empty())
    return {};
  if (setup.skipped.size() == 1 && !s.keep_going)
    return fail(errc::invalid_input, setup.skipped.front().reason);
  if (fine.empty() || !s.keep_going) {
    auto text = fmt::format("{} of {} problems cannot be loaded{}", setup.skipped.size(),
      s.problems.size(), fine.empty() ? "" : "; --keep-going would go on without them");
    for (const auto& one : setup.skipped)
      text += "\n  " + one.reason;
    return fail(errc::invalid_input, text);
  }
  s.problems = std::move(fine);
  return {};
}

/// Whether a table for this device holds for the run's.
bool is_of_device(const run_context& context, const std::string& device) {
  return device == context.device_label
    || (!context.device_title.empty() && is_same_device(device, context.device_title));
}

result<void> load_bounds_table(run_setup& setup) {
  const auto& file = setup.settings.bounds;
  if (file.empty())
    return {};
  auto table = load_bounds(file);
  if (!table)
    return fail(errc::invalid_input, "--bounds " + file + ": " + table.error().what);
  if (!is_of_device(setup.context, table->device))
    return fail(errc::invalid_input,
      "--bounds " + file + ": device: the table is for '" + table->device + "', the run is on '"
        + setup.context.device_label + "'; times of two devices are not compared");
  for (const auto& [name, p] : setup.context.problems)
    for (const auto& work : p.workloads)
      if (!table->find(name, work.uuid))
        return fail(errc::invalid_input,
          "--bounds " + file + ": problems." + name + "." + work.uuid
            + ": missing, and a table must cover the whole problem");
  setup.baseline_note =
    fmt::format("T_b and floor: {} ({}, sha256 of the file {})", table->source, table->date, [&] {
      std::ifstream in(file, std::ios::binary);
      std::ostringstream text;
      text << in.rdbuf();
      return sha256_hex(text.str()).substr(0, 12);
    }());
  const auto from_table = [&](const std::string& method) {
    return fmt::format("{}, from {} ({}), in whole nanoseconds",
      method.empty() ? "method not stated" : method, table->source, table->date);
  };
  setup.t_sol_method = from_table(table->t_sol_method);
  setup.t_b_method = from_table(table->t_b_method);
  setup.context.bounds = std::move(*table);
  return {};
}

result<void> choose_seed(run_setup& setup) {
  auto& context = setup.context;
  if (setup.settings.seed) {
    context.seed = *setup.settings.seed;
    context.secret = hmac_sha256("gristmill run secret", std::to_string(context.seed));
    return {};
  }
  // The seed steers the search and is told; the secret keys the inputs and is not.
  if (getrandom(&context.seed, sizeof context.seed, 0) != sizeof context.seed
    || getrandom(context.secret.data(), context.secret.size(), 0)
      != static_cast<ssize_t>(context.secret.size()))
    return fail(errc::io_failed, "the kernel's random generator did not answer; give --seed");
  return {};
}

result<void> find_tools(run_setup& setup) {
  auto folder = program_folder();
  if (!folder)
    return pass(folder);
  setup.context.programs = *folder;
  if (setup.rehearsal)
    return {};
  for (const char* child : {"gristmill-jail", "gristmill-runner", "gristmill-judge",
         "gristmill-compiler", "gristmill-oracle"})
    if (!std::filesystem::exists(setup.context.programs / child))
      return fail(errc::not_found,
        (setup.context.programs / child).string()
          + ": missing; build it, or keep the programs in one folder");
  auto compiler = find_device_compiler(setup.settings.toolchain, setup.context.programs,
    [](const char* name) { return std::getenv(name); });
  if (!compiler)
    return fail(compiler.error().code,
      "--toolchain " + setup.settings.toolchain + ": " + compiler.error().what);
  setup.compiler = *compiler;
  setup.context.toolchain = compiler->version;
  // What `auto` came to, so that the run can be gone on with by the same.
  setup.settings.toolchain = compiler->is_nvrtc() ? "nvrtc" : "clang";
  setup.context.oracle = setup.settings.oracle;
  if (const char* blobs = std::getenv("FLASHINFER_TRACE_DIR"))
    setup.context.blob_roots.emplace_back(blobs);
  setup.context.python = find_program(setup.settings.python);
  if (setup.context.python.empty() && setup.settings.oracle == "torch")
    return fail(errc::invalid_input,
      "--python " + setup.settings.python + ": no such program, and --oracle torch needs it");
  return {};
}

/// "[PROBLEM=]FILE.cu" as problem and file.
result<std::pair<std::string, std::string>> split_candidate(
  const run_setup& setup, const std::string& given) {
  auto equals = given.find('=');
  auto file = equals == std::string::npos ? given : given.substr(equals + 1);
  std::string name = equals == std::string::npos ? std::string{} : given.substr(0, equals);
  std::vector<std::string> known;
  for (const auto& [problem_name, p] : setup.context.problems)
    known.push_back(problem_name);
  if (name.empty()) {
    if (known.size() != 1)
      return fail(errc::invalid_input,
        "--candidate " + given + ": the run has " + std::to_string(known.size())
          + " problems; write PROBLEM=FILE.cu");
    name = known.front();
  }
  if (setup.context.problems.find(name) == setup.context.problems.end())
    return fail(errc::invalid_input,
      "--candidate " + given + ": the run has no problem '" + name + "'" + suggestion(name, known));
  if (!file.ends_with(".cu"))
    return fail(errc::invalid_input, "--candidate " + given + ": the file must end in .cu");
  return std::pair{name, file};
}

result<std::string> small_file(const std::string& flag, const std::string& file) {
  constexpr std::streamoff bytes_max = 1 << 20;
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in)
    return fail(errc::invalid_input, flag + ": " + file + ": cannot be read");
  if (in.tellg() > bytes_max)
    return fail(errc::invalid_input, flag + ": " + file + ": larger than 1 MiB");
  in.seekg(0);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string plan_file_of(const std::string& source_file) {
  return source_file.substr(0, source_file.size() - 3) + ".plan.json";
}

result<void> check_candidates(const run_setup& setup) {
  for (const auto& given : setup.settings.candidates) {
    auto split = split_candidate(setup, given);
    if (!split)
      return pass(split);
    for (const auto& file : {split->second, plan_file_of(split->second)})
      if (auto text = small_file("--candidate " + given, file); !text)
        return pass(text);
  }
  if (setup.settings.proposer == "scripted" && setup.settings.candidates.empty())
    return fail(errc::invalid_input,
      "--proposer scripted: tries only what --candidate gives, and none was given");
  return {};
}

result<void> store_candidates(run_setup& setup) {
  for (const auto& given : setup.settings.candidates) {
    auto split = split_candidate(setup, given);
    if (!split)
      return pass(split);
    const auto& [name, file] = *split;
    auto source = small_file("--candidate " + given, file);
    auto plan_text = small_file("--candidate " + given, plan_file_of(file));
    if (!source || !plan_text)
      return fail(errc::invalid_input, "--candidate " + given + ": cannot be read any more");
    auto base = std::filesystem::path(file).stem().string();
    auto target = std::find_if(setup.problems.begin(), setup.problems.end(),
      [&](const portfolio_problem& p) { return p.name == name; });
    auto key = "file/" + base;
    auto taken = [&](const candidate_ref& c) { return c.key == key; };
    for (int n = 2; std::any_of(target->planted.begin(), target->planted.end(), taken); ++n)
      key = "file/" + base + "#" + std::to_string(n);
    auto stored =
      store_candidate(*setup.context.blobs, *source, *plan_text, key, "", "given by file");
    if (!stored)
      return pass(stored);
    target->planted.push_back(*stored);
  }
  return {};
}

result<std::chrono::nanoseconds> time_of(const std::string& flag, const std::string& text) {
  auto ns = parse_duration_ns(text);
  if (!ns || *ns == 0 || *ns > uint64_t{INT64_MAX})
    return fail(errc::invalid_input, flag + " " + text + ": a time such as 1s or 500ms");
  return std::chrono::nanoseconds{static_cast<int64_t>(*ns)};
}

/// Where nodes join. What a person should mend is told before anything is begun.
result<void> check_cluster(run_setup& setup) {
  const auto& s = setup.settings;
  auto heartbeat = time_of("--heartbeat", s.heartbeat);
  if (!heartbeat)
    return pass(heartbeat);
  auto timeout = time_of("--node-timeout", s.node_timeout);
  if (!timeout)
    return pass(timeout);
  if (s.listen.empty()) {
    if (!s.tls.empty())
      return fail(errc::invalid_input,
        "--tls " + s.tls + ": certificates are for nodes, and without --listen none can join");
    return {};
  }
  auto address = read_cluster_address("--listen", s.listen, true);
  if (!address)
    return pass(address);
  setup.transport = {*heartbeat, *timeout, s.tls};
  setup.listen = *address;
  return check_transport(setup.transport, *address, cluster_side::coordinator);
}

/// Workers when nothing is said: two more than devices, which are not known yet where nodes bring
/// them.
constexpr uint32_t workers_for_nodes = 8;

/// Everything but candidates, seed and secret.
result<run_setup> check_settings(const run_settings& settings) {
  run_setup setup;
  setup.settings = settings;
  auto& s = setup.settings;
  if (s.budget.empty())
    s.budget = {default_budget};
  using check = result<void>;
  const std::vector<std::function<check()>> checks = {
    [&]() -> check {
      auto mix = parse_proposer(s.proposer);
      if (!mix)
        return fail(errc::invalid_input, "--proposer " + s.proposer + ": " + mix.error().what);
      setup.proposers = std::move(*mix);
      return {};
    },
    [&]() -> check {
      auto models = make_model_setup(s, setup.proposers);
      if (!models)
        return pass(models);
      setup.models = std::move(*models);
      setup.context.program = setup.models.program_sha256;
      return {};
    },
    [&] {
      return check_choice("--toolchain", s.toolchain, {"auto", "nvrtc", "clang"});
    },
    [&] {
      return check_choice("--oracle", s.oracle, {"auto", "native", "torch"});
    },
    [&]() -> check {
      auto policy = policy_from_text(s.lease_policy);
      return policy ? check{} : check{pass(policy)};
    },
    [&]() -> check {
      auto rule = allocation_from_text(s.planner);
      if (!rule)
        return fail(rule.error().code, "--planner: " + rule.error().what);
      setup.allocation = std::move(*rule);
      return {};
    },
    [&]() -> check {
      auto parsed = parse_budget(s.budget);
      if (!parsed)
        return pass(parsed);
      setup.limits = *parsed;
      return {};
    },
    [&] { return check_cluster(setup); },
    [&] { return load_problems(setup); },
    [&] { return load_devices(setup); },
    [&] { return apply_measure_settings(setup); },
    [&] { return load_bounds_table(setup); },
    [&] { return find_tools(setup); },
  };
  for (const auto& next : checks)
    if (auto fine = next(); !fine)
      return pass(fine);
  const auto usual = setup.devices.front().from_nodes ? workers_for_nodes : setup.gpu_count + 2;
  setup.workers = s.workers != 0 ? s.workers : usual;
  s.workers = setup.workers;
  return setup;
}

/// So that the run can be gone on with from another folder.
void make_paths_absolute(run_settings& settings) {
  auto absolute = [](std::string& path) {
    std::error_code error;
    auto full = std::filesystem::absolute(path, error);
    if (!error && std::filesystem::exists(full, error))
      path = full.lexically_normal().string();
  };
  for (auto& given : settings.problems)
    if (std::error_code error; std::filesystem::is_directory(given, error))
      absolute(given);
  for (auto* file :
    {&settings.bounds, &settings.models, &settings.docs, &settings.program, &settings.tls})
    if (!file->empty())
      absolute(*file);
  if (auto equals = settings.cassette.find('='); equals != std::string::npos) {
    auto file = settings.cassette.substr(equals + 1);
    std::error_code error;
    file = std::filesystem::absolute(file, error).lexically_normal().string();
    if (!error)
      settings.cassette.replace(equals + 1, std::string::npos, file);
  }
}

/// So that whoever reads the run sees what its agents were told, and a resumed run tells the same.
result<void> write_program(const run_setup& setup) {
  if (!setup.models.program)
    return {};
  auto file = setup.context.directory / "program.md";
  std::ofstream out(file, std::ios::binary);
  out << setup.models.program->text;
  out.close();
  if (!out)
    return fail(errc::io_failed, file.string() + ": cannot be written");
  return {};
}

} // namespace

result<run_setup> make_run_setup(const run_settings& settings) {
  auto setup = check_settings(settings);
  if (!setup)
    return setup;
  if (auto fine = check_candidates(*setup); !fine)
    return pass(fine);
  if (auto chosen = choose_seed(*setup); !chosen)
    return pass(chosen);
  return setup;
}

result<run_setup> make_open_setup(const run_settings& settings) {
  auto open = settings;
  open.proposer = "scripted";
  if (!open.listen.empty())
    return fail(errc::invalid_input,
      "--listen " + open.listen + ": a run that takes candidates from clients has no nodes yet");
  auto setup = check_settings(open);
  if (!setup)
    return setup;
  setup->takes_plants = true;
  // Its rules hold for every candidate, and its hash stamps every result.
  if (!setup->models.program)
    setup->models.program = std::make_shared<const protocol_program>(default_program());
  setup->models.program_sha256 = sha256_hex(setup->models.program->text);
  setup->context.program = setup->models.program_sha256;
  if (auto chosen = choose_seed(*setup); !chosen)
    return pass(chosen);
  return setup;
}

result<run_setup> make_resumed_setup(
  const run_settings& settings, const run_beginning& beginning, const run_directory& directory) {
  auto setup = check_settings(settings);
  if (!setup)
    return setup;
  auto secret = directory.read_secret();
  if (!secret)
    return pass(secret);
  setup->context.secret = *secret;
  setup->context.seed = beginning.seed;
  auto root = directory.root().string();
  for (const auto& p : beginning.problems) {
    if (!setup->context.problems.contains(p.name))
      return fail(errc::refused,
        fmt::format("{}: the run is about problem '{}', which run.toml does not name any more",
          root, p.name));
    auto was = beginning.problem_hashes.find(p.name);
    if (was == beginning.problem_hashes.end() || was->second != setup->problem_hashes[p.name])
      return fail(errc::refused,
        fmt::format("{}: the files of problem '{}' have changed since the run began; its times "
                    "cannot be compared with new ones",
          root, p.name));
  }
  if (setup->context.problems.size() != beginning.problems.size())
    return fail(errc::refused,
      fmt::format("{}: run.toml names {} problems, the log {}", root,
        setup->context.problems.size(), beginning.problems.size()));
  if (setup->baseline_note != beginning.baseline_note || setup->time_note != beginning.time_note)
    return fail(errc::refused,
      fmt::format("{}: the run's times are {} ({}), those of this program {} ({}); they cannot be "
                  "compared",
        root, beginning.time_note, beginning.baseline_note, setup->time_note,
        setup->baseline_note));
  setup->problems = beginning.problems;
  return setup;
}

result<void> take_port(run_setup& setup) {
  if (!setup.listen)
    return {};
  auto port = listening_socket::at(*setup.listen);
  if (!port)
    return pass(port);
  setup.port = std::make_shared<listening_socket>(std::move(*port));
  return {};
}

result<void> reopen_run_directory(run_setup& setup, const run_directory& directory) {
  auto owner = own_identity();
  if (!owner)
    return pass(owner);
  auto dead = reap_dead_jobs(directory.root().parent_path());
  for (const auto& trouble : dead.problems)
    spdlog::warn("{}", trouble);
  if (auto taken = directory.take(*owner); !taken)
    return taken;
  setup.context.directory = directory.root();
  auto blobs = blob_store::open(directory.blobs());
  if (!blobs)
    return pass(blobs);
  blobs->remove_unfinished();
  setup.context.blobs = std::make_shared<blob_store>(std::move(*blobs));
  return {};
}

result<run_directory> open_run_directory(run_setup& setup, std::chrono::sys_seconds utc) {
  auto owner = own_identity();
  if (!owner)
    return pass(owner);
  std::filesystem::path out(setup.settings.out);
  auto runs = out.empty() ? std::filesystem::path("runs") : out.parent_path();
  if (runs.empty())
    runs = ".";
  auto dead = reap_dead_jobs(runs);
  for (const auto& run : dead.runs)
    spdlog::info("cleaned up after a run that was killed: {}", run.string());
  for (const auto& trouble : dead.problems)
    spdlog::warn("{}", trouble);
  std::string name = setup.problems.size() == 1
    ? setup.problems.front().name
    : std::to_string(setup.problems.size()) + "-problems";
  auto directory = out.empty() ? run_directory::create(runs, utc, name, *owner)
                               : run_directory::create_at(out, *owner);
  // Where the user wants it is the user's to mend; `runs/` is ours.
  if (!directory && !out.empty())
    return fail(errc::invalid_input, "--out " + out.string() + ": " + directory.error().what);
  if (!directory)
    return pass(directory);
  // Children are given these paths and have working directories of their own.
  std::error_code error;
  setup.context.directory = std::filesystem::absolute(directory->root(), error);
  if (error)
    return fail(errc::io_failed, directory->root().string() + ": " + error.message());
  auto blobs = blob_store::open(setup.context.directory / directory->blobs().filename());
  if (!blobs)
    return pass(blobs);
  setup.context.blobs = std::make_shared<blob_store>(std::move(*blobs));
  if (auto stored = store_candidates(setup); !stored)
    return pass(stored);
  make_paths_absolute(setup.settings);
  if (auto written = write_program(setup); !written)
    return pass(written);
  if (auto written = directory->write_config(to_toml(setup.settings)); !written)
    return pass(written);
  if (auto written = directory->write_secret(setup.context.secret); !written)
    return pass(written);
  return directory;
}

} // namespace gristmill
