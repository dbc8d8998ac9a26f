#include "gpu/children/confinement.hpp"
#include "gpu/children/task_watch.hpp"
#include "protocol/job.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace gristmill;

namespace {

using what = view_entry::what;

jail_command command_of(child_profile profile) {
  jail_command command;
  command.profile = profile;
  command.directory = "/run-folder/jobs/one";
  command.command = {"/opt/gristmill/bin/program"};
  return command;
}

jail_surroundings somewhere() {
  jail_surroundings around;
  around.programs = {"/opt/gristmill/bin/gristmill-jail", "/usr/bin/env"};
  around.homes = {"/home"};
  around.gpu_nodes = {"/dev/nvidia0", "/dev/nvidia-uvm", "/dev/nvidiactl"};
  return around;
}

/// Where the last entry for this path stands; the later one counts.
const view_entry* entry_for(const confinement& in, const std::string& path) {
  const auto found = std::find_if(
    in.view.rbegin(), in.view.rend(), [&](const auto& entry) { return entry.path == path; });
  return found == in.view.rend() ? nullptr : &*found;
}

bool shows(const confinement& in, const std::string& path) {
  return entry_for(in, path) != nullptr;
}

job run_job_on(const std::string& device, const std::string& input) {
  job of;
  of.kind = job_kind::run;
  of.nonce = "0123456789abcdef";
  of.run.device = device;
  of.run.instruction_limit = 1000;
  of.run.units = {run_unit{"unit", "unit.ptx", {}}};
  resolved_buffer x;
  x.name = "x";
  x.shape = {32};
  x.bytes = 128;
  run_workload work;
  work.uuid = "w";
  work.cases = {{"0", {"unit", {make_run_buffer(x, input, 128)}, {}}}};
  of.run.workloads = {work};
  return of;
}

} // namespace

TEST_CASE("a runner sees its inputs and nothing else of the run") {
  auto around = somewhere();
  around.job_text = to_json(run_job_on("mock:h200", "/run-folder/inputs/x.bin"));
  const auto found = confinement_of(command_of(child_profile::runner), around);
  REQUIRE_MESSAGE(found, found.error().what);
  const auto* input = entry_for(*found, "/run-folder/inputs/x.bin");
  REQUIRE(input);
  CHECK(input->kind == what::readable);
  CHECK(entry_for(*found, "/run-folder/jobs/one")->kind == what::writable);
  for (const auto& entry : found->view)
    if (entry.path.starts_with("/run-folder"))
      CHECK((&entry == input || entry.path == "/run-folder/jobs/one"));
  CHECK(found->own_network);
  CHECK(found->own_processes);
  CHECK_FALSE(shows(*found, "/dev/nvidia0"));
  CHECK_FALSE(shows(*found, "/"));
  CHECK_FALSE(shows(*found, "/etc"));
}

TEST_CASE("only a runner of a real device sees device nodes") {
  for (auto profile :
    {child_profile::compiler, child_profile::oracle, child_profile::runner, child_profile::judge}) {
    const auto name = to_string(profile);
    CAPTURE(name);
    auto command = command_of(profile);
    command.device = "cuda:0";
    const auto found = confinement_of(command, somewhere());
    REQUIRE(found);
    const bool runner = profile == child_profile::runner;
    CHECK(shows(*found, "/dev/nvidia0") == runner);
    CHECK(shows(*found, "/dev/nvidia-uvm") == runner);
    // The driver knows a process by its number outside.
    CHECK(found->own_processes == !runner);
  }
  auto around = somewhere();
  around.job_text = to_json(run_job_on("cuda:1", "/run-folder/inputs/x.bin"));
  auto by_job = confinement_of(command_of(child_profile::runner), around);
  REQUIRE_MESSAGE(by_job, by_job.error().what);
  CHECK(shows(*by_job, "/dev/nvidia0"));
  auto mock = command_of(child_profile::runner);
  mock.device = "mock:cuda";
  CHECK_FALSE(shows(*confinement_of(mock, somewhere()), "/dev/nvidia0"));
}

TEST_CASE("a judge sees outputs and references; names without a folder are its own files") {
  job of;
  of.kind = job_kind::judge;
  of.nonce = "0123456789abcdef";
  judge_workload work;
  work.uuid = "w";
  judge_call call;
  call.label = "0";
  call.outputs = {{{"y", dtype::float32, {32}, 128, "/run-folder/jobs/two/y.bin"},
    "/run-folder/references/y.bin"}};
  work.calls = {call};
  of.judge.workloads = {work};
  auto around = somewhere();
  around.job_text = to_json(of);
  const auto found = confinement_of(command_of(child_profile::judge), around);
  REQUIRE_MESSAGE(found, found.error().what);
  CHECK(shows(*found, "/run-folder/references/y.bin"));
  CHECK(shows(*found, "/run-folder/jobs/two/y.bin"));
  CHECK_FALSE(shows(*found, "/run-folder/jobs/two"));
}

