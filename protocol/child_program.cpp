#include "protocol/child_program.hpp"

#include "protocol/json_document.hpp"

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace gristmill {

namespace {

int complain(std::string_view program, std::string_view what, int status) {
  fmt::print(stderr, "{}: {}\n", program, what);
  return status;
}

} // namespace

std::string child_context::path(const std::string& file) const {
  return (std::filesystem::path(folder) / file).string();
}

int child_main(int argc, char** argv, std::string_view program, job_kind kind,
  result<void> (*work)(child_context&)) {
  if (argc != 2)
    return complain(program, "call it with a job directory; gristmill does", 2);
  try {
    const auto folder = std::filesystem::absolute(argv[1]).string();
    auto text = read_text_file(folder + "/job.json", job_limits::text_bytes);
    if (!text)
      return complain(program, text.error().what, 2);
    auto what = job_from_json(*text);
    if (!what)
      return complain(program, what.error().what, 2);
    if (what->kind != kind)
      return complain(program,
        fmt::format("the job is of kind {}, not {}", to_string(what->kind), to_string(kind)), 2);
    auto channel = child_channel::open(what->nonce);
    if (!channel)
      return complain(program, channel.error().what, 2);
    const char* network = std::getenv("GRISTMILL_NETWORK");
    const char* protections = std::getenv("GRISTMILL_PROTECTIONS");
    (*channel)->hello(
      program, network ? network : "shared", protections ? protections : "none; started by hand");
    child_context context{folder, std::move(*what), **channel};
    if (auto worked = work(context); !worked)
      return complain(program, worked.error().what, 1);
    (*channel)->done();
    return 0;
  } catch (const std::exception& error) {
    return complain(program, error.what(), 1);
  }
}

result<std::string> own_program() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    return fail(errc::io_failed, "/proc/self/exe: " + error.message());
  return self.string();
}

result<std::vector<std::string>> helper_command(
  std::string_view profile, std::vector<std::string> command) {
  auto self = own_program();
  if (!self)
    return pass(self);
  const auto folder = std::filesystem::path(*self).parent_path();
  std::vector<std::string> all{(folder / "gristmill-jail").string(), "--nested", "--parent",
    std::to_string(getpid()), std::string(profile), "--"};
  for (auto& argument : command)
    all.push_back(std::move(argument));
  return all;
}

} // namespace gristmill
