// Facts as bytes, for stores of rows and plans (docs/formats/rows.md has the notation): whole numbers as
// LEB128, reals as 8 bytes, text as what differs from the same field of the item before.
//
//   template <typename Codec, typename T>
//   bool point_fields(Codec& c, T& point) {        // both directions: T is const where it is written
//     c.texts.start_row();
//     return field(c, point.x) && field(c, point.name);
//   }
//   Encoder encoder(payload, previous);             // point_fields(encoder, point)
//   Decoder decoder(bytes, previous);               // false where they make no sense
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "capture/capture.h"
#include "formats/little_endian.h"
#include "match/pair.h"

namespace ait::compare {

// An item may be made of names that a hostile file chose. What is longer than this is cut when it is
// written, and a file that holds more is damaged. Text is stored as what differs from the item
// before, so that without a limit a few bytes could stand for gigabytes.
inline constexpr size_t kMaxTextBytes = size_t{1} << 16;
inline constexpr size_t kMaxRowTextBytes = size_t{1} << 20;
inline constexpr size_t kMaxRecords = 65536;
inline constexpr size_t kMaxSources = 65536;

template <std::unsigned_integral T>
void append_le(std::string& out, T value) {
  std::array<char, sizeof(T)> bytes;
  for (size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<char>((value >> (8 * i)) & 0xFF);
  out.append(bytes.data(), bytes.size());
}

// How many bytes two texts have in common at their beginning, a word at a time.
inline size_t shared_bytes(std::string_view one, std::string_view other) {
  constexpr size_t kWord = sizeof(uint64_t);
  const size_t most = std::min(one.size(), other.size());
  size_t i = 0;
  while (i + kWord <= most && std::memcmp(one.data() + i, other.data() + i, kWord) == 0) i += kWord;
  while (i < most && one[i] == other[i]) ++i;
  return i;
}

// The text of each field in the row before it, from which the next one usually differs little.
// Fields are counted as they are visited, so writer and reader agree on the number.
class Texts {
 public:
  explicit Texts(std::vector<std::string>& previous) : previous_(previous) {}
  void start_row(size_t most_bytes = kMaxRowTextBytes) {
    field_ = 0;
    left_bytes_ = most_bytes;
  }
  // One of several within a row, whose texts all count.
  void start_item() { field_ = 0; }
  std::string& next() {
    if (field_ == previous_.size()) previous_.emplace_back();
    return previous_[field_++];
  }
  // The records of a side share their fields, however many there are.
  size_t mark() const { return field_; }
  void back_to(size_t mark) { field_ = mark; }
  // How long the next text of this row may be.
  size_t limit() const { return std::min(kMaxTextBytes, left_bytes_); }
  void use(size_t bytes) { left_bytes_ -= bytes; }

 private:
  std::vector<std::string>& previous_;
  size_t field_ = 0;
  size_t left_bytes_ = kMaxRowTextBytes;
};

class Encoder {
 public:
  static constexpr bool kReads = false;

  Encoder(std::string& out, std::vector<std::string>& previous) : texts(previous), out_(out) {}

  bool whole(uint64_t value) {
    while (value >= 0x80) {
      out_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    out_ += static_cast<char>(value);
    return true;
  }
  bool real(double value) {
    append_le(out_, std::bit_cast<uint64_t>(value));
    return true;
  }
  bool text(const std::string& whole_text) {
    const std::string_view value(whole_text.data(), std::min(whole_text.size(), texts.limit()));
    texts.use(value.size());
    std::string& before = texts.next();
    const size_t shared = shared_bytes(value, before);
    whole(shared);
    whole(value.size() - shared);
    out_.append(value.substr(shared));
    before.replace(shared, std::string::npos, value.substr(shared));
    return true;
  }

  Texts texts;

 private:
  std::string& out_;
};

// Every member says whether there was enough and it made sense.
class Decoder {
 public:
  static constexpr bool kReads = true;

  Decoder(std::span<const std::byte> bytes, std::vector<std::string>& previous)
      : texts(previous), rest_(bytes) {}

  bool whole(uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = std::to_integer<uint64_t>(rest_[0]);
      rest_ = rest_.subspan(1);
      value |= (byte & 0x7F) << shift;
      // The tenth byte has room for one bit.
      if ((byte & 0x80) == 0) return shift < 63 || byte <= 1;
    }
    return false;
  }
  bool real(double& value) {
    if (rest_.size() < 8) return false;
    value = std::bit_cast<double>(formats::read_le<uint64_t>(rest_, 0));
    rest_ = rest_.subspan(8);
    return true;
  }
  bool text(std::string& value) {
    std::string& before = texts.next();
    uint64_t shared = 0;
    uint64_t more = 0;
    if (!whole(shared) || !whole(more) || shared > before.size() || more > rest_.size() ||
        shared + more > texts.limit())
      return false;
    texts.use(shared + more);
    before.resize(shared);
    before.append(reinterpret_cast<const char*>(rest_.data()), more);
    rest_ = rest_.subspan(more);
    value = before;
    return true;
  }
  bool is_empty() const { return rest_.empty(); }

  Texts texts;

 private:
  std::span<const std::byte> rest_;
};

// ---- One function for each kind of field, for both directions: T is const where it is written.

template <typename Codec, typename T>
bool field(Codec& codec, T& value) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, std::string>) {
    return codec.text(value);
  } else if constexpr (std::is_floating_point_v<Plain>) {
    return codec.real(value);
  } else if constexpr (Codec::kReads) {
    uint64_t whole = 0;
    if (!codec.whole(whole)) return false;
    if constexpr (std::is_same_v<Plain, bool>) {
      value = whole != 0;
      return whole <= 1;
    } else {
      value = static_cast<Plain>(whole);
      return static_cast<uint64_t>(value) == whole;
    }
  } else {
    return codec.whole(static_cast<uint64_t>(value));
  }
}

