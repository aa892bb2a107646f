#include "fused/table.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>
#include <utility>

#include "report/number.h"

namespace ait::python::fused {
namespace {

constexpr std::string_view kColumns =
    "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm,File";
constexpr std::string_view kColumnsOfRound = ",NaN,Inf,SameAs";
constexpr std::string_view kColumnOfSketches = ",Sketch";
constexpr std::string_view kLineEnd = "\r\n";  // as that of the older tools

void append_cell(std::string& text, std::string_view cell) {
  if (cell.find_first_of(",\"\r\n") == std::string_view::npos) {
    text += cell;
    return;
  }
  text += '"';
  for (const char c : cell) {
    if (c == '"') text += '"';
    text += c;
  }
  text += '"';
}

// The last number in a name: 0 of "input_1_0".
std::string_view last_number(std::string_view stem) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto end = std::find_if(stem.rbegin(), stem.rend(), is_digit);
  if (end == stem.rend()) return "0";
  const auto begin = std::find_if_not(end, stem.rend(), is_digit);
  std::string_view number(begin.base(), static_cast<size_t>(end.base() - begin.base()));
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size() - 1));
  return number;
}

// As Python writes a tuple: "(3,)", "(1, 7, 64)".
std::string tuple_text(std::span<const int64_t> shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text += shape.size() == 1 ? ",)" : ")";
}

}  // namespace

const std::string* interned(std::string_view text) {
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  static auto& all = *new std::unordered_set<std::string, Hash, std::equal_to<>>;
  auto found = all.find(text);
  if (found == all.end()) found = all.emplace(text).first;
  return &*found;
}

Table::~Table() {
  // The device may still write to the memory of a launch that nobody has waited for.
  if (launched_ || !marks_.empty() || captured_) return;
  for (const Stretch& stretch : stretches_) give_back_stretch(stretch.results);
}

uint32_t Table::add_call(std::shared_ptr<const Subject> subject, bool of_module) {
  uint32_t again = 0;
  Module* module = nullptr;
  if (of_module) {
    module = &modules_[subject->name];
    again = static_cast<uint32_t>(module->places.size());
    module->places.push_back(module_calls_++);
  }
  calls_.push_back({std::move(subject), again, module});
  return static_cast<uint32_t>(calls_.size()) - 1;
}

uint32_t Table::begin_call(std::shared_ptr<const Subject> subject) {
  const std::lock_guard lock(mutex_);
  return add_call(std::move(subject), true);
}

uint32_t Table::begin_function(std::shared_ptr<const Subject> subject) {
  const std::lock_guard lock(mutex_);
  return add_call(std::move(subject), false);
}

void Table::end_call(uint32_t call) {
  const std::lock_guard lock(mutex_);
  note_end(call);
}

void Table::note_end(uint32_t call) {
  const Call& of = calls_[call];
  if (of.module == nullptr || std::exchange(of.module->ended, true)) return;
  ended_print_ += std::hash<std::string>()(of.subject->name) * 0x9e3779b97f4a7c15U;
}

std::string Table::place_of(uint32_t call) const {
  const Call& of = calls_[call];
  return of.again == 0 ? of.subject->folder : of.subject->folder + "#" + std::to_string(of.again);
}

Result* Table::next_result(Device* device) {
  if (device == nullptr) return &own_.emplace_back();
  if (stretches_.empty() || stretches_.back().used == kStretch ||
      (captured_ && stretches_.back().device != device)) {
    Result* results =
        captured_ ? device->lasting_results(kStretch) : take_stretch(device->context());
    if (results == nullptr) return nullptr;
    stretches_.push_back({results, 0, device});
  }
  Result* next = stretches_.back().results + stretches_.back().used++;
  if (!captured_) *next = {};
  return next;
}

Result* Table::add_row(uint32_t call, const std::string* stem, DType dtype,
                       std::span<const int64_t> shape, Way way, Device* device) {
  const std::lock_guard lock(mutex_);
  Result* result = way == Way::kNobody ? nullptr : next_result(device);
  rows_.push_back({call, static_cast<uint32_t>(dims_.size()), kNone, kNone,
                   static_cast<uint8_t>(shape.size()), dtype, stem, result});
  dims_.insert(dims_.end(), shape.begin(), shape.end());
  ++ways_[static_cast<size_t>(way)];
  return result;
}

void Table::add_row_again(uint32_t call, const std::string* stem, uint32_t row) {
  const std::lock_guard lock(mutex_);
  Row again = rows_[row];
  again.call = call;
  again.stem = stem;
  again.same_as = row;
  rows_.push_back(again);
  ++again_;
}

bool Table::has_grown() {
  const std::lock_guard lock(mutex_);
  return std::exchange(seen_rows_, rows_.size()) < rows_.size();
}

void Table::set(uint32_t row, const Result& numbers) {
  const std::lock_guard lock(mutex_);
  if (row < rows_.size() && rows_[row].result != nullptr) *rows_[row].result = numbers;
}

void Table::add_sketch(uint32_t row, std::string text) {
  const std::lock_guard lock(mutex_);
  rows_[row].sketch = static_cast<uint32_t>(sketches_.size());
  sketches_.push_back(std::move(text));
}

