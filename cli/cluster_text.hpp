#pragma once

#include "messages/cluster.hpp"

#include <string>

namespace gristmill {

/// For people: a line about the coordinator, one for each node and one for each device of another
/// kind.
std::string cluster_table(const cluster_snapshot& now);

/// Schema "gristmill.cluster-status/1": all fields of the snapshot, times in nanoseconds.
std::string cluster_json(const cluster_snapshot& now);

/// The text format of Prometheus, version 0.0.4. Nodes that were lost stay in it, with `up` 0.
std::string cluster_metrics(const cluster_snapshot& now);

} // namespace gristmill
