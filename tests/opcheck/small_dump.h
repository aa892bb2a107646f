// A dump of a few operations, written file by file.
#pragma once

#include <string>
#include <vector>

#include "formats/write.h"
#include "tensors.h"
#include "test_files.h"

namespace ait::opcheck {

class SmallDump {
 public:
  // "0_7" is the rank, "0" the round: add("0_7/0/2_AddOperation", "after/outtensor0", {2}, {1, 2}).
  void add(const std::string& operation, const std::string& tensor, const Shape& shape,
           const std::vector<float>& values) const {
    const std::string path = at(operation) + "/" + tensor + ".bin";
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    const std::vector<formats::NamedTensor> tensors = {{"", *floats(shape, values)}};
    ASSERT_TRUE(formats::write_tensor_file(path, tensors, *formats::file_format_of(path)));
  }

  void set_param(const std::string& operation, std::string_view json) const {
    folder_.write("ait_dump/tensors/" + operation + "/op_param.json", json);
  }

  std::string at(const std::string& operation) const {
    return (folder_.path() / "ait_dump/tensors" / operation).string();
  }
  std::string path() const { return (folder_.path() / "ait_dump").string(); }
  const formats::TempFolder& folder() const { return folder_; }

  // An operation that doubles {1, 2, 3}.
  void add_doubling(const std::string& operation, const std::vector<float>& result) const {
    set_param(operation, R"({"elewiseType": 2, "mulsParam": {"varAttr": 2.0}})");
    add(operation, "after/intensor0", {3}, {1, 2, 3});
    add(operation, "after/outtensor0", {static_cast<int64_t>(result.size())}, result);
  }

 private:
  formats::TempFolder folder_;
};

}  // namespace ait::opcheck
