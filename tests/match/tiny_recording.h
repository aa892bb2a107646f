// Recordings of a handful of operations, for tests that can be read: operations are an indented
// list, tensors small matrices, and files lie in a folder that goes with the test.
//
//   TinyRun torch(capture::kTorchTraits, R"(
//     root
//       q   Linear
//       k   Linear  in
//   )");
//   torch.save("root.k", random_matrix("k", 5, 32));
//
// A line is a name, the type of a module, and any of these words:
//   in         it has an input, too                    none       it has no tensors
//   x=, y=     names of what it reads and writes, as a topology says them
//   kernel     it is a kernel, not an operation
// The type of a library's operation is in its name: 0_LinearOperation.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/atb_dump.h"
#include "capture/recording.h"
#include "capture/torch_dump.h"
#include "formats/write.h"
#include "match/program.h"
#include "match/sample.h"
#include "match/values.h"
#include "test_files.h"

namespace ait::match {

// Rows are tokens.
struct Matrix {
  size_t rows = 0;
  size_t columns = 0;
  std::vector<float> values;
};

// The same for the same name.
inline Matrix random_matrix(const std::string& name, size_t rows, size_t columns, float size = 1) {
  std::mt19937 engine(static_cast<uint32_t>(std::hash<std::string>()(name)));
  std::normal_distribution<float> normal(0, size);
  Matrix out{rows, columns, {}};
  for (size_t i = 0; i < rows * columns; ++i) out.values.push_back(normal(engine));
  return out;
}

inline Matrix operator+(Matrix a, const Matrix& b) {
  for (size_t i = 0; i < a.values.size(); ++i) a.values[i] += b.values[i];
  return a;
}

// As if it had been computed otherwise: `size` is the distance of the two.
inline Matrix noisy(const Matrix& from, float size) {
  return from + random_matrix("noise", from.rows, from.columns, size);
}

inline Matrix columns_of(const Matrix& from, size_t first, size_t count) {
  Matrix out{from.rows, count, {}};
  for (size_t row = 0; row < from.rows; ++row)
    for (size_t c = first; c < first + count; ++c)
      out.values.push_back(from.values[row * from.columns + c]);
  return out;
}

inline Matrix beside(const std::vector<Matrix>& parts) {
  Matrix out{parts[0].rows, 0, {}};
  for (const Matrix& part : parts) out.columns += part.columns;
  for (size_t row = 0; row < out.rows; ++row)
    for (const Matrix& part : parts)
      out.values.insert(out.values.end(), part.values.begin() + row * part.columns,
                        part.values.begin() + (row + 1) * part.columns);
  return out;
}

// All rows of a matrix as a sample.
inline Sample sample_of(const Matrix& from) {
  Sample out;
  out.columns = from.columns;
  for (size_t row = 0; row < from.rows; ++row)
    out.rows.emplace_back(from.values.begin() + row * from.columns,
                          from.values.begin() + (row + 1) * from.columns);
  return out;
}

class TinyRun {
 public:
  capture::Recording recording;

  TinyRun(const capture::Traits& traits, const std::string& list, size_t ranks = 1,
          std::vector<std::string> rounds = {"0"}) {
    recording.root = folder_.path().string();
    recording.traits = traits;
    recording.rounds = std::move(rounds);
    for (size_t rank = 0; rank < ranks; ++rank)
      recording.ranks.push_back(
          {recording.root + "/" + std::to_string(rank), "", std::to_string(rank), ""});
    add_operations(list);
    for (uint32_t top = 0; top < recording.operations.size(); top = recording.operations[top].end)
      add_unit(top);
    for (size_t rank = 0; rank < ranks; ++rank)
      for (size_t round = 0; round < recording.rounds.size(); ++round)
        for (uint32_t unit = 0; unit < recording.units.size(); ++unit)
          recording.kept[rank * recording.rounds.size() + round].push_back({unit, unit});
  }

  // Leaves a top-level operation out of a round, on all ranks.
  void drop(const std::string& top, const std::string& round) {
    const auto index =
        static_cast<size_t>(std::find(recording.rounds.begin(), recording.rounds.end(), round) -
                            recording.rounds.begin());
    for (size_t rank = 0; rank < recording.ranks.size(); ++rank)
      std::erase_if(recording.kept[rank * recording.rounds.size() + index],
                    [&](const auto& each) { return recording.units[each.unit] == top; });
  }

  uint32_t operation(const std::string& name) const {
    for (uint32_t i = 0; i < recording.operations.size(); ++i)
      if (recording.operations[i].name == name) return i;
    ADD_FAILURE() << "no operation " << name;
    return 0;
  }

