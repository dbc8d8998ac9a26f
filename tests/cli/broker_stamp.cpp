// Runs under a lease, sleeps, and writes when it began and when it ended, by the clock that the
// broker's journal uses: `broker_stamp FOLDER MILLISECONDS`.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <poll.h>
#include <string>

namespace {

int64_t now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

} // namespace

int main(int count, char** words) {
  const auto began = now();
  const char* gpu = std::getenv("GRISTMILL_LEASE_INDEX");
  const char* token = std::getenv("GRISTMILL_LEASE_TOKEN");
  if (count != 3 || !gpu || !token)
    return 2;
  poll(nullptr, 0, std::atoi(words[2]));
  auto file = std::string(words[1]) + "/" + gpu + "-" + token;
  FILE* out = std::fopen(file.c_str(), "w");
  if (!out)
    return 1;
  std::fprintf(out, "%lld %lld\n", static_cast<long long>(began), static_cast<long long>(now()));
  return std::fclose(out) == 0 ? 0 : 1;
}
