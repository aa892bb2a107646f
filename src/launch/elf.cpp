#include "launch/elf.h"

#include <elf.h>

#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/checked.h"
#include "base/mapped_file.h"

namespace ait::launch {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kThisMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kThisMachine = EM_AARCH64;
#else
#error "ait is built for x86-64 and aarch64"
#endif
static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kSaveTensor = "_ZN3atb5Probe10SaveTensorE";
constexpr std::string_view kNewString = "RKNSt7__cxx11";
constexpr std::string_view kOldString = "RKSs";

// The bytes of a file, to be looked at in pieces that surely lie inside.
class ElfFile {
 public:
  static Result<ElfFile> open(const std::string& path) {
    auto file = MappedFile::open(path);
    if (!file) return fail(file.error());
    ElfFile out(std::move(*file));
    const auto identity = out.read<std::array<unsigned char, EI_NIDENT>>(0);
    if (!identity || std::memcmp(identity->data(), ELFMAG, SELFMAG) != 0)
      return fail(Error(ErrorCode::kUnsupported, path) << "is not an ELF file");
    if ((*identity)[EI_CLASS] == ELFCLASS64 && (*identity)[EI_DATA] == ELFDATA2LSB) {
      const auto header = out.read<Elf64_Ehdr>(0);
      if (!header) return fail(out.broken("its header is cut off", 0));
      out.header_ = *header;
      out.this_machine_ = header->e_machine == kThisMachine;
    }
    return out;
  }

  // Files of another machine are not read any further.
  bool is_for_this_machine() const { return this_machine_; }
  const Elf64_Ehdr& header() const { return header_; }

  template <typename T>
  std::optional<T> read(uint64_t offset) const {
    if (!range_fits(offset, sizeof(T), file_->bytes().size())) return std::nullopt;
    T out;
    std::memcpy(&out, file_->bytes().data() + offset, sizeof(T));
    return out;
  }

  // Entry `index` of a table of T.
  template <typename T>
  std::optional<T> entry(uint64_t table, uint64_t entry_bytes, uint64_t index) const {
    const auto distance = checked_mul(entry_bytes, index);
    const auto offset = distance ? checked_add(table, *distance) : std::nullopt;
    return offset && entry_bytes >= sizeof(T) ? read<T>(*offset) : std::nullopt;
  }

  // A table of bytes that ends where its section does, or nothing if that is not in the file.
  std::optional<std::string_view> bytes_of(const Elf64_Shdr& section) const {
    const auto bytes = file_->bytes();
    if (!range_fits(section.sh_offset, section.sh_size, bytes.size())) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(bytes.data()) + section.sh_offset,
                            section.sh_size);
  }

  Error broken(std::string_view what, uint64_t offset) const {
    return Error(ErrorCode::kCorrupt, file_->path(), offset) << what;
  }
  const std::string& path() const { return file_->path(); }

 private:
  explicit ElfFile(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {}

  std::shared_ptr<const MappedFile> file_;
  Elf64_Ehdr header_{};
  bool this_machine_ = false;
};

Result<Elf64_Shdr> find_dynamic_symbols(const ElfFile& file) {
  const Elf64_Ehdr& header = file.header();
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = file.entry<Elf64_Shdr>(header.e_shoff, header.e_shentsize, i);
    if (!section) return fail(file.broken("its section table lies outside", header.e_shoff));
    if (section->sh_type == SHT_DYNSYM) return *section;
  }
  return fail(Error(ErrorCode::kUnsupported, file.path()) << "has no dynamic symbol table");
}

}  // namespace

Result<ElfFacts> read_elf(const std::string& path) {
  const auto file = ElfFile::open(path);
  if (!file) return fail(file.error());
  ElfFacts facts;
  if (!file->is_for_this_machine()) return facts;
  facts.this_machine = true;
  const Elf64_Ehdr& header = file->header();
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = file->entry<Elf64_Phdr>(header.e_phoff, header.e_phentsize, i);
    if (!segment) return fail(file->broken("its program headers lie outside", header.e_phoff));
    if (segment->p_type == PT_INTERP) facts.has_loader = true;
  }
  return facts;
}

Result<ProbeInterface> read_probe_interface(const std::string& path) {
  const auto file = ElfFile::open(path);
  if (!file) return fail(file.error());
  if (!file->is_for_this_machine())
    return fail(Error(ErrorCode::kUnsupported, path) << "is a library for another machine");
  const auto symbols = find_dynamic_symbols(*file);
  if (!symbols) return fail(symbols.error());
  const Elf64_Shdr& table = *symbols;
  const Elf64_Ehdr& header = file->header();
  const auto strings =
      table.sh_link < header.e_shnum
          ? file->entry<Elf64_Shdr>(header.e_shoff, header.e_shentsize, table.sh_link)
          : std::nullopt;
  const auto names = strings ? file->bytes_of(*strings) : std::nullopt;
  if (!names || !file->bytes_of(table) || table.sh_entsize < sizeof(Elf64_Sym))
    return fail(file->broken("its dynamic symbol table lies outside", table.sh_offset));

  ProbeInterface found;
  for (uint64_t i = 0; i < table.sh_size / table.sh_entsize; ++i) {
    const auto symbol = file->entry<Elf64_Sym>(table.sh_offset, table.sh_entsize, i);
    if (!symbol || symbol->st_shndx == SHN_UNDEF || symbol->st_name >= names->size()) continue;
    const std::string_view name = names->substr(symbol->st_name);
    if (!name.starts_with(kSaveTensor)) continue;
    const std::string_view parameters = name.substr(kSaveTensor.size());
    found.new_strings |= parameters.starts_with(kNewString);
    found.old_strings |= parameters.starts_with(kOldString);
  }
  return found;
}

}  // namespace ait::launch
