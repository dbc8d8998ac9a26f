#include "cli/cluster_text.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace gristmill {

namespace {

using nlohmann::ordered_json;
using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::array<const char*, 4> states{"joining", "ready", "draining", "lost"};

std::string time_text(nanoseconds time) {
  const auto s = duration_cast<seconds>(time).count();
  if (s < 100)
    return fmt::format("{}s", s);
  if (s < 6000)
    return fmt::format("{}m{:02}s", s / 60, s % 60);
  return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
}

std::string bytes_text(uint64_t bytes) {
  static constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

/// "2 mock:h200, 1 sleep"; "-" for a node without devices.
std::string devices_text(const std::vector<node_device>& devices) {
  std::map<std::string, size_t> counts;
  for (const auto& device : devices)
    ++counts[device.label];
  std::string out;
  for (const auto& [label, count] : counts)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, label);
  return out.empty() ? "-" : out;
}

/// Columns as wide as they have to be.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size())
        widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string counted(uint32_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// As a label's value in metrics.
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text)
    switch (c) {
    case '\\':
      out += "\\\\";
      break;
    case '"':
      out += "\\\"";
      break;
    case '\n':
      out += "\\n";
      break;
    default:
      out += c;
    }
  return out;
}

class metrics_text {
public:
  /// Starts a family of samples.
  void family(std::string_view name, std::string_view kind, std::string_view help) {
    name_ = fmt::format("gristmill_{}", name);
    out_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name_, help, kind);
  }
  void sample(uint64_t value, std::string_view labels = {}) {
    add(fmt::format("{}", value), labels);
  }
  void seconds(nanoseconds value, std::string_view labels = {}) {
    add(fmt::format("{:.3f}", duration<double>(value).count()), labels);
  }
  std::string take() { return std::move(out_); }

private:
  void add(const std::string& value, std::string_view labels) {
    out_ += labels.empty() ? fmt::format("{} {}\n", name_, value)
                           : fmt::format("{}{{{}}} {}\n", name_, labels, value);
  }

  std::string name_;
  std::string out_;
};

std::string label_of(const node_snapshot& node) {
  return fmt::format("node=\"{}\"", escaped(node.node));
}

bool is_up(const node_snapshot& node) {
  return node.state == "ready" || node.state == "draining";
}

ordered_json json_of(const node_device& d) {
  return {{"name", d.name}, {"label", d.label}, {"model", d.model}, {"title", d.title},
    {"arch", d.arch}, {"memory_bytes", d.memory_bytes}, {"sm_count", d.sm_count}};
}

ordered_json json_of(const node_snapshot& n) {
  ordered_json out{{"node", n.node}, {"boot", n.boot}, {"state", n.state}, {"reason", n.reason},
    {"age_ns", n.age.count()}, {"devices", ordered_json::array()},
    {"compile_slots", n.compile_slots}, {"compiles_running", n.compiles_running},
    {"workers", n.workers}, {"workers_max", n.workers_max}, {"tasks_open", n.tasks_open},
    {"tasks_done", n.tasks_done}, {"tasks_failed", n.tasks_failed}, {"losses", n.losses},
    {"returns", n.returns}, {"handed_in", n.handed_in}, {"blob_bytes_in", n.blob_bytes_in},
    {"blob_bytes_out", n.blob_bytes_out}};
  for (const auto& device : n.devices)
    out["devices"].push_back(json_of(device));
  return out;
}

} // namespace

std::string cluster_table(const cluster_snapshot& now) {
  std::string out = fmt::format("run {}, start {}, up {}; here: {}, {}, {}\n", now.run,
    now.incarnation, time_text(now.up), counted(now.workers_here, "worker"),
    counted(now.devices_here, "device"), counted(now.compile_slots_here, "compile slot"));
  if (now.nodes.empty())
    return out + "no node has joined\n";
  std::vector<std::vector<std::string>> rows{{"NODE", "STATE", "FOR", "DEVICES", "COMPILES",
    "WORKERS", "TASKS open/done/failed", "LOSSES", "HANDED IN", "BLOBS in/out", ""}};
  for (const auto& n : now.nodes)
    rows.push_back({n.node, n.state, time_text(n.age), devices_text(n.devices),
      fmt::format("{}/{}", n.compiles_running, n.compile_slots),
      fmt::format("{}/{}", n.workers, n.workers_max),
      fmt::format("{}/{}/{}", n.tasks_open, n.tasks_done, n.tasks_failed),
      n.returns == n.losses ? std::to_string(n.losses)
                            : fmt::format("{} (back {})", n.losses, n.returns),
      std::to_string(n.handed_in),
      fmt::format("{}/{}", bytes_text(n.blob_bytes_in), bytes_text(n.blob_bytes_out)),
      n.reason.empty() ? "" : "(" + n.reason + ")"});
  return out + aligned(rows);
}

