// Runs and times the corpus of device kernels on a real GPU. Standard library and CUDA runtime
// only.
//
//   harness dry-run CORPUS CUBINS             no GPU: reads everything, computes every reference
//   harness check CORPUS CUBINS NAME          one kernel at its small size against its reference
//   harness once CORPUS CUBINS NAME           one call at the large size, for a profiler
//   harness check-all CORPUS CUBINS           all of them, sealed ones too, a process each
//   harness time CORPUS CUBINS OUT SECONDS    rows in OUT/kernels.csv, samples in
//   OUT/kernel_samples.csv
//   harness sealed CORPUS CUBINS OUT SECONDS  the same for the sealed kernels: OUT/sealed.csv
//   harness rank CORPUS CUBINS OUT SECONDS    points of templates in OUT/variants.csv
//
// `time` leaves sealed kernels out. Each kernel runs in a process of its own with a limit, so that
// a fault ends only itself; `rank` has a process for each problem. Exit code 0 when everything was
// right, 1 when something was wrong.

#include "bench/calibration/measure.cuh"
#include "bench/calibration/references.hpp"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <thread>

#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace gristmill::calibration;

constexpr int least_samples = 21, most_samples = 41;
constexpr double seconds_a_kind = 0.35;
constexpr sample_limits ranking_limits{11, 15, 0.05, 0.02};

__global__ void fill_input(
  char dtype, uint8_t* to, fill_kind fill, double value, uint64_t elements, uint64_t stream) {
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < elements;
       i += uint64_t{gridDim.x} * blockDim.x)
    write_element(dtype, to, fill, value, elements, stream, i);
}

__global__ void count_different(
  const uint32_t* a, const uint32_t* b, uint64_t words, unsigned long long* found) {
  unsigned long long own = 0;
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < words;
       i += uint64_t{gridDim.x} * blockDim.x)
    own += a[i] != b[i];
  if (own > 0)
    atomicAdd(found, own);
}

