#include "cli/dump_options.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <string_view>

#include "cli/common_options.h"
#include "watch/trigger.h"

namespace ait::cli {
namespace {

using dump::Probe;
using dump::Rounds;

constexpr std::string_view kTypes[] = {"model",  "layer",         "op",  "kernel",
                                       "tensor", "cpu_profiling", "onnx"};
// Upstream's list for operation names, which come from other people's code.
constexpr std::string_view kNamePunctuation = "_\"'><=[])(,}{: /.~-";

Error wrong(std::string_view option) { return Error(ErrorCode::kUsage) << option << " "; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return lower(c); });
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string comma_list(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& element : list) out += (out.empty() ? "" : ",") + element;
  return out;
}

// Digits, with single underscores between them.
bool is_id(std::string_view text) {
  bool digit_before = false;
  for (const char c : text) {
    if (!is_digit(c) && !(c == '_' && digit_before)) return false;
    digit_before = is_digit(c);
  }
  return digit_before;
}

Result<std::string> parse_ids(const std::vector<std::string>& words) {
  if (words.empty()) return std::string();
  const auto list = list_elements(words);
  if (!std::all_of(list.begin(), list.end(), is_id))
    return fail(wrong("-ids") << "'" << printable(joined(words))
                              << "' is not a legal string: give operation ids such as 2,3_1");
  return comma_list(list);
}

Result<std::vector<Rounds>> parse_rounds(const std::vector<std::string>& words, bool is_watched) {
  if (words.empty()) return std::vector<Rounds>{is_watched ? dump::kAllRounds : Rounds{0, 0}};
  const auto illegal = [&](std::string_view why) {
    return fail(wrong("-er") << "'" << printable(joined(words)) << "' " << why
                             << ": give first and last round of each range, as in 1,3 or 3,5,7,7");
  };
  std::vector<int64_t> numbers;
  for (const std::string& element : list_elements(words)) {
    int64_t number = -1;
    const char* end = element.data() + element.size();
    const auto read = std::from_chars(element.data(), end, number);
    if (read.ec == std::errc::result_out_of_range)
      return illegal("is not a legal number: no run has so many rounds");
    if (element.empty() || read.ec != std::errc() || read.ptr != end || number < 0)
      return illegal("is not a legal number");
    numbers.push_back(number);
  }
  if (numbers.size() % 2 != 0) return illegal("has a first round without a last");
  std::vector<Rounds> out;
  for (size_t i = 0; i < numbers.size(); i += 2) {
    if (numbers[i] > numbers[i + 1]) return illegal("has a range that ends before it begins");
    out.emplace_back(numbers[i], numbers[i + 1]);
  }
  return out;
}

Result<std::string> parse_operation_names(const std::vector<std::string>& words) {
  if (words.empty()) return std::string();
  const auto list = list_elements(words);
  const auto is_name = [](const std::string& name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return is_digit(c) || is_letter(c) || kNamePunctuation.find(c) != std::string_view::npos;
    });
  };
  if (!std::all_of(list.begin(), list.end(), is_name))
    return fail(wrong("-opname") << "'" << printable(joined(words))
                                 << "' has invalid characters: give the beginnings of operation "
                                    "names, as in self,linear");
  return lower(comma_list(list));
}

Result<bool> parse_bool(std::string_view option, const std::string& word) {
  const std::string text = lower(word);
  for (const char* yes : {"yes", "true", "t", "y", "1"})
    if (text == yes) return true;
  for (const char* no : {"no", "false", "f", "n", "0"})
    if (text == no) return false;
  return fail(wrong(option) << "'" << printable(word)
                            << "': boolean value expected, True or False");
}

Result<int> parse_int(std::string_view option, const std::string& word, int last,
                      std::string_view meaning) {
  int number = -1;
  const char* end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, number);
  if (word.empty() || read.ec != std::errc() || read.ptr != end || number < 0 || number > last)
    return fail(wrong(option) << "'" << printable(word) << "': invalid int value, " << meaning);
  return number;
}

// Of Python's hashes, too, which take no other.
Result<uint32_t> parse_seed(const std::string& word) {
  uint32_t number = 0;
  const char* end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end)
    return fail(wrong("-seed") << "can not convert '" << printable(word)
                               << "' to int: give a number from 0 to " << UINT32_MAX);
  return number;
}

Result<std::vector<std::string>> parse_types(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& type) {
    if (std::find(out.begin(), out.end(), type) == out.end()) out.push_back(type);
  };
  for (const std::string& type : list_elements(words)) {
    if (std::find(std::begin(kTypes), std::end(kTypes), type) == std::end(kTypes))
      return fail(wrong("--type") << "does not know '" << printable(type) << "', choose from "
                                  << kDumpTypes);
    add(type);
    if (type == "model") add("layer");  // a model is made of its layers
  }
  return out;
}

