#include "capture/folder_index_file.h"

#include <algorithm>
#include <concepts>
#include <optional>
#include <span>

#include "base/checked.h"
#include "formats/little_endian.h"
#include "record/crc32.h"

namespace ait::capture {
namespace {

constexpr std::string_view kMagic = "ait tree";
constexpr uint32_t kVersion = 1;
constexpr size_t kChecksumAt = 12;
constexpr size_t kHeaderBytes = 16;

template <std::unsigned_integral T>
T read_at(std::string_view bytes, size_t at) {
  return formats::read_le<T>(std::as_bytes(std::span(bytes)), at);
}

template <std::unsigned_integral T>
void append(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>((value >> (8 * i)) & 0xFF);
}

void append_text(std::string& out, std::string_view text) {
  append(out, static_cast<uint32_t>(text.size()));
  out += text;
}

// Every member says whether there was enough.
class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  template <std::unsigned_integral T>
  bool number(T& value) {
    if (rest_.size() < sizeof(T)) return false;
    value = read_at<T>(rest_, 0);
    rest_.remove_prefix(sizeof(T));
    return true;
  }
  bool bytes(uint64_t count, std::string_view& out) {
    if (count > rest_.size()) return false;
    out = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }
  bool text(std::string_view& out) {
    uint32_t length = 0;
    return number(length) && bytes(length, out);
  }
  bool is_empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// As listing gives them: "a/b", with neither hidden names nor a way out of the folder.
bool is_listed_path(std::string_view path) {
  size_t depth = 0;
  while (true) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (part.empty() || part.front() == '.' || ++depth > 2 * kMaxFolderDepth) return false;
    if (part.size() == path.size()) return true;
    path.remove_prefix(part.size() + 1);
  }
}

// Each path ends with a NUL and is one that listing gives. Nothing where one is not.
std::optional<size_t> count_paths(std::string_view paths) {
  if (!paths.empty() && paths.back() != '\0') return std::nullopt;
  size_t count = 0;
  bool all = true;
  each_file(paths, [&](std::string_view path) {
    ++count;
    all = all && is_listed_path(path);
  });
  return all ? std::optional(count) : std::nullopt;
}

bool read_shape(Reader& reader, KnownShape& shape) {
  uint32_t count = 0;
  if (!reader.number(count) || !reader.text(shape.folders) || !reader.text(shape.files))
    return false;
  if (count == 0 || count_paths(shape.folders) != count || !count_paths(shape.files)) return false;
  shape.folder_count = count;
  shape.unit = shape.folders.substr(0, shape.folders.find('\0'));
  if (shape.unit.find('/') != std::string_view::npos) return false;
  bool all_inside = true;
  each_file(shape.folders.substr(shape.unit.size() + 1), [&](std::string_view folder) {
    all_inside = all_inside && folder.size() > shape.unit.size() &&
                 folder.starts_with(shape.unit) && folder[shape.unit.size()] == '/';
  });
  return all_inside;
}

}  // namespace

FolderStamp stamp_at(std::string_view stamps, size_t index) {
  const std::string_view at = stamps.substr(index * kStampBytes, kStampBytes);
  return {read_at<uint64_t>(at, 0), read_at<uint64_t>(at, 8), read_at<uint64_t>(at, 16)};
}

void append_stamp(std::string& out, const FolderStamp& stamp) {
  append(out, stamp.inode);
  append(out, stamp.modified_ns);
  append(out, stamp.changed_ns);
}

bool KnownFolders::read(std::string_view bytes, const FolderIdentity& of) {
  clear();
  if (read_all(bytes, of)) return true;
  clear();
  return false;
}

bool KnownFolders::read_all(std::string_view bytes, const FolderIdentity& of) {
  if (bytes.size() < kHeaderBytes || !bytes.starts_with(kMagic) ||
      read_at<uint32_t>(bytes, kMagic.size()) != kVersion)
    return false;
  const std::string_view rest = bytes.substr(kHeaderBytes);
  if (record::crc32(rest.data(), rest.size()) != read_at<uint32_t>(bytes, kChecksumAt))
    return false;
  Reader reader(rest);
  std::string_view path;
  uint64_t device = 0;
  uint64_t inode = 0;
  if (!reader.text(path) || !reader.number(device) || !reader.number(inode) || path != of.path ||
      device != of.device || inode != of.inode)
    return false;
  // One by one: what is said to be there need not be.
  uint32_t count = 0;
  if (!reader.number(count)) return false;
  for (uint32_t i = 0; i < count; ++i)
    if (!read_shape(reader, shapes.emplace_back())) return false;
  if (!reader.number(count)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    std::string_view name;
    uint32_t units = 0;
    if (!reader.text(name) || !reader.number(units)) return false;
    const auto [round, is_new] = rounds.try_emplace(name);
    if (!is_new) return false;
    for (uint32_t u = 0; u < units; ++u) {
      KnownUnit unit;
      if (!reader.number(unit.shape) || unit.shape >= shapes.size()) return false;
      const auto stamp_bytes = checked_mul(shapes[unit.shape].folder_count, kStampBytes);
      if (!stamp_bytes || !reader.bytes(*stamp_bytes, unit.stamps)) return false;
      if (!round->second.empty() &&
          shapes[round->second.back().shape].unit >= shapes[unit.shape].unit)
        return false;
      round->second.push_back(unit);
    }
  }
  return reader.is_empty();
}

const KnownUnit* KnownFolders::find(std::string_view round, std::string_view unit) const {
  const auto found = rounds.find(round);
  if (found == rounds.end()) return nullptr;
  const auto at = std::ranges::lower_bound(
      found->second, unit, {}, [&](const KnownUnit& each) { return shapes[each.shape].unit; });
  return at != found->second.end() && shapes[at->shape].unit == unit ? &*at : nullptr;
}

size_t KnownFolders::units() const {
  size_t count = 0;
  for (const auto& [name, units] : rounds) count += units.size();
  return count;
}

std::string folder_index_bytes(const KnownFolders& known, const FolderIdentity& of) {
  std::string out(kMagic);
  append(out, kVersion);
  append(out, uint32_t{0});
  append_text(out, of.path);
  append(out, of.device);
  append(out, of.inode);
  append(out, static_cast<uint32_t>(known.shapes.size()));
  for (const KnownShape& shape : known.shapes) {
    append(out, static_cast<uint32_t>(shape.folder_count));
    append_text(out, shape.folders);
    append_text(out, shape.files);
  }
  append(out, static_cast<uint32_t>(known.rounds.size()));
  for (const auto& [name, units] : known.rounds) {
    append_text(out, name);
    append(out, static_cast<uint32_t>(units.size()));
    for (const KnownUnit& unit : units) {
      append(out, unit.shape);
      out += unit.stamps;
    }
  }
  const uint32_t checksum = record::crc32(out.data() + kHeaderBytes, out.size() - kHeaderBytes);
  for (size_t i = 0; i < sizeof checksum; ++i)
    out[kChecksumAt + i] = static_cast<char>((checksum >> (8 * i)) & 0xFF);
  return out;
}

}  // namespace ait::capture