/// A case at one size with its memory on the device.
class bound_call {
public:
  bound_call(const corpus_case& of, const sized_case& size, const std::string& cubins)
    : size_(size) {
    CALIBRATION_CUDA(cudaLibraryLoadFromFile(&library_, (cubins + "/" + of.name + ".cubin").c_str(),
      nullptr, nullptr, 0, nullptr, nullptr, 0));
    for (const case_buffer& b : size.buffers) {
      void* p = nullptr;
      CALIBRATION_CUDA(cudaMalloc(&p, b.bytes + 256));
      memory_.push_back(p);
      // A wrong answer must not look right because memory happened to hold it; but a checker of
      // uninitialised memory must see what nobody wrote.
      const bool cleared = b.init == "zero" || b.init == "restored";
      if (cleared || std::getenv("CALIBRATION_NO_POISON") == nullptr)
        CALIBRATION_CUDA(cudaMemset(p, cleared ? 0 : 0x7b, b.bytes));
    }
    for (const case_map& m : size.maps)
      encode(m);
    for (const case_step& s : size.steps) {
      cudaKernel_t kernel = nullptr;
      if (s.kind == case_step::op::launch) {
        CALIBRATION_CUDA(cudaLibraryGetKernel(&kernel, library_, s.entry.c_str()));
        if (s.shared_bytes > 48 * 1024 - 1024)
          CALIBRATION_CUDA(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
            cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(s.shared_bytes)));
      }
      kernels_.push_back(kernel);
    }
  }

  bound_call(const bound_call&) = delete;
  bound_call& operator=(const bound_call&) = delete;
  ~bound_call() {
    for (void* p : memory_)
      cudaFree(p);
    cudaLibraryUnload(library_);
  }

  /// Inputs as everywhere: small ones by the CPU, so that mock and GPU see the same bytes.
  void fill(bool on_device) {
    for (size_t i = 0; i < size_.buffers.size(); ++i) {
      const case_buffer& b = size_.buffers[i];
      if (b.kind != case_buffer::role::input)
        continue;
      if (on_device) {
        fill_input<<<1056, 256>>>(letter_of(b.dtype), static_cast<uint8_t*>(memory_[i]),
          fill_of(b.fill), b.fill_value, b.elements, i);
        CALIBRATION_CUDA(cudaGetLastError());
      } else {
        inputs_.push_back(drawn(b, i, b.elements));
        CALIBRATION_CUDA(
          cudaMemcpy(memory_[i], inputs_.back().data(), b.bytes, cudaMemcpyHostToDevice));
      }
    }
    CALIBRATION_CUDA(cudaDeviceSynchronize());
  }

  void run(cudaStream_t stream) {
    for (size_t i = 0; i < size_.buffers.size(); ++i)
      if (size_.buffers[i].init == "zero")
        CALIBRATION_CUDA(cudaMemsetAsync(memory_[i], 0, size_.buffers[i].bytes, stream));
    for (size_t i = 0; i < size_.steps.size(); ++i) {
      const case_step& s = size_.steps[i];
      auto* to =
        static_cast<uint8_t*>(s.kind == case_step::op::launch ? nullptr : memory_[s.buffer]);
      if (s.kind == case_step::op::launch)
        launch(s, kernels_[i], stream);
      else if (s.kind == case_step::op::memset)
        CALIBRATION_CUDA(
          cudaMemsetAsync(to + s.offset, static_cast<int>(s.value), s.bytes, stream));
      else
        CALIBRATION_CUDA(
          cudaMemcpyAsync(to + s.offset, static_cast<uint8_t*>(memory_[s.source]) + s.source_offset,
            s.bytes, cudaMemcpyDeviceToDevice, stream));
    }
  }

  size_t output_place() const {
    for (size_t i = 0; i < size_.buffers.size(); ++i)
      if (size_.buffers[i].kind == case_buffer::role::output)
        return i;
    throw std::runtime_error("a case without output");
  }

  /// Mean magnitude of some 200,000 elements spread over the output: variants that compute the same
  /// agree in it.
  double mean_magnitude() const {
    const case_buffer& b = size_.buffers[output_place()];
    const auto* from = static_cast<const uint8_t*>(memory_[output_place()]);
    const uint64_t width = b.bytes / b.elements;
    const uint64_t run = std::min<uint64_t>(b.elements, 4096), runs = b.elements > run ? 50 : 1;
    double sum = 0;
    for (uint64_t i = 0; i < runs; ++i) {
      const uint64_t first = runs == 1 ? 0 : (b.elements - run) / (runs - 1) * i;
      std::vector<uint8_t> bytes(run * width);
      CALIBRATION_CUDA(
        cudaMemcpy(bytes.data(), from + first * width, bytes.size(), cudaMemcpyDeviceToHost));
      for (const double v : as_doubles(b.dtype, bytes))
        sum += std::fabs(v);
    }
    return sum / static_cast<double>(run * runs);
  }

  numbers output() const {
    const size_t place = output_place();
    std::vector<uint8_t> bytes(size_.buffers[place].bytes);
    CALIBRATION_CUDA(
      cudaMemcpy(bytes.data(), memory_[place], bytes.size(), cudaMemcpyDeviceToHost));
    return as_doubles(size_.buffers[place].dtype, bytes);
  }

  std::vector<numbers> inputs() const {
    std::vector<numbers> out;
    size_t next = 0;
    for (const case_buffer& b : size_.buffers)
      if (b.kind == case_buffer::role::input)
        out.push_back(as_doubles(b.dtype, inputs_[next++]));
    return out;
  }

  /// 32-bit words of the output that a second call leaves different from the first.
  unsigned long long unsteady_words(cudaStream_t stream) {
    const size_t place = output_place();
    const uint64_t bytes = size_.buffers[place].bytes;
    void* first = nullptr;
    unsigned long long *found = nullptr, count = 0;
    CALIBRATION_CUDA(cudaMalloc(&first, bytes));
    CALIBRATION_CUDA(cudaMalloc(&found, 8));
    CALIBRATION_CUDA(cudaMemsetAsync(found, 0, 8, stream));
    run(stream);
    CALIBRATION_CUDA(
      cudaMemcpyAsync(first, memory_[place], bytes, cudaMemcpyDeviceToDevice, stream));
    CALIBRATION_CUDA(cudaMemsetAsync(memory_[place], 0x7b, bytes, stream));
    run(stream);
    count_different<<<1056, 256, 0, stream>>>(
      static_cast<uint32_t*>(first), static_cast<uint32_t*>(memory_[place]), bytes / 4, found);
    CALIBRATION_CUDA(cudaMemcpyAsync(&count, found, 8, cudaMemcpyDeviceToHost, stream));
    CALIBRATION_CUDA(cudaStreamSynchronize(stream));
    CALIBRATION_CUDA(cudaFree(first));
    CALIBRATION_CUDA(cudaFree(found));
    return count;
  }

  /// "entry:registers:local bytes:static shared:blocks an SM" of each different entry.
  std::string resources() const {
    std::string out;
    for (size_t i = 0; i < kernels_.size(); ++i) {
      if (kernels_[i] == nullptr || out.find(size_.steps[i].entry + ":") != std::string::npos)
        continue;
      cudaFuncAttributes a{};
      int blocks = 0;
      const auto* function = reinterpret_cast<const void*>(kernels_[i]);
      const case_step& s = size_.steps[i];
      // What cannot be asked is -1: it is worth no measurement.
      if (cudaFuncGetAttributes(&a, function) != cudaSuccess)
        a.numRegs = -1;
      if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function,
            static_cast<int>(s.block[0] * s.block[1] * s.block[2]), s.shared_bytes)
        != cudaSuccess)
        blocks = -1;
      cudaGetLastError();
      out += (out.empty() ? "" : " ") + s.entry + ":" + std::to_string(a.numRegs) + ":"
        + std::to_string(a.localSizeBytes) + ":" + std::to_string(a.sharedSizeBytes) + ":"
        + std::to_string(blocks);
    }
    return out;
  }

