#include "gpu/children/confinement.hpp"

#include "protocol/job.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

using what = view_entry::what;

constexpr uint64_t mib = uint64_t{1} << 20;

void add(confinement& to, what kind, std::string path, bool if_there = false) {
  to.view.push_back({kind, std::move(path), {}, 0, if_there});
}

/// The folder that holds all of a toolkit or an interpreter whose program lies in its bin/ or lib/.
std::string prefix_of(const fs::path& program) {
  return program.parent_path().parent_path().lexically_normal().string();
}

bool lies_in(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder.ends_with('/') ? folder : folder + "/");
}

/// Programs, libraries and headers of the system, and what the loader and `update-alternatives`
/// keep in /etc. No settings, no keys, no names of people.
void add_system(confinement& to) {
  add(to, what::readable, "/usr");
  for (const char* folder : {"/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"}) {
    std::error_code error;
    const auto target = fs::read_symlink(folder, error);
    if (error)
      add(to, what::readable, folder, true);
    else
      to.view.push_back({what::link, folder, target.string(), 0, true});
  }
  for (const char* path :
    {"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives"})
    add(to, what::readable, path, true);
}

void add_surface(confinement& to, uint64_t temporary_bytes) {
  to.view.push_back({what::processes, "/proc", {}, 0, false});
  to.view.push_back({what::temporary, "/dev", {}, mib, false});
  for (const char* node : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"})
    add(to, what::device, node);
  for (const auto& [path, target] :
    {std::pair{"/dev/fd", "/proc/self/fd"}, {"/dev/stdin", "/proc/self/fd/0"},
      {"/dev/stdout", "/proc/self/fd/1"}, {"/dev/stderr", "/proc/self/fd/2"}})
    to.view.push_back({what::link, path, target, 0, false});
  to.view.push_back({what::temporary, "/dev/shm", {}, temporary_bytes, false});
  to.view.push_back({what::temporary, "/tmp", {}, temporary_bytes, false});
}

/// How many processors there are and what they can do.
void add_processors(confinement& to) {
  add(to, what::readable, "/sys/devices/system", true);
}

void add_input(confinement& to, std::set<std::string>& known, const std::string& file) {
  // Names without a folder lie in the child's own.
  if (file.starts_with('/') && known.insert(file).second)
    add(to, what::readable, file, true);
}

void add_buffers(confinement& to, std::set<std::string>& known, const run_pass& pass) {
  for (const auto& buffer : pass.buffers)
    if (buffer.file_bytes != 0)
      add_input(to, known, buffer.file);
}

void add_run(confinement& to, std::set<std::string>& known, const run_job& of) {
  for (const auto& unit : of.units)
    add_input(to, known, unit.file);
  for (const auto& work : of.workloads) {
    for (const auto& one : work.cases)
      add_buffers(to, known, one.pass);
    if (work.has_clock)
      add_buffers(to, known, work.clock);
  }
  for (const auto& other : of.against)
    add_run(to, known, other);
}

void add_judge(confinement& to, const judge_job& of) {
  std::set<std::string> known;
  for (const auto& work : of.workloads)
    for (const auto& call : work.calls)
      for (const auto& output : call.outputs) {
        add_input(to, known, output.solution.file);
        add_input(to, known, output.reference_file);
      }
}

/// A compiler or interpreter outside /usr, with what lies beside it.
void add_toolchain(confinement& to, const std::string& program) {
  if (!program.starts_with('/'))
    return;
  std::error_code error;
  const auto real = fs::canonical(program, error);
  std::set<std::string> folders{prefix_of(program)};
  if (!error) {
    folders.insert(prefix_of(real));
    // A toolkit keeps its headers beside lib64/, or two folders up from targets/*/lib.
    for (const auto* beside : {"../include", "../../include"})
      if (const auto include = real.parent_path() / beside; fs::exists(include, error))
        folders.insert(fs::canonical(include, error).string());
  }
  for (const auto& folder : folders)
    if (folder != "/" && !folder.empty() && !lies_in(folder, "/usr"))
      add(to, what::readable, folder, true);
}

void add_written_folders(confinement& to, const prepare_job& of) {
  std::set<std::string> folders;
  auto take = [&](const std::string& file) {
    if (file.starts_with('/'))
      folders.insert(fs::path(file).parent_path().string());
  };
  std::set<std::string> blobs;
  for (const auto& work : of.workloads) {
    for (const auto* tensors : {&work.inputs, &work.patterns})
      for (const auto& tensor : *tensors) {
        take(tensor.file);
        add_input(to, blobs, tensor.blob_file);
      }
    for (const auto& tensor : work.references)
      take(tensor.file);
    for (const auto& call : work.calls)
      for (const auto& tensor : call.tensors)
        take(tensor.file);
  }
  for (const auto& folder : folders)
    add(to, what::writable, folder);
}

/// The problem's Python is the person's own choice, and it may use any package of the machine: it
/// reads everything but homes, and writes only where its answers go.
void confine_oracle(confinement& to, const jail_surroundings& around, const job& of) {
  add(to, what::readable, "/");
  add_surface(to, 4096 * mib);
  for (const auto& home : around.homes)
    to.view.push_back({what::temporary, home, {}, mib, true});
  if (of.prepare.python.empty())
    return;
  std::error_code error;
  const auto real = fs::canonical(of.prepare.python, error);
  for (const auto& home : around.homes)
    for (const auto& prefix : {prefix_of(of.prepare.python), prefix_of(real)})
      if (!prefix.empty() && lies_in(prefix, home))
        add(to, what::readable, prefix, true);
}

} // namespace

