#include "formats/torch_tensors.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/mapped_file.h"
#include "formats/npy.h"

namespace ait::formats {
namespace {

using pickle::Document;
using pickle::Global;
using pickle::GlobalKind;
using pickle::Id;
using pickle::Kind;

// Parameters of parameters do not exist; a few levels allow for wrappers we have not met.
constexpr int kMaxWrappers = 8;
// Enough for every call that rebuilds a tensor.
constexpr size_t kMaxArguments = 16;

Error corrupt(std::string_view what) {
  return Error(ErrorCode::kCorrupt) << what << "; the file is damaged";
}
Error unsupported(std::string_view what) { return Error(ErrorCode::kUnsupported) << what; }

// The first few items of a tuple or call.
std::vector<Id> leading_items(const Document& document, Id id) {
  std::vector<Id> items;
  for (const Id item : document.items(id)) {
    if (items.size() == kMaxArguments) break;
    items.push_back(item);
  }
  return items;
}

bool is_size(const Document& document, Id id) {
  return document.kind(id) == Kind::kInt && document.integer(id) >= 0;
}

Result<std::vector<int64_t>> integers(const Document& document, Id id) {
  // torch.Size appears as a call with the tuple inside.
  if (document.kind(id) == Kind::kCall && document.count(id) == 1) id = *document.items(id).begin();
  if ((document.kind(id) != Kind::kTuple && document.kind(id) != Kind::kList) ||
      document.count(id) > kMaxRank)
    return fail(corrupt("a tensor's shape or strides are not a short list of numbers"));
  std::vector<int64_t> values;
  for (const Id item : document.items(id)) {
    if (document.kind(item) != Kind::kInt)
      return fail(corrupt("a tensor's shape or strides are not a short list of numbers"));
    values.push_back(document.integer(item));
  }
  return values;
}

// A call with its function and arguments; _rebuild_from_type carries both inside its own arguments.
struct Rebuild {
  const Global* function;
  std::vector<Id> arguments;
};

struct TensorSpec {
  StorageReference storage;
  DType dtype;
  Shape shape;
  Strides strides;
  uint64_t offset_elements = 0;
  bool conjugate = false;
  bool negative = false;
};

std::string what_to_save_instead(const Global& function) {
  struct Advice {
    std::string_view part_of_name;
    std::string_view text;
  };
  constexpr Advice kAdvice[] = {
      {"sparse", "it is a sparse tensor; save x.to_dense() instead"},
      {"qtensor", "it is a quantised tensor; save x.dequantize() or x.int_repr() instead"},
      {"nested", "it is a nested tensor; save its parts, x.unbind(), instead"},
      {"meta", "it is a meta tensor, which has no data"},
  };
  for (const Advice& advice : kAdvice)
    if (function.name.find(advice.part_of_name) != std::string_view::npos)
      return std::string(advice.text) + " (" + function.text() + ")";
  return "it is not a plain tensor (" + function.text() + "); save x.detach().clone() instead";
}

// Lazy conjugation and negation, as {"conj": True, "neg": True}.
Result<void> read_metadata(const Document& document, Id id, TensorSpec& spec) {
  if (document.kind(id) == Kind::kNone) return {};
  if (document.kind(id) != Kind::kDict) return fail(corrupt("a tensor's metadata is not a dict"));
  document.each_pair(id, [&](Id key, Id value) {
    if (document.kind(key) == Kind::kText && document.kind(value) == Kind::kBool) {
      if (document.text(key) == "conj") spec.conjugate = document.boolean(value);
      if (document.text(key) == "neg") spec.negative = document.boolean(value);
    }
    return true;
  });
  return {};
}

Result<DType> dtype_of(const Global& type) {
  if (!type.dtype)
    return fail(unsupported("elements of the type " + type.text() +
                            " are not supported; save a plain float or integer copy"));
  return *type.dtype;
}

// (storage, offset, size, stride), then what the version of the function adds.
Result<TensorSpec> plain_tensor(const Document& document, const Rebuild& rebuild) {
  const auto& arguments = rebuild.arguments;
  const size_t needed = rebuild.function->kind == GlobalKind::kRebuildTensorV3 ? 7 : 4;
  if (arguments.size() < needed || document.kind(arguments[0]) != Kind::kPersistent ||
      !is_size(document, arguments[1]))
    return fail(corrupt("a tensor lacks its storage or offset"));
  TensorSpec spec{};
  auto storage = storage_reference(document, arguments[0]);
  if (!storage) return fail(storage.error());
  spec.storage = *storage;
  spec.offset_elements = static_cast<uint64_t>(document.integer(arguments[1]));
  auto shape = integers(document, arguments[2]);
  if (!shape) return fail(shape.error());
  auto strides = integers(document, arguments[3]);
  if (!strides) return fail(strides.error());
  spec.shape = *std::move(shape);
  spec.strides = *std::move(strides);

  const Global* type = spec.storage.type;
  std::optional<size_t> metadata_at;
  if (rebuild.function->kind == GlobalKind::kRebuildTensorV2) metadata_at = 6;
  if (rebuild.function->kind == GlobalKind::kRebuildTensorV3) {
    if (document.kind(arguments[6]) != Kind::kGlobal)
      return fail(corrupt("a tensor lacks its type"));
    type = &document.global(arguments[6]);
    metadata_at = 7;
  }
  auto dtype = dtype_of(*type);
  if (!dtype) return fail(dtype.error());
  spec.dtype = *dtype;
  if (metadata_at && *metadata_at < arguments.size())
    if (auto read = read_metadata(document, arguments[*metadata_at], spec); !read)
      return fail(read.error());
  return spec;
}

// torch.save(storage): one row of its elements.
Result<TensorSpec> whole_storage(const Document& document, Id id) {
  auto storage = storage_reference(document, id);
  if (!storage) return fail(storage.error());
  auto dtype = dtype_of(*storage->type);
  if (!dtype) return fail(dtype.error());
  if (storage->elements > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return fail(corrupt("a storage has an impossible size"));
  TensorSpec spec{};
  spec.storage = *storage;
  spec.dtype = *dtype;
  spec.shape = {static_cast<int64_t>(storage->elements)};
  spec.strides = {1};
  return spec;
}

Result<TensorSpec> tensor_spec(const Document& document, Id id) {
  if (document.kind(id) == Kind::kPersistent) return whole_storage(document, id);
  Rebuild rebuild{&document.global(id), leading_items(document, id)};
  for (int wrapper = 0; wrapper < kMaxWrappers; ++wrapper) {
    const auto& arguments = rebuild.arguments;
    switch (rebuild.function->kind) {
      case GlobalKind::kRebuildTensor:
      case GlobalKind::kRebuildTensorV2:
      case GlobalKind::kRebuildTensorV3:
        return plain_tensor(document, rebuild);
      case GlobalKind::kTensorType:
      case GlobalKind::kRebuildWrapped: {
        if (arguments.empty() || document.kind(arguments[0]) != Kind::kCall)
          return fail(corrupt("a parameter lacks its tensor"));
        const Id inner = arguments[0];
        rebuild = {&document.global(inner), leading_items(document, inner)};
        break;
      }
      case GlobalKind::kRebuildFromType: {
        if (arguments.size() < 3 || document.kind(arguments[0]) != Kind::kGlobal ||
            document.kind(arguments[1]) != Kind::kGlobal ||
            document.kind(arguments[2]) != Kind::kTuple)
          return fail(corrupt("a tensor subclass lacks its parts"));
        if (document.global(arguments[1]).kind != GlobalKind::kTensorType)
          return fail(unsupported("tensors of the class " + document.global(arguments[1]).text() +
                                  " are not supported; save a plain tensor"));
        rebuild = {&document.global(arguments[0]), leading_items(document, arguments[2])};
        break;
      }
      default:
        return fail(unsupported(what_to_save_instead(*rebuild.function)));
    }
  }
  return fail(corrupt("a tensor is wrapped too often"));
}

// Numpy arrays stand in the pickle itself, with their bytes.
struct ArraySpec {
  std::string type;  // as in an .npy header: "<f4"
  Shape shape;
  bool fortran_order = false;
  Id data = 0;
};

// numpy.dtype("f4", False, True), and its state (3, "<", …), which may be missing.
Result<std::string> numpy_type(const Document& document, Id id) {
  const auto malformed = [] { return fail(corrupt("a numpy array lacks its type")); };
  if (document.kind(id) != Kind::kCall || document.global(id).kind != GlobalKind::kNumpyDType)
    return malformed();
  const std::vector<Id> parts = leading_items(document, id);
  if (parts.empty() || document.kind(parts[0]) != Kind::kText) return malformed();
  std::string order;
  if (parts.size() > 1 && document.kind(parts.back()) == Kind::kTuple) {
    const std::vector<Id> state = leading_items(document, parts.back());
    if (state.size() > 1 && document.kind(state[1]) == Kind::kText)
      order = document.text(state[1]).substr(0, 1);
  }
  return order + std::string(document.text(parts[0]).substr(0, kMaxNameBytes));
}

Result<ArraySpec> array_spec(const Document& document, Id id) {
  const auto malformed = [] { return fail(corrupt("a numpy array lacks its parts")); };
  std::vector<Id> parts = leading_items(document, id);
  ArraySpec spec;
  Id shape = 0;
  Id type = 0;
  if (document.global(id).kind == GlobalKind::kNumpyBuffer) {
    // (bytes, dtype, shape, "C")
    if (parts.size() != 4 || document.kind(parts[3]) != Kind::kText) return malformed();
    spec.data = parts[0];
    type = parts[1];
    shape = parts[2];
    spec.fortran_order = document.text(parts[3]) == "F";
  } else {
    // (…, (version, shape, dtype, is_fortran, bytes))
    if (parts.size() != 4 || document.kind(parts[3]) != Kind::kTuple) return malformed();
    parts = leading_items(document, parts[3]);
    if (parts.size() != 5 || document.kind(parts[3]) != Kind::kBool) return malformed();
    shape = parts[1];
    type = parts[2];
    spec.fortran_order = document.boolean(parts[3]);
    spec.data = parts[4];
  }
  auto sizes = integers(document, shape);
  if (!sizes) return fail(sizes.error());
  spec.shape = *std::move(sizes);
  auto word = numpy_type(document, type);
  if (!word) return fail(word.error());
  spec.type = *std::move(word);
  return spec;
}

// Text that stands for bytes, a character each: code points up to 255 in UTF-8.
Result<std::shared_ptr<const MappedFile>> bytes_of_text(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return MappedFile::temporary(count, [&](std::span<std::byte> out) -> Result<void> {
    size_t at = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      unsigned value = c;
      if (c >= 0x80) {
        const unsigned next = i + 1 < text.size() ? static_cast<unsigned char>(text[++i]) : 0u;
        if ((c != 0xC2 && c != 0xC3) || (next & 0xC0) != 0x80)
          return fail(corrupt("the bytes of a numpy array are not text of Latin-1"));
        value = ((c & 0x3u) << 6) | (next & 0x3Fu);
      }
      if (at == out.size()) return fail(corrupt("the bytes of a numpy array are damaged"));
      out[at++] = static_cast<std::byte>(value);
    }
    return {};
  });
}

// Resolves torch's lazy conjugate and negative: a copy with the signs flipped.
Result<Tensor> with_flipped_signs(const Tensor& lazy, bool conjugate, bool negative) {
  const TensorView view = lazy.view();
  const DTypeKind kind = info(view.dtype).kind;
  if (kind != DTypeKind::kFloat && kind != DTypeKind::kComplex)
    return fail(corrupt("a tensor of integers is marked as conjugate or negative"));
  const size_t words = kind == DTypeKind::kComplex ? 2 : 1;
  const size_t word = size_bytes(view.dtype) / words;
  return gathered(view, [&](std::span<std::byte> stretch) {
    for (size_t i = 0; i < stretch.size() / word; ++i) {
      const bool imaginary = words == 2 && i % 2 == 1;
      if (negative != (conjugate && imaginary)) stretch[i * word + word - 1] ^= std::byte{0x80};
    }
  });
}

std::string key_text(const Document& document, Id id) {
  switch (document.kind(id)) {
    case Kind::kText:
    case Kind::kBytes:
      return std::string(document.text(id).substr(0, kMaxNameBytes + 1));
    case Kind::kInt:
      return std::to_string(document.integer(id));
    case Kind::kBool:
      return document.boolean(id) ? "True" : "False";
    case Kind::kNone:
      return "None";
    default:
      return "<key>";
  }
}

}  // namespace

Result<StorageReference> storage_reference(const Document& document, Id persistent) {
  const Error malformed = corrupt("a storage is not described as torch.save does");
  const Id id = *document.items(persistent).begin();
  if (document.kind(id) != Kind::kTuple) return fail(malformed);
  // ("storage", type, key, location, elements), and in old files (view key, offset, elements) or
  // None.
  const std::vector<Id> parts = leading_items(document, id);
  if (parts.size() < 5 || document.kind(parts[0]) != Kind::kText ||
      document.text(parts[0]) != "storage" || document.kind(parts[1]) != Kind::kGlobal ||
      document.global(parts[1]).kind != GlobalKind::kStorage ||
      document.kind(parts[2]) != Kind::kText || !is_size(document, parts[4]))
    return fail(malformed);
  StorageReference reference{document.text(parts[2]), &document.global(parts[1]),
                             static_cast<uint64_t>(document.integer(parts[4]))};
  if (parts.size() > 5 && document.kind(parts[5]) != Kind::kNone) {
    if (document.kind(parts[5]) != Kind::kTuple) return fail(malformed);
    const std::vector<Id> view = leading_items(document, parts[5]);
    if (view.size() != 3 || !is_size(document, view[1]) || !is_size(document, view[2]))
      return fail(malformed);
    reference.is_view = true;
    reference.view_offset_elements = static_cast<uint64_t>(document.integer(view[1]));
    reference.elements = static_cast<uint64_t>(document.integer(view[2]));
  }
  return reference;
}

// Depth first, in the order of the file; recursion ends at kMaxDepth.
class TorchFile::Walk {
 public:
  Walk(const Document& document, std::vector<Entry>& entries, size_t& scalars, size_t max_entries)
      : document_(document), entries_(entries), scalars_(scalars), max_entries_(max_entries) {}

