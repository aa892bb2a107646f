#include "formats/atb_bin.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "formats/acl_types.h"
#include "formats/little_endian.h"
#include "formats/single_tensor.h"
#include "record/dump_names.h"

namespace ait::formats::atb_bin {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

constexpr std::array<std::pair<int64_t, std::string_view>, 17> kFormatNames = {{
    {-1, "undefined"},
    {0, "nchw"},
    {1, "nhwc"},
    {2, "nd"},
    {3, "nc1hwc0"},
    {4, "fractal_z"},
    {12, "nc1hwc0_c04"},
    {16, "hwcn"},
    {27, "ndhwc"},
    {29, "fractal_nz"},
    {30, "ncdhw"},
    {32, "ndc1hwc0"},
    {33, "fractal_z_3d"},
    {35, "nc"},
    {47, "ncl"},
    {50, "fractal_nz_c0_16"},
    {51, "fractal_nz_c0_32"},
}};

std::string_view format_name(int64_t code) {
  for (const auto& [known, name] : kFormatNames)
    if (known == code) return name;
  return "unknown";
}

// Half of the last of six decimals.
constexpr double kStatisticsRounding = 5e-7;

Error corrupt() { return Error(ErrorCode::kCorrupt); }

template <typename T>
bool parse_number(std::string_view text, T& value) {
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && stop == text.data() + text.size();
}

// "2,3"; empty text is an empty list.
template <typename T>
bool parse_list(std::string_view text, std::vector<T>& values) {
  if (text.empty()) return true;
  const auto commas = static_cast<size_t>(std::ranges::count(text, ','));
  values.reserve(std::min(commas + 1, kMaxRank));
  while (values.size() < kMaxRank) {
    const size_t comma = text.find(',');
    if (!parse_number(text.substr(0, comma), values.emplace_back())) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
  return false;
}

class HeaderReader {
 public:
  Result<Header> read(Bytes bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                                std::min(bytes.size(), kMaxHeaderBytes));
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = text.substr(at, end - at);
      if (line.ends_with('\r')) line.remove_suffix(1);
      const size_t equals = line.find('=');
      if (equals == std::string_view::npos)
        return fail(Error(ErrorCode::kCorrupt, {}, at)
                    << "the .bin header line '" << printable(line, 40)
                    << "' is not of the form name=value");
      const size_t next = std::min(end + 1, text.size());
      const std::string_view name = line.substr(0, equals);
      if (name == "$End") return finish(next, bytes.size() - next);
      if (auto taken = attribute(name, line.substr(equals + 1)); !taken) return fail(taken.error());
      at = next;
    }
    return fail(corrupt() << "the .bin header has no $End line within its first " << text.size()
                          << " bytes; the file was probably cut short");
  }

 private:
  Result<void> attribute(std::string_view name, std::string_view value) {
    if (name == "format") return once(name, seen_format_, parse_number(value, header_.format));
    if (name == "dtype") return once(name, seen_dtype_, parse_number(value, header_.dtype_code));
    if (name == "dims") return once(name, seen_dims_, parse_list(value, header_.dims));
    if (name == "$Object.Count")
      return once(name, seen_count_, parse_number(value, object_count_.emplace()));
    if (name == "$Object.Length")
      return once(name, seen_length_, parse_number(value, header_.object_length_bytes.emplace()));
    if (name == "$Object.data") {
      std::vector<uint64_t> numbers;
      const bool good = parse_list(value, numbers) && numbers.size() == 2;
      if (good) header_.object = {numbers[0], numbers[1]};
      return once(name, seen_object_, good);
    }
    if (name == "data") {
      header_.link = value;
      return once(name, seen_link_, !value.empty());
    }
    for (Statistic& statistic : statistics_)
      if (name == statistic.name) return take(statistic, value);
    return {};
  }

  struct Statistic {
    std::string_view name;
    bool seen = false;
    std::optional<double> value = {};
  };

  // A tool that could not compute one writes a word in its place: "N/A".
  Result<void> take(Statistic& statistic, std::string_view text) {
    header_.has_statistics = true;
    double number = 0;
    if (parse_number(text, number)) statistic.value = number;
    return once(statistic.name, statistic.seen, true);
  }

