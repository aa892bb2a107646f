#include "formats/pickle.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include "formats/little_endian.h"
#include "formats/pickle_globals.h"
#include "formats/pickle_opcodes.h"

namespace ait::formats::pickle {

namespace {

// The longest numbers and names in text form that a pickle may hold.
constexpr size_t kMaxLineBytes = 4096;
constexpr uint64_t kNewestProtocol = 5;

}  // namespace

const Global& Document::global(Id id) const { return global_at(nodes_[id].global); }

// The stack machine. Every step either succeeds or leaves the reason in error_ and returns false.
class Interpreter {
 public:
  Interpreter(std::span<const std::byte> bytes, const Source& source)
      : bytes_(bytes.first(std::min(bytes.size(), kMaxPickleBytes))), source_(source) {
    document_.bytes_ = bytes_;
  }

  Result<Document> run() {
    while (!stopped_)
      if (!step()) return fail(std::move(error_));
    document_.end_bytes_ = at_;
    return std::move(document_);
  }

 private:
  using Node = Document::Node;

  Error problem(ErrorCode code) const {
    const bool in_file = source_.offset_bytes != Error::kNoOffset;
    return Error(code, source_.path,
                 in_file ? source_.offset_bytes + instruction_at_ : Error::kNoOffset);
  }
  bool give_up(Error error) {
    error_ = std::move(error);
    return false;
  }
  bool corrupt(std::string_view what) {
    return give_up(problem(ErrorCode::kCorrupt)
                   << "the pickle " << what << "; the file is damaged");
  }
  bool cut_off() {
    return give_up(
        problem(ErrorCode::kCorrupt)
        << "the pickle ends in the middle of an instruction; the file was probably cut short");
  }
  bool refuse(std::string_view what) {
    return give_up(problem(ErrorCode::kRefused)
                   << what
                   << ", which ait never does; save plain tensors, e.g. torch.save(tensor, path)");
  }

  // Reading the instruction stream.

  bool take(uint64_t count, std::span<const std::byte>& out) {
    if (count > bytes_.size() - at_) return cut_off();
    out = bytes_.subspan(at_, count);
    at_ += count;
    return true;
  }
  template <typename T>
  bool take_number(T& out) {
    std::span<const std::byte> raw;
    if (!take(sizeof(T), raw)) return false;
    out = read_le<T>(raw, 0);
    return true;
  }
  // For the many instructions that are a number and something to do with it.
  using Action = bool (Interpreter::*)(uint64_t);
  template <typename T>
  bool with(Action action) {
    T number{};
    return take_number(number) && (this->*action)(number);
  }
  bool take_line(std::string_view& out) {
    const auto rest = bytes_.subspan(at_, std::min(bytes_.size() - at_, kMaxLineBytes));
    const auto end = std::find(rest.begin(), rest.end(), std::byte{'\n'});
    if (end == rest.end()) {
      if (rest.size() == kMaxLineBytes) return corrupt("has an endless line");
      return cut_off();
    }
    const auto length = static_cast<size_t>(end - rest.begin());
    out = {reinterpret_cast<const char*>(rest.data()), length};
    at_ += length + 1;
    return true;
  }

  bool check_protocol(uint64_t version) {
    return version <= kNewestProtocol || corrupt("is of an unknown protocol");
  }
  // Frames tell a reader of streams how much to fetch; here everything is at hand.
  bool check_frame(uint64_t length) { return length <= bytes_.size() - at_ || cut_off(); }

  // Making values.