TEST_CASE("a compiler outside /usr is shown with what lies beside it") {
  job of;
  of.kind = job_kind::compile;
  of.nonce = "0123456789abcdef";
  of.compile.source_file = "kernel.cu";
  of.compile.arch = "sm_90a";
  of.compile.compiler = "/opt/toolchain/bin/clang++";
  of.compile.compiler_version = "clang-19.1.7";
  auto around = somewhere();
  around.job_text = to_json(of);
  const auto found = confinement_of(command_of(child_profile::compiler), around);
  REQUIRE_MESSAGE(found, found.error().what);
  CHECK(shows(*found, "/opt/toolchain"));
  CHECK_FALSE(shows(*found, "/opt"));
  CHECK(found->directory_bytes_max > 0);
}

TEST_CASE("an oracle reads all but homes, and its Python there") {
  auto command = command_of(child_profile::oracle);
  job of;
  of.kind = job_kind::prepare;
  of.nonce = "0123456789abcdef";
  of.prepare.oracle = oracle_kind::torch;
  of.prepare.definition_text = "{}";
  of.prepare.python = "/home/somebody/venv/bin/python3";
  auto around = somewhere();
  around.job_text = to_json(of);
  const auto found = confinement_of(command, around);
  REQUIRE_MESSAGE(found, found.error().what);
  CHECK(entry_for(*found, "/")->kind == what::readable);
  CHECK(entry_for(*found, "/home")->kind == what::temporary);
  CHECK(entry_for(*found, "/home/somebody/venv")->kind == what::readable);
  CHECK_FALSE(shows(*found, "/home/somebody"));
  CHECK_FALSE(found->own_network);
}

TEST_CASE("a job that cannot be read confines nobody") {
  auto around = somewhere();
  around.job_text = "{";
  CHECK_FALSE(confinement_of(command_of(child_profile::runner), around));
  CHECK_FALSE(confinement_of(command_of(child_profile::command), somewhere()));
}

TEST_CASE("programs of the system need no place of their own") {
  const auto found = confinement_of(command_of(child_profile::runner), somewhere());
  REQUIRE(found);
  CHECK(shows(*found, "/opt/gristmill/bin/gristmill-jail"));
  CHECK_FALSE(shows(*found, "/usr/bin/env"));
}

TEST_CASE("bubblewrap is told the same view") {
  confinement wanted;
  wanted.directory = "/job";
  wanted.own_processes = false;
  wanted.view = {{what::readable, "/usr", {}, 0, false}, {what::device, "/dev/x", {}, 0, true},
    {what::link, "/bin", "usr/bin", 0, false}, {what::temporary, "/tmp", {}, 4096, false},
    {what::processes, "/proc", {}, 0, false}, {what::writable, "/job", {}, 0, false}};
  const auto words = bubblewrap_arguments(wanted);
  std::string line;
  for (const auto& word : words)
    line += word + " ";
  for (const char* part : {"--unshare-user ", "--unshare-net ", "--cap-drop ALL ",
         "--ro-bind /usr /usr ", "--dev-bind-try /dev/x /dev/x ", "--symlink usr/bin /bin ",
         "--size 4096 --tmpfs /tmp ", "--bind /proc /proc ", "--ro-bind-try /proc/sys /proc/sys ",
         "--ro-bind-try /proc/irq /proc/irq ", "--bind /job /job ", "--chdir /job "}) {
    CAPTURE(part);
    CHECK(line.find(part) != std::string::npos);
  }
  CHECK(line.find("--unshare-pid") == std::string::npos);
  wanted.own_processes = true;
  const auto others = bubblewrap_arguments(wanted);
  CHECK(std::count(others.begin(), others.end(), "--unshare-pid") == 1);
  CHECK(std::count(others.begin(), others.end(), "--proc") == 1);
}

TEST_CASE("the room that files take is counted without their holes, up to a limit") {
  auto folder = (std::filesystem::temp_directory_path() / "gristmill-test-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()));
  CHECK(bytes_below(folder + "/none", 100) == 0);
  std::ofstream(folder + "/a") << std::string(100'000, 'x') << std::flush;
  std::ofstream(folder + "/hole").close();
  std::filesystem::resize_file(folder + "/hole", uint64_t{1} << 30);
  sync();
  const auto found = bytes_below(folder, uint64_t{1} << 20);
  CHECK(found >= 100'000);
  CHECK(found < 200'000);
  CHECK(bytes_below(folder, 50'000) > 50'000);
  std::filesystem::remove_all(folder);
}
