#include "gpu/children/surroundings.hpp"

#include "gpu/children/job_directory.hpp"
#include "protocol/child_program.hpp"
#include "protocol/job.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

void add_nodes(std::vector<std::string>& to, const fs::path& folder, std::string_view start) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    const auto name = at->path().filename().string();
    std::error_code none;
    if (!name.starts_with(start))
      continue;
    if (fs::is_directory(at->path(), none))
      add_nodes(to, at->path(), "");
    else
      to.push_back(at->path().string());
  }
}

std::vector<std::string> homes() {
  std::vector<std::string> all;
  auto take = [&](const char* path) {
    std::error_code error;
    if (path == nullptr || *path != '/' || !fs::is_directory(path, error))
      return;
    const auto plain = fs::path(path).lexically_normal().string();
    // A system folder as a home, as services have it, hides nothing of a person.
    for (const char* not_one : {"/", "/usr", "/tmp", "/bin", "/nonexistent", "/var", "/opt"})
      if (plain == not_one)
        return;
    if (std::find(all.begin(), all.end(), plain) == all.end())
      all.push_back(plain);
  };
  take("/home");
  take("/root");
  take(std::getenv("HOME"));
  return all;
}

} // namespace

result<jail_surroundings> read_surroundings(const jail_command& command) {
  jail_surroundings around;
  const fs::path self = own_program().value_or("");
  const auto folder = self.parent_path();
  std::error_code error;
  // Programs by their names and not their folder: beside them in a build lies much else.
  for (const auto& path :
    {self, folder / "gristmill-nvrtc", folder / "gristmill-runner", fs::path(command.command[0])})
    if (path.is_absolute() && fs::is_regular_file(path, error)
      && std::find(around.programs.begin(), around.programs.end(), path) == around.programs.end())
      around.programs.push_back(path.string());
  // Where an unpacked bundle has its libraries; of an installation they lie in /usr.
  const auto libraries = folder.parent_path() / "lib";
  if (folder.filename() == "bin" && fs::is_directory(libraries, error))
    around.programs.push_back(libraries.string());
  if (!command.directory.empty()) {
    auto text = read_whole_file(command.directory + "/job.json", job_limits::text_bytes);
    if (text)
      around.job_text = std::move(*text);
    else if (text.error().code != errc::not_found)
      return pass(text);
  }
  around.homes = homes();
  if (const char* more = std::getenv("GRISTMILL_SANDBOX_READ")) {
    std::istringstream list(more);
    for (std::string path; std::getline(list, path, ':');)
      if (path.starts_with('/'))
        around.readable.push_back(path);
  }
  add_nodes(around.gpu_nodes, "/dev", "nvidia");
  std::sort(around.gpu_nodes.begin(), around.gpu_nodes.end());
  return around;
}

} // namespace gristmill