  bool push(Id id) {
    if (stack_.size() >= kMaxValues) return corrupt("holds too many values");
    stack_.push_back(id);
    return true;
  }
  bool make(Node node, Id& id) {
    if (document_.nodes_.size() >= kMaxValues) return corrupt("holds too many values");
    id = static_cast<Id>(document_.nodes_.size());
    document_.nodes_.push_back(node);
    return true;
  }
  bool push_new(Node node) {
    Id id = kNoId;
    return make(node, id) && push(id);
  }
  bool push_empty(Kind kind) { return push_new(Node{kind, 0, 0, {}}); }
  bool push_bool(bool value) { return push_int(value ? 1 : 0, Kind::kBool); }
  bool push_int(int64_t value, Kind kind = Kind::kInt) {
    Node node{kind, 0, 0, {}};
    node.integer = value;
    return push_new(node);
  }
  bool push_unsigned(uint64_t value) { return push_int(static_cast<int64_t>(value)); }
  bool push_signed(uint64_t value) { return push_int(static_cast<int32_t>(value)); }
  bool push_double(double value) {
    Node node{Kind::kDouble, 0, 0, {}};
    node.real = value;
    return push_new(node);
  }
  // The only big-endian numbers of the format.
  bool push_big_endian_double(uint64_t bits) {
    return push_double(std::bit_cast<double>(__builtin_bswap64(bits)));
  }
  bool push_text(Kind kind, std::span<const std::byte> text) {
    Node node{kind, 0, static_cast<uint32_t>(text.size()), {}};
    node.range = {static_cast<uint32_t>(text.data() - bytes_.data()), 0};
    return push_new(node);
  }
  bool push_text(Kind kind, std::string_view text) {
    return push_text(kind, std::as_bytes(std::span(text.data(), text.size())));
  }
  // `length` bytes follow in the stream.
  bool push_following(Kind kind, uint64_t length) {
    std::span<const std::byte> text;
    return take(length, text) && push_text(kind, text);
  }
  template <typename Length>
  bool push_counted(Kind kind) {
    Length length{};
    return take_number(length) && push_following(kind, length);
  }
  bool push_long(uint64_t length) {
    std::span<const std::byte> digits;
    if (!take(length, digits)) return false;
    if (digits.size() > sizeof(int64_t)) return push_text(Kind::kBigInt, digits);
    uint64_t value = 0;
    for (size_t i = 0; i < digits.size(); ++i)
      value |= std::to_integer<uint64_t>(digits[i]) << (8 * i);
    const size_t unused_bits = 64 - 8 * digits.size();
    if (digits.empty()) return push_int(0);
    return push_int(static_cast<int64_t>(value << unused_bits) >> unused_bits);
  }

  bool add_item(Id container, Id value) {
    auto& cells = document_.cells_;
    if (cells.size() >= kMaxValues) return corrupt("holds too many values");
    const auto cell = static_cast<uint32_t>(cells.size());
    cells.push_back({value, 0});
    Node& node = document_.nodes_[container];
    if (node.count == 0) {
      node.range.first = cell;
    } else {
      cells[node.range.last].next = cell;
    }
    node.range.last = cell;
    ++node.count;
    return true;
  }
  bool add_items(Id container, std::span<const Id> values) {
    for (const Id value : values)
      if (!add_item(container, value)) return false;
    return true;
  }

  // Taking values back. Nothing below the innermost mark may be touched.