bool is_cuda(std::string_view device) {
  return device == "cuda" || device.starts_with("cuda:");
}

result<confinement> confinement_of(const jail_command& command, const jail_surroundings& around) {
  job what_to_do;
  const bool has_job = !around.job_text.empty();
  if (has_job) {
    auto read = job_from_json(around.job_text);
    if (!read)
      return pass(read);
    what_to_do = std::move(*read);
  }
  confinement wanted;
  wanted.directory = command.directory;
  const auto limits = limits_of(command.profile);
  wanted.tasks_max = limits.tasks;
  wanted.own_network = limits.own_network;
  const bool oracle = command.profile == child_profile::oracle;
  if (oracle) {
    confine_oracle(wanted, around, what_to_do);
  } else {
    add_system(wanted);
    add_surface(wanted, 1024 * mib);
    add_processors(wanted);
  }
  for (const auto& path : around.readable)
    add(wanted, what::readable, path, true);
  for (const auto& program : around.programs)
    if (!lies_in(program, "/usr"))
      add(wanted, what::readable, program);
  std::set<std::string> known;
  switch (command.profile) {
  case child_profile::compiler:
    wanted.directory_bytes_max = 1024 * mib;
    if (has_job)
      add_toolchain(wanted, what_to_do.compile.compiler);
    break;
  case child_profile::judge:
    wanted.directory_bytes_max = 1024 * mib;
    // A tool of an agent runs its candidate on the mock as a judge does: beside all leases.
    if (has_job && what_to_do.kind == job_kind::run)
      add_run(wanted, known, what_to_do.run);
    else if (has_job)
      add_judge(wanted, what_to_do.judge);
    break;
  case child_profile::runner: {
    if (has_job)
      add_run(wanted, known, what_to_do.run);
    // A probe has no job, but its device; a job names its device itself.
    if (!is_cuda(command.device) && !(has_job && is_cuda(what_to_do.run.device)))
      break;
    wanted.own_processes = false;
    for (const auto& node : around.gpu_nodes)
      add(wanted, what::device, node, true);
    // The driver looks devices up there.
    add(wanted, what::readable, "/sys", true);
    break;
  }
  case child_profile::oracle:
    if (has_job)
      add_written_folders(wanted, what_to_do.prepare);
    break;
  case child_profile::command:
    return fail(errc::invalid_input, "gristmill-jail: an agent is not confined");
  }
  if (!command.directory.empty())
    add(wanted, what::writable, command.directory);
  return wanted;
}

std::vector<std::string> bubblewrap_arguments(const confinement& wanted) {
  std::vector<std::string> all{
    "--unshare-user", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--cap-drop", "ALL"};
  if (wanted.own_processes)
    all.emplace_back("--unshare-pid");
  if (wanted.own_network)
    all.emplace_back("--unshare-net");
  for (const auto& entry : wanted.view) {
    const std::string maybe = entry.if_there ? "-try" : "";
    switch (entry.kind) {
    case what::readable:
      all.insert(all.end(), {"--ro-bind" + maybe, entry.path, entry.path});
      break;
    case what::writable:
      all.insert(all.end(), {"--bind" + maybe, entry.path, entry.path});
      break;
    case what::device:
      all.insert(all.end(), {"--dev-bind" + maybe, entry.path, entry.path});
      break;
    case what::link:
      all.insert(all.end(), {"--symlink", entry.target, entry.path});
      break;
    case what::temporary:
      all.insert(all.end(), {"--size", std::to_string(entry.bytes), "--tmpfs", entry.path});
      break;
    case what::processes:
      // NVIDIA's driver, for which the processes are not our own, names its threads by files there.
      if (wanted.own_processes)
        all.insert(all.end(), {"--proc", entry.path});
      else
        all.insert(all.end(), {"--bind", entry.path, entry.path});
      // bubblewrap closes some of these, and in a /proc of its own only.
      for (const char* part : shielded_parts_of_proc)
        all.insert(all.end(), {"--ro-bind-try", entry.path + part, entry.path + part});
      break;
    }
  }
  if (!wanted.directory.empty())
    all.insert(all.end(), {"--chdir", wanted.directory});
  return all;
}

} // namespace gristmill
