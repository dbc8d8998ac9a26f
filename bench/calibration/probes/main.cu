// Runs the probes, each in a process of its own, and writes their rows.
//
//   probes OUT.csv [NAME...]      names: chase bandwidth arithmetic shared tensor atomics launching requests expansion
//
// Exit code 0 when all that ran came to their end, 1 otherwise.

#include "bench/calibration/probes/probe.cuh"

namespace gristmill::calibration {
void probe_chase(probe_context&);
void probe_bandwidth(probe_context&);
void probe_arithmetic(probe_context&);
void probe_shared(probe_context&);
void probe_tensor(probe_context&);
void probe_atomics(probe_context&);
void probe_launching(probe_context&);
void probe_requests(probe_context&);
void probe_expansion(probe_context&);
} // namespace gristmill::calibration

int main(int argc, char** argv) {
  using namespace gristmill::calibration;
  const struct {
    const char* name;
    void (*run)(probe_context&);
  } known[] = {{"launching", probe_launching}, {"arithmetic", probe_arithmetic},
    {"shared", probe_shared}, {"tensor", probe_tensor}, {"chase", probe_chase},
    {"atomics", probe_atomics}, {"bandwidth", probe_bandwidth},
    {"requests", probe_requests}, {"expansion", probe_expansion}};
  if (argc < 2) {
    std::fprintf(stderr, "usage: probes OUT.csv [NAME...]\n");
    return 2;
  }
  std::ofstream(argv[1]) << "probe,variant,metric,value,unit\n";
  int bad = 0;
  for (const auto& probe : known) {
    bool wanted = argc == 2;
    for (int i = 2; i < argc; ++i)
      wanted = wanted || probe.name == std::string(argv[i]);
    if (!wanted)
      continue;
    const auto begin = std::chrono::steady_clock::now();
    const bool fine = in_own_process(
      [&] {
        try {
          probe_context context(argv[1], probe.name);
          context.row("before", "clock", context.tools.mhz(), "MHz");
          probe.run(context);
          context.row("after", "clock", context.tools.mhz(), "MHz");
          return 0;
        } catch (const std::exception& e) {
          std::printf("FAILED %s: %s\n", probe.name, e.what());
          return 1;
        }
      },
      probe.name, 60);
    bad += fine ? 0 : 1;
    std::printf(
      "probe %-10s %s, %.1f s\n", probe.name, fine ? "done" : "NOT DONE", seconds_since(begin));
    std::fflush(stdout);
  }
  return bad == 0 ? 0 : 1;
}