  static Result<void> once(std::string_view name, bool& seen, bool good) {
    if (!good) return fail(corrupt() << "the .bin header has a bad value for " << name);
    if (seen) return fail(corrupt() << "the .bin header has the line " << name << " twice");
    seen = true;
    return {};
  }

  Result<Header> finish(size_t header_bytes, size_t payload_bytes) {
    if (!seen_dtype_ || !seen_dims_)
      return fail(corrupt() << "the .bin header lacks its " << (seen_dtype_ ? "dims" : "dtype")
                            << " line");
    header_.header_bytes = header_bytes;
    const auto& [maximum, minimum, mean, norm] = statistics_;
    if (maximum.value && minimum.value && mean.value && norm.value)
      header_.statistics = {*maximum.value, *minimum.value, *mean.value, *norm.value,
                            kStatisticsRounding};
    const bool disowned = object_count_ == 0;
    const bool claimed = payload_bytes > 0 || header_.object_length_bytes.value_or(0) > 0;
    header_.has_data = header_.object || !header_.link.empty() || (claimed && !disowned);
    return std::move(header_);
  }

  Header header_;
  std::optional<uint64_t> object_count_;
  std::array<Statistic, 4> statistics_ = {{{"max"}, {"min"}, {"mean"}, {"l2norm"}}};
  bool seen_format_ = false;
  bool seen_dtype_ = false;
  bool seen_dims_ = false;
  bool seen_count_ = false;
  bool seen_length_ = false;
  bool seen_object_ = false;
  bool seen_link_ = false;
};

constexpr std::string_view kMsprobeDumpFolder = "atb_dump_data";

// The folder that links may not leave: the dump's root, or the file's own folder where there is
// none.
fs::path link_root(const fs::path& folder) {
  for (fs::path at = folder; at != at.parent_path(); at = at.parent_path()) {
    const std::string name = at.filename().string();
    if (name.starts_with(record::kDumpFolder) || name.starts_with(record::kMsitDumpFolder) ||
        name == kMsprobeDumpFolder)
      return at;
  }
  return folder;
}

bool is_inside(const fs::path& path, const fs::path& root) {
  return std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

struct Record {
  std::shared_ptr<const MappedFile> file;
  Header header;

  Bytes payload() const { return file->bytes().subspan(header.header_bytes); }
};

// The entry of a folder that is called so, or so and something after an underscore: "13_Layer" of
// "13", "intensor0_x.bin" of "intensor0". Of several the first by name.
fs::path entry_named(const fs::path& folder, std::string_view name) {
  fs::path found;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed); !failed && entry != fs::directory_iterator();
       entry.increment(failed)) {
    const std::string candidate = entry->path().filename().string();
    const std::string stem = candidate.substr(0, candidate.rfind(".bin"));
    if ((stem == name || stem.starts_with(std::string(name) + "_")) &&
        (found.empty() || candidate < found.filename()))
      found = entry->path();
  }
  return found;
}

// msprobe's probe writes numbers of operations in place of a path: "13_1_6_outtensor0.bin" is in
// {round}/13_…/1_…/6_…/after. Without numbers it is a kernel's, whose operation has the tensor.
struct NumberedFile {
  fs::path path;  // empty where the link is none of this kind, or leads nowhere
  fs::path base;  // the folder that it was looked for in
};
NumberedFile find_by_numbers(const fs::path& file, std::string_view link) {
  constexpr std::string_view kExtension = ".bin";
  if (!link.ends_with(kExtension) || link.find('/') != std::string_view::npos) return {};
  link.remove_suffix(kExtension.size());
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  std::vector<std::string_view> numbers;
  for (size_t end = link.find('_'); end != std::string_view::npos && is_number(link.substr(0, end));
       end = link.find('_')) {
    numbers.push_back(link.substr(0, end));
    link.remove_prefix(end + 1);
  }
  const bool is_input = link.starts_with("intensor");
  if (!is_input && !link.starts_with("outtensor")) return {};
  // {round}/13_Layer/1_Linear/0_Kernel/before/intensor0.bin: up to the round there is nothing else.
  const auto is_operation = [&](const fs::path& folder) {
    const std::string name = folder.filename().string();
    const size_t underscore = name.find('_');
    return underscore != std::string::npos &&
           is_number(std::string_view(name).substr(0, underscore));
  };
  const fs::path kernel = file.parent_path().parent_path();
  fs::path base = kernel.parent_path();
  if (numbers.empty()) {
    if (!is_operation(kernel) || !is_operation(base)) return {};
  } else {
    for (base = kernel; is_operation(base);) base = base.parent_path();
    if (!is_number(base.filename().string())) return {};
  }
  fs::path operation = base;
  for (const std::string_view number : numbers)
    if (!operation.empty()) operation = entry_named(operation, number);
  if (operation.empty()) return {};
  return {entry_named(operation / (is_input ? "before" : "after"), link), base};
}

