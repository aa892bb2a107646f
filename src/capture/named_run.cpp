#include "capture/named_run.h"

#include <charconv>
#include <utility>

#include "capture/module_tree.h"
#include "capture/torch_dump.h"

namespace ait::capture {
namespace {

// The builder wants the files of a unit; here a unit is all of a round.
constexpr const char* kUnit = "calls";

// The first number after the word: 1 of "output_1_0", 0 of "output".
uint32_t index_in(std::string_view tensor) {
  const size_t underscore = tensor.find('_');
  uint32_t index = 0;
  if (underscore != std::string_view::npos)
    std::from_chars(tensor.data() + underscore + 1, tensor.data() + tensor.size(), index);
  return index;
}

// `file` is "calls/root.model.norm/output_0.pt".
std::vector<RecordingBuilder::Name> parse_file(std::string_view file) {
  const size_t first = file.find('/');
  const size_t second = file.find('/', first + 1);
  RecordingBuilder::Name out;
  out.operation = file.substr(first + 1, second - first - 1);
  const std::string_view tensor = file.substr(second + 1);
  out.slot.call = module_and_call(out.operation).second;
  out.slot.direction = tensor.starts_with("input") ? Direction::kInput : Direction::kOutput;
  out.slot.index = index_in(tensor);
  return {out};
}

}  // namespace

std::string folder_safe(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '/')
      out += "%2F";
    else if (c != '\0')
      out += c;
  }
  return out;
}

void NamedRun::add_operation(const std::string& name, std::string_view type, std::string parent,
                             uint64_t position) {
  if (!facts_.try_emplace(name, std::string(type), parent, position).second) return;
  while (!parent.empty()) {
    const auto [found, is_new] =
        facts_.try_emplace(parent, std::string(), module_around(parent), position);
    if (!is_new) {
      if (found->second.position <= position) break;
      found->second.position = position;
    }
    parent = found->second.parent;
  }
}

void NamedRun::add(size_t rank, size_t round, std::string_view folder, Tensor tensor) {
  Files& files = files_[{rank, round}];
  if (files.tensors.empty()) files.folder = folder;
  std::string file = folder_safe(tensor.operation) + "/" + folder_safe(tensor.name) + ".pt";
  files.tensors.emplace(std::move(file), std::move(tensor));
}

bool NamedRun::less(const std::string& a, const std::string& b) const {
  const auto x = facts_.find(a);
  const auto y = facts_.find(b);
  if (x == facts_.end() || y == facts_.end()) {
    if ((x == facts_.end()) != (y == facts_.end())) return y == facts_.end();
    return natural_less(a, b);
  }
  if (x->second.position != y->second.position) return x->second.position < y->second.position;
  return natural_less(a, b);
}

void NamedRun::finish(Recording& recording) {
  RecordingBuilder builder;
  for (const auto& [place, files] : files_) {
    std::string text;
    for (const auto& [file, tensor] : files.tensors) (text += file) += '\0';
    builder.add(place.first, place.second, kUnit, std::move(text));
  }
  std::vector<Operation> operations;
  for (const auto& [name, facts] : facts_) {
    Operation& operation = operations.emplace_back();
    operation.name = name;
    operation.type = facts.type;
    operation.kind = torch_kind(facts.type);
  }
  builder.finish(
      recording, std::move(operations), parse_file,
      [](const std::string& name) {
        Operation operation;
        operation.name = name;
        return operation;
      },
      [&](const std::string& name) {
        const auto found = facts_.find(name);
        return found == facts_.end() ? module_around(name) : found->second.parent;
      },
      [&](const Operation& a, const Operation& b) { return less(a.name, b.name); });
  name_files(recording);
}

// The builder takes equal sets of files for one content; here every round has files of its own
// names.
void NamedRun::name_files(Recording& recording) const {
  std::vector<std::vector<uint32_t>> contents;
  for (const auto& [place, files] : files_) {
    Recording::FileNames names;
    names.folder = files.folder;
    std::map<std::string_view, uint32_t> places;
    const auto place_of = [&](const std::string& text) {
      const auto [found, is_new] =
          places.try_emplace(text, static_cast<uint32_t>(names.texts.size()));
      if (is_new) (names.texts += text) += '\0';
      return found->second;
    };
    auto& units = recording.kept.at(place.first * recording.rounds.size() + place.second);
    std::vector<uint32_t> slots = recording.contents[units.front().content];
    for (const uint32_t slot : slots) {
      const std::string& file = recording.slots[slot].file;
      const Tensor& tensor = files.tensors.at(file.substr(file.find('/') + 1));
      names.name_of.push_back(place_of(tensor.path));
      names.member_of.push_back(place_of(tensor.member));
      if (tensor.kept != Kept::kBytes) recording.slots[slot].kept = tensor.kept;
    }
    units.front().content = static_cast<uint32_t>(contents.size());
    contents.push_back(std::move(slots));
    recording.file_names.push_back(std::move(names));
  }
  recording.contents = std::move(contents);
}

}  // namespace ait::capture