private:
  template <class T>
  static T named(const std::map<std::string, T>& all, const std::string& word) {
    const auto found = all.find(word);
    if (found == all.end())
      throw std::runtime_error("a tensor map with " + word + " is not known");
    return found->second;
  }

  void encode(const case_map& m) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult seen{};
    CALIBRATION_CUDA(cudaGetDriverEntryPointByVersion(
      "cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &seen));
    if (found == nullptr)
      throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
    const CUtensorMapDataType type = named<CUtensorMapDataType>(
      {{"bfloat16", CU_TENSOR_MAP_DATA_TYPE_BFLOAT16}, {"float16", CU_TENSOR_MAP_DATA_TYPE_FLOAT16},
        {"float32", CU_TENSOR_MAP_DATA_TYPE_FLOAT32}},
      size_.buffers[m.buffer].dtype);
    const CUtensorMapSwizzle swizzle = named<CUtensorMapSwizzle>(
      {{"none", CU_TENSOR_MAP_SWIZZLE_NONE}, {"32B", CU_TENSOR_MAP_SWIZZLE_32B},
        {"64B", CU_TENSOR_MAP_SWIZZLE_64B}, {"128B", CU_TENSOR_MAP_SWIZZLE_128B}},
      m.swizzle);
    const CUtensorMapL2promotion l2 = named<CUtensorMapL2promotion>(
      {{"none", CU_TENSOR_MAP_L2_PROMOTION_NONE}, {"64B", CU_TENSOR_MAP_L2_PROMOTION_L2_64B},
        {"128B", CU_TENSOR_MAP_L2_PROMOTION_L2_128B}, {"256B", CU_TENSOR_MAP_L2_PROMOTION_L2_256B}},
      m.l2);
    const std::vector<cuuint64_t> sizes(m.sizes.begin(), m.sizes.end());
    const std::vector<cuuint64_t> strides(m.strides.begin(), m.strides.end());
    const std::vector<cuuint32_t> box(m.box.begin(), m.box.end());
    const std::vector<cuuint32_t> steps(m.box.size(), 1);
    maps_.push_back(std::make_unique<aligned_map>());
    const CUresult done = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found)(
      &maps_.back()->map, type, static_cast<cuuint32_t>(sizes.size()), memory_[m.buffer],
      sizes.data(), strides.data(), box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzle, l2, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (done != CUDA_SUCCESS)
      throw std::runtime_error("cuTensorMapEncodeTiled: " + std::to_string(done));
  }

  void launch(const case_step& s, cudaKernel_t kernel, cudaStream_t stream) {
    std::vector<uint64_t> addresses(s.arguments.size());
    std::vector<void*> parameters;
    for (size_t i = 0; i < s.arguments.size(); ++i) {
      const case_argument& a = s.arguments[i];
      if (a.kind == case_argument::what::bytes) {
        parameters.push_back(const_cast<uint8_t*>(a.bytes.data()));
      } else if (a.kind == case_argument::what::map) {
        parameters.push_back(&maps_[a.index]->map);
      } else {
        addresses[i] = reinterpret_cast<uint64_t>(memory_[a.index]) + a.offset;
        parameters.push_back(&addresses[i]);
      }
    }
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(s.grid[0], s.grid[1], s.grid[2]);
    config.blockDim = dim3(s.block[0], s.block[1], s.block[2]);
    config.dynamicSmemBytes = s.shared_bytes;
    config.stream = stream;
    cudaLaunchAttribute attributes[2];
    unsigned count = 0;
    if (s.cluster[0] * s.cluster[1] * s.cluster[2] > 1) {
      attributes[count].id = cudaLaunchAttributeClusterDimension;
      attributes[count].val.clusterDim.x = s.cluster[0];
      attributes[count].val.clusterDim.y = s.cluster[1];
      attributes[count++].val.clusterDim.z = s.cluster[2];
    }
    if (s.cooperative) {
      attributes[count].id = cudaLaunchAttributeCooperative;
      attributes[count++].val.cooperative = 1;
    }
    config.attrs = attributes;
    config.numAttrs = count;
    CALIBRATION_CUDA(
      cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), parameters.data()));
  }

  struct aligned_map {
    CUtensorMap map;
  };

  const sized_case& size_;
  cudaLibrary_t library_ = nullptr;
  std::vector<void*> memory_;
  std::vector<cudaKernel_t> kernels_;
  std::vector<std::unique_ptr<aligned_map>> maps_;
  std::vector<std::vector<uint8_t>> inputs_;
};