  bool visit(Id id, size_t depth) {
    if (++visits_ > kMaxVisits || depth > kMaxDepth) return false;
    switch (document_.kind(id)) {
      case Kind::kDict:
        return visit_dict(id, depth);
      case Kind::kTuple:
      case Kind::kList:
        return visit_sequence(id, depth);
      case Kind::kPersistent:
        return add(id);
      case Kind::kCall: {
        const GlobalKind kind = document_.global(id).kind;
        if (kind == GlobalKind::kNumpyScalar) {
          ++scalars_;
          return true;
        }
        const bool tensor = kind != GlobalKind::kHarmless && kind != GlobalKind::kStorage &&
                            kind != GlobalKind::kDType && kind != GlobalKind::kNumpyDType;
        return !tensor || add(id);
      }
      default:
        return true;
    }
  }

 private:
  bool visit_dict(Id id, size_t depth) {
    return document_.each_pair(id, [&](Id key, Id value) {
      if (is_leaf(value)) return true;
      const std::string dot = name_.empty() ? "" : ".";
      return visit_named(dot + key_text(document_, key), value, depth);
    });
  }
  bool visit_sequence(Id id, size_t depth) {
    size_t index = 0;
    for (const Id item : document_.items(id)) {
      if (!is_leaf(item) && !visit_named('[' + std::to_string(index) + ']', item, depth))
        return false;
      ++index;
    }
    return true;
  }
  bool visit_named(const std::string& suffix, Id id, size_t depth) {
    const size_t length = name_.size();
    name_ += suffix;
    if (name_.size() > kMaxNameBytes || !visit(id, depth + 1)) return false;
    name_.resize(length);
    return true;
  }
  // Plain values need no name. They count all the same: a long list of them can be shared a
  // thousand times.
  bool is_leaf(Id id) {
    switch (document_.kind(id)) {
      case Kind::kDict:
      case Kind::kTuple:
      case Kind::kList:
      case Kind::kPersistent:
      case Kind::kCall:
        return false;
      default:
        return ++visits_ <= kMaxVisits;
    }
  }
  bool add(Id id) {
    name_bytes_ += name_.size();
    if (name_bytes_ > kMaxNameBytesInAll || entries_.size() >= max_entries_) return false;
    entries_.push_back({name_, id});
    return true;
  }

