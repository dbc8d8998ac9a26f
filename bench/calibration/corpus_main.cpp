// The corpus of device kernels and the points of our templates as one flat text, and the mock's
// times of them.
//
//   gristmill-bench-corpus resolve CORPUS                corpus.txt to the standard output
//   gristmill-bench-corpus write CORPUS FOLDER           corpus.txt and a source NAME.cu each
//   gristmill-bench-corpus mock CORPUS [NAME…]           modelled times as CSV, one row a kernel
//   gristmill-bench-corpus counts CORPUS [NAME…]         what they rest on, a line of JSON a kernel
//
// CORPUS is tests/corpus/device_kernels, or `templates`: the points of kernels/ that a search has
// to put in order, as this program's templates have them. NAME is a kernel, or a folder or problem:
// all of that.

#include "bench/calibration/corpus_problem.hpp"
#include "bench/calibration/counts_json.hpp"
#include "bench/calibration/mock_call.hpp"
#include "bench/calibration/variants.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace {

using namespace gristmill;
using namespace gristmill::calibration;

// Of one template.
constexpr size_t variants_each = 36;

int usage() {
  fmt::print(stderr,
    "usage: gristmill-bench-corpus resolve CORPUS\n"
    "       gristmill-bench-corpus write CORPUS FOLDER\n"
    "       gristmill-bench-corpus mock|counts CORPUS [NAME...]\n"
    "CORPUS: tests/corpus/device_kernels, or: templates\n");
  return 2;
}

/// A field of CSV that may hold anything.
std::string quoted(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  std::replace(text.begin(), text.end(), '\n', ' ');
  return "\"" + text + "\"";
}

std::string as_csv(const corpus_case& of, const result<call_time>& time, const std::string& label) {
  std::string terms;
  if (time)
    for (const time_term& term : time->terms)
      terms += fmt::format(
        "{}{}={:.3f}", terms.empty() ? "" : " ", term.name, static_cast<double>(term.ns) / 1e3);
  return fmt::format("{},{},{},{},{},{},{},{}\n", of.name, of.family, of.kind,
    time ? fmt::format("{:.3f}", static_cast<double>(time->ns) / 1e3) : "", time ? time->bound : "",
    terms, quoted(label), time ? "" : quoted(time.error().what.substr(0, 200)));
}

int print_times(
  const std::vector<corpus_kernel>& kernels, const std::vector<std::string>& wanted, bool counts) {
  const auto is_named = [](const corpus_kernel& kernel, const std::string& name) {
    return name == kernel.name || name == kernel.folder;
  };
  for (const std::string& name : wanted)
    if (std::none_of(kernels.begin(), kernels.end(),
          [&](const corpus_kernel& kernel) { return is_named(kernel, name); })) {
      fmt::print(stderr, "gristmill-bench-corpus: no kernel, folder or problem {}\n", name);
      return 2;
    }
  std::istringstream text(corpus_text(kernels));
  const std::vector<corpus_case> cases = parse_corpus(text);
  const auto gpu = profile("h200");
  std::vector<std::string> launches;
  auto bench = make_mock_caller(
    [&](const ptx::entry_info& entry, const sample& taken, const launch_time& time) {
      launches.push_back(counts_json(*gpu, entry, taken, time));
    });
  if (!bench || !gpu) {
    fmt::print(
      stderr, "gristmill-bench-corpus: {}\n", !gpu ? gpu.error().what : bench.error().what);
    return 1;
  }
  if (!counts)
    fmt::print("name,family,class,modelled_us,bound,terms,label,why_not\n");
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (!wanted.empty() && std::none_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
          return is_named(kernels[i], name);
        }))
      continue;
    launches.clear();
    const auto time = (*bench)->time(kernels[i], cases[i]);
    if (!counts)
      fmt::print("{}", as_csv(cases[i], time, (*bench)->label()));
    else
      fmt::print("{{\"name\": \"{}\", \"family\": \"{}\", \"class\": \"{}\", \"ns\": {}, "
                 "\"launches\": [{}]}}\n",
        cases[i].name, cases[i].family, cases[i].kind, time ? fmt::to_string(time->ns) : "null",
        fmt::join(launches, ", "));
    std::fflush(stdout);
  }
  return 0;
}

int write_all(const std::vector<corpus_kernel>& kernels, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::ofstream(folder / "corpus.txt") << corpus_text(kernels);
  bool fine = std::filesystem::exists(folder / "corpus.txt", error);
  for (const corpus_kernel& kernel : kernels)
    fine =
      static_cast<bool>(std::ofstream(folder / (kernel.name + ".cu")) << kernel.source) && fine;
  if (!fine)
    fmt::print(stderr, "gristmill-bench-corpus: {} cannot be written\n", folder.string());
  return fine ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 3)
    return usage();
  const std::string verb = argv[1], corpus = argv[2];
  const auto kernels =
    corpus == "templates" ? template_variants({}, variants_each) : load_corpus(corpus);
  if (!kernels) {
    fmt::print(stderr, "gristmill-bench-corpus: {}\n", kernels.error().what);
    return 2;
  }
  if (verb == "resolve" && argc == 3) {
    fmt::print("{}", corpus_text(*kernels));
    return 0;
  }
  if (verb == "write" && argc == 4)
    return write_all(*kernels, argv[3]);
  if (verb == "mock" || verb == "counts")
    return print_times(*kernels, std::vector<std::string>(argv + 3, argv + argc), verb == "counts");
  return usage();
}
