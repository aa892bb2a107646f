// ELF files made by hand, right or wrong in any field.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace ait::launch {

class ElfBuilder {
 public:
  ElfBuilder() {
    std::memcpy(header_.e_ident, ELFMAG, SELFMAG);
    header_.e_ident[EI_CLASS] = ELFCLASS64;
    header_.e_ident[EI_DATA] = ELFDATA2LSB;
    header_.e_ident[EI_VERSION] = EV_CURRENT;
    header_.e_type = ET_DYN;
#if defined(__aarch64__)
    header_.e_machine = EM_AARCH64;
#else
    header_.e_machine = EM_X86_64;
#endif
    header_.e_version = EV_CURRENT;
    header_.e_ehsize = sizeof(Elf64_Ehdr);
    header_.e_phentsize = sizeof(Elf64_Phdr);
    header_.e_shentsize = sizeof(Elf64_Shdr);
  }

  Elf64_Ehdr& header() { return header_; }
  Elf64_Shdr& symbol_section() { return sections_[1]; }
  Elf64_Shdr& string_section() { return sections_[2]; }
  std::vector<Elf64_Sym>& symbols() { return symbols_; }

  void add_loader() {
    Elf64_Phdr segment{};
    segment.p_type = PT_INTERP;
    segments_.push_back(segment);
  }

  void add_symbol(const std::string& name, uint16_t section = 1) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(names_.size());
    symbol.st_shndx = section;
    symbols_.push_back(symbol);
    names_ += name + '\0';
  }

  // Lays out header, segments, symbols, names and sections, in this order. What a test changes in
  // the header or the sections afterwards stays changed: call layout() first, then text().
  void layout() {
    uint64_t at = sizeof header_;
    header_.e_phoff = at;
    header_.e_phnum = static_cast<Elf64_Half>(segments_.size());
    at += segments_.size() * sizeof(Elf64_Phdr);
    sections_.assign(3, Elf64_Shdr{});
    symbol_section().sh_type = SHT_DYNSYM;
    symbol_section().sh_offset = at;
    symbol_section().sh_size = symbols_.size() * sizeof(Elf64_Sym);
    symbol_section().sh_entsize = sizeof(Elf64_Sym);
    symbol_section().sh_link = 2;
    at += symbol_section().sh_size;
    string_section().sh_type = SHT_STRTAB;
    string_section().sh_offset = at;
    string_section().sh_size = names_.size();
    at += names_.size();
    header_.e_shoff = at;
    header_.e_shnum = 3;
    laid_out_ = true;
  }

  std::string text() {
    if (!laid_out_) layout();
    std::string out;
    append(out, header_);
    for (const auto& segment : segments_) append(out, segment);
    for (const auto& symbol : symbols_) append(out, symbol);
    out += names_;
    for (const auto& section : sections_) append(out, section);
    return out;
  }

 private:
  template <typename T>
  static void append(std::string& out, const T& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Sym> symbols_ = {Elf64_Sym{}};
  std::string names_ = std::string(1, '\0');
  std::vector<Elf64_Shdr> sections_ = std::vector<Elf64_Shdr>(3);
  bool laid_out_ = false;
};

}  // namespace ait::launch