Result<Probe> parse_probe(const DumpWords& words) {
  for (const Probe probe : {Probe::kAtb, Probe::kTorch, Probe::kFx}) {
    if (words.probe != dump::name_of(probe)) continue;
    if (dump::is_python(probe) && words.rest.record.dry_run)
      return fail(wrong("--dry-run") << "counts tensors of the acceleration library; it cannot be "
                                        "used with --probe "
                                     << words.probe);
    return probe;
  }
  return fail(wrong("--probe") << "does not know '" << printable(words.probe)
                               << "', choose from atb, torch, fx");
}

// Tells a wrong list before the command runs, and not an hour later in its output.
Result<std::string> parse_when(const DumpWords& words) {
  if (words.probe != dump::name_of(Probe::kTorch))
    return fail(
        wrong("--when") << "watches the modules of a Python script: it needs --probe torch");
  if (auto conditions = watch::parse_conditions(words.when); !conditions)
    return fail(wrong("--when") << conditions.error().message());
  return words.when;
}

}  // namespace

Result<DumpOptions> understand_dump(const DumpWords& words) {
  DumpOptions out = words.rest;
  dump::Options& options = out.record;
  Error problem(ErrorCode::kUsage);
  bool all_right = true;
  // Takes a value over, or keeps the first complaint.
  const auto take = [&](auto& target, auto parsed) {
    if (parsed) {
      target = std::move(*parsed);
    } else if (all_right) {
      problem = parsed.error();
      all_right = false;
    }
  };
  take(options.command, understand_exec(words.exec));
  take(options.probe, parse_probe(words));
  take(options.types, parse_types(words.types));
  take(options.ids, parse_ids(words.ids));
  take(options.rounds, parse_rounds(words.rounds, !words.when.empty()));
  take(options.operation_name, parse_operation_names(words.operation_names));
  take(options.children, parse_bool("-child", words.children));
  take(options.time, parse_int("-time", words.time, 2, "0 is before, 1 after, 2 both"));
  take(options.part, parse_int("-stp", words.part, 2, "0 is inputs, 1 outputs, 2 both"));
  if (!words.device.empty())
    take(options.device,
         parse_int("-device", words.device, INT_MAX, "give the number of one device"));
  if (!words.when.empty()) take(options.when, parse_when(words));
  if (!words.keep.empty() && words.when.empty() && all_right) {
    problem = wrong("--keep") << "says how many rounds --when keeps: it needs --when";
    all_right = false;
  }
  if (options.sketch && words.probe != dump::name_of(Probe::kTorch) && all_right) {
    problem = wrong("--sketch") << "is made of what modules of a Python script compute: it needs "
                                   "--probe torch";
    all_right = false;
  }
  if (!words.keep.empty())
    take(options.keep, parse_int("--keep", words.keep, static_cast<int>(watch::Trigger::kMaxKeep),
                                 "give a number of rounds from 0 to 1000"));
  if (!words.seed.empty()) take(options.seed, parse_seed(words.seed));
  if (!all_right) return fail(problem);
  return out;
}

std::vector<std::string> idle_options(const dump::Options& options) {
  std::vector<std::string> out;
  if (dump::is_python(options.probe)) {
    const bool fx = options.probe == Probe::kFx;
    const std::string with =
        " has no effect with --probe " + std::string(dump::name_of(options.probe));
    const std::pair<bool, const char*> of_atb[] = {
        {options.only_description, "-sd"}, {fx && options.part != 2, "-stp"},
        {fx && options.device, "-device"}, {fx && !options.operation_name.empty(), "-opname"},
        {!options.ids.empty(), "-ids"},    {!options.children, "-child"},
        {options.time != 1, "-time"},      {options.tiling, "-tiling"}};
    for (const auto& [given, name] : of_atb)
      if (given) out.push_back(name + with);
    for (const std::string& type : options.types)
      if (type != "tensor" && (fx || (type != "model" && type != "layer")))
        out.push_back(std::string("--type ").append(type).append(with));
    if (!fx && !options.operation_name.empty() && !options.wants("tensor"))
      out.emplace_back("-opname has no effect without --type tensor");
    return out;
  }
  if (options.wants("onnx") && !options.wants("model") && !options.wants("layer"))
    out.emplace_back(
        "--type onnx has no effect alone: it turns the topologies of --type model or layer into "
        "onnx files");
  if (!options.children && options.ids.empty())
    out.emplace_back("-child False has no effect without -ids");
  if (options.wants("tensor")) return out;
  if (options.dry_run)
    out.emplace_back("--dry-run only counts tensors, which --type does not ask for");
  const std::pair<bool, const char*> of_tensors[] = {
      {options.only_description, "-sd"},
      {!options.ids.empty(), "-ids"},
      {!options.operation_name.empty(), "-opname"},
      {options.tiling, "-tiling"},
      {options.time != 1, "-time"},
      {options.part != 2, "-stp"},
      {dump::rounds_text(options.rounds) != "0,0", "-er"},
      {options.device.has_value(), "-device"}};
  for (const auto& [given, name] : of_tensors)
    if (given) out.push_back(std::string(name) + " has no effect without --type tensor");
  return out;
}

}  // namespace ait::cli
