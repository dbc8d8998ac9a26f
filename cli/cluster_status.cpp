#include "actors/cluster_port.hpp"
#include "actors/interfaces.hpp"
#include "actors/system_config.hpp"
#include "cli/cluster_text.hpp"
#include "cli/verb.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

namespace gristmill {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds connect_deadline{10};
constexpr std::chrono::seconds answer_deadline{10};

struct cluster_arguments {
  std::string join;
  std::string tls;
  bool json = false;
  bool metrics = false;
  std::string node;
  std::string reason;
};

/// Whatever is wrong with the address or the folder is the user's to mend; whatever is wrong with
/// the coordinator, or the way there, is a failure.
exit_code no_coordinator(const failure& why) {
  complain(why);
  return why.code == errc::invalid_input ? exit_code::usage : exit_code::failure;
}

/// Connects, asks once, hands the answer to `use` and leaves.
template <class Answer, class Request, class F>
exit_code ask_coordinator(const cluster_arguments& arguments, const Request& request, F use) {
  if (arguments.join.empty())
    return complain({errc::invalid_input,
      "--join is missing: where does the coordinator listen? For example --join 10.0.0.1:4600"});
  auto address = read_cluster_address("--join", arguments.join, false);
  if (!address)
    return complain(address.error());
  cluster_transport transport;
  transport.tls = arguments.tls;
  if (auto fine = check_transport(transport, *address, cluster_side::node); !fine)
    return complain(fine.error());
  caf::actor_system_config config;
  configure(config, 2);
  configure_cluster(config, transport);
  caf::actor_system system{config};
  auto door = cluster_connect(system, *address, connect_deadline);
  if (!door)
    return no_coordinator(door.error());
  auto out = exit_code::failure;
  caf::scoped_actor self{system};
  self->request(caf::actor_cast<cluster_hub_actor>(*door), caf::timespan{answer_deadline}, request)
    .receive([&](const Answer& answer) { out = use(answer); },
      [&](const caf::error& error) {
        out = no_coordinator({errc::timed_out,
          to_string(*address) + ": the coordinator does not answer (" + seam::show(system, error)
            + ")"});
      });
  return out;
}

exit_code show_status(const cluster_arguments& arguments) {
  if (arguments.json && arguments.metrics)
    return complain({errc::invalid_input, "--json and --metrics: give one of them"});
  return ask_coordinator<cluster_snapshot>(
    arguments, cluster_query{}, [&](const cluster_snapshot& now) {
      const auto text = arguments.json ? cluster_json(now)
        : arguments.metrics            ? cluster_metrics(now)
                                       : cluster_table(now);
      std::fputs(text.c_str(), stdout);
      return exit_code::ok;
    });
}

exit_code command(const cluster_arguments& arguments, cluster_verb what) {
  return ask_coordinator<cluster_ack>(arguments,
    cluster_command{what, arguments.node, arguments.reason}, [](const cluster_ack& answer) {
      if (!answer.applied)
        return complain({errc::invalid_input, answer.note});
      if (!answer.note.empty())
        std::fprintf(stderr, "gristmill: %s\n", answer.note.c_str());
      return exit_code::ok;
    });
}

} // namespace

void add_cluster_status_verbs(CLI::App& root, verbs& all) {
  auto& cluster = verb_group(root, "cluster", "certificates, status and nodes of a cluster");
  auto arguments = std::make_shared<cluster_arguments>();
  const auto add = [&](const char* name, const char* what) {
    auto* app = cluster.add_subcommand(name, what);
    app->add_option("--join", arguments->join, "where the coordinator listens, HOST:PORT");
    app->add_option("--tls", arguments->tls, "folder with ca.pem, cert.pem and key.pem");
    return app;
  };
  auto* status = add("status", "the nodes of a run that goes on, and what they do");
  status->add_flag("--json", arguments->json, "as JSON");
  status->add_flag("--metrics", arguments->metrics, "as metrics for Prometheus");
  all.push_back({status, [arguments] { return show_status(*arguments); }});
  auto* drain = add("drain", "give a node nothing new; it leaves when it is idle");
  drain->add_option("node", arguments->node, "its name in the status")->required();
  drain->add_option("--reason", arguments->reason, "shown in the status");
  all.push_back({drain, [arguments] { return command(*arguments, cluster_verb::drain); }});
  auto* undrain = add("undrain", "take that back");
  undrain->add_option("node", arguments->node, "its name in the status")->required();
  all.push_back({undrain, [arguments] { return command(*arguments, cluster_verb::undrain); }});
}

} // namespace gristmill