Status Table::append_replay(const Table& captured, Stream stream) {
  const std::lock_guard lock(mutex_);
  Status status = 0;
  const size_t first_stretch = stretches_.size();
  for (const Stretch& from : captured.stretches_) {
    Result* results = take_stretch(from.device->context());
    if (results == nullptr) return 2;  // CUDA_ERROR_OUT_OF_MEMORY
    std::fill_n(results, kStretch, Result{});
    // None of it is given to other rows.
    stretches_.push_back({results, kStretch, from.device});
    const Status copied = from.device->copy_results(results, from.results, from.used, stream);
    if (status == 0) status = copied;
    note_launch(*from.device, stream);
  }
  const auto number_here = [&](Result* there) -> Result* {
    for (size_t i = 0; i < captured.stretches_.size(); ++i) {
      const Stretch& from = captured.stretches_[i];
      if (there >= from.results && there < from.results + from.used)
        return stretches_[first_stretch + i].results + (there - from.results);
    }
    return there == nullptr ? nullptr : &own_.emplace_back(*there);
  };
  std::vector<uint32_t> calls;
  for (const Call& call : captured.calls_) {
    calls.push_back(add_call(call.subject, call.module != nullptr));
    if (call.module != nullptr && call.module->ended) note_end(calls.back());
  }
  const auto first_row = static_cast<uint32_t>(rows_.size());
  for (Row row : captured.rows_) {
    row.call = calls[row.call];
    row.sketch = kNone;  // of the capture, if there is one
    if (row.same_as != kNone) {
      row.same_as += first_row;
      row.result = rows_[row.same_as].result;
    } else {
      row.result = number_here(row.result);
    }
    const auto dims = static_cast<uint32_t>(dims_.size());
    dims_.insert(dims_.end(), captured.dims_.begin() + row.first_dim,
                 captured.dims_.begin() + row.first_dim + row.rank);
    row.first_dim = dims;
    rows_.push_back(row);
  }
  for (size_t i = 0; i < kWays; ++i) ways_[i] += captured.ways_[i];
  again_ += captured.again_;
  return status;
}

void Table::note_launch(Device& device, Stream stream) {
  launched_ = true;
  for (const Used& used : streams_)
    if (used.device == &device && used.stream == stream) return;
  streams_.push_back({&device, stream});
}

void Table::note_failure(Status status) {
  note_unstored("the GPU could not measure it: " + error_text(status),
                [&] { return std::to_string(number_); });
}

void Table::mark_end() {
  if (!launched_) return;
  launched_ = false;
  const std::lock_guard lock(mutex_);
  for (const Used& used : streams_) {
    if (auto mark = used.device->mark(used.stream))
      marks_.push_back(*mark);
    else
      launched_ = true;  // its memory is not used again
  }
}

void Table::wait() {
  std::vector<Mark> marks;
  {
    const std::lock_guard lock(mutex_);
    marks.swap(marks_);
  }
  const Status status = fused::wait(marks);
  const std::lock_guard lock(mutex_);
  if (failure_ == 0) failure_ = status;
}

std::vector<std::string> Table::ended() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, module] : modules_)
    if (module.ended) names.push_back(name);
  return names;
}

std::map<std::string, std::vector<uint32_t>> Table::calls() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::vector<uint32_t>> out;
  for (const auto& [name, module] : modules_) out[name] = module.places;
  return out;
}

Status Table::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::map<std::string, Unstored> Table::take_unstored() { return std::exchange(unstored_, {}); }

std::vector<Table::Line> Table::lines() const {
  const std::lock_guard lock(mutex_);
  std::vector<Line> out;
  out.reserve(rows_.size());
  for (const Row& row : rows_) {
    const bool known = row.result != nullptr && row.result->done != 0;
    out.push_back({place_of(row.call) + "/" + *row.stem, known ? row.result : nullptr});
  }
  return out;
}

std::string Table::shape_of(const Row& row) const {
  return tuple_text({dims_.data() + row.first_dim, row.rank});
}

void Table::append_row(std::string& text, const Row& row, bool of_round) const {
  const Call& call = calls_[row.call];
  append_cell(text, call.subject->name);
  text += ',';
  append_cell(text, call.subject->type);
  text += row.stem->starts_with("input") ? ",Input," : ",Output,";
  text += last_number(*row.stem);
  text += ",torch.";
  text += name(row.dtype);
  text += ',';
  append_cell(text, shape_of(row));
  const bool known = row.result != nullptr && row.result->done != 0;
  for (double Result::* number :
       {&Result::maximum, &Result::minimum, &Result::mean, &Result::l2_norm}) {
    text += ',';
    if (known) text += report::number_text(row.result->*number);
  }
  text += ',';
  append_cell(text, of_round ? place_of(row.call) + "/" + *row.stem : *row.stem);
  if (of_round) {
    for (unsigned long long Result::* number : {&Result::nan, &Result::inf}) {
      text += ',';
      if (known && row.result->done != kDoneWithoutCounts)
        text += std::to_string(row.result->*number);
    }
    text += ',';
    if (row.same_as != kNone) {
      const Row& first = rows_[row.same_as];
      append_cell(text, place_of(first.call) + "/" + *first.stem);
    }
  }
  if (with_sketches_) {
    text += ',';
    if (row.sketch != kNone) text += sketches_[row.sketch];
  }
  text += kLineEnd;
}

void Table::append_header(std::string& text, bool of_round) const {
  text += kColumns;
  if (of_round) text += kColumnsOfRound;
  if (with_sketches_) text += kColumnOfSketches;
  text += kLineEnd;
}

std::string Table::text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  out.reserve(rows_.size() * 160);
  append_header(out, true);
  for (const Row& row : rows_) append_row(out, row, true);
  return out;
}

std::vector<std::pair<std::string, std::string>> Table::texts_per_module() const {
  const std::lock_guard lock(mutex_);
  std::map<uint32_t, std::string> by_call;
  for (const Row& row : rows_) {
    std::string& text = by_call[row.call];
    if (text.empty()) append_header(text, false);
    append_row(text, row, false);
  }
  std::vector<std::pair<std::string, std::string>> out;
  out.reserve(by_call.size());
  for (auto& [call, text] : by_call) out.emplace_back(place_of(call), std::move(text));
  return out;
}

}  // namespace ait::python::fused
