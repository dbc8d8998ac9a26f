#include "cli/node_setup.hpp"

#include "cli/commands.hpp"
#include "cli/device_setup.hpp"
#include "cli/find_program.hpp"
#include "cli/flag_choice.hpp"
#include "cli/whole_number.hpp"
#include "gpu/children/job_directory.hpp"
#include "gpu/lease/need.hpp"
#include "gpu/mock/profile.hpp"
#include "journal/hash.hpp"
#include "protocol/device_name.hpp"
#include "protocol/duration_text.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t devices_max = 64;
constexpr uint64_t slots_max = 1024;
constexpr uint64_t workers_max = 100'000;
constexpr uint64_t cache_min = uint64_t{64} << 20;
constexpr std::chrono::minutes give_up_usually{10};

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
    || c == '.' || c == '-';
}

result<std::string> name_of(const std::string& given) {
  auto name = given;
  if (name.empty()) {
    std::array<char, 256> host{};
    if (gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0')
      return fail(errc::invalid_input, "--name: this machine has no name; give the node one");
    name = host.data();
    std::replace_if(
      name.begin(), name.end(), [](char c) { return !is_name_character(c); }, '-');
    name = name.substr(0, 64);
  }
  if (name.size() > 64 || !std::all_of(name.begin(), name.end(), is_name_character))
    return fail(errc::invalid_input,
      fmt::format("--name {}: at most 64 letters, digits, '_', '.' and '-'", name));
  return name;
}

result<std::string> random_hex() {
  std::array<uint8_t, 8> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return fail(errc::io_failed, "the kernel's random generator did not answer");
  return to_hex(std::string_view{reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

result<std::chrono::nanoseconds> duration_of(const std::string& flag, const std::string& text) {
  auto ns = parse_duration_ns(text);
  if (!ns || *ns == 0 || *ns > uint64_t{INT64_MAX})
    return fail(errc::invalid_input, fmt::format("{} {}: a time such as 1s or 500ms", flag, text));
  return std::chrono::nanoseconds{static_cast<int64_t>(*ns)};
}

/// How long a node that ends with its run waits for a coordinator that is away.
result<std::optional<std::chrono::nanoseconds>> patience_of(const node_arguments& arguments) {
  std::optional<std::chrono::nanoseconds> out;
  if (arguments.until_run_ends)
    out = give_up_usually;
  if (arguments.give_up_after.empty())
    return out;
  if (!arguments.until_run_ends)
    return fail(errc::invalid_input,
      "--give-up-after " + arguments.give_up_after
        + ": only with --until-run-ends; without it a node waits for the next run without end");
  auto given = duration_of("--give-up-after", arguments.give_up_after);
  if (!given)
    return pass(given);
  out = *given;
  return out;
}

result<uint64_t> cache_bytes(const std::string& text) {
  auto size = parse_need("memory>=" + text);
  if (!size || size->memory_min < cache_min)
    return fail(errc::invalid_input,
      fmt::format("--cache-max {}: a size of at least 64MiB, such as 8GiB", text));
  return size->memory_min;
}

node_agent_device mock_device(const std::string& model, size_t number) {
  auto properties = properties_of(*profile(model)); // `parse_devices` knows only these.
  node_agent_device out;
  auto& d = out.what;
  d.name = fmt::format("mock:{}#{}", model, number);
  d.label = "mock:" + model;
  d.model = model;
  d.arch = properties.arch;
  d.memory_bytes = properties.memory_bytes;
  d.sm_count = properties.sm_count;
  d.shared_per_block = properties.shared_per_block;
  d.shared_per_sm = properties.shared_per_sm;
  d.l2_bytes = properties.l2_bytes;
  out.runner_name = "mock:" + model;
  return out;
}

node_agent_device sleep_device(uint64_t ns, size_t number) {
  node_agent_device out;
  out.what.name = fmt::format("sleep#{}", number);
  out.what.label = "sleep";
  out.what.model = "sleep";
  out.what.sleep_ns = ns;
  return out;
}

node_agent_device real_device(const device_description& device) {
  node_agent_device out;
  auto& d = out.what;
  d.name = device.device;
  d.label = "cuda:" + device.model;
  d.model = device.model;
  d.title = device.title;
  d.arch = device.arch;
  d.memory_bytes = device.memory_bytes;
  d.sm_count = device.sm_count;
  d.shared_per_block = device.shared_per_block;
  d.shared_per_sm = device.shared_per_sm;
  d.l2_bytes = device.l2_bytes;
  out.runner_name = device.device;
  return out;
}

bool is_named(const device_description& device, const std::string& which) {
  return which == "all" || device.device == "cuda:" + which
    || (which.starts_with("GPU-") && device.uuid.starts_with(which));
}

result<void> add_real(std::vector<node_agent_device>& all, const std::string& which,
  const std::vector<device_description>& there) {
  bool any = false;
  for (const auto& one : there) {
    if (!is_named(one, which))
      continue;
    any = true;
    const auto twice = std::any_of(all.begin(), all.end(),
      [&](const node_agent_device& other) { return other.what.name == one.device; });
    if (twice)
      return fail(errc::invalid_input,
        fmt::format("--gpus: {} is named twice; two executors cannot share a device", one.device));
    all.push_back(real_device(one));
  }
  if (!any)
    return fail(
      errc::not_found, fmt::format("--gpus cuda:{}: there is no such device here", which));
  return {};
}

/// A node brings whatever it has; which of it a run uses is the coordinator's to say.
result<std::vector<node_agent_device>> devices_of(
  const std::string& gpus, const fs::path& programs) {
  std::vector<node_agent_device> out;
  if (gpus.empty())
    return out;
  auto groups = parse_devices(gpus, known_profiles());
  if (!groups)
    return pass(groups);
  std::optional<std::vector<device_description>> real;
  for (const auto& group : *groups) {
    if (group.what == device_group::kind::cuda) {
      if (!real) {
        auto there = describe_real_devices(programs);
        if (!there)
          return fail(there.error().code, "--gpus " + gpus + ": " + there.error().what);
        real = std::move(*there);
      }
      if (auto added = add_real(out, group.which, *real); !added)
        return pass(added);
      continue;
    }
    for (uint32_t i = 0; i < group.count; ++i)
      out.push_back(group.what == device_group::kind::sleep
          ? sleep_device(group.sleep_ns, out.size())
          : mock_device(group.model, out.size()));
  }
  if (out.size() > devices_max)
    return fail(errc::invalid_input,
      fmt::format("--gpus {}: {} devices; a node has at most {}", gpus, out.size(), devices_max));
  return out;
}

/// Below TMPDIR, which is on this machine even where home folders are not.
fs::path default_state(const std::string& name) {
  const char* temporary = std::getenv("TMPDIR");
  fs::path root = temporary != nullptr && *temporary != '\0' ? temporary : "/var/tmp";
  return root / fmt::format("gristmill-{}", getuid()) / name;
}

/// Makes the folder for this user alone. One that somebody else has made in a place that everybody
/// may write to is not used.
result<void> make_private(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder.parent_path(), error);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(errc::invalid_input,
      fmt::format("--state {}: {}", folder.string(), std::generic_category().message(errno)));
  struct stat seen {};
  if (lstat(folder.c_str(), &seen) != 0 || !S_ISDIR(seen.st_mode) || seen.st_uid != getuid())
    return fail(
      errc::invalid_input, fmt::format("--state {}: not a folder of this user", folder.string()));
  if (chmod(folder.c_str(), 0700) != 0)
    return fail(errc::invalid_input,
      fmt::format("--state {}: {}", folder.string(), std::generic_category().message(errno)));
  return {};
}

/// Ends and removes what a process that is no more left behind.
result<void> reap(const fs::path& work) {
  std::error_code error;
  for (const auto& run : fs::directory_iterator(work, error)) {
    auto reaped = reap_job_directories((run.path() / "jobs").string());
    if (!reaped)
      spdlog::warn("{}", reaped.error().what);
    else if (*reaped != 0)
      spdlog::info("ended {} jobs of a node that was killed", *reaped);
  }
  error.clear();
  fs::remove_all(work, error);
  if (error)
    return fail(errc::io_failed, fmt::format("--state: {}: {}", work.string(), error.message()));
  fs::create_directories(work, error);
  if (error)
    return fail(errc::io_failed, fmt::format("--state: {}: {}", work.string(), error.message()));
  return {};
}

result<void> take_state(node_setup& setup, const node_arguments& arguments, uint64_t cache_max) {
  std::error_code error;
  auto folder = fs::absolute(
    arguments.state.empty() ? default_state(setup.agent.node) : fs::path(arguments.state), error)
                  .lexically_normal();
  if (error)
    return fail(errc::invalid_input, "--state " + arguments.state + ": " + error.message());
  if (arguments.state.empty())
    if (auto made = make_private(folder.parent_path()); !made)
      return made;
  if (auto made = make_private(folder); !made)
    return made;
  auto lock = run_lock::take(folder);
  if (!lock)
    return fail(lock.error().code,
      fmt::format(
        "--state {}: another node works there; give each its own folder", folder.string()));
  setup.lock = std::move(*lock);
  auto& own = setup.agent.folders;
  own.directory = folder / "work";
  if (auto done = reap(own.directory); !done)
    return done;
  auto store = blob_store::open(folder / "blobs");
  if (!store)
    return pass(store);
  own.blobs = std::make_shared<blob_store>(std::move(*store));
  auto cache = blob_cache::open(own.blobs, cache_max);
  if (!cache)
    return pass(cache);
  setup.agent.cache = std::move(*cache);
  return {};
}

/// The compiler, where there is one. Without one a node that was not asked for compiles none.
result<void> choose_compiler(node_setup& setup, const node_arguments& arguments, unsigned cores) {
  uint64_t slots = std::max(1u, cores / 2);
  const bool asked = !arguments.compile_slots.empty();
  if (asked) {
    auto given = whole_number("--compile-slots", arguments.compile_slots, 0, slots_max);
    if (!given)
      return pass(given);
    slots = *given;
  }
  if (slots == 0)
    return {};
  auto found = find_device_compiler(arguments.toolchain, setup.agent.folders.programs,
    [](const char* name) { return std::getenv(name); });
  if (!found && asked)
    return fail(found.error().code,
      "--toolchain " + arguments.toolchain + ": " + found.error().what
        + "; --compile-slots 0 goes without");
  if (!found) {
    spdlog::warn("this node compiles nothing: {}", found.error().what);
    return {};
  }
  setup.agent.compile_slots = static_cast<uint32_t>(slots);
  setup.agent.device_code = std::move(*found);
  return {};
}

} // namespace

result<node_setup> make_node_setup(const node_arguments& arguments) {
  node_setup setup;
  auto address = read_cluster_address("--join", arguments.join, false);
  if (!address)
    return pass(address);
  setup.coordinator = *address;
  auto heartbeat = duration_of("--heartbeat", arguments.heartbeat);
  auto node_timeout = duration_of("--node-timeout", arguments.node_timeout);
  if (!heartbeat || !node_timeout)
    return pass(!heartbeat ? heartbeat : node_timeout);
  setup.transport = {*heartbeat, *node_timeout, arguments.tls};
  if (auto fine = check_transport(setup.transport, setup.coordinator, cluster_side::node); !fine)
    return pass(fine);
  auto name = name_of(arguments.name);
  if (!name)
    return pass(name);
  setup.agent.node = *name;
  auto boot = random_hex();
  if (!boot)
    return pass(boot);
  setup.agent.boot = *boot;
  auto patience = patience_of(arguments);
  if (!patience)
    return pass(patience);
  setup.give_up_after = *patience;

  auto programs = program_folder();
  if (!programs)
    return pass(programs);
  auto& own = setup.agent.folders;
  own.programs = *programs;
  for (const char* child : {"gristmill-jail", "gristmill-runner", "gristmill-judge",
         "gristmill-compiler", "gristmill-oracle"})
    if (!fs::exists(own.programs / child))
      return fail(errc::not_found,
        (own.programs / child).string() + ": missing; keep the programs in one folder");
  auto devices = devices_of(arguments.gpus, own.programs);
  if (!devices)
    return pass(devices);
  setup.agent.devices = std::move(*devices);
  setup.agent.oracle = arguments.oracle;
  if (auto known = check_choice("--toolchain", arguments.toolchain, {"auto", "nvrtc", "clang"});
      !known)
    return pass(known);
  const auto cores = std::max(1u, std::thread::hardware_concurrency());
  if (auto chosen = choose_compiler(setup, arguments, cores); !chosen)
    return pass(chosen);
  setup.agent.workers = 2 * static_cast<uint32_t>(setup.agent.devices.size());
  if (!arguments.workers.empty()) {
    auto workers = whole_number("--workers", arguments.workers, 0, workers_max);
    if (!workers)
      return pass(workers);
    setup.agent.workers = static_cast<uint32_t>(*workers);
  }
  if (setup.agent.devices.empty() && setup.agent.compile_slots == 0 && setup.agent.workers == 0)
    return fail(
      errc::invalid_input, "this node would do nothing: give --gpus, --compile-slots or --workers");
  own.python = find_program(arguments.python);
  if (const char* blobs = std::getenv("FLASHINFER_TRACE_DIR"))
    own.blob_roots.emplace_back(blobs);
  auto cache_max = cache_bytes(arguments.cache_max);
  if (!cache_max)
    return pass(cache_max);
  if (auto taken = take_state(setup, arguments, *cache_max); !taken)
    return pass(taken);

  setup.children.program_folder = own.programs.string();
  // In the order of child_profile: compiler, oracle, runner, judge, command.
  const auto runners = std::max<size_t>(1, setup.agent.devices.size());
  setup.children.parallel = {std::max(1u, setup.agent.compile_slots), std::min(2u, cores),
    static_cast<uint32_t>(runners), cores, 1};
  setup.children.waiting_max = 4096;
  return setup;
}

} // namespace gristmill