  // Writes an operation's last tensor, its output if it has one.
  void save(const std::string& name, const Matrix& matrix, size_t rank = 0, size_t round = 0) {
    const auto rows = static_cast<int64_t>(matrix.rows);
    const auto columns = static_cast<int64_t>(matrix.columns);
    const bool apart = recording.traits.batch == capture::Traits::Batch::kApart;
    save(name, matrix.values, apart ? Shape{1, rows, columns} : Shape{rows, columns},
         DType::kFloat32, rank, round);
  }
  template <typename T>
  void save(const std::string& name, const std::vector<T>& values, Shape shape, DType dtype,
            size_t rank = 0, size_t round = 0) {
    const uint32_t slot = recording.first_slot[operation(name) + 1] - 1;
    const std::string path = recording.record(rank, round, slot).path;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    auto owner = std::make_shared<std::vector<T>>(values);
    const auto tensor =
        Tensor::contiguous(owner, std::as_bytes(std::span(*owner)), dtype, std::move(shape));
    const std::vector<formats::NamedTensor> tensors = {{"", *tensor}};
    ASSERT_TRUE(formats::write_tensor_file(path, tensors, *formats::file_format_of(path)));
  }

  // All operations as one segment.
  Segment whole() const {
    Segment out;
    for (uint32_t i = 0; i < recording.operations.size(); ++i) out.operations.push_back(i);
    return out;
  }

 private:
  bool is_modules() const { return recording.traits.identity == capture::Traits::Identity::kNames; }

  void add_operations(const std::string& list) {
    std::istringstream lines(list);
    std::vector<uint32_t> path;  // operations that the current one lies in
    std::string line;
    size_t margin = std::string::npos;
    while (std::getline(lines, line)) {
      const size_t indent = line.find_first_not_of(' ');
      if (indent == std::string::npos) continue;
      if (margin == std::string::npos) margin = indent;
      path.resize((indent - margin) / 2);
      path.push_back(add_operation(line, path.empty() ? capture::kNoOperation : path.back()));
      for (const uint32_t each : path)
        recording.operations[each].end = static_cast<uint32_t>(recording.operations.size());
    }
    recording.first_slot.push_back(static_cast<uint32_t>(recording.slots.size()));
  }

  uint32_t add_operation(const std::string& line, uint32_t parent) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    capture::Operation operation;
    operation.parent = parent;
    const capture::Operation* above =
        parent == capture::kNoOperation ? nullptr : &recording.operations[parent];
    operation.name = (above == nullptr ? "" : above->name + (is_modules() ? "." : "/")) + word;
    if (!is_modules()) {
      operation.type = word.substr(word.find('_') + 1);
      if (above != nullptr) operation.ids = above->ids;
      operation.ids.push_back(std::stoull(word));
    }
    bool has_input = false;
    bool has_output = true;
    while (words >> word) {
      if (word == "in")
        has_input = true;
      else if (word == "none")
        has_output = false;
      else if (word == "kernel")
        operation.level = capture::Level::kKernel;
      else if (word.starts_with("x="))
        operation.inputs.push_back(word.substr(2));
      else if (word.starts_with("y="))
        operation.outputs.push_back(word.substr(2));
      else
        operation.type = word;
    }
    operation.kind =
        is_modules() ? capture::torch_kind(operation.type) : capture::atb_kind(operation.type, "");
    const auto index = static_cast<uint32_t>(recording.operations.size());
    recording.first_slot.push_back(static_cast<uint32_t>(recording.slots.size()));
    if (has_input) add_slot(index, operation.name, capture::Direction::kInput);
    if (has_output) add_slot(index, operation.name, capture::Direction::kOutput);
    recording.operations.push_back(std::move(operation));
    return index;
  }

  void add_slot(uint32_t operation, const std::string& name, capture::Direction direction) {
    const bool is_input = direction == capture::Direction::kInput;
    capture::Slot slot;
    slot.operation = operation;
    slot.direction = direction;
    slot.file =
        name + (is_modules() ? (is_input ? "/input_0.npy" : "/output.npy")
                             : (is_input ? "/after/intensor0.npy" : "/after/outtensor0.npy"));
    recording.slots.push_back(std::move(slot));
  }

  // A top-level operation is listed as a whole.
  void add_unit(uint32_t top) {
    const auto unit = static_cast<uint32_t>(recording.units.size());
    recording.units.push_back(recording.operations[top].name);
    auto& content = recording.contents.emplace_back();
    for (uint32_t slot = recording.first_slot[top];
         slot < recording.first_slot[recording.operations[top].end]; ++slot) {
      recording.slots[slot].unit = unit;
      content.push_back(slot);
    }
  }

  formats::TempFolder folder_;
};

}  // namespace ait::match
