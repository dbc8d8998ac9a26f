#include "cli/commands.hpp"

#include <cstdio>
#include <filesystem>

namespace gristmill {

exit_code complain(const failure& what) {
  std::fprintf(stderr, "gristmill: %s\n", what.what.c_str());
  switch (what.code) { // no default: the compiler reports a missing case
  case errc::invalid_input:
  case errc::not_found:
  case errc::unsupported:
  case errc::refused:
    return exit_code::usage;
  case errc::io_failed:
  case errc::queue_full:
  case errc::lease_expired:
  case errc::child_failed:
  case errc::timed_out:
  case errc::shutting_down:
  case errc::node_lost:
  case errc::device_fault:
    return exit_code::failure;
  case errc::budget_exhausted:
    return exit_code::budget_gone;
  case errc::provider_refused:
    return exit_code::provider_refused;
  }
  return exit_code::failure;
}

result<std::string> program_folder() {
  std::error_code error;
  auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    return fail(errc::not_found, "/proc/self/exe: " + error.message());
  return self.parent_path().string();
}

} // namespace gristmill
