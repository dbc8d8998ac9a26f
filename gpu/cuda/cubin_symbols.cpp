#include "gpu/cuda/cubin_symbols.hpp"

#include <cstring>
#include <elf.h>
#include <optional>

namespace gristmill::cuda {

namespace {

/// A structure at that place, when the file is long enough.
template <class Part>
std::optional<Part> part_at(std::string_view file, uint64_t at) {
  if (at > file.size() || file.size() - at < sizeof(Part))
    return std::nullopt;
  Part out;
  std::memcpy(&out, file.data() + at, sizeof out);
  return out;
}

std::string_view inside(std::string_view file, uint64_t at, uint64_t bytes) {
  return at > file.size() ? std::string_view{} : file.substr(at, bytes);
}

} // namespace

std::vector<std::string> symbols_of(std::string_view cubin) {
  std::vector<std::string> out;
  const auto head = part_at<Elf64_Ehdr>(cubin, 0);
  if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
    return out;
  auto section = [&](uint32_t number) {
    return part_at<Elf64_Shdr>(cubin, head->e_shoff + uint64_t{number} * sizeof(Elf64_Shdr));
  };
  for (uint32_t i = 0; i < head->e_shnum; ++i) {
    const auto table = section(i);
    if (!table || table->sh_type != SHT_SYMTAB)
      continue;
    const auto texts = section(table->sh_link);
    if (!texts)
      continue;
    const auto names = inside(cubin, texts->sh_offset, texts->sh_size);
    const auto symbols = inside(cubin, table->sh_offset, table->sh_size);
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
      const auto symbol = part_at<Elf64_Sym>(symbols, at);
      const auto name = inside(names, symbol->st_name, names.size());
      if (const auto end = name.find('\0'); end != name.npos && end > 0)
        out.emplace_back(name.substr(0, end));
    }
  }
  return out;
}

} // namespace gristmill::cuda