/// The small size against the reference; the words of what was wrong, or nothing.
std::string check_small(const corpus_case& of, const std::string& cubins, double& worst) {
  bound_call call(of, of.small, cubins);
  call.fill(false);
  call.run(nullptr);
  CALIBRATION_CUDA(cudaDeviceSynchronize());
  const largest_error found =
    compare_numbers(call.output(), expected(of, call.inputs()), of.atol, of.rtol);
  worst = found.worst;
  if (found.right())
    return "";
  char text[200];
  std::snprintf(text, sizeof text, "element %llu is %.9g instead of %.9g",
    static_cast<unsigned long long>(found.place), found.got, found.want);
  return text;
}

/// One line of OUT/TABLE.csv and OUT/TABLE_samples.csv for each flush kind.
std::string time_large(const corpus_case& of, const std::string& cubins, const std::string& out,
  const std::string& table, const std::string& samples_table) {
  double worst = 0;
  const std::string wrong = check_small(of, cubins, worst);
  measuring_tools tools;
  bound_call call(of, of.large, cubins);
  call.fill(true);
  const unsigned long long unsteady = call.unsteady_words(tools.stream);
  const std::string resources = call.resources();
  std::string rows, samples;
  for (const flush_kind kind : {flush_kind::official, flush_kind::clean, flush_kind::warm}) {
    const timing t =
      measure([&] { call.run(tools.stream); }, static_cast<int>(of.large.steps.size()), kind, tools,
        {least_samples, most_samples, seconds_a_kind});
    char row[1200];
    std::snprintf(row, sizeof row,
      "%s,%s,%s,%s,%.3f,%.3f,%.3f,%.3f,%zu,%.3f,%.3f,%d,%.1f,%.1f,%.3g,%s,%llu,%s,%lld\n",
      of.name.c_str(), of.family.c_str(), of.kind.c_str(), name_of(kind), t.median_us, t.mad_us,
      t.least_us, t.most_us, t.samples_us.size(), t.per_call_us, t.overhead_us, t.repeat,
      t.mhz_before, t.mhz_after, worst, wrong.empty() ? "right" : "WRONG", unsteady,
      resources.c_str(), static_cast<long long>(std::time(nullptr)));
    rows += row;
    samples += of.name + "," + name_of(kind);
    for (const double us : t.samples_us) {
      std::snprintf(row, sizeof row, ",%.3f", us);
      samples += row;
    }
    samples += "\n";
  }
  std::ofstream(out + "/" + table, std::ios::app) << rows;
  std::ofstream(out + "/" + samples_table, std::ios::app) << samples;
  return wrong;
}

