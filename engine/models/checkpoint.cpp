#include "models/checkpoint.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "atb/align.h"
#include "base/mapped_file.h"
#include "kernels/loops.h"
#include "kernels/quantise.h"
#include "kernels/simd.h"

namespace atb_speed {
namespace {

using ait::Error;
using ait::ErrorCode;
using ait::fail;
using ait::Result;
using atb::DataType;
using Json = nlohmann::json;

constexpr size_t kMaxIndexBytes = size_t{64} << 20;

bool StoredType(ait::DType dtype, DataType& out) {
  switch (dtype) {
    case ait::DType::kFloat32:
      out = DataType::kFloat;
      return true;
    case ait::DType::kFloat16:
      out = DataType::kFloat16;
      return true;
    case ait::DType::kBFloat16:
      out = DataType::kBf16;
      return true;
    default:
      return false;
  }
}

// The shard names of an index file.
Result<std::set<std::string>> ReadIndex(const std::string& path) {
  auto file = ait::MappedFile::open(path);
  if (!file) return fail(file.error());
  const auto bytes = (*file)->bytes();
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const Json json = bytes.size() > kMaxIndexBytes
                        ? Json(Json::value_t::discarded)
                        : Json::parse(text, text + bytes.size(), nullptr, false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    return fail(Error(ErrorCode::kCorrupt, path) << "has no \"weight_map\" that names the shards");
  std::set<std::string> shards;
  for (const auto& [name, shard] : json["weight_map"].items()) {
    if (!shard.is_string())
      return fail(Error(ErrorCode::kCorrupt, path) << "names no file for a weight");
    const auto file_name = shard.get<std::string>();
    if (file_name.empty() || file_name.find('/') != std::string::npos || file_name[0] == '.')
      return fail(Error(ErrorCode::kRefused, path)
                  << "names a shard outside the folder: \"" << ait::printable(file_name) << "\"");
    shards.insert(file_name);
  }
  return shards;
}

// Rows of `outer` x `inner` elements, of which [begin, end) of the inner ones are taken.
void CopyConverted(const uint8_t* from, DataType from_type, size_t outer, size_t inner,
                   size_t begin, size_t end, DataType to_type, uint8_t* to) {
  const size_t count = end - begin;
  const size_t from_bytes = ElementBytes(from_type), to_bytes = ElementBytes(to_type);
  atb::kernels::ForRanges(outer, atb::kernels::GrainFor(count), [&](size_t first, size_t last) {
    std::vector<float> row(count);
    for (size_t r = first; r < last; ++r) {
      const uint8_t* source = from + (r * inner + begin) * from_bytes;
      uint8_t* target = to + r * count * to_bytes;
      if (from_type == to_type) {
        std::memcpy(target, source, count * to_bytes);
        continue;
      }
      atb::kernels::Widen(from_type, source, count, row.data());
      atb::kernels::Narrow(row.data(), count, to_type, target);
    }
  });
}

}  // namespace

Weight Allocate(const atb::TensorDesc& desc) {
  const uint64_t bytes = atb::Aligned(std::max<uint64_t>(1, desc.Bytes()));
  std::shared_ptr<void> memory(std::aligned_alloc(atb::kAlignmentBytes, bytes), std::free);
  if (!memory) throw std::bad_alloc();
  std::memset(memory.get(), 0, bytes);
  return {{desc, memory.get()}, memory};
}

Result<Checkpoint> Checkpoint::Open(const std::string& folder) {
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  const std::string index = folder + "/model.safetensors.index.json";
  std::error_code ignored;
  if (std::filesystem::exists(index, ignored)) {
    auto shards = ReadIndex(index);
    if (!shards) return fail(shards.error());
    for (const std::string& shard : *shards)
      if (auto added = checkpoint.AddFile(std::string(folder).append("/").append(shard)); !added)
        return fail(added.error());
    return checkpoint;
  }
  if (auto added = checkpoint.AddFile(folder + "/model.safetensors"); !added)
    return fail(added.error());
  return checkpoint;
}

Result<void> Checkpoint::AddFile(const std::string& path) {
  auto file = ait::formats::open_tensor_file(path);
  if (!file) return fail(file.error());
  for (size_t i = 0; i < (*file)->size(); ++i) where_[(*file)->name(i)] = {files_.size(), i};
  files_.push_back(std::move(*file));
  paths_.push_back(path);
  return {};
}

Result<Weight> Checkpoint::Load(const std::string& name, const atb::Dims& shape, DataType dtype,
                                const Slice& slice) const {
  const auto found = where_.find(name);
  if (found == where_.end())
    return fail(Error(ErrorCode::kNotFound, folder_)
                << "holds no weight \"" << name << "\", which its config.json calls for");
  const std::string& path = paths_[found->second.file];
  auto tensor = files_[found->second.file]->load(found->second.index);
  if (!tensor) return fail(tensor.error());
  const auto wrong = [&] {
    return Error(ErrorCode::kUnsupported, path) << "weight \"" << name << "\" is ";
  };
  DataType stored;
  if (!StoredType(tensor->dtype(), stored))
    return fail(wrong() << ait::name(tensor->dtype()) << ", not float32, float16 or bfloat16");
  if (!std::equal(shape.begin(), shape.end(), tensor->shape().begin(), tensor->shape().end()))
    return fail(wrong() << ait::shape_text(tensor->shape()) << " where config.json means ["
                        << shape.Text() << "]");
  const auto view = tensor->view();
  if (!view.plain()) return fail(wrong() << "not stored row by row");
  const int64_t whole = shape.empty() ? 1 : shape[slice.dimension];
  const int64_t end = slice.end < 0 ? whole : slice.end;
  atb::Dims cut = shape;
  if (!cut.empty()) cut[slice.dimension] = end - slice.begin;
  // What lies before the cut dimension is repeated, what lies behind it moves as one.
  const auto tail = static_cast<size_t>(shape.Count(slice.dimension + 1));
  const size_t outer = slice.dimension == 0 ? 1 : static_cast<size_t>(shape[0]);
  const auto* from = reinterpret_cast<const uint8_t*>(view.data);
  const auto offset = static_cast<size_t>(slice.begin) * tail;
  const auto address = reinterpret_cast<uintptr_t>(from);
  if (stored == dtype && outer == 1 && address % ElementBytes(dtype) == 0)
    // Never written through: weights are inputs only.
    return Weight{{{dtype, cut}, const_cast<uint8_t*>(from) + offset * ElementBytes(dtype)},
                  tensor->owner()};
  Weight weight = Allocate({dtype, cut});
  const auto count = static_cast<size_t>(end - slice.begin) * tail;
  if (outer == 1) {
    // One long row would be one task: cut it along the first dimension.
    const auto rows = static_cast<size_t>(cut.empty() ? 1 : cut[0]);
    CopyConverted(from + offset * ElementBytes(stored), stored, rows, tail, 0, tail, dtype,
                  weight.tensor.As<uint8_t>());
  } else {
    CopyConverted(from, stored, outer, static_cast<size_t>(whole) * tail, offset, offset + count,
                  dtype, weight.tensor.As<uint8_t>());
  }
  return weight;
}

std::pair<Weight, Weight> QuantiseRows(const Weight& weight) {
  const atb::Dims& dims = weight.tensor.desc.dims;
  const auto columns = static_cast<size_t>(dims[1]);
  const DataType dtype = weight.tensor.desc.dtype;
  Weight quantised = Allocate({DataType::kInt8, dims});
  Weight scales = Allocate({DataType::kFloat, {dims[0]}});
  atb::kernels::ForRanges(
      static_cast<size_t>(dims[0]), atb::kernels::GrainFor(columns), [&](size_t begin, size_t end) {
        std::vector<float> row(columns);
        for (size_t r = begin; r < end; ++r) {
          atb::kernels::Widen(dtype,
                              weight.tensor.As<uint8_t>() + r * columns * ElementBytes(dtype),
                              columns, row.data());
          scales.tensor.As<float>()[r] = atb::kernels::QuantiseRow(
              row.data(), columns, quantised.tensor.As<int8_t>() + r * columns);
        }
      });
  return {quantised, scales};
}

}  // namespace atb_speed
