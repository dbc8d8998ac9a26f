#include "actors/proposers.hpp"

#include "actors/command_proposer.hpp"
#include "actors/template_proposer.hpp"

namespace gristmill {

namespace {

proposer_actor make_llm_proposer(
  caf::actor_system& system, const run_peers& peers, uint32_t worker, const proposer_parts& parts) {
  llm_proposer_config config;
  config.context = parts.context;
  config.library = parts.library;
  config.mind = parts.mind;
  config.agent = "worker-" + std::to_string(worker);
  config.models = peers.models;
  config.compiler = peers.compiler;
  config.child_front = peers.child_front;
  config.events = peers.events;
  return system.spawn<llm_proposer>(std::move(config));
}

proposer_actor make_command_proposer(caf::actor_system& system, const run_peers& peers,
  const std::string& command, const proposer_parts& parts) {
  command_proposer_config config;
  config.context = parts.context;
  config.child_front = peers.child_front;
  config.events = peers.events;
  config.program = parts.mind.program;
  config.book = parts.mind.book;
  config.describe = [context = parts.context](
                      const problem& of) { return describe_problem(*context, of, of.graph_json); };
  config.command = command;
  config.nano_usd_cap = parts.agent_nano_usd;
  return system.spawn<command_proposer>(std::move(config));
}

} // namespace

proposer_actor make_proposer(
  caf::actor_system& system, const run_peers& peers, uint32_t worker, const proposer_parts& parts) {
  const auto& choice = proposer_of_worker(parts.mix, worker);
  auto searching = [&](search_strategy how) -> proposer_actor {
    return system.spawn<template_proposer>(parts.context, parts.library, how);
  };
  switch (choice.kind) { // no default: the compiler reports a missing case
  case proposer_kind::template_search:
    return searching(search_strategy::guided);
  case proposer_kind::random:
    return searching(search_strategy::random);
  case proposer_kind::exhaustive:
    return searching(search_strategy::exhaustive);
  case proposer_kind::llm:
  case proposer_kind::replay:
    return make_llm_proposer(system, peers, worker, parts);
  case proposer_kind::command:
    return make_command_proposer(system, peers, choice.command, parts);
  case proposer_kind::scripted:
  case proposer_kind::sleep:
    break;
  }
  return system.spawn<scripted_proposer>(parts.context);
}

} // namespace gristmill
