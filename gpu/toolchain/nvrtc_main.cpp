// gristmill-nvrtc: CUDA's run-time compiler as a program, so that it can be started, limited and
// ended like any other compiler.
//
//   gristmill-nvrtc version LIBRARY                      prints version and file, a line each
//   gristmill-nvrtc compile LIBRARY SOURCE NAMES PTX SYMBOLS -- OPTION…
//   gristmill-nvrtc assemble LIBRARY PTX -- OPTION…
//
// What the compiler says goes to standard output. Exit status 0: done; 1: the input is refused by
// the compiler; 2: a wrong call; 3: the library or a file is at fault.

#include "gpu/toolchain/compile_steps.hpp"
#include "gpu/toolchain/nvrtc_library.hpp"
#include "protocol/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace gristmill {

namespace {

using words = std::vector<std::string>;

constexpr size_t input_bytes_max = size_t{20} << 20;

int at_fault(const failure& what) {
  std::fprintf(stdout, "%s\n", what.what.c_str());
  return 3;
}

words lines_of(const std::string& text) {
  words lines;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

int tell_version(const std::string& library) {
  auto opened = nvrtc_library::open(library);
  if (!opened)
    return at_fault(opened.error());
  std::printf("%s\n%s\n", opened->version().c_str(), opened->path().c_str());
  return 0;
}

int compile(const words& given, const words& options) {
  auto library = nvrtc_library::open(given[0]);
  if (!library)
    return at_fault(library.error());
  auto source = read_text_file(given[1], input_bytes_max);
  if (!source)
    return at_fault(source.error());
  auto names = read_text_file(given[2], input_bytes_max);
  if (!names)
    return at_fault(names.error());
  auto made = library->compile(*source, "kernel.cu", lines_of(*names), options);
  if (!made)
    return at_fault(made.error());
  std::fputs(made->log.c_str(), stdout);
  if (!made->compiled)
    return 1;
  std::string symbols;
  for (const std::string& symbol : made->symbols)
    symbols += symbol + "\n";
  if (auto written = write_text_file(given[3], made->ptx); !written)
    return at_fault(written.error());
  if (auto written = write_text_file(given[4], symbols); !written)
    return at_fault(written.error());
  return 0;
}

int assemble(const words& given, const words& options) {
  auto library = jit_link_library::open(given[0]);
  if (!library)
    return at_fault(library.error());
  auto ptx = read_text_file(given[1], input_bytes_max);
  if (!ptx)
    return at_fault(ptx.error());
  auto made = library->assemble(*ptx, options);
  if (!made)
    return at_fault(made.error());
  std::fputs(made->log.c_str(), stdout);
  return made->done ? 0 : 1;
}

int run(const words& all) {
  const auto dashes = std::find(all.begin(), all.end(), "--");
  const words given(all.begin() + (all.empty() ? 0 : 1), dashes);
  const words options(dashes == all.end() ? dashes : dashes + 1, all.end());
  if (all.size() == 2 && all[0] == "version")
    return tell_version(all[1]);
  if (!all.empty() && all[0] == "compile" && given.size() == 5)
    return compile(given, options);
  if (!all.empty() && all[0] == "assemble" && given.size() == 2)
    return assemble(given, options);
  std::fputs("gristmill-nvrtc: wrong call; it is a part of gristmill and started by it\n", stderr);
  return 2;
}

} // namespace

} // namespace gristmill

int main(int argc, char** argv) {
  const int status = gristmill::run({argv + 1, argv + argc});
  // The compiler's own exit handlers are not waited for.
  std::fflush(stdout);
  std::fflush(stderr);
  _Exit(status);
}
