#include "cli/verb.hpp"

#include "cli/device_setup.hpp"
#include "cli/find_program.hpp"
#include "cli/trial_child.hpp"
#include "gpu/mock/profile.hpp"
#include "gpu/toolchain/device_compiler.hpp"
#include "llm/dialects/dialect.hpp"
#include "protocol/device_description.hpp"
#include "protocol/model_file.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

namespace gristmill {

namespace {

struct check {
  std::string name;
  bool fine = false;
  /// A run cannot do without it.
  bool needed = false;
  std::string found;
  std::string cure;
};

const char* environment(const char* name) {
  return std::getenv(name);
}

/// A run needs one of the two compilers; `auto` says which one it takes.
std::vector<check> find_compilers() {
  const auto folder = program_folder();
  const std::string programs = folder ? *folder : "";
  const auto clang = find_device_compiler("clang", programs, environment);
  const auto nvrtc = find_device_compiler("nvrtc", programs, environment);
  const auto chosen = find_device_compiler("auto", programs, environment);
  check needed{"device compiler", chosen.has_value(), true, "", "apt install clang-19"};
  needed.found = chosen ? "--toolchain auto is " + chosen->version : "there is none";
  check of_clang{"  clang", clang.has_value(), false, "", "apt install clang-19"};
  of_clang.found = clang ? clang->version + " at " + clang->path : clang.error().what;
  check of_nvrtc{"  NVRTC", nvrtc.has_value(), false, "",
    "install a CUDA toolkit and set GRISTMILL_CUDA to its folder; clang does without"};
  of_nvrtc.found = nvrtc ? nvrtc->version + " at " + nvrtc->path : nvrtc.error().what;
  if (nvrtc)
    if (const auto command = nvrtc_at("", nvrtc->path, nvrtc->version); command)
      of_nvrtc.found +=
        command->linker.empty() ? ", without nvJitLink: no resource lines" : ", with nvJitLink";
  return {needed, of_clang, of_nvrtc};
}

check find_children() {
  check out{"programs of the children", true, true, "",
    "build the target `all`, or keep the programs together"};
  auto folder = program_folder();
  if (!folder) {
    out.fine = false;
    out.found = folder.error().what;
    return out;
  }
  out.found = "all beside this program";
  for (const char* name : {"gristmill-jail", "gristmill-runner", "gristmill-judge",
         "gristmill-compiler", "gristmill-oracle", "gristmill-nvrtc"})
    if (!std::filesystem::exists(std::filesystem::path(*folder) / name)) {
      out.fine = false;
      out.found = std::string("missing: ") + name;
    }
  return out;
}

/// Looks for the package's folder; starting torch takes seconds.
check find_torch(const std::string& python) {
  check out{"torch oracle", false, false, "", "apt install python3-torch, or --python PATH"};
  if (find_program(python).empty()) {
    out.found = python + ": no such program; built-in problems do without";
    return out;
  }
  for (const char* folder : {"/usr/lib/python3/dist-packages/torch"})
    if (std::filesystem::exists(folder)) {
      out.fine = true;
      out.found = python + " with Debian's torch";
      return out;
    }
  out.found = python + ", torch not seen where Debian puts it; built-in problems do without";
  return out;
}

check find_devices() {
  check out{"mock devices", true, true, "", ""};
  for (const auto& name : known_profiles())
    out.found += (out.found.empty() ? "" : ", ") + ("mock:" + name);
  return out;
}

/// What a jail can set up here. A run goes on with less, and says so.
check find_sandbox() {
  check out{"sandbox", false, false, "",
    "apt install bubblewrap, or let users make namespaces (docs/sandbox.md)"};
  auto told = protections_of_children();
  if (!told) {
    out.found = told.error().what;
    return out;
  }
  out.fine = told->starts_with("user,mount");
  out.found = *told;
  return out;
}

std::string library_list(const device_description& device) {
  std::string list;
  for (const auto& library : device.libraries)
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", library.name,
      library.found ? (library.detail.empty() ? "found" : library.detail)
                    : "missing (" + library.detail + ")");
  return list.empty() ? "not told" : list;
}

bool has_all_libraries(const device_description& device) {
  return std::all_of(device.libraries.begin(), device.libraries.end(),
    [](const auto& library) { return library.found; });
}

/// Asks the runner, as a run does.
std::vector<check> find_gpus() {
  check none{"NVIDIA GPU", false, false, "none; not needed, mock devices model one", ""};
  std::error_code error;
  const bool nodes =
    std::filesystem::exists("/dev/nvidiactl", error) || std::filesystem::exists("/dev/dxg", error);
  auto programs = program_folder();
  if (!programs) {
    none.found = programs.error().what;
    return {none};
  }
  auto told = describe_real_devices(*programs);
  if (!told) {
    if (nodes) {
      none.found = "there is a device node, but: " + told.error().what;
      none.cure = "install the driver that fits it; mock devices do without";
    }
    return {none};
  }
  if (told->empty())
    return {none};
  std::vector<check> all;
  for (const auto& device : *told) {
    check one{device.device, true, false, "", ""};
    one.found = fmt::format("{}, {}, {} SMs, {:.0f} GiB, driver {} (CUDA {}.{}){}", device.title,
      device.arch, device.sm_count, static_cast<double>(device.memory_bytes) / 1073741824.0,
      device.driver.empty() ? "of unknown version" : device.driver, device.cuda_version / 1000,
      device.cuda_version % 1000 / 10, device.uuid.empty() ? "" : ", " + device.uuid);
    all.push_back(one);
    check memory{"  host memory", true, false, "", ""};
    memory.found = device.pageable_memory_access
      ? "PAGEABLE_MEMORY_ACCESS is on: kernels can read all memory of the runner, which holds no "
        "secret"
      : "PAGEABLE_MEMORY_ACCESS is off: kernels reach only what is given to them";
    all.push_back(memory);
    all.push_back({"  libraries", has_all_libraries(device), false, library_list(device),
      "install a CUDA toolkit of the driver's version; without CUPTI times come from events"});
  }
  return all;
}

check find_room() {
  check out{"room for runs", false, true, "", "free some disk space, or --out on another disk"};
  std::error_code error;
  auto space = std::filesystem::space(".", error);
  constexpr uint64_t wanted = uint64_t{2} << 30;
  out.fine = !error && space.available >= wanted;
  out.found = error
    ? error.message()
    : fmt::format("{:.1f} GiB free here", static_cast<double>(space.available) / 1073741824.0);
  return out;
}

/// Whether keys are set, never what they are: those of the usual providers, and those that the
/// settings of models in the environment name.
check find_keys() {
  std::vector<std::string> names{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"};
  auto add = [&](const std::string& variable) {
    if (!variable.empty() && std::find(names.begin(), names.end(), variable) == names.end())
      names.push_back(variable);
  };
  check out{"keys of models", true, false, "", ""};
  if (const char* named = environment("GRISTMILL_MODEL_KEY_ENV"))
    add(named);
  if (const char* file = environment("GRISTMILL_MODELS")) {
    if (auto models = load_model_file(file, known_dialects()))
      for (const auto& variable : key_variables(*models))
        add(variable);
    else {
      out.fine = false;
      out.found = "GRISTMILL_MODELS: " + models.error().what + "; ";
      out.cure = "mend the file, or leave the variable unset";
    }
  }
  std::string list;
  for (const auto& variable : names) {
    const char* value = environment(variable.c_str());
    list += (list.empty() ? "" : ", ") + variable
      + (value != nullptr && *value != 0 ? " set" : " not set");
  }
  out.found += list;
  return out;
}

check find_cores() {
  auto cores = std::thread::hardware_concurrency();
  return {"processors", cores > 0, false, fmt::format("{}", cores), ""};
}

} // namespace

exit_code doctor_command(const doctor_arguments& arguments) {
  std::vector<check> checks = find_compilers();
  for (auto& more : {find_children(), find_sandbox(), find_torch(arguments.python), find_devices()})
    checks.push_back(more);
  for (auto& more : find_gpus())
    checks.push_back(more);
  for (auto& more : {find_room(), find_cores(), find_keys()})
    checks.push_back(more);
  bool ready = true;
  auto out = nlohmann::ordered_json::array();
  std::string text;
  for (const auto& c : checks) {
    ready = ready && (c.fine || !c.needed);
    out.push_back({{"check", c.name}, {"fine", c.fine}, {"needed", c.needed}, {"found", c.found},
      {"cure", c.fine ? "" : c.cure}});
    text += fmt::format("{:<4} {:<26} {}\n",
      c.fine       ? "ok"
        : c.needed ? "MISS"
                   : "-",
      c.name, c.found);
    if (!c.fine && !c.cure.empty())
      text += fmt::format("     cure: {}\n", c.cure);
  }
  if (arguments.json)
    text = nlohmann::ordered_json{{"ready", ready}, {"checks", out}}.dump(2) + "\n";
  else
    text += ready ? "ready: `gristmill run` works here\n" : "not ready\n";
  std::fputs(text.c_str(), stdout);
  return ready ? exit_code::ok : exit_code::usage;
}

void add_doctor_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand("doctor", "what this machine has");
  auto arguments = std::make_shared<doctor_arguments>();
  app->add_flag("--json", arguments->json, "as JSON");
  app->add_option("--python", arguments->python, "interpreter of the torch oracle");
  all.push_back({app, [arguments] { return doctor_command(*arguments); }});
}

} // namespace gristmill
