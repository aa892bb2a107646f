#include "convert/files.h"

#include <algorithm>
#include <filesystem>

#include "capture/listing.h"
#include "formats/registry.h"

namespace ait::convert {
namespace {

namespace fs = std::filesystem;

using formats::FileFormat;
using formats::NamedTensor;

bool holds_one(FileFormat format) {
  return format == FileFormat::kNpy || format == FileFormat::kAtbBin;
}

// A tensor's name as part of a file's: "input_0" of a GE dump as "input.0", nothing that leads to
// another folder.
std::string part_of_name(const std::string& name, bool is_ge) {
  std::string out = name;
  std::replace(out.begin(), out.end(), '/', '_');
  if (is_ge)
    if (const size_t at = out.find('_'); at != std::string::npos) out[at] = '.';
  return out;
}

std::string with_name(const std::string& path, FileFormat format, const std::string& name) {
  std::string out = path;
  const std::string_view extension = extension_of(format);
  if (out.ends_with(extension)) out.resize(out.size() - extension.size());
  return out + "." + name + std::string(extension);
}

bool is_inside(const std::string& inner, const std::string& outer) {
  std::error_code ignored;
  const fs::path a = fs::weakly_canonical(fs::absolute(inner, ignored), ignored);
  const fs::path b = fs::weakly_canonical(fs::absolute(outer, ignored), ignored);
  return std::mismatch(b.begin(), b.end(), a.begin(), a.end()).first == b.end();
}

}  // namespace

std::string_view extension_of(FileFormat format) {
  switch (format) {
    case FileFormat::kAtbBin:
      return ".bin";
    case FileFormat::kNpy:
      return ".npy";
    case FileFormat::kNpz:
      return ".npz";
    case FileFormat::kTorch:
      return ".pth";
    case FileFormat::kSafetensors:
      return ".safetensors";
  }
  return "";
}

std::string renamed(std::string_view path, FileFormat format) {
  if (formats::file_format_of(path)) path = path.substr(0, path.rfind('.'));
  return std::string(path) + std::string(extension_of(format));
}

Result<std::vector<std::string>> convert_file(const std::string& from, const std::string& to,
                                              FileFormat format) {
  const auto opened = formats::open_tensor_file(from);
  if (!opened) return fail(opened.error());
  const formats::TensorFile& file = **opened;
  if (file.size() == 0) return fail(Error(ErrorCode::kUsage, from) << "holds no tensor");
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < file.size(); ++i) {
    auto tensor = file.load(i);
    if (!tensor) return fail(tensor.error());
    const auto description = file.describe(i);
    tensors.push_back({file.name(i), std::move(*tensor), description && description->fractal});
  }
  std::vector<std::string> written;
  const auto write = [&](const std::string& path, std::span<const NamedTensor> some) {
    written.push_back(path);
    return formats::write_tensor_file(path, some, format);
  };
  const bool apart = holds_one(format) && (tensors.size() > 1 || !tensors[0].name.empty());
  if (!apart) {
    if (auto done = write(to, tensors); !done) return fail(done.error());
    return written;
  }
  const bool is_ge = file.format() == "GE dump";
  for (const NamedTensor& tensor : tensors) {
    const std::string path = with_name(to, format, part_of_name(tensor.name, is_ge));
    if (auto done = write(path, {&tensor, 1}); !done) return fail(done.error());
  }
  return written;
}

Result<TreeCounts> convert_tree(const std::string& from, const std::string& to, FileFormat format,
                                const std::atomic<bool>& stop,
                                const std::function<void(const Error&)>& warn) {
  if (is_inside(to, from))
    return fail(Error(ErrorCode::kUsage, to)
                << "lies inside " << from << "; give a folder outside of it");
  if (auto listed = capture::list_folder(from); !listed) return fail(listed.error());
  std::vector<Error> problems;
  const std::string files = capture::list_files(from, problems);
  for (const Error& problem : problems) warn(problem);
  TreeCounts counts;
  capture::each_file(files, [&](std::string_view below) {
    if (stop) return;
    const std::string path = from + "/" + std::string(below);
    const auto written = convert_file(path, to + "/" + renamed(below, format), format);
    if (written) {
      ++counts.files;
      counts.written += written->size();
    } else if (formats::open_tensor_file(path)) {
      ++counts.left;
      warn(written.error());
    } else {
      ++counts.others;
    }
  });
  return counts;
}

}  // namespace ait::convert