/// One line of variants.csv. There is no reference: the magnitude is compared with the others'.
void rank_large(
  const corpus_case& of, const std::string& cubins, const std::string& out, measuring_tools& tools) {
  bound_call call(of, of.large, cubins);
  call.fill(true);
  call.run(tools.stream);
  CALIBRATION_CUDA(cudaStreamSynchronize(tools.stream));
  const double magnitude = call.mean_magnitude();
  const timing t = measure([&] { call.run(tools.stream); },
    static_cast<int>(of.large.steps.size()), flush_kind::clean, tools, ranking_limits);
  char row[1200];
  std::snprintf(row, sizeof row, "%s,%s,%s,clean,%.3f,%.3f,%.3f,%.3f,%zu,%.1f,%.1f,%.6g,%s\n",
    of.name.c_str(), of.family.c_str(), of.kind.c_str(), t.median_us, t.mad_us, t.least_us,
    t.most_us, t.samples_us.size(), t.mhz_before, t.mhz_after, magnitude,
    call.resources().c_str());
  std::ofstream(out + "/variants.csv", std::ios::app) << row;
}

/// All variants of a problem in one process; whether they all ran.
bool rank_problem(const std::vector<corpus_case>& all, const std::string& problem,
  const std::string& cubins, const std::string& out) {
  return in_own_process(
    [&] {
      measuring_tools tools;
      int bad = 0;
      for (const corpus_case& one : all)
        if (one.folder == problem)
          try {
            rank_large(one, cubins, out, tools);
          } catch (const std::exception& e) {
            std::printf("FAILED %s: %s\n", one.name.c_str(), e.what());
            std::fflush(stdout);
            // The next variant must not find this one's error.
            cudaGetLastError();
            ++bad;
          }
      return bad == 0 ? 0 : 1;
    },
    problem, 60);
}

template <class Work>
int guarded(const Work& work, const std::string& name) {
  try {
    const std::string wrong = work();
    if (wrong.empty())
      return 0;
    std::printf("WRONG %s: %s\n", name.c_str(), wrong.c_str());
  } catch (const std::exception& e) {
    std::printf("FAILED %s: %s\n", name.c_str(), e.what());
  }
  std::fflush(stdout);
  return 1;
}

