#include "gpu/broker/lease_arguments.hpp"

#include "gpu/broker/wire.hpp"
#include "protocol/duration_text.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

const std::vector<std::string>& flags() {
  static const std::vector<std::string> all = {"--class", "--as", "--cap", "--wait", "--need",
    "--estimate", "--grace", "--socket", "--quiet", "--json", "--help"};
  return all;
}

result<nanoseconds> duration(const std::string& flag, const std::string& text, bool zero_allowed) {
  auto ns = parse_duration_ns(text);
  if (!ns || (*ns == 0 && !zero_allowed) || *ns > uint64_t{366} * 24 * 3600 * 1'000'000'000)
    return fail(errc::invalid_input,
      fmt::format("{} {}: a duration such as 500ms, 60s or 10m is wanted, at most 366d", flag,
        excerpt(text)));
  return nanoseconds{static_cast<int64_t>(*ns)};
}

result<void> set(lease_arguments& out, const std::string& flag, const std::string& value) {
  auto time = [&](nanoseconds& target, bool zero_allowed = false) -> result<void> {
    auto read = duration(flag, value, zero_allowed);
    if (!read)
      return pass(read);
    target = *read;
    return {};
  };
  if (flag == "--class") {
    auto what = parse_lease_class(value);
    if (!what)
      return fail(what.error().code, "--class: " + what.error().what);
    out.what = *what;
  } else if (flag == "--as") {
    if (auto flow = parse_user_project(value); !flow)
      return fail(flow.error().code, "--as: " + flow.error().what);
    out.as = value;
  } else if (flag == "--cap") {
    return time(out.cap);
  } else if (flag == "--wait") {
    if (auto read = time(out.wait, true); !read)
      return read;
    if (out.wait == nanoseconds{0})
      out.wait = nanoseconds{1};
  } else if (flag == "--need") {
    out.need = value;
  } else if (flag == "--estimate") {
    return time(out.estimate);
  } else if (flag == "--grace") {
    if (auto read = time(out.grace); !read)
      return read;
    // The broker does it by itself if a guard takes much longer.
    if (out.grace > std::chrono::seconds{10})
      return fail(errc::invalid_input, fmt::format("--grace {}: at most 10s", excerpt(value)));
  } else if (flag == "--socket") {
    if (value.empty())
      return fail(errc::invalid_input, "--socket: the path is empty");
    out.socket = value;
  }
  return {};
}

} // namespace

result<lease_arguments> parse_lease_arguments(std::span<const std::string> arguments) {
  lease_arguments out;
  size_t at = 0;
  for (; at < arguments.size() && arguments[at] != "--"; ++at) {
    const auto& word = arguments[at];
    if (!word.starts_with("--"))
      return fail(errc::invalid_input,
        fmt::format("unexpected {}: the command stands behind --, as in `gristmill lease -- {}`",
          excerpt(word), excerpt(word)));
    auto equals = word.find('=');
    const auto flag = word.substr(0, equals);
    if (flag == "--quiet" || flag == "--json" || flag == "--help") {
      if (equals != std::string::npos)
        return fail(errc::invalid_input, fmt::format("{} takes no value", flag));
      (flag == "--quiet" ? out.quiet : flag == "--json" ? out.json : out.help) = true;
      continue;
    }
    if (std::find(flags().begin(), flags().end(), flag) == flags().end())
      return fail(errc::invalid_input,
        fmt::format("unknown flag {}{}", excerpt(flag), suggestion(flag, flags())));
    std::string value;
    if (equals != std::string::npos)
      value = word.substr(equals + 1);
    else if (at + 1 < arguments.size() && arguments[at + 1] != "--")
      value = arguments[++at];
    else
      return fail(errc::invalid_input, fmt::format("{} needs a value", flag));
    if (auto fine = set(out, flag, value); !fine)
      return pass(fine);
  }
  if (out.help)
    return out;
  if (at == arguments.size() || at + 1 == arguments.size())
    return fail(errc::invalid_input,
      "no command: it stands behind --, as in `gristmill lease -- python3 bench.py`");
  out.command.assign(arguments.begin() + static_cast<ptrdiff_t>(at) + 1, arguments.end());
  return out;
}

std::string lease_help() {
  return R"(Waits for a turn on a GPU of `gristmill broker`, runs a command on it, and gives the GPU back.
Usage: gristmill lease [OPTIONS] -- COMMAND [ARGUMENT...]

  --class CLASS         correctness, timing (default), profile, reference or official
  --as USER/PROJECT     whose turn it is; default: the login name
  --cap TIME            longest time on the GPU, e.g. 60s; default and maximum: that of the class
  --wait TIME           give up waiting after this long (exit code 75); 0s takes only a free GPU
  --need TEXT           what the GPU must have, e.g. h200 or memory>=80GiB
  --estimate TIME       how long the command will take; the broker learns it otherwise
  --grace TIME          from SIGTERM to SIGKILL at the cap; default 3s
  --socket PATH         where the broker listens
  --quiet               say nothing but errors
  --json                tell what it cost as one line of JSON on stderr
  --help                this text

The command sees CUDA_VISIBLE_DEVICES, GRISTMILL_LEASE_GPU, GRISTMILL_LEASE_TOKEN and GRISTMILL_LEASE_ID.
Exit code: that of the command; 128 + N after signal N; 124 ended at the cap; 75 no turn in time;
69 no broker; 125 taken back by the broker; 2 usage; 126 or 127 the command could not be started.
)";
}

} // namespace gristmill
