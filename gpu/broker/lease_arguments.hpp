#pragma once

#include "messages/lease.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <span>
#include <string>
#include <vector>

namespace gristmill {

/// What `gristmill lease` was asked for.
struct lease_arguments {
  /// Empty: the broker takes the login name.
  std::string as;
  lease_class what = lease_class::timing;
  /// 0: the cap of the class.
  std::chrono::nanoseconds cap{0};
  /// How long to wait for a GPU; 0: as long as the broker allows. `--wait 0s` is 1 ns: take what is
  /// free, or give up.
  std::chrono::nanoseconds wait{0};
  std::string need;
  std::chrono::nanoseconds estimate{0};
  /// From SIGTERM to SIGKILL.
  std::chrono::nanoseconds grace = std::chrono::seconds{3};
  std::string socket;
  bool quiet = false;
  bool json = false;
  bool help = false;
  std::vector<std::string> command;
};

/// Reads the arguments after `lease`: flags as `--flag value` or `--flag=value`, then `--` and the
/// command. Errors: `invalid_input`, naming the flag and the nearest known one.
result<lease_arguments> parse_lease_arguments(std::span<const std::string> arguments);

/// What `gristmill lease --help` prints.
std::string lease_help();

} // namespace gristmill
