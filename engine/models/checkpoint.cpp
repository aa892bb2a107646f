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

bool stored_type(ait::DType dtype, DataType& out) {
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
Result<std::set<std::string>> read_index(const std::string& path) {
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
void copy_converted(const uint8_t* from, DataType from_type, size_t outer, size_t inner,
                    size_t begin, size_t end, DataType to_type, uint8_t* to) {
  const size_t count = end - begin;
  const size_t from_bytes = element_bytes(from_type), to_bytes = element_bytes(to_type);
  atb::kernels::for_ranges(outer, atb::kernels::grain_for(count), [&](size_t first, size_t last) {
    std::vector<float> row(count);
    for (size_t r = first; r < last; ++r) {
      const uint8_t* source = from + (r * inner + begin) * from_bytes;
      uint8_t* target = to + r * count * to_bytes;
      if (from_type == to_type) {
        std::memcpy(target, source, count * to_bytes);
        continue;
      }
      atb::kernels::widen(from_type, source, count, row.data());
      atb::kernels::narrow(row.data(), count, to_type, target);
    }
  });
}

}  // namespace

Weight allocate(const atb::TensorDesc& desc) {
  const uint64_t bytes = atb::aligned(std::max<uint64_t>(1, desc.bytes()));
  std::shared_ptr<void> memory(std::aligned_alloc(atb::kAlignmentBytes, bytes), std::free);
  if (!memory) throw std::bad_alloc();
  std::memset(memory.get(), 0, bytes);
  return {{desc, memory.get()}, memory};
}

Result<Checkpoint> Checkpoint::open(const std::string& folder) {
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  const std::string index = folder + "/model.safetensors.index.json";
  std::error_code ignored;
  if (std::filesystem::exists(index, ignored)) {
    auto shards = read_index(index);
    if (!shards) return fail(shards.error());
    for (const std::string& shard : *shards)
      if (auto added = checkpoint.add_file(std::string(folder).append("/").append(shard)); !added)
        return fail(added.error());
    return checkpoint;
  }
  if (auto added = checkpoint.add_file(folder + "/model.safetensors"); !added)
    return fail(added.error());
  return checkpoint;
}

Result<void> Checkpoint::add_file(const std::string& path) {
  auto file = ait::formats::open_tensor_file(path);
  if (!file) return fail(file.error());
  for (size_t i = 0; i < (*file)->size(); ++i) where_[(*file)->name(i)] = {files_.size(), i};
  files_.push_back(std::move(*file));
  paths_.push_back(path);
  return {};
}

Result<Weight> Checkpoint::load(const std::string& name, const atb::Dims& shape, DataType dtype,
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
  if (!stored_type(tensor->dtype(), stored))
    return fail(wrong() << ait::name(tensor->dtype()) << ", not float32, float16 or bfloat16");
  if (!std::equal(shape.begin(), shape.end(), tensor->shape().begin(), tensor->shape().end()))
    return fail(wrong() << ait::shape_text(tensor->shape()) << " where config.json means ["
                        << shape.text() << "]");
  const auto view = tensor->view();
  if (!view.plain()) return fail(wrong() << "not stored row by row");
  const int64_t whole = shape.empty() ? 1 : shape[slice.dimension];
  const int64_t end = slice.end < 0 ? whole : slice.end;
  atb::Dims cut = shape;
  if (!cut.empty()) cut[slice.dimension] = end - slice.begin;
  // What lies before the cut dimension is repeated, what lies behind it moves as one.
  const auto tail = static_cast<size_t>(shape.count(slice.dimension + 1));
  const size_t outer = slice.dimension == 0 ? 1 : static_cast<size_t>(shape[0]);
  const auto* from = reinterpret_cast<const uint8_t*>(view.data);
  const auto offset = static_cast<size_t>(slice.begin) * tail;
  const auto address = reinterpret_cast<uintptr_t>(from);
  if (stored == dtype && outer == 1 && address % element_bytes(dtype) == 0)
    // Never written through: weights are inputs only.
    return Weight{{{dtype, cut}, const_cast<uint8_t*>(from) + offset * element_bytes(dtype)},
                  tensor->owner()};
  Weight weight = allocate({dtype, cut});
  const auto count = static_cast<size_t>(end - slice.begin) * tail;
  if (outer == 1) {
    // One long row would be one task: cut it along the first dimension.
    const auto rows = static_cast<size_t>(cut.empty() ? 1 : cut[0]);
    copy_converted(from + offset * element_bytes(stored), stored, rows, tail, 0, tail, dtype,
                   weight.tensor.as<uint8_t>());
  } else {
    copy_converted(from, stored, outer, static_cast<size_t>(whole) * tail, offset, offset + count,
                   dtype, weight.tensor.as<uint8_t>());
  }
  return weight;
}

std::pair<Weight, Weight> quantise_rows(const Weight& weight) {
  const atb::Dims& dims = weight.tensor.desc.dims;
  const auto columns = static_cast<size_t>(dims[1]);
  const DataType dtype = weight.tensor.desc.dtype;
  Weight quantised = allocate({DataType::kInt8, dims});
  Weight scales = allocate({DataType::kFloat, {dims[0]}});
  atb::kernels::for_ranges(
      static_cast<size_t>(dims[0]), atb::kernels::grain_for(columns),
      [&](size_t begin, size_t end) {
        std::vector<float> row(columns);
        for (size_t r = begin; r < end; ++r) {
          atb::kernels::widen(dtype,
                              weight.tensor.as<uint8_t>() + r * columns * element_bytes(dtype),
                              columns, row.data());
          scales.tensor.as<float>()[r] = atb::kernels::quantise_row(
              row.data(), columns, quantised.tensor.as<int8_t>() + r * columns);
        }
      });
  return {quantised, scales};
}

}  // namespace atb_speed
