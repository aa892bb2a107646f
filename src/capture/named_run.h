// Makes a Recording of what other tools recorded of a torch model, where they say of every tensor
// which operation it belongs to and what it is called. Files have names of their own in every round.
//
//   NamedRun run;
//   run.add_operation("root.model.norm", "LlamaRMSNorm", "root.model", 17);
//   run.add(rank, round, "step0/rank0", {"root.model.norm", "output", "norm.output.0.pt", ""});
//   run.finish(recording);  // its ranks and rounds are known
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "capture/recording.h"

namespace ait::capture {

// As register_hook writes names that would lead to another folder: "a%2Fb" of "a/b".
std::string folder_safe(std::string_view text);

class NamedRun {
 public:
  // `position` says when it ran; what holds it is there, too, from when the first thing in it ran.
  // The first that is said of an operation counts.
  void add_operation(const std::string& name, std::string_view type, std::string parent,
                     uint64_t position);

  struct Tensor {
    std::string operation;
    std::string name;    // "input_0", "output"
    std::string path;    // below `folder`
    std::string member;  // its name in a file of several tensors; empty for a file's only one
    Kept kept = Kept::kBytes;
  };
  // `folder` is below the rank's, the same for all tensors of a rank and round. Of two tensors of
  // one name the first counts.
  void add(size_t rank, size_t round, std::string_view folder, Tensor tensor);

  void finish(Recording& recording);

 private:
  struct Facts {
    std::string type;
    std::string parent;
    uint64_t position = 0;
  };
  struct Files {
    std::string folder;
    std::map<std::string, Tensor> tensors;  // by "root.model.norm/output.pt"
  };

  bool less(const std::string& a, const std::string& b) const;
  void name_files(Recording& recording) const;

  std::map<std::string, Facts> facts_;
  std::map<std::pair<size_t, size_t>, Files> files_;  // of a rank and round
};

}  // namespace ait::capture
