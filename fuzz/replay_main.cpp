// Runs a fuzz target without libFuzzer, so that every build of the tests does it:
//
//     fuzz_KIND [--mutations N] [--seed S] FILE|FOLDER...
//
// Each file is run as it is, then N changed ones. The changes depend on the seed only. An input
// that kills the program, takes ten seconds or more than half a gigabyte is written to
// fuzz_KIND.crash in the working directory and named on stderr; that file, given as FILE, runs it
// again.

#include "fuzz/mutate.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

constexpr size_t input_bytes_max = size_t{1} << 16;
constexpr unsigned seconds_max = 10;
/// With a margin for what a sanitizer adds.
constexpr long resident_kib_max = 512 * 1024;

// What the signal handler needs; it may not allocate.
const std::string* running = nullptr;
char crash_file[4096] = "";

void keep_input() {
  const int file = open(crash_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || running == nullptr)
    return;
  if (write(file, running->data(), running->size()) < 0)
    _exit(1);
  close(file);
}

void say(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0)
    _exit(1);
}

void on_signal(int number) {
  keep_input();
  say(number == SIGALRM ? "an input took too long; it is kept in "
                        : "an input ended the program; it is kept in ");
  say(crash_file);
  say("\n");
  signal(number, SIG_DFL);
  raise(number == SIGALRM ? SIGABRT : number);
}

long resident_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

void run_one(const std::string& input) {
  running = &input;
  const long before = resident_kib();
  alarm(seconds_max);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  alarm(0);
  if (const long after = resident_kib(); after > before && after > resident_kib_max) {
    keep_input();
    std::fprintf(
      stderr, "an input took the program to %ld KiB; it is kept in %s\n", after, crash_file);
    std::exit(1);
  }
  running = nullptr;
}

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) {
    std::fprintf(stderr, "%s: cannot be read\n", file.c_str());
    std::exit(2);
  }
  return text.str();
}

uint64_t number(const char* text) {
  uint64_t value = 0;
  const char* end = text + std::strlen(text);
  if (std::from_chars(text, end, value).ptr != end || end == text) {
    std::fprintf(stderr, "%s is not a number\n", text);
    std::exit(2);
  }
  return value;
}

} // namespace

int main(int argc, char** argv) {
  uint64_t mutations = 0;
  uint64_t seed = 1;
  std::vector<fs::path> files;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--mutations" && i + 1 < argc)
      mutations = number(argv[++i]);
    else if (argument == "--seed" && i + 1 < argc)
      seed = number(argv[++i]);
    else if (fs::is_directory(argument))
      for (const auto& entry : fs::directory_iterator(argument))
        files.push_back(entry.path());
    else
      files.emplace_back(argument);
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> seeds;
  for (const auto& file : files)
    seeds.push_back(content(file));
  if (seeds.empty()) {
    std::fprintf(stderr, "usage: %s [--mutations N] [--seed S] FILE|FOLDER...\n", argv[0]);
    return 2;
  }
  std::snprintf(crash_file, sizeof crash_file, "%s.crash", fs::path(argv[0]).filename().c_str());
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM})
    signal(number, on_signal);
  for (const auto& each : seeds)
    run_one(each);
  gristmill::fuzz::dice rolls(seed);
  for (uint64_t i = 0; i < mutations; ++i)
    run_one(
      gristmill::fuzz::mutated(seeds[rolls.below(seeds.size())], seeds, rolls, input_bytes_max));
  std::printf("%zu files and %llu changed ones, seed %llu: none crashed\n", seeds.size(),
    static_cast<unsigned long long>(mutations), static_cast<unsigned long long>(seed));
  return 0;
}