  const Document& document_;
  std::vector<Entry>& entries_;
  size_t& scalars_;
  size_t max_entries_;
  std::string name_;
  size_t name_bytes_ = 0;
  size_t visits_ = 0;
};

Result<void> TorchFile::collect(size_t file_bytes) {
  if (!Walk(document_, entries_, numpy_scalars_, file_bytes).visit(document_.root(), 0))
    return fail(
        Error(ErrorCode::kCorrupt, path_)
        << "its values are nested too deeply, shared too often or named at too great length to be "
           "a set of tensors; save plain tensors, e.g. torch.save(tensor, path)");
  return {};
}

std::string TorchFile::note() const {
  if (entries_.empty()) return "it holds no tensors, only plain values";
  if (numpy_scalars_ == 0) return "";
  return std::to_string(numpy_scalars_) +
         (numpy_scalars_ == 1 ? " numpy scalar is" : " numpy scalars are") +
         " left out; save them as arrays, e.g. numpy.asarray(x)";
}

Result<Tensor> TorchFile::load(size_t index) const {
  const Entry& entry = entries_[index];
  auto tensor = load_entry(entry);
  if (tensor) return tensor;
  const Error& cause = tensor.error();
  Error error(cause.code(), path_, cause.offset_bytes());
  if (!entry.name.empty()) error << "tensor " << printable(entry.name) << ": ";
  return fail(std::move(error) << cause.message());
}

Result<Tensor> TorchFile::load_array(const Entry& entry) const {
  auto spec = array_spec(document_, entry.id);
  if (!spec) return fail(spec.error());
  const auto as_bytes = [](std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  };
  const Kind kind = document_.kind(spec->data);
  if (kind == Kind::kBytes)
    return npy::array_of(owner(), as_bytes(document_.text(spec->data)), spec->type,
                         std::move(spec->shape), spec->fortran_order);
  // Protocol 2 has no bytes: _codecs.encode(text, "latin1").
  const std::vector<Id> parts =
      kind == Kind::kCall ? leading_items(document_, spec->data) : std::vector<Id>();
  const bool is_encoded = parts.size() == 2 && document_.kind(parts[0]) == Kind::kText &&
                          document_.global(spec->data).name == "encode";
  if (kind == Kind::kCall && document_.global(spec->data).name == "bytes" && parts.empty())
    return npy::array_of(owner(), {}, spec->type, std::move(spec->shape), spec->fortran_order);
  if (!is_encoded)
    return fail(unsupported("it is a numpy array of Python objects; save it as numbers"));
  auto bytes = bytes_of_text(document_.text(parts[0]));
  if (!bytes) return fail(bytes.error());
  const auto span = (*bytes)->bytes();
  return npy::array_of(*std::move(bytes), span, spec->type, std::move(spec->shape),
                       spec->fortran_order);
}

Result<Tensor> TorchFile::load_entry(const Entry& entry) const {
  if (document_.kind(entry.id) == Kind::kCall) {
    const GlobalKind kind = document_.global(entry.id).kind;
    if (kind == GlobalKind::kNumpyArray || kind == GlobalKind::kNumpyBuffer)
      return load_array(entry);
  }
  auto spec = tensor_spec(document_, entry.id);
  if (!spec) return fail(spec.error());
  auto stored = storage(spec->storage);
  if (!stored) return fail(stored.error());
  auto tensor = Tensor::strided(stored->owner, stored->bytes, spec->dtype, std::move(spec->shape),
                                std::move(spec->strides), spec->offset_elements);
  if (!tensor) return tensor;
  // A lazy sign is resolved into a copy, which must not outgrow what is really stored.
  const bool lazy = spec->conjugate || spec->negative;
  const size_t stored_elements = stored->bytes.size() / size_bytes(spec->dtype);
  if (tensor->elements() > std::max(stored_elements, lazy ? 0 : kMaxExpandedElements))
    return fail(unsupported("it is expanded to " + std::to_string(tensor->elements()) +
                            " elements over a storage of " + std::to_string(stored_elements) +
                            "; save x.clone() of a smaller part instead"));
  tensor->set_byte_swapped(byte_swapped());
  if (!lazy) return tensor;
  return with_flipped_signs(*tensor, spec->conjugate, spec->negative);
}

}  // namespace ait::formats
