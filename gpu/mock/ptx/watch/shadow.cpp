#include "gpu/mock/ptx/watch/shadow.hpp"

namespace gristmill::ptx {

cell* cell_pages::at(uint64_t address) {
  const uint64_t word = address / 4;
  const uint64_t number = word / page_words;
  if (number != recent_number_) {
    auto found = pages_.find(number);
    if (found == pages_.end()) {
      if ((pages_.size() + 1) * page_words * sizeof(cell) > bytes_max)
        return nullptr;
      found = pages_.emplace(number, std::make_unique<cell[]>(page_words)).first;
    }
    recent_number_ = number;
    recent_ = found->second.get();
  }
  return recent_ + word % page_words;
}

} // namespace gristmill::ptx
