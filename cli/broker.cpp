#include "cli/verb.hpp"

#include "gpu/broker/broker_loop.hpp"
#include "gpu/broker/client.hpp"
#include "gpu/broker/guard.hpp"
#include "gpu/broker/process_tree.hpp"
#include "gpu/broker/short_child.hpp"
#include "gpu/mock/profile.hpp"
#include "protocol/duration_text.hpp"
#include "protocol/nearest.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

namespace gristmill {

namespace {

using std::chrono::nanoseconds;

struct broker_arguments {
  std::string gpus;
  std::string socket;
  std::string state;
  std::string policy = "stride";
  std::vector<std::string> quotas;
  std::vector<std::string> caps;
  std::string ttl = "30s";
  uint32_t waiting_max = 4096;
  bool share = false;
};

struct client_arguments {
  std::string socket;
  bool json = false;
  std::string gpu;
  std::string reason = "for maintenance";
  std::vector<std::string> quotas;
};

constexpr std::chrono::seconds answer_limit{5};

std::string default_state() {
  if (const char* folder = std::getenv("XDG_STATE_HOME"); folder && *folder)
    return fmt::format("{}/gristmill-broker", folder);
  if (const char* home = std::getenv("HOME"); home && *home)
    return fmt::format("{}/.local/state/gristmill-broker", home);
  return fmt::format("/tmp/gristmill-broker-{}.state", getuid());
}

/// Without nvidia-smi there is nobody to ask how a GPU is.
std::unique_ptr<gpu_probe> probe_for(const std::vector<broker_device>& devices) {
  if (std::none_of(devices.begin(), devices.end(), [](const broker_device& d) { return d.cuda; }))
    return make_trivial_probe();
  auto answer = run_short_child({"nvidia-smi", "-L"}, std::chrono::seconds{20});
  if (answer.status && *answer.status == 0)
    return make_smi_probe();
  fmt::print(stderr,
    "gristmill broker: nvidia-smi does not work here; GPUs are NOT looked at after a lease\n");
  return make_trivial_probe();
}

/// "alice=2,bob=1", also given several times.
result<std::map<std::string, uint32_t>> read_quotas(const std::vector<std::string>& texts) {
  std::map<std::string, uint32_t> out;
  for (const auto& text : texts)
    for (const auto& part : CLI::detail::split(text, ',')) {
      auto equals = part.find('=');
      uint32_t weight = 0;
      const char* from = part.data() + (equals == std::string::npos ? part.size() : equals + 1);
      auto [end, error] = std::from_chars(from, part.data() + part.size(), weight);
      if (equals == std::string::npos || error != std::errc{} || end != part.data() + part.size()
        || weight == 0 || weight > 1'000'000)
        return fail(errc::invalid_input,
          fmt::format("quota {}: USER=WEIGHT is wanted, with a weight of 1 to 1000000", part));
      auto user = parse_user_project(part.substr(0, equals));
      if (!user || part.find('/') != std::string::npos)
        return fail(errc::invalid_input,
          fmt::format("quota {}: a user has 1 to 64 letters, digits or ._-@+", part));
      out[user->problem] = weight;
    }
  return out;
}

/// "timing=30s", also given several times.
result<void> read_caps(const std::vector<std::string>& texts, lease_table_config& config) {
  for (const auto& text : texts)
    for (const auto& part : CLI::detail::split(text, ',')) {
      auto equals = part.find('=');
      auto what = parse_lease_class(std::string_view(part).substr(0, equals));
      if (!what)
        return fail(errc::invalid_input, fmt::format("--cap {}: {}", part, what.error().what));
      auto ns =
        equals == std::string::npos ? std::nullopt : parse_duration_ns(part.substr(equals + 1));
      constexpr uint64_t day = uint64_t{24} * 3600 * 1'000'000'000;
      if (!ns || *ns == 0 || *ns > 30 * day)
        return fail(errc::invalid_input,
          fmt::format("--cap {}: CLASS=TIME is wanted, as in timing=60s, at most 30d", part));
      config.caps[static_cast<size_t>(*what)] = nanoseconds{static_cast<int64_t>(*ns)};
    }
  return {};
}

result<std::vector<broker_device>> read_devices(const std::string& text) {
  auto wishes = parse_device_wishes(text);
  if (!wishes)
    return pass(wishes);
  for (const device_wish& wish : *wishes) {
    const auto known = known_profiles();
    if (wish.what == device_wish::kind::mock
      && std::find(known.begin(), known.end(), wish.model) == known.end())
      return fail(errc::invalid_input,
        fmt::format("--gpus {}: there is no mock device `{}`{}", text, wish.model,
          suggestion(wish.model, known)));
  }
  std::vector<broker_device> cuda;
  if (std::any_of(wishes->begin(), wishes->end(),
        [](const device_wish& w) { return w.what == device_wish::kind::cuda; })) {
    auto found = find_cuda_devices();
    if (!found)
      return fail(found.error().code, fmt::format("--gpus {}: {}", text, found.error().what));
    cuda = std::move(*found);
  }
  return resolve_wishes(*wishes, cuda);
}

exit_code serve(const broker_arguments& arguments) {
  if (arguments.gpus.empty())
    return complain({errc::invalid_input,
      "--gpus is missing: which GPUs shall be shared? For example --gpus cuda:all"});
  broker_settings settings;
  auto devices = read_devices(arguments.gpus);
  if (!devices)
    return complain(devices.error());
  settings.devices = std::move(*devices);
  auto policy = policy_from_text(arguments.policy);
  if (!policy)
    return complain({policy.error().code, "--lease-policy: " + policy.error().what});
  settings.policy = std::move(*policy);
  settings.policy_text = arguments.policy;
  auto weights = read_quotas(arguments.quotas);
  if (!weights)
    return complain(weights.error());
  settings.weights = std::move(*weights);
  if (auto caps = read_caps(arguments.caps, settings.table); !caps)
    return complain(caps.error());
  auto ttl = parse_duration_ns(arguments.ttl);
  if (!ttl || *ttl < 1'000'000'000 || *ttl > uint64_t{3600} * 1'000'000'000)
    return complain(
      {errc::invalid_input, fmt::format("--ttl {}: 1s to 1h is wanted", arguments.ttl)});
  settings.ttl = nanoseconds{static_cast<int64_t>(*ttl)};
  settings.table.waiting_max = arguments.waiting_max;
  settings.boot = boot_identity();

  // The socket first: it tells best that a broker is there already.
  auto socket = broker_socket::listen(
    arguments.socket.empty() ? default_broker_socket() : arguments.socket, arguments.share);
  if (!socket)
    return complain(socket.error());
  auto store = broker_store::open(arguments.state.empty() ? default_state() : arguments.state);
  if (!store)
    return complain(store.error());
  settings.memory = (*store)->memory();
  settings.leases = (*store)->leases();
  settings.about = fmt::format("gristmill {} at {}", GRISTMILL_VERSION, (*socket)->path());
  const auto& memory = (*store)->memory();
  if (memory.epoch > 0 && memory.policy == arguments.policy) {
    if (auto loaded = settings.policy->load(memory.policy_state); !loaded)
      return complain(loaded.error());
  } else if (memory.epoch > 0) {
    fmt::print(stderr,
      "gristmill broker: the policy was {} before; who has used how much is counted anew\n",
      memory.policy);
  }
  auto probe = probe_for(settings.devices);
  std::string names;
  for (const auto& d : settings.devices)
    names += (names.empty() ? "" : ", ") + d.name;
  broker_loop loop(std::move(settings), **store, **socket, std::move(probe));
  if (auto started = loop.start(); !started)
    return complain(started.error());
  fmt::print(stderr, "gristmill broker: lends {} at {}, policy {}, start {}\n", names,
    (*socket)->path(), arguments.policy, (*store)->memory().epoch);
  loop.serve();
  fmt::print(stderr, "gristmill broker: ended; leases that are out go on with their guards\n");
  return exit_code::ok;
}

// --- clients -----------------------------------------------------------------------------------

exit_code no_broker(const failure& why) {
  fmt::print(stderr, "gristmill broker: {}\n", why.what);
  return why.code == errc::not_found || why.code == errc::io_failed
    ? static_cast<exit_code>(lease_exit::no_broker)
    : exit_code::usage;
}

result<broker_line> ask(
  const client_arguments& arguments, const client_line& line, broker_say answer) {
  auto client = broker_client::connect(
    arguments.socket.empty() ? default_broker_socket() : arguments.socket, {});
  if (!client)
    return pass(client);
  return client->ask(line, answer, answer_limit);
}

double seconds_of(const ordered_json& value, const char* key) {
  return static_cast<double>(value.value(key, int64_t{0})) / 1e9;
}

std::string status_text(const ordered_json& s) {
  std::string out =
    fmt::format("{}, policy {}, start {}, up {:.0f} s, {} leases so far{}\n", s.value("about", ""),
      s.value("policy", ""), s.value("epoch", uint64_t{0}), seconds_of(s, "up_ns"),
      s.value("granted_total", uint64_t{0}), s.value("draining", false) ? ", ending" : "");
  for (const auto& g : s["gpus"]) {
    out += fmt::format("{:<16} {:<12}", g.value("gpu", ""), g.value("phase", ""));
    if (g.contains("user"))
      out += fmt::format(" {}/{} {} {:.1f} of {:.0f} s: {}", g.value("user", ""),
        g.value("project", ""), g.value("class", ""), seconds_of(g, "held_ns"),
        seconds_of(g, "term_ns"), g.value("command", ""));
    if (!g.value("reason", "").empty())
      out += fmt::format(" ({})", g.value("reason", ""));
    out += "\n";
  }
  out += fmt::format("{} waiting\n", s.value("waiting", uint64_t{0}));
  for (const auto& w : s["waiters"])
    out += fmt::format("  {:>4}. {}/{} {} waits {:.1f} s, about {:.1f} s more: {}\n",
      w.value("ahead", uint64_t{0}) + 1, w.value("user", ""), w.value("project", ""),
      w.value("class", ""), seconds_of(w, "waited_ns"), seconds_of(w, "estimated_wait_ns"),
      w.value("command", ""));
  for (const auto& u : s["users"])
    out += fmt::format("{}/{}: weight {}, {} leases, {:.1f} s\n", u.value("user", ""),
      u.value("project", ""), u.value("weight", uint64_t{1}), u.value("leases", uint64_t{0}),
      seconds_of(u, "held_ns"));
  for (const auto& a : s["alarms"])
    out += fmt::format(
      "alarm {} {}: {}\n", a.value("kind", ""), a.value("gpu", ""), a.value("detail", ""));
  return out;
}

exit_code show_status(const client_arguments& arguments) {
  client_line line;
  line.verb = client_verb::status;
  line.waiters = 100;
  auto answer = ask(arguments, line, broker_say::status);
  if (!answer)
    return no_broker(answer.error());
  fmt::print("{}", arguments.json ? answer->status.dump(2) + "\n" : status_text(answer->status));
  return exit_code::ok;
}

exit_code command(const client_arguments& arguments, const client_line& line) {
  auto answer = ask(arguments, line, broker_say::ack);
  if (!answer)
    return no_broker(answer.error());
  fmt::print(stderr, "gristmill broker: {}\n", answer->note);
  return answer->applied ? exit_code::ok : exit_code::usage;
}

exit_code set_quotas(const client_arguments& arguments) {
  auto weights = read_quotas(arguments.quotas);
  if (!weights)
    return complain(weights.error());
  for (const auto& [user, weight] : *weights) {
    client_line line;
    line.verb = client_verb::quota;
    line.user = user;
    line.weight = weight;
    if (auto code = command(arguments, line); code != exit_code::ok)
      return code;
  }
  return exit_code::ok;
}

void add_clients(CLI::App& broker, const std::shared_ptr<client_arguments>& arguments, verbs& all) {
  auto add = [&](const char* name, const char* what) {
    auto* app = broker.add_subcommand(name, what);
    app->add_option("--socket", arguments->socket, "where the broker listens");
    return app;
  };
  auto* status = add("status", "GPUs, who holds them, who waits");
  status->add_flag("--json", arguments->json, "as JSON");
  all.push_back({status, [arguments] { return show_status(*arguments); }});
  auto* drain = add("drain", "grant nothing new on a GPU (or on all); what runs goes on");
  drain->add_option("gpu", arguments->gpu, "its name in the status");
  drain->add_option("--reason", arguments->reason, "shown in the status");
  all.push_back({drain, [arguments] {
                   client_line line;
                   line.verb = client_verb::drain;
                   line.gpu_name = arguments->gpu;
                   line.reason = arguments->reason;
                   return command(*arguments, line);
                 }});
  auto* undrain = add("undrain", "take that back; a GPU in quarantine is looked at again");
  undrain->add_option("gpu", arguments->gpu, "its name in the status");
  all.push_back({undrain, [arguments] {
                   client_line line;
                   line.verb = client_verb::undrain;
                   line.gpu_name = arguments->gpu;
                   return command(*arguments, line);
                 }});
  auto* quota = add("quota", "a user with weight 2 gets twice the time of one with weight 1");
  quota->add_option("quota", arguments->quotas, "USER=WEIGHT")->required();
  all.push_back({quota, [arguments] { return set_quotas(*arguments); }});
}

} // namespace

void add_broker_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand("broker", "shares GPUs fairly between whoever asks");
  app->require_subcommand(0, 1);
  // Before the broker itself, which is also meant when one of them is.
  auto client = std::make_shared<client_arguments>();
  add_clients(*app, client, all);
  auto arguments = std::make_shared<broker_arguments>();
  app->add_option("--gpus", arguments->gpus, "cuda:all, cuda:0,2, mock:h200:2 or sleep:4");
  // Also before the name of a client command.
  app->add_option("--socket", client->socket, "where to listen");
  app->add_option("--state", arguments->state, "folder of what it must remember");
  app->add_option("--lease-policy", arguments->policy, "who is next; default stride");
  app->add_option("--quota", arguments->quotas, "USER=WEIGHT,...");
  app->add_option("--cap", arguments->caps, "CLASS=TIME: longest lease of a class");
  app->add_option("--ttl", arguments->ttl, "a guard that is silent for so long is given up; 30s");
  app->add_option("--waiting-max", arguments->waiting_max, "more waiters are refused; 4096");
  app->add_flag("--share", arguments->share, "let other users of this machine ask as well");
  all.push_back({app, [arguments, client] {
                   arguments->socket = client->socket;
                   return serve(*arguments);
                 }});
}

} // namespace gristmill
