// The corpus of device kernels as one flat text, and the mock's times of it.
//
//   gristmill-bench-corpus resolve CORPUS_FOLDER          corpus.txt to the standard output
//   gristmill-bench-corpus mock CORPUS_FOLDER [NAME…]     modelled times as CSV, one row a kernel

#include "bench/calibration/corpus_problem.hpp"
#include "bench/calibration/mock_call.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <sstream>

namespace {

using namespace gristmill;
using namespace gristmill::calibration;

int usage() {
  fmt::print(stderr,
    "usage: gristmill-bench-corpus resolve CORPUS_FOLDER\n"
    "       gristmill-bench-corpus mock CORPUS_FOLDER [NAME...]\n");
  return 2;
}

/// A field of CSV that may hold anything.
std::string quoted(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  std::replace(text.begin(), text.end(), '\n', ' ');
  return "\"" + text + "\"";
}

int print_times(const std::vector<corpus_kernel>& kernels, const std::vector<std::string>& wanted) {
  std::istringstream text(corpus_text(kernels));
  const std::vector<corpus_case> cases = parse_corpus(text);
  auto bench = make_mock_caller();
  if (!bench) {
    fmt::print(stderr, "gristmill-bench-corpus: {}\n", bench.error().what);
    return 1;
  }
  fmt::print("name,family,class,modelled_us,bound,terms,label,why_not\n");
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), kernels[i].name) == wanted.end())
      continue;
    const auto time = (*bench)->time(kernels[i], cases[i]);
    std::string terms;
    if (time)
      for (const time_term& term : time->terms)
        terms += fmt::format("{}{}={:.3f}", terms.empty() ? "" : " ", term.name, term.ns / 1e3);
    fmt::print("{},{},{},{},{},{},{},{}\n", kernels[i].name, cases[i].family, cases[i].kind,
      time ? fmt::format("{:.3f}", static_cast<double>(time->ns) / 1e3) : "",
      time ? time->bound : "", terms, quoted((*bench)->label()),
      time ? "" : quoted(time.error().what.substr(0, 200)));
    std::fflush(stdout);
  }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 3)
    return usage();
  const std::string verb = argv[1];
  const auto kernels = load_corpus(argv[2]);
  if (!kernels) {
    fmt::print(stderr, "gristmill-bench-corpus: {}\n", kernels.error().what);
    return 2;
  }
  if (verb == "resolve" && argc == 3) {
    fmt::print("{}", corpus_text(*kernels));
    return 0;
  }
  if (verb == "mock")
    return print_times(*kernels, std::vector<std::string>(argv + 3, argv + argc));
  return usage();
}