  bool has(size_t count) {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - floor < count) return corrupt("uses values that it never made");
    return true;
  }
  bool pop(Id& id) {
    if (!has(1)) return false;
    id = stack_.back();
    stack_.pop_back();
    return true;
  }
  bool pop_to_mark(std::vector<Id>& values) {
    if (marks_.empty()) return corrupt("closes a group that it never opened");
    values.assign(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return true;
  }
  bool pop_mark_then(Kind kind, Id& target, std::vector<Id>& values) {
    if (!pop_to_mark(values) || !has(1)) return false;
    target = stack_.back();
    if (document_.kind(target) != kind)
      return corrupt("adds items to a value that is not a container");
    return true;
  }
  bool is_paired(const std::vector<Id>& values) {
    return values.size() % 2 == 0 || corrupt("has a dict key without value");
  }

  bool group(Kind kind, std::span<const Id> values) {
    return push_empty(kind) && add_items(stack_.back(), values);
  }
  bool group_to_mark(Kind kind) {
    std::vector<Id> values;
    return pop_to_mark(values) && (kind != Kind::kDict || is_paired(values)) && group(kind, values);
  }
  bool group_top(size_t count) {
    if (!has(count)) return false;
    const std::vector<Id> values(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return group(Kind::kTuple, values);
  }

  // The memo: values that are used again.

  bool remember(uint64_t key) {
    if (!has(1)) return false;
    // Picklers count up from 0 or 1, so a key beyond the number of values is nonsense.
    if (key > kMaxValues) return corrupt("numbers its values in an impossible way");
    if (memo_.size() <= key) memo_.resize(key + 1, kNoId);
    memo_[key] = stack_.back();
    return true;
  }
  bool recall(uint64_t key) {
    if (key >= memo_.size() || memo_[key] == kNoId)
      return corrupt("recalls a value that it never made");
    return push(memo_[key]);
  }

  // Names and calls.

  bool push_global(std::string_view module, std::string_view name) {
    const auto found = find_global(module, name);
    if (!found) return refuse("asks to run " + printable(module, 80) + "." + printable(name, 80));
    return push_new(Node{Kind::kGlobal, *found, 0, {}});
  }
  bool stack_global() {
    Id name = kNoId;
    Id module = kNoId;
    if (!pop(name) || !pop(module)) return false;
    if (document_.kind(name) != Kind::kText || document_.kind(module) != Kind::kText)
      return corrupt("has a name that is not text");
    return push_global(document_.text(module), document_.text(name));
  }
  bool call() {
    Id arguments = kNoId;
    Id function = kNoId;
    if (!pop(arguments) || !pop(function)) return false;
    if (document_.kind(function) != Kind::kGlobal)
      return refuse("asks to call a value that it made itself");
    if (document_.kind(arguments) != Kind::kTuple)
      return corrupt("calls a function without arguments");
    switch (document_.global(function).kind) {
      case GlobalKind::kOrderedDict:
        return make_dict(arguments);
      case GlobalKind::kDefaultDict:
        return push_empty(Kind::kDict);
      case GlobalKind::kSet:
        return push_empty(Kind::kSet);
      case GlobalKind::kNumpyArray:
      case GlobalKind::kNumpyDType:
        return call_with_state(function, arguments);
      default:
        break;
    }
    Node node = document_.nodes_[arguments];
    node.kind = Kind::kCall;
    node.global = document_.nodes_[function].global;
    return push_new(node);
  }
  // Items of its own: a state is added to them, and the tuple may be used again.
  bool call_with_state(Id function, Id arguments) {
    std::vector<Id> values;
    for (const Id value : document_.items(arguments)) values.push_back(value);
    if (!push_empty(Kind::kCall)) return false;
    document_.nodes_[stack_.back()].global = document_.nodes_[function].global;
    return add_items(stack_.back(), values);
  }
  // OrderedDict() as torch writes it, or OrderedDict([(key, value), …]) as old Pythons did.
  bool make_dict(Id arguments) {
    if (!push_empty(Kind::kDict)) return false;
    if (document_.count(arguments) == 0) return true;
    const Id dict = stack_.back();
    const Id pairs = *document_.items(arguments).begin();
    if (!is_sequence(pairs)) return corrupt("makes a dict of a value that is not a list");
    for (const Id pair : document_.items(pairs)) {
      if (!is_sequence(pair) || document_.count(pair) != 2)
        return corrupt("has a dict item that is not a pair");
      auto item = document_.items(pair).begin();
      const Id key = *item;
      ++item;
      const Id value = *item;
      if (!add_item(dict, key) || !add_item(dict, value)) return false;
    }
    return true;
  }
  bool is_sequence(Id id) const {
    return document_.kind(id) == Kind::kList || document_.kind(id) == Kind::kTuple;
  }
  // Attributes (a state dict's _metadata) hold no tensors of interest.
  bool build() {
    Id state = kNoId;
    if (!pop(state) || !has(1)) return false;
    const Kind kind = document_.kind(stack_.back());
    if (kind != Kind::kDict && kind != Kind::kCall && kind != Kind::kSet)
      return corrupt("sets attributes of what has none");
    if (kind != Kind::kCall) return true;
    const GlobalKind called = document_.global(stack_.back()).kind;
    const bool is_used = called == GlobalKind::kNumpyArray || called == GlobalKind::kNumpyDType;
    return !is_used || add_item(stack_.back(), state);
  }
  bool persistent(Id id) { return push_empty(Kind::kPersistent) && add_item(stack_.back(), id); }

  // Numbers and strings in text form: protocols 0 and 1.

  bool text_int() {
    std::string_view line;
    if (!take_line(line)) return false;
    if (line == "00" || line == "01") return push_bool(line == "01");
    return decimal(line);
  }
  bool text_long() {
    std::string_view line;
    if (!take_line(line)) return false;
    if (line.ends_with('L')) line.remove_suffix(1);
    return decimal(line);
  }
  bool decimal(std::string_view digits) {
    int64_t value = 0;
    const auto [end, failure] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (end != digits.data() + digits.size() || digits.empty())
      return corrupt("has a malformed number");
    if (failure != std::errc{}) return push_text(Kind::kBigInt, digits);
    return push_int(value);
  }
  bool text_float() {
    std::string_view line;
    if (!take_line(line)) return false;
    double value = 0;
    const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (failure != std::errc{} || end != line.data() + line.size())
      return corrupt("has a malformed number");
    return push_double(value);
  }
  bool text_string(bool quoted) {
    std::string_view line;
    if (!take_line(line)) return false;
    if (quoted) {
      if (line.size() < 2 || line.front() != line.back() ||
          (line.front() != '\'' && line.front() != '"'))
        return corrupt("has a string without quotes");
      line = line.substr(1, line.size() - 2);
    }
    // Nobody saves tensors in protocol 0, so decoding these is not worth its traps.
    if (line.find('\\') != std::string_view::npos)
      return give_up(
          problem(ErrorCode::kUnsupported)
          << "the pickle has an escaped string of protocol 0; save it again with torch.save");
    return push_text(Kind::kText, line);
  }
  bool with_decimal(Action action) {
    std::string_view line;
    if (!take_line(line)) return false;
    uint64_t number = 0;
    const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (failure != std::errc{} || end != line.data() + line.size())
      return corrupt("has a malformed number");
    return (this->*action)(number);
  }

  bool step();
  bool step_on_containers(uint8_t opcode);
  bool step_on_memo_and_stack(uint8_t opcode);
  bool step_on_unknown(uint8_t opcode);

  static constexpr Id kNoId = ~Id{0};

  std::span<const std::byte> bytes_;
  const Source& source_;
  Document document_;
  size_t at_ = 0;
  size_t instruction_at_ = 0;
  std::vector<Id> stack_;
  std::vector<size_t> marks_;
  std::vector<Id> memo_;
  bool stopped_ = false;
  Error error_{ErrorCode::kCorrupt};
};

bool Interpreter::step() {
  instruction_at_ = at_;
  uint8_t opcode = 0;
  if (!take_number(opcode)) return false;
  switch (opcode) {
    case kNone:
      return push_empty(Kind::kNone);
    case kNewTrue:
      return push_bool(true);
    case kNewFalse:
      return push_bool(false);
    case kInt:
      return text_int();
    case kLong:
      return text_long();
    case kFloat:
      return text_float();
    case kString:
      return text_string(true);
    case kUnicode:
      return text_string(false);
    case kBinInt:
      return with<uint32_t>(&Interpreter::push_signed);
    case kBinInt1:
      return with<uint8_t>(&Interpreter::push_unsigned);
    case kBinInt2:
      return with<uint16_t>(&Interpreter::push_unsigned);
    case kLong1:
      return with<uint8_t>(&Interpreter::push_long);
    case kLong4:
      return with<uint32_t>(&Interpreter::push_long);
    case kBinFloat:
      return with<uint64_t>(&Interpreter::push_big_endian_double);
    case kShortBinString:  // Python 2's str
    case kShortBinUnicode:
      return push_counted<uint8_t>(Kind::kText);
    case kBinString:
    case kBinUnicode:
      return push_counted<uint32_t>(Kind::kText);
    case kBinUnicode8:
      return push_counted<uint64_t>(Kind::kText);
    case kShortBinBytes:
      return push_counted<uint8_t>(Kind::kBytes);
    case kBinBytes:
      return push_counted<uint32_t>(Kind::kBytes);
    case kBinBytes8:
    case kByteArray8:
      return push_counted<uint64_t>(Kind::kBytes);
    case kProto:
      return with<uint8_t>(&Interpreter::check_protocol);
    case kFrame:
      return with<uint64_t>(&Interpreter::check_frame);
    case kStop: {
      stopped_ = true;
      return pop(document_.root_);
    }
    default:
      return step_on_containers(opcode);
  }
}

bool Interpreter::step_on_containers(uint8_t opcode) {
  Id target = kNoId;
  std::vector<Id> values;
  switch (opcode) {
    case kEmptyTuple:
      return push_empty(Kind::kTuple);
    case kEmptyList:
      return push_empty(Kind::kList);
    case kEmptyDict:
      return push_empty(Kind::kDict);
    case kEmptySet:
      return push_empty(Kind::kSet);
    case kTuple:
      return group_to_mark(Kind::kTuple);
    case kList:
      return group_to_mark(Kind::kList);
    case kDict:
      return group_to_mark(Kind::kDict);
    case kTuple1:
      return group_top(1);
    case kTuple2:
      return group_top(2);
    case kTuple3:
      return group_top(3);
    case kAppends:
      return pop_mark_then(Kind::kList, target, values) && add_items(target, values);
    case kSetItems:
      return pop_mark_then(Kind::kDict, target, values) && is_paired(values) &&
             add_items(target, values);
    case kAddItems:
      return pop_mark_then(Kind::kSet, target, values);  // no tensor hides in a set
    case kFrozenSet:
      return pop_to_mark(values) && push_empty(Kind::kSet);
    case kAppend: {
      Id value = kNoId;
      if (!pop(value) || !has(1)) return false;
      if (document_.kind(stack_.back()) != Kind::kList)
        return corrupt("adds items to a value that is not a container");
      return add_item(stack_.back(), value);
    }
    case kSetItem: {
      Id key = kNoId;
      Id value = kNoId;
      if (!pop(value) || !pop(key) || !has(1)) return false;
      if (document_.kind(stack_.back()) != Kind::kDict)
        return corrupt("adds items to a value that is not a container");
      return add_item(stack_.back(), key) && add_item(stack_.back(), value);
    }
    default:
      return step_on_memo_and_stack(opcode);
  }
}

bool Interpreter::step_on_memo_and_stack(uint8_t opcode) {
  Id id = kNoId;
  switch (opcode) {
    case kMark: {
      if (marks_.size() >= kMaxNesting) return corrupt("nests its values too deeply");
      marks_.push_back(stack_.size());
      return true;
    }
    case kPop:
      return pop(id);
    case kPopMark: {
      std::vector<Id> dropped;
      return pop_to_mark(dropped);
    }
    case kDup:
      return has(1) && push(stack_.back());
    case kGet:
      return with_decimal(&Interpreter::recall);
    case kBinGet:
      return with<uint8_t>(&Interpreter::recall);
    case kLongBinGet:
      return with<uint32_t>(&Interpreter::recall);
    case kPut:
      return with_decimal(&Interpreter::remember);
    case kBinPut:
      return with<uint8_t>(&Interpreter::remember);
    case kLongBinPut:
      return with<uint32_t>(&Interpreter::remember);
    case kMemoize:
      return remember(memo_.size());
    case kGlobalLines: {
      std::string_view module;
      std::string_view name;
      return take_line(module) && take_line(name) && push_global(module, name);
    }
    case kStackGlobal:
      return stack_global();
    case kReduce:
    case kNewObj:
      return call();
    case kBuild:
      return build();
    case kBinPersId:
      return pop(id) && persistent(id);
    case kPersId: {
      std::string_view line;
      return take_line(line) && push_text(Kind::kText, line) && pop(id) && persistent(id);
    }
    default:
      return step_on_unknown(opcode);
  }
}

bool Interpreter::step_on_unknown(uint8_t opcode) {
  switch (opcode) {
    case kInst: {
      std::string_view module;
      std::string_view name;
      if (!take_line(module) || !take_line(name)) return false;
      return refuse("asks to run " + printable(module, 80) + "." + printable(name, 80));
    }
    case kObj:
    case kNewObjEx:
      return refuse("asks to construct an object");
    case kExt1:
    case kExt2:
    case kExt4:
      return refuse("asks for a registered extension");
    case kNextBuffer:
    case kReadonlyBuffer:
      return give_up(
          problem(ErrorCode::kUnsupported)
          << "the pickle keeps its data in buffers outside of it; save it with torch.save");
    default:
      return corrupt("has the byte " + std::to_string(opcode) +
                     " where an instruction is expected");
  }
}

Result<Document> parse(std::span<const std::byte> bytes, const Source& source) {
  return Interpreter(bytes, source).run();
}

}  // namespace ait::formats::pickle
