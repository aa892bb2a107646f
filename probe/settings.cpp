#include "settings.h"

#include <cstdlib>
#include <cstring>

namespace ait::probe {
namespace {

constexpr std::string_view kBlanks = " \t";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Without string_view::substr, which would ask libstdc++ for an exception.
std::string_view first_of(std::string_view text, size_t count) {
  return {text.data(), count < text.size() ? count : text.size()};
}

// Cuts off and returns what comes before the next separator, without blanks around it.
std::string_view next_element(std::string_view& list, char separator) {
  const size_t at = list.find(separator);
  std::string_view element = first_of(list, at);
  list.remove_prefix(at == std::string_view::npos ? list.size() : at + 1);
  while (!element.empty() && kBlanks.find(element.front()) != std::string_view::npos)
    element.remove_prefix(1);
  while (!element.empty() && kBlanks.find(element.back()) != std::string_view::npos)
    element.remove_suffix(1);
  return element;
}

bool parse_number(std::string_view text, uint64_t& value) {
  value = 0;
  for (const char c : text)
    if (c < '0' || c > '9' || __builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(c - '0'), &value))
      return false;
  return !text.empty();
}

const char* copy_of(const char* text) {
  return text == nullptr || *text == '\0' ? nullptr : ::strdup(text);
}

std::string_view view_of(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

const char* folder_of(const char* text) {
  char* folder = const_cast<char*>(copy_of(text));
  if (folder == nullptr) return nullptr;
  for (size_t length = std::strlen(folder); length > 1 && folder[length - 1] == '/'; --length)
    folder[length - 1] = '\0';
  return folder;
}

void read_types(std::string_view types, Settings& settings) {
  while (!types.empty()) {
    const std::string_view type = next_element(types, '|');
    if (type == "tensor") settings.tensors = true;
    if (type == "layer") settings.layers = true;
    if (type == "model") settings.models = true;
    if (type == "op") settings.operations = true;
    if (type == "kernel") settings.kernels = true;
    if (type == "cpu_profiling") settings.statistics = true;
  }
}

// Pairs; a last number without partner is no range.
void read_ranges(std::string_view text, Settings& settings) {
  size_t numbers = 1;
  for (const char c : text) numbers += c == ',' ? 1 : 0;
  auto* ranges = static_cast<Range*>(std::malloc((numbers / 2 + 1) * sizeof(Range)));
  if (ranges == nullptr) return;
  size_t count = 0;
  while (!text.empty()) {
    Range range;
    const std::string_view first = next_element(text, ',');
    const std::string_view last = next_element(text, ',');
    if (!parse_number(first, range.first) || !parse_number(last, range.last)) break;
    ranges[count++] = range;
  }
  settings.ranges = ranges;
  settings.range_count = count;
}

bool names_this(std::string_view element, const int64_t* ids, size_t count, bool children) {
  size_t depth = 0;
  for (; !element.empty(); ++depth) {
    uint64_t id;
    if (depth == count || !parse_number(next_element(element, '_'), id) ||
        static_cast<int64_t>(id) != ids[depth])
      return false;
  }
  return depth == count || (children && depth > 0);
}

bool starts_with_any_case(std::string_view text, std::string_view prefix) {
  if (prefix.empty() || prefix.size() > text.size()) return false;
  for (size_t i = 0; i < prefix.size(); ++i)
    if (lower(text[i]) != lower(prefix[i])) return false;
  return true;
}

}  // namespace

Settings read_settings(const char* (*get)(const char* name)) {
  const auto is = [get](const char* name, char digit) {
    const char* text = get(name);
    return text != nullptr && text[0] == digit && text[1] == '\0';
  };
  Settings settings;
  read_types(view_of(get("ATB_DUMP_TYPE")), settings);
  settings.data = is("ATB_SAVE_TENSOR", '1');
  settings.before = is("ATB_SAVE_TENSOR_TIME", '0') || is("ATB_SAVE_TENSOR_TIME", '2');
  settings.after = !is("ATB_SAVE_TENSOR_TIME", '0');
  settings.inputs = !is("ATB_SAVE_TENSOR_PART", '1');
  settings.outputs = !is("ATB_SAVE_TENSOR_PART", '0');
  const char* tiling = get("ATB_SAVE_TILING");
  settings.tiling = tiling != nullptr && std::atoi(tiling) != 0;
  settings.children = !is("ATB_SAVE_CHILD", '0');
  settings.check_overflow = view_of(get("ATB_CHECK_TYPE")).find('1') != std::string_view::npos;
  settings.stop_at_overflow = is("ATB_EXIT", '1');
  settings.dry_run = is("AIT_DRY_RUN", '1');
  settings.debug = is("ATB_AIT_LOG_LEVEL", '0');

  settings.ids = view_of(copy_of(get("ATB_SAVE_TENSOR_IDS")));
  settings.names = view_of(copy_of(get("ATB_SAVE_TENSOR_RUNNER")));
  settings.device = view_of(copy_of(get("ATB_DEVICE_ID")));
  read_ranges(view_of(get("ATB_SAVE_TENSOR_RANGE")), settings);
  settings.output = folder_of(get("ATB_OUTPUT_DIR"));
  settings.scratch = folder_of(get("AIT_PROBE_SCRATCH"));
  settings.timestamp = copy_of(get("ATB_TIMESTAMP"));
  return settings;
}

void Matches::note(size_t element) const {
  const uint64_t bit = uint64_t{1} << element % 64;
  if (element / 64 >= count || (__atomic_load_n(&words[element / 64], __ATOMIC_RELAXED) & bit) != 0)
    return;
  __atomic_fetch_or(&words[element / 64], bit, __ATOMIC_RELAXED);
}

bool wants_operation(const Settings& settings, const int64_t* ids, size_t count,
                     std::string_view type, const Matches& ids_matched,
                     const Matches& names_matched) {
  if (!settings.tensors) return false;
  if (settings.ids.empty() && settings.names.empty()) return true;
  bool wanted = false;
  size_t element = 0;
  for (std::string_view list = settings.ids; !list.empty(); ++element)
    if (names_this(next_element(list, ','), ids, count, settings.children)) {
      ids_matched.note(element);
      wanted = true;
    }
  element = 0;
  for (std::string_view list = settings.names; !list.empty(); ++element)
    if (starts_with_any_case(type, next_element(list, ','))) {
      names_matched.note(element);
      wanted = true;
    }
  return wanted;
}

bool wants_round(const Settings& settings, uint64_t round) {
  // A dry run looks at the first round that was asked for and leaves the rest to arithmetic.
  if (settings.dry_run) return settings.range_count > 0 && round == settings.ranges[0].first;
  for (size_t i = 0; i < settings.range_count; ++i)
    if (settings.ranges[i].first <= round && round <= settings.ranges[i].last) return true;
  return false;
}

bool wants_device(const Settings& settings, std::string_view path) {
  return settings.device.empty() || first_of(path, path.find('_')) == settings.device;
}

bool wants_part(const Settings& settings, std::string_view path) {
  std::string_view name = path;
  name.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  // Very old libraries write inTensor.
  if (starts_with_any_case(name, "intensor")) return settings.inputs;
  if (starts_with_any_case(name, "outtensor")) return settings.outputs;
  return true;
}

}  // namespace ait::probe