std::string cluster_json(const cluster_snapshot& now) {
  ordered_json out{{"schema", "gristmill.cluster-status/1"}, {"run", now.run},
    {"incarnation", now.incarnation}, {"up_ns", now.up.count()}, {"workers_here", now.workers_here},
    {"devices_here", now.devices_here}, {"compile_slots_here", now.compile_slots_here},
    {"nodes", ordered_json::array()}};
  for (const auto& node : now.nodes)
    out["nodes"].push_back(json_of(node));
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string cluster_metrics(const cluster_snapshot& now) {
  metrics_text out;
  out.family("run_info", "gauge", "The run that the coordinator works on.");
  out.sample(1, fmt::format("run=\"{}\"", escaped(now.run)));
  out.family("coordinator_start", "gauge", "How often the run has been started.");
  out.sample(now.incarnation);
  out.family("coordinator_up_seconds", "gauge", "Time since this start.");
  out.seconds(now.up);
  out.family("coordinator_workers", "gauge", "Workers in the coordinator's process.");
  out.sample(now.workers_here);
  out.family("coordinator_devices", "gauge", "Devices of the coordinator's machine.");
  out.sample(now.devices_here);
  out.family("coordinator_compile_slots", "gauge", "Compilers of the coordinator's machine.");
  out.sample(now.compile_slots_here);
  out.family("cluster_nodes", "gauge", "Nodes in each state.");
  for (const char* state : states)
    out.sample(static_cast<uint64_t>(std::count_if(now.nodes.begin(), now.nodes.end(),
                 [&](const node_snapshot& n) { return n.state == state; })),
      fmt::format("state=\"{}\"", state));

  const auto each = [&](std::string_view name, std::string_view kind, std::string_view help,
                      const std::function<uint64_t(const node_snapshot&)>& value) {
    out.family(name, kind, help);
    for (const auto& node : now.nodes)
      out.sample(value(node), label_of(node));
  };
  using node = const node_snapshot&;
  each("node_up", "gauge", "1 when the node is ready or draining.",
    [](node n) { return is_up(n) ? 1u : 0u; });
  out.family("node_state_seconds", "gauge", "Time since the node joined or was lost.");
  for (const auto& n : now.nodes)
    out.seconds(n.age, label_of(n));
  out.family("node_devices", "gauge", "Devices of the node.");
  for (const auto& n : now.nodes) {
    std::map<std::string, uint64_t> counts;
    for (const auto& device : n.devices)
      ++counts[device.label];
    for (const auto& [label, count] : counts)
      out.sample(count, fmt::format("{},label=\"{}\"", label_of(n), escaped(label)));
  }
  each("node_compile_slots", "gauge", "Compilers that may run at the same time.",
    [](node n) { return n.compile_slots; });
  each("node_compiles_running", "gauge", "Compilers that run.",
    [](node n) { return n.compiles_running; });
  each("node_workers", "gauge", "Workers that live on the node.", [](node n) { return n.workers; });
  each("node_workers_max", "gauge", "Workers that the node takes.",
    [](node n) { return n.workers_max; });
  each("node_tasks_open", "gauge", "Tasks that the node works on.",
    [](node n) { return n.tasks_open; });
  each("node_tasks_done_total", "counter", "Tasks that the node has answered.",
    [](node n) { return n.tasks_done; });
  each("node_tasks_failed_total", "counter", "Tasks that the node could not do.",
    [](node n) { return n.tasks_failed; });
  each("node_losses_total", "counter", "How often the node was lost.",
    [](node n) { return n.losses; });
  each("node_returns_total", "counter", "How often the node came back.",
    [](node n) { return n.returns; });
  each("node_handed_in_total", "counter",
    "Measurements handed in after the coordinator had been away.",
    [](node n) { return n.handed_in; });
  each("node_blob_bytes_in_total", "counter", "Bytes of blobs that went to the node.",
    [](node n) { return n.blob_bytes_in; });
  each("node_blob_bytes_out_total", "counter", "Bytes of blobs that came from the node.",
    [](node n) { return n.blob_bytes_out; });
  return out.take();
}

} // namespace gristmill
