#include "actors/transport/certificates.hpp"
#include "actors/transport/tls_folder.hpp"
#include "cli/verb.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <fmt/format.h>
#include <memory>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

exit_code init_command(
  const fs::path& folder, std::vector<std::string> nodes, std::vector<std::string> hosts) {
  const auto made = make_cluster_folder(folder, {nodes, std::move(hosts), std::time(nullptr)});
  if (!made)
    return complain(made.error());
  fmt::print("{}\n", process_folder(folder, coordinator_name).string());
  for (const auto& node : nodes)
    fmt::print("{}\n", process_folder(folder, node).string());
  fmt::print(stderr,
    "copy each folder to its machine, by a way that nobody reads, and give it there as --tls; keep "
    "{} here: it makes more of them. They hold {} days.\n",
    (folder / "ca").string(), certificate_days);
  return exit_code::ok;
}

exit_code add_node_command(const fs::path& folder, const std::string& name) {
  const auto added = add_cluster_node(folder, name, std::time(nullptr));
  if (!added)
    return complain(added.error());
  fmt::print("{}\n", process_folder(folder, name).string());
  return exit_code::ok;
}

exit_code renew_command(const fs::path& folder, const std::vector<std::string>& names) {
  const auto renewed = renew_certificates(folder, names, std::time(nullptr));
  if (!renewed)
    return complain(renewed.error());
  for (const auto& name : *renewed)
    fmt::print("{}\n", process_folder(folder, name).string());
  fmt::print(stderr,
    "copy cert.pem and key.pem of each folder to its machine; they hold from the next connection "
    "on, without a restart.\n");
  return exit_code::ok;
}

} // namespace

void add_cluster_init_verbs(CLI::App& root, verbs& all) {
  struct flags {
    std::string folder;
    std::string name;
    std::vector<std::string> names;
    std::vector<std::string> hosts;
  };
  auto& cluster = verb_group(root, "cluster", "certificates, status and nodes of a cluster");

  auto* init = cluster.add_subcommand(
    "init", "make a CA for a cluster, and certificates for its coordinator and nodes");
  auto init_given = std::make_shared<flags>();
  init->add_option("folder", init_given->folder, "a new folder, to be kept in a safe place")
    ->required();
  init->add_option("--node", init_given->names, "name of a node; several times for several")
    ->required();
  init->add_option("--host", init_given->hosts,
    "a name or address that the coordinator's certificate lists besides, for other TLS programs");
  all.push_back({init, [init_given] {
                   return init_command(init_given->folder, init_given->names, init_given->hosts);
                 }});

  auto* add = cluster.add_subcommand("add-node", "make a certificate for one more node");
  auto add_given = std::make_shared<flags>();
  add->add_option("folder", add_given->folder, "the folder of `cluster init`")->required();
  add->add_option("name", add_given->name, "of the new node")->required();
  all.push_back(
    {add, [add_given] { return add_node_command(add_given->folder, add_given->name); }});

  auto* renew =
    cluster.add_subcommand("renew", "make new certificates with new keys, of the same CA");
  auto renew_given = std::make_shared<flags>();
  renew->add_option("folder", renew_given->folder, "the folder of `cluster init`")->required();
  renew->add_option("names", renew_given->names, "nodes, or `coordinator`; default: all");
  all.push_back(
    {renew, [renew_given] { return renew_command(renew_given->folder, renew_given->names); }});
}

} // namespace gristmill
