// The PTX interpreter beside the prototype that it grew out of: the prototype's ten kernels, the
// same PTX and the same inputs, turn by turn in one program, counts only. Processor time of this
// thread.
//
// Usage: gristmill-bench-ptx-pair PTX_FOLDER [ROUNDS [KERNEL]]
//
// bench/ptx_pair.py makes the folder and calls this. The prototype is no part of the tree:
// configure with -DGRISTMILL_PTX_PROTOTYPE=FOLDER, where cases.h and ptx/ptxsim.cpp are.

#include "gpu/mock/ptx/ptx.hpp"

#include <cases.h>
#include <ptx/ptxsim.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace ours = gristmill::ptx;

double seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// The file's name without .ptx: that of the source.
std::string file_of(const cases::Case& c) {
  return c.file.substr(0, c.file.rfind('.'));
}

/// Memory that lies as device memory does.
struct device_buffers {
  explicit device_buffers(const cases::Case& c) {
    for (const auto& b : c.bufs) {
      storage.emplace_back(b.size() + 256);
      const auto at = reinterpret_cast<uintptr_t>(storage.back().data());
      bytes.push_back(storage.back().data() + ((at + 255) / 256 * 256 - at));
    }
  }
  void fill(const cases::Case& c) {
    for (size_t i = 0; i < bytes.size(); ++i)
      std::memcpy(bytes[i], c.bufs[i].data(), c.bufs[i].size());
  }
  /// Largest error divided by its tolerance.
  double error(const cases::Case& c) const {
    cases::Case got = c;
    for (size_t i = 0; i < bytes.size(); ++i)
      std::memcpy(got.bufs[i].data(), bytes[i], got.bufs[i].size());
    return c.check(got);
  }
  std::vector<std::vector<uint8_t>> storage;
  std::vector<uint8_t*> bytes;
};

void put(std::vector<uint8_t>& parameters, uint32_t offset, const void* from, size_t bytes) {
  if (parameters.size() < offset + bytes)
    parameters.resize(offset + bytes);
  std::memcpy(parameters.data() + offset, from, bytes);
}

class prototype_run {
public:
  prototype_run(const cases::Case& c, const std::string& text)
    : module_(ptx::parse(text)), code_(module_.kernels.at(c.name)), memory_(c) {
    for (size_t i = 0; i < 3; ++i) {
      launch_.grid[i] = c.grid[i];
      launch_.block[i] = c.block[i];
    }
    launch_.dyn = static_cast<uint32_t>(c.dyn);
    for (size_t i = 0; i < c.bufs.size(); ++i) {
      const auto at = reinterpret_cast<uint64_t>(memory_.bytes[i]);
      launch_.mem.push_back({at, at + c.bufs[i].size()});
    }
    launch_.params.resize(code_.param_bytes);
    for (size_t i = 0; i < c.args.size(); ++i) {
      const cases::Arg& a = c.args[i];
      if (a.buf >= 0)
        put(launch_.params, code_.params[i].off, &memory_.bytes[static_cast<size_t>(a.buf)], 8);
      else
        put(launch_.params, code_.params[i].off, a.raw.data(), a.raw.size());
    }
    hardware_.caches = false;
  }
  double time(const cases::Case& c) {
    memory_.fill(c);
    const double begin = seconds();
    const ptx::Result r = ptx::run(code_, launch_, hardware_);
    lanes = r.lane_insts;
    return seconds() - begin;
  }
  double error(const cases::Case& c) const { return memory_.error(c); }
  uint64_t lanes = 0;

private:
  ptx::Module module_;
  const ptx::Kernel& code_;
  device_buffers memory_;
  ptx::Launch launch_{};
  ptx::Hw hardware_;
};