// Enumerations have a last value.
template <typename Codec, typename T>
bool choice(Codec& codec, T& value, std::remove_const_t<T> last) {
  using Plain = std::remove_const_t<T>;
  if constexpr (Codec::kReads) {
    uint64_t whole = 0;
    if (!codec.whole(whole) || whole > static_cast<uint64_t>(last)) return false;
    value = static_cast<Plain>(whole);
    return true;
  } else {
    return codec.whole(static_cast<uint64_t>(value));
  }
}

template <typename Codec, typename T, typename Inside>
bool optional(Codec& codec, T& value, Inside inside) {
  bool is_there = value.has_value();
  if (!field(codec, is_there)) return false;
  if constexpr (Codec::kReads) {
    if (is_there) value.emplace();
  }
  return !is_there || inside(*value);
}

template <typename Codec, typename T, typename Inside>
bool list(Codec& codec, T& values, size_t most, Inside inside) {
  uint64_t count = std::min(values.size(), most);
  if (!field(codec, count) || count > most) return false;
  for (size_t i = 0; i < count; ++i) {
    // One by one: what is said to be there need not be.
    if constexpr (Codec::kReads) values.emplace_back();
    if (!inside(values[i])) return false;
  }
  return true;
}

template <typename Codec, typename T>
bool record_fields(Codec& c, T& record) {
  return field(c, record.path) && field(c, record.member) && field(c, record.rank) &&
         field(c, record.round) && field(c, record.operation) && field(c, record.type) &&
         choice(c, record.level, capture::Level::kKernel) &&
         choice(c, record.moment, capture::Moment::kBefore) &&
         choice(c, record.direction, capture::Direction::kInput) && field(c, record.index) &&
         field(c, record.call) && choice(c, record.kept, capture::Kept::kDescription);
}

template <typename Codec, typename T>
bool transform_fields(Codec& c, T& transform) {
  return field(c, transform.columns) && field(c, transform.first) && field(c, transform.taken) &&
         field(c, transform.period) && field(c, transform.heads_first) &&
         choice(c, transform.join, match::Join::kSum) &&
         (!Codec::kReads ||
          std::min({transform.columns, transform.first, transform.taken, transform.period}) >= 0);
}

// The records of a side share their texts, however many there are; a side without records has the texts of
// one, so that later fields keep their numbers.
template <typename Codec, typename T>
bool records_fields(Codec& c, T& records) {
  const size_t mark = c.texts.mark();
  const auto one_record = [&](auto& record) {
    c.texts.back_to(mark);
    return record_fields(c, record);
  };
  if (!list(c, records, kMaxRecords, one_record)) return false;
  constexpr size_t kRecordTexts = 6;
  c.texts.back_to(mark);
  for (size_t i = 0; i < kRecordTexts; ++i) c.texts.next();
  return true;
}

template <typename Codec, typename T>
bool subject_fields(Codec& c, T& subject) {
  return field(c, subject.name) && field(c, subject.tensor) && field(c, subject.member) &&
         field(c, subject.rank) &&
         optional(c, subject.first_column, [&](auto& column) { return field(c, column); }) &&
         optional(c, subject.layer, [&](auto& layer) { return field(c, layer); });
}

// The last fields of a row: where nothing is known, the numbers of the texts are those of no others.
template <typename Codec, typename T>
bool origin_fields(Codec& c, T& origin) {
  if (!field(c, origin.is_known)) return false;
  if (!origin.is_known) return true;
  if (!field(c, origin.operation) || !choice(c, origin.kind, capture::OpKind::kMove) ||
      !list(c, origin.sources, kMaxSources, [&](auto& source) { return field(c, source); }) ||
      !field(c, origin.is_copy))
    return false;
  const size_t mark = c.texts.mark();
  return list(c, origin.passed, kMaxSources, [&](auto& operation) {
    c.texts.back_to(mark);
    return field(c, operation);
  });
}

// Sources are earlier rows: who follows them must not be led out of the file, nor in a circle.
inline bool are_before(const std::vector<uint32_t>& sources, size_t row) {
  return std::all_of(sources.begin(), sources.end(),
                     [&](uint32_t source) { return source >= 1 && source <= row; });
}

}  // namespace ait::compare
