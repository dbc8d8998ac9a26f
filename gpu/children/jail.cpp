#include "gpu/children/jail.hpp"

#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <system_error>

namespace gristmill {

namespace {

constexpr uint64_t gib = uint64_t{1} << 30;
result<uint64_t> number(std::string_view option, const std::string& text) {
  uint64_t value = 0;
  const auto* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || text.empty() || value > INT32_MAX)
    return fail(errc::invalid_input, fmt::format("gristmill-jail: {} {}: no number", option, text));
  return value;
}

} // namespace

jail_limits limits_of(child_profile profile) {
  // Outside a namespace a limit on processes would count all of the user's, and fail by what else
  // the person runs. CPU time is a backstop behind the parent's deadline.
  switch (profile) {
  case child_profile::compiler:
    return {4 * gib, gib / 4, 256, 600, true, 512};
  case child_profile::oracle:
    return {64 * gib, 16 * gib, 1024, 7200, false, 8192};
  case child_profile::runner:
    return {256 * gib, 16 * gib, 1024, 7200, true, 2048};
  case child_profile::judge:
    return {64 * gib, gib / 4, 1024, 7200, true, 2048};
  case child_profile::command:
    // Runtimes of agents reserve address space as they like; the parent's deadline is the limit.
    return {0, gib / 16, 4096, 0, false, 0};
  }
  return {};
}

result<jail_command> parse_jail_command(std::span<const std::string> arguments) {
  jail_command command;
  size_t at = 0;
  auto operand = [&](std::string_view option) -> result<std::string> {
    if (at + 1 >= arguments.size())
      return fail(errc::invalid_input, fmt::format("gristmill-jail: {} needs a value", option));
    return arguments[++at];
  };
  for (; at < arguments.size() && arguments[at].starts_with("--"); ++at) {
    const auto& option = arguments[at];
    if (option == "--nested") {
      command.nested = true;
      continue;
    }
    if (option != "--directory" && option != "--parent" && option != "--cpu-seconds"
      && option != "--device" && option != "--inside")
      return fail(errc::invalid_input,
        fmt::format("gristmill-jail: unknown option {}; known: --nested, --inside, --directory, "
                    "--device, --parent, --cpu-seconds",
          option));
    auto value = operand(option);
    if (!value)
      return pass(value);
    if (option == "--directory" || option == "--device") {
      (option == "--directory" ? command.directory : command.device) = *value;
      continue;
    }
    auto read = number(option, *value);
    if (!read)
      return pass(read);
    if (option == "--parent")
      command.parent = static_cast<pid_t>(*read);
    else if (option == "--inside")
      command.inside = static_cast<int>(*read);
    else
      command.cpu_seconds = *read;
  }
  if (at >= arguments.size())
    return fail(errc::invalid_input, "gristmill-jail: no profile");
  const auto& name = arguments[at++];
  bool known = false;
  for (auto profile : {child_profile::compiler, child_profile::oracle, child_profile::runner,
         child_profile::judge, child_profile::command})
    if (to_string(profile) == name) {
      command.profile = profile;
      known = true;
    }
  if (!known)
    return fail(errc::invalid_input,
      fmt::format(
        "gristmill-jail: unknown profile {}; known: compiler, oracle, runner, judge, command",
        name));
  if (at >= arguments.size() || arguments[at++] != "--")
    return fail(errc::invalid_input, "gristmill-jail: -- must follow the profile");
  command.command.assign(arguments.begin() + static_cast<ptrdiff_t>(at), arguments.end());
  if (command.command.empty())
    return fail(errc::invalid_input, "gristmill-jail: no command");
  return command;
}

std::vector<std::string> jail_arguments(const jail_command& command) {
  std::vector<std::string> all;
  if (command.nested)
    all.emplace_back("--nested");
  if (command.parent != 0)
    all.insert(all.end(), {"--parent", std::to_string(command.parent)});
  if (!command.directory.empty())
    all.insert(all.end(), {"--directory", command.directory});
  if (!command.device.empty())
    all.insert(all.end(), {"--device", command.device});
  if (command.inside != 0)
    all.insert(all.end(), {"--inside", std::to_string(command.inside)});
  if (command.cpu_seconds != 0)
    all.insert(all.end(), {"--cpu-seconds", std::to_string(command.cpu_seconds)});
  all.insert(all.end(), {to_string(command.profile), "--"});
  all.insert(all.end(), command.command.begin(), command.command.end());
  return all;
}

} // namespace gristmill
