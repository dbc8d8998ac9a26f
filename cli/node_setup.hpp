#pragma once

#include "actors/cluster_port.hpp"
#include "actors/node_agent.hpp"
#include "gpu/children/child_loop.hpp"
#include "journal/run_lock.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace gristmill {

/// Flags of `gristmill node`, as texts.
struct node_arguments {
  std::string join;
  std::string tls;
  /// Empty: the name of the machine.
  std::string name;
  /// Empty: no devices.
  std::string gpus;
  /// Empty: chosen from what this machine is.
  std::string compile_slots;
  std::string workers;
  bool oracle = false;
  /// Empty: a folder of this user's and this node's below TMPDIR.
  std::string state;
  std::string cache_max = "8GiB";
  std::string toolchain = "auto";
  std::string python = "/usr/bin/python3";
  std::string heartbeat = "1s";
  std::string node_timeout = "15s";
  bool until_run_ends = false;
  /// Empty: 10m. Only with `until_run_ends`.
  std::string give_up_after;
};

/// A node that is ready to connect.
struct node_setup {
  cluster_address coordinator;
  cluster_transport transport;
  /// Without the factories and `on_news`.
  node_agent_config agent;
  child_loop_limits children;
  /// With --until-run-ends: a coordinator that is away for longer does not come back. None: it is
  /// waited for without end.
  std::optional<std::chrono::nanoseconds> give_up_after;
  bool until_run_ends() const { return give_up_after.has_value(); }
  /// One process works in a state folder at a time.
  std::optional<run_lock> lock;
};

/// Looks up and checks everything that the flags name. Then takes the state folder over: what a
/// dead process left in it (children, job folders, data of its run, unfinished blobs) is ended and
/// removed, and its blobs are kept up to the cap. `invalid_input` names the flag; `refused` when
/// another process has the folder.
result<node_setup> make_node_setup(const node_arguments& arguments);

} // namespace gristmill