// The record that holds the data. A path leads there in one step, never two; numbers of operations
// may lead to others first.
Result<Record> follow_link(const Record& from) {
  constexpr int kMaxSteps = 8;
  std::string link;
  const auto refuse = [&](std::string_view why) {
    return Error(ErrorCode::kRefused, from.file->path())
           << "its data is said to be in " << printable(link) << ", " << why;
  };
  Record at = from;
  for (int step = 0; step < kMaxSteps; ++step) {
    link = at.header.link;
    if (std::any_of(link.begin(), link.end(), [](unsigned char c) { return c < ' '; }))
      return fail(refuse("which is not a path"));
    std::error_code failure;
    const fs::path path = fs::absolute(at.file->path());
    const fs::path folder = fs::canonical(path.parent_path(), failure);
    const NumberedFile numbered =
        failure ? NumberedFile() : find_by_numbers(folder / path.filename(), link);
    const fs::path target =  // symbolic links resolved
        failure
            ? fs::path()
            : fs::weakly_canonical(numbered.path.empty() ? folder / link : numbered.path, failure);
    if (failure) return fail(refuse("which cannot be looked up: ") << failure.message());
    if (!is_inside(target, numbered.path.empty() ? link_root(folder) : numbered.base))
      return fail(refuse("outside the dump; only files of the same dump are followed"));
    // Named is the file that was asked for; the target comes in its message.
    const auto unreadable = [&](Error& cause) {
      return Error(cause.code(), from.file->path())
             << "its data is said to be in another file, which cannot be read: "
             << cause.set_path(target.string()).text();
    };
    auto file = MappedFile::open(target.string());
    if (!file) return fail(unreadable(file.error()));
    auto header = parse_header((*file)->bytes());
    if (!header) return fail(unreadable(header.error()));
    if (header->dtype_code != from.header.dtype_code)
      return fail(Error(ErrorCode::kCorrupt, from.file->path())
                  << "is of dtype " << from.header.dtype_code << " but links to a file of dtype "
                  << header->dtype_code);
    const bool is_link = !header->link.empty() && !header->object;
    if (is_link && numbered.path.empty())
      return fail(refuse("which is itself a link; only one step is followed"));
    at = Record{std::move(*file), std::move(*header)};
    if (!is_link) return at;
  }
  return fail(refuse("from where links lead on and on; the dump is damaged"));
}

Result<DType> element_type(int64_t code) {
  const AclType* known = find_acl_type(code);
  if (known != nullptr && known->dtype) return *known->dtype;
  return fail(Error(ErrorCode::kUnsupported)
              << "holds elements of dtype " << code << " ("
              << (known != nullptr ? known->name : std::string_view("unknown"))
              << "), which ait does not read");
}

class Notes {
 public:
  template <typename... Words>
  void add(const Words&... words) {
    if (!text_.empty()) text_ += "; ";
    (append(words), ...);
  }
  std::string take() { return std::move(text_); }

 private:
  void append(std::string_view words) { text_ += words; }
  void append(uint64_t number) { text_ += std::to_string(number); }

  std::string text_;
};