class our_run {
public:
  our_run(const cases::Case& c, const std::string& text) : memory_(c) {
    auto m = ours::parse(text);
    if (!m)
      throw std::runtime_error(m.error().what);
    state_ = ours::load(*m);
    launch_.entry = c.name;
    for (size_t i = 0; i < 3; ++i) {
      launch_.grid[i] = c.grid[i];
      launch_.block[i] = c.block[i];
    }
    launch_.dynamic_shared = static_cast<uint32_t>(c.dyn);
    uint64_t next = 0x1000'0000;
    for (size_t i = 0; i < c.bufs.size(); ++i) {
      launch_.memory.push_back(
        {next, memory_.bytes[i], c.bufs[i].size(), true, fmt::format("buffer {}", i)});
      next += (c.bufs[i].size() / 4096 + 2) * 4096;
    }
    // In the order of the prototype's offsets: each at a multiple of its own size.
    for (const cases::Arg& a : c.args) {
      uint64_t value = 0;
      const void* from = a.raw.data();
      size_t bytes = a.raw.size();
      if (a.buf >= 0) {
        value = launch_.memory[static_cast<size_t>(a.buf)].device;
        from = &value;
        bytes = 8;
      }
      const size_t offset = (launch_.parameters.size() + bytes - 1) / bytes * bytes;
      put(launch_.parameters, static_cast<uint32_t>(offset), from, bytes);
    }
  }
  double time(const cases::Case& c) {
    memory_.fill(c);
    const double begin = seconds();
    const ours::outcome r = ours::run(*state_, launch_);
    const double took = seconds() - begin;
    if (r.failed)
      throw std::runtime_error(r.failed->what);
    lanes = r.done.lane_instructions;
    return took;
  }
  double error(const cases::Case& c) const { return memory_.error(c); }
  uint64_t lanes = 0;

private:
  std::shared_ptr<ours::instance> state_;
  device_buffers memory_;
  ours::launch launch_;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const size_t half = v.size() / 2;
  return v.size() % 2 == 1 ? v[half] : (v[half - 1] + v[half]) / 2;
}

void compare(const std::string& folder, size_t rounds, const std::string& only) {
  fmt::print("median of {} rounds, ms of processor time, and of their quotients with the range\n\n"
             "{:14} {:>10} {:>10} {:>10} {:>15} {:>12}\n",
    rounds, "kernel", "prototype", "here", "quotient", "range", "M lane-steps");
  double logs[3] = {};
  size_t count = 0;
  for (const char* const name : cases::all) {
    if (!only.empty() && only != name)
      continue;
    const cases::Case c = cases::make(name);
    const std::string path = folder + "/" + file_of(c) + ".ptx";
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (text.empty())
      throw std::runtime_error(path + ": not found");
    prototype_run theirs(c, text);
    our_run mine(c, text);
    // The first touch of memory is nobody's.
    theirs.time(c);
    mine.time(c);
    std::vector<double> a, b, quotients;
    for (size_t i = 0; i < rounds; ++i) {
      a.push_back(theirs.time(c));
      b.push_back(mine.time(c));
      quotients.push_back(b.back() / a.back());
    }
    if (theirs.error(c) > 1 || mine.error(c) > 1)
      throw std::runtime_error(
        fmt::format("{}: wrong: {} and {}", name, theirs.error(c), mine.error(c)));
    const auto [least, most] = std::minmax_element(quotients.begin(), quotients.end());
    fmt::print("{:14} {:>10.1f} {:>10.1f} {:>10.3f} {:>7.3f}..{:<6.3f} {:>12.1f}\n", name,
      1e3 * median(a), 1e3 * median(b), median(quotients), *least, *most,
      1e-6 * static_cast<double>(mine.lanes));
    std::fflush(stdout);
    logs[0] += std::log(median(a));
    logs[1] += std::log(median(b));
    logs[2] += std::log(median(quotients));
    ++count;
  }
  if (count == 0)
    throw std::runtime_error("no kernel is called " + only);
  const auto n = static_cast<double>(count);
  fmt::print("{:14} {:>10.1f} {:>10.1f} {:>10.3f}\n\nOf {} kernels, geometric mean. The goal is "
             "0.500 (24 for 48 ms).\n",
    "all", 1e3 * std::exp(logs[0] / n), 1e3 * std::exp(logs[1] / n), std::exp(logs[2] / n), count);
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: {} PTX_FOLDER [ROUNDS [KERNEL]]\n", argv[0]);
    return 2;
  }
  try {
    const size_t rounds = argc > 2 ? std::stoul(argv[2]) : 5;
    compare(argv[1], std::max<size_t>(1, rounds), argc > 3 ? argv[3] : "");
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