int dry_run(const std::vector<corpus_case>& all, const std::string& cubins) {
  int bad = 0;
  for (const corpus_case& one : all)
    bad += guarded(
      [&]() -> std::string {
        if (!std::ifstream(cubins + "/" + one.name + ".cubin"))
          return "no cubin";
        std::vector<numbers> inputs;
        for (size_t i = 0; i < one.small.buffers.size(); ++i)
          if (const case_buffer& b = one.small.buffers[i]; b.kind == case_buffer::role::input)
            inputs.push_back(as_doubles(b.dtype, drawn(b, i, b.elements)));
        const numbers want = expected(one, std::move(inputs));
        if (want.empty() || std::all_of(want.begin(), want.end(), [](double v) { return v == 0; }))
          return "its reference gives only zeros";
        return "";
      },
      one.name);
  std::printf("dry run: %zu kernels, %d not in order\n", all.size(), bad);
  return bad == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  const int wanted = verb == "dry-run" || verb == "check-all" ? 4
    : verb == "check" || verb == "once"                       ? 5
    : verb == "time" || verb == "sealed" || verb == "rank"    ? 6
                                                              : -1;
  if (argc != wanted) {
    std::fprintf(stderr,
      "usage: harness dry-run|check-all CORPUS CUBINS\n"
      "       harness check|once CORPUS CUBINS NAME\n"
      "       harness time|sealed|rank CORPUS CUBINS OUT SECONDS\n");
    return 2;
  }
  std::vector<corpus_case> all;
  try {
    std::ifstream in(argv[2]);
    if (!in)
      throw std::runtime_error("cannot be read");
    all = parse_corpus(in);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "harness: %s: %s\n", argv[2], e.what());
    return 2;
  }
  const std::string cubins = argv[3];
  if (verb == "dry-run")
    return dry_run(all, cubins);
  if (verb == "check" || verb == "once") {
    for (const corpus_case& one : all)
      if (one.name == argv[4])
        return guarded(
          [&]() -> std::string {
            if (verb == "check") {
              double worst = 0;
              return check_small(one, cubins, worst);
            }
            bound_call call(one, one.large, cubins);
            call.fill(true);
            call.run(nullptr);
            CALIBRATION_CUDA(cudaDeviceSynchronize());
            return "";
          },
          one.name);
    std::fprintf(stderr, "harness: no kernel %s\n", argv[4]);
    return 2;
  }
  const bool timed = verb == "time" || verb == "sealed";
  const std::string table = verb == "sealed" ? "sealed.csv" : "kernels.csv";
  const std::string samples = verb == "sealed" ? "sealed_samples.csv" : "kernel_samples.csv";
  if (timed) {
    std::ofstream(std::string(argv[4]) + "/" + table)
      << "name,family,class,flush,median_us,mad_us,min_us,max_us,samples,per_call_us,"
         "event_overhead_us,repeat,mhz_before,mhz_after,worst_error,verdict,unsteady_words,"
         "resources,unix_time\n";
    std::ofstream(std::string(argv[4]) + "/" + samples) << "";
  }
  if (verb == "rank")
    std::ofstream(std::string(argv[4]) + "/variants.csv")
      << "name,family,class,flush,median_us,mad_us,min_us,max_us,samples,mhz_before,mhz_after,"
         "mean_magnitude,resources\n";
  const double limit = timed || verb == "rank" ? std::atof(argv[5]) : 540;
  int bad = 0, ran = 0, left = 0;
  const auto begin = std::chrono::steady_clock::now();
  if (verb == "rank") {
    std::string last;
    for (const corpus_case& one : all) {
      if (one.folder == last)
        continue;
      last = one.folder;
      if (seconds_since(begin) > limit) {
        ++left;
        continue;
      }
      ++ran;
      bad += rank_problem(all, last, cubins, argv[4]) ? 0 : 1;
    }
    std::printf("rank: %d problems ran, %d not in order, %d left out for time, %.0f s\n", ran, bad,
      left, seconds_since(begin));
    return bad == 0 && left == 0 ? 0 : 1;
  }
  for (const corpus_case& one : all) {
    if (timed && (one.family == "sealed") != (verb == "sealed"))
      continue;
    if (seconds_since(begin) > limit) {
      ++left;
      continue;
    }
    ++ran;
    const bool fine = in_own_process(
      [&] {
        return guarded(
          [&]() -> std::string {
            double worst = 0;
            return timed ? time_large(one, cubins, argv[4], table, samples)
                         : check_small(one, cubins, worst);
          },
          one.name);
      },
      one.name, 40);
    bad += fine ? 0 : 1;
  }
  std::printf("%s: %d kernels ran, %d not in order, %d left out for time, %.0f s\n", verb.c_str(),
    ran, bad, left, seconds_since(begin));
  return bad == 0 && left == 0 ? 0 : 1;
}
