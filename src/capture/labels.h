// What set_label notes: tensors that a script named as pairs while it ran, one file for each task
// (round of a dialogue).
//
//     {folder}/{task_id}_labels.jsonl
//         {"data_id": "data_1700000000.25_0", "source": "pta", "path": "…/pta_tensor/…_tensor.bin"}
//         {"data_id": "data_1700000000.25_0", "source": "acl", "path": "…/after/outTensor0.bin",
//          "problem": "", "waits": true, "seen_ns": null}
//
// Lines are appended by any number of processes. A later line for the same id and source replaces
// an earlier one. The last three say what became of a file that the library saves: "problem", why
// it does not hold the data of the label's call; "waits", that the library was still to save it;
// "seen_ns", the time of the file that lay there then.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace ait::capture {

struct LabelledPair {
  std::string data_id;
  std::string pta_path;  // empty: there was no such label
  std::string acl_path;
  std::string acl_problem;  // why the file is not the one that the label means
};

struct Labels {
  std::string path;  // of the file
  std::string task_id;
  std::vector<LabelledPair> pairs;  // in the order of their first labels
  std::vector<Error> problems;      // lines that make no sense
};

// Every file of labels in a folder, by task; numbers in numeric order. Fails where the folder
// cannot be listed; a file that cannot be read has no pairs, and a problem.
Result<std::vector<Labels>> read_labels(const std::string& folder);

}  // namespace ait::capture
