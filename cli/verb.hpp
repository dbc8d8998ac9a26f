#pragma once

#include "cli/commands.hpp"

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace gristmill {

/// A command of the program: its place among the commands, and what it does once its flags are
/// read.
struct verb {
  const CLI::App* app = nullptr;
  std::function<exit_code()> run;
};

using verbs = std::vector<verb>;

/// The command that only groups others, such as `problem`; made by the first who asks for it.
CLI::App& verb_group(CLI::App& root, const std::string& name, const std::string& description);

// One file a verb: `add_x_verb` stands in cli/x.cpp, declares the flags and leaves the rest to a
// plain function. A new verb is one line here and one in main.cpp.

void add_run_verb(CLI::App& root, verbs& all);
void add_resume_verb(CLI::App& root, verbs& all);
void add_log_show_verb(CLI::App& root, verbs& all);
void add_log_verify_verb(CLI::App& root, verbs& all);
void add_report_verb(CLI::App& root, verbs& all);
void add_doctor_verb(CLI::App& root, verbs& all);
void add_problem_list_verb(CLI::App& root, verbs& all);
void add_problem_check_verb(CLI::App& root, verbs& all);
void add_problem_show_verb(CLI::App& root, verbs& all);
void add_problem_reference_verb(CLI::App& root, verbs& all);
void add_solution_check_verb(CLI::App& root, verbs& all);
void add_trace_check_verb(CLI::App& root, verbs& all);
void add_convert_verb(CLI::App& root, verbs& all);
void add_broker_verb(CLI::App& root, verbs& all);
void add_lease_verb(CLI::App& root, verbs& all);
void add_leases_verb(CLI::App& root, verbs& all);

/// Becomes the small program `gristmill-lease` with these arguments (ended by a null pointer).
/// Answers only when that failed: the exit code.
int become_lease_program(char** arguments);
void add_score_verb(CLI::App& root, verbs& all);
void add_audit_verb(CLI::App& root, verbs& all);
void add_rescore_verb(CLI::App& root, verbs& all);
void add_selfcheck_verb(CLI::App& root, verbs& all);
void add_export_verb(CLI::App& root, verbs& all);
void add_replay_verb(CLI::App& root, verbs& all);
void add_import_trace_verb(CLI::App& root, verbs& all);
void add_mcp_verb(CLI::App& root, verbs& all);
void add_baseline_verb(CLI::App& root, verbs& all);
void add_node_verb(CLI::App& root, verbs& all);
void add_cluster_init_verbs(CLI::App& root, verbs& all);
void add_cluster_status_verbs(CLI::App& root, verbs& all);
void add_simulate_verb(CLI::App& root, verbs& all);
void add_sweep_verb(CLI::App& root, verbs& all);
void add_program_check_verb(CLI::App& root, verbs& all);
void add_program_show_verb(CLI::App& root, verbs& all);

} // namespace gristmill