// The `need` bytes of the tensor, by the header's own account where it has one.
Result<Bytes> find_data(const Record& record, uint64_t need, Notes& notes) {
  const Header& header = record.header;
  const Bytes payload = record.payload();
  const uint64_t offset = header.object ? header.object->offset_bytes : 0;
  if (offset > payload.size())
    return fail(corrupt() << "the data is said to start " << offset
                          << " bytes behind the header, but " << payload.size()
                          << " are there; the file was probably cut short");
  const uint64_t have = payload.size() - offset;
  // A length that disagrees is believed only if the payload does not prove it wrong: some writers
  // get it wrong, but in a file written twice the bytes after the first record are no data.
  const uint64_t claimed = header.object ? header.object->length_bytes
                                         : header.object_length_bytes.value_or(payload.size());
  if (have < need || (claimed < need && have != need))
    return fail(corrupt() << "the dims need " << need << " data bytes but "
                          << (have < need ? have : claimed)
                          << " are there; the file was probably cut short");
  const uint64_t length = header.object_length_bytes.value_or(need);
  if (claimed != need)
    notes.add("the header says ", claimed, " data bytes where the dims need ", need);
  else if (length != need)
    notes.add("$Object.Length is ", length, " where the dims need ", need);
  if (have > need)
    notes.add(have - need, " bytes follow the data and are ignored; was the file written twice?");
  return payload.subspan(offset, need);
}

Result<Tensor> make_tensor(const Record& record, Notes& notes) {
  const Header& header = record.header;
  const auto dtype = element_type(header.dtype_code);
  if (!dtype) return fail(dtype.error());
  const auto elements = count_elements(header.dims);
  auto need = elements ? checked_mul(*elements, size_bytes(*dtype)) : std::nullopt;
  if (!need)
    return fail(corrupt() << "the .bin header gives the impossible dims "
                          << shape_text(header.dims));
  if (*need == 0) return Tensor::contiguous(record.file, {}, *dtype, header.dims);
  if (!header.has_data)
    return fail(Error(ErrorCode::kUnsupported)
                << "tensor has no data. "
                << (header.has_statistics
                        ? "The file only holds statistics; dump again with the data"
                        : "The file only describes it; dump again without -sd"));
  if (header.format != kFormatNd)
    notes.add("the data is in format ", std::to_string(header.format), " (",
              format_name(header.format), ") and is not converted to nd");
  std::optional<Record> linked;
  if (!header.link.empty() && !header.object) {
    auto target = follow_link(record);
    if (!target) return fail(target.error());
    linked = std::move(*target);
  }
  const Record& source = linked ? *linked : record;
  Shape shape = header.dims;
  if (*dtype == DType::kInt4Packed) {
    // Writers disagree on whether dims count values or bytes, so only the length says how much
    // there is.
    const size_t present = source.payload().size();
    need = source.header.object_length_bytes.value_or(present);
    shape = {static_cast<int64_t>(std::min<uint64_t>(*need, present))};
    notes.add("two int4 values share a byte; the shape counts bytes, the header says ",
              shape_text(header.dims));
  }
  const auto data = find_data(source, *need, notes);
  if (!data) return fail(data.error());
  auto tensor = Tensor::contiguous(source.file, *data, *dtype, std::move(shape));
  if (tensor) tensor->set_byte_swapped(kLittleEndianIsForeign);
  return tensor;
}

// What is known of a tensor whose data are not in the file; nothing where they are.
std::optional<Description> describe(const Header& header) {
  const auto dtype = element_type(header.dtype_code);
  const bool fractal = header.format == kFormatFractalNz;
  // What else there is to say follows from the tensor.
  if ((header.has_data && !fractal) || !dtype || count_elements(header.dims).value_or(0) == 0)
    return std::nullopt;
  return Description{*dtype, header.dims, header.has_data, header.statistics, fractal};
}

}  // namespace

Result<Header> parse_header(Bytes bytes) { return HeaderReader().read(bytes); }

bool sniff(Bytes bytes) {
  constexpr std::array<std::string_view, 5> kFirstNames = {"$Version=", "$Object.",
                                                           "format=", "dtype=", "dims="};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return std::any_of(kFirstNames.begin(), kFirstNames.end(),
                     [&](std::string_view name) { return text.starts_with(name); });
}

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file) {
  auto header = parse_header(file->bytes());
  if (!header) return fail(header.error().set_path(file->path()));
  Notes notes;
  auto description = describe(*header);
  auto tensor = make_tensor({file, std::move(*header)}, notes);
  if (!tensor && tensor.error().path().empty()) tensor.error().set_path(file->path());
  // Remarks on a tensor that cannot be read would only bury the reason.
  std::string note = tensor ? notes.take() : std::string();
  return std::make_unique<SingleTensor>("atb", std::move(tensor), std::move(note),
                                        std::move(description));
}

}  // namespace ait::formats::atb_bin
