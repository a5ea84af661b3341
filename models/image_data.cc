#include "models/image_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>

#include "paceline/error.h"
#include "paceline/zoo_data.h"

namespace paceline::models {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBinaryEnding = ".bin";
constexpr const char* kTestBatch = "test_batch.bin";
constexpr int kInterleavedFiles = 4;
constexpr std::int64_t kCacheBytes = std::int64_t{1} << 30;
// The number of training images without --data; the images for evaluation follow them.
constexpr std::int64_t kGeneratedImages = 5000;
constexpr std::uint64_t kGeneratedSeed = 1;
constexpr const char* kMakesImages = " (`paceline data images --out DIR` makes some)";

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool holds(const fs::path& folder, bool (*wanted)(const fs::directory_entry&)) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (wanted(*entry)) return true;
  }
  return false;
}

bool is_binary_file(const fs::directory_entry& entry) {
  return entry.path().extension() == kBinaryEnding;
}

bool is_folder_itself(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_directory(ignored);
}

// True for a folder that holds folders. A class may also be named "train", but its folder holds
// only images.
bool is_folder_of_classes(const fs::path& path) {
  return is_folder(path) && holds(path, is_folder_itself);
}

bool is_folder_of_images(const Settings& settings) {
  const ImageSettings own;
  const std::string &dataset = settings[own.dataset], &data = settings[own.data];
  if (data.empty()) return false;
  if (dataset != "auto") return dataset == "folder";
  return is_folder(data) && !holds(data, is_binary_file);
}

// Returns true also for a path that does not exist, since it may be a pattern of binary files.
bool holds_binary_files(const fs::path& path) {
  std::error_code ignored;
  if (is_folder(path)) return holds(path, is_binary_file);
  return path.extension() == kBinaryEnding || !fs::exists(path, ignored);
}

// Returns the names of the classes from the file that CIFAR-10 has beside its binary files; none if
// there is no such file.
std::vector<std::string> names_beside(const std::string& data) {
  const fs::path folder = is_folder(data) ? fs::path(data) : fs::path(data).parent_path();
  std::ifstream file(folder / "batches.meta.txt");
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (data.empty() || names.size() != std::size_t(RecordFormat{}.classes)) return {};
  return names;
}

// Returns the sorted names in a folder, without those that begin with a dot.
std::vector<std::string> names_in(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
  std::ranges::sort(names);
  return names;
}

/// The files or folders for training and for evaluation; `evaluation` is empty when there are none.
struct Paths {
  std::vector<std::string> training, evaluation;
  std::vector<std::string> left_out = {};  // other names in the folder that holds both
};

Paths binary_paths(const std::string& data) {
  Paths paths = {.training = files_of(data, kBinaryEnding), .evaluation = {}};
  if (is_folder(data)) {
    const auto is_test = [](const std::string& path) {
      return fs::path(path).filename() == kTestBatch;
    };
    for (const std::string& path : paths.training) {
      if (is_test(path)) paths.evaluation.push_back(path);
    }
    if (paths.evaluation.size() < paths.training.size()) std::erase_if(paths.training, is_test);
  }
  return paths;
}

// Throws kUsage for a folder with the files of CIFAR-10 or CIFAR-100 in the form for Python.
void refuse_python_files(const std::string& folder) {
  for (const char* name : {"batches.meta", "meta"}) {
    if (!fs::is_regular_file(fs::path(folder) / name)) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("it holds CIFAR's files for Python ('{}'), and its binary version is "
                            "read: data_batch_1.bin and others, of cifar-10-binary.tar.gz",
                            name));
  }
}

constexpr const char* kTrain = "train";
constexpr const char* kTests[] = {"test", "val", "valid", "validation"};
constexpr const char* kTestNames = "'test', 'val', 'valid' or 'validation'";

// Throws kUsage for a folder that holds only folders: it is no class, but a part of the data with
// an unknown name.
void refuse_unknown_parts(const fs::path& folder) {
  for (const std::string& name : names_in(folder)) {
    const std::vector<std::string> inside = names_in(folder / name);
    const auto is_folder_inside = [&](const std::string& of) {
      return is_folder(folder / name / of);
    };
    if (inside.empty() || !std::ranges::all_of(inside, is_folder_inside)) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("'{}' in it holds folders, and no images: images to train on are in a "
                            "folder for each class, or such folders are in '{}', and those to "
                            "evaluate with in {}",
                            name, kTrain, kTestNames));
  }
}

Paths folder_paths(const std::string& data, bool evaluation_named) {
  refuse_python_files(data);
  const fs::path folder(data);
  if (!is_folder_of_classes(folder / kTrain)) {
    refuse_unknown_parts(folder);
    return {.training = {data}, .evaluation = {}};
  }
  Paths paths = {
      .training = {(folder / kTrain).string()}, .evaluation = {}, .left_out = names_in(folder)};
  std::erase(paths.left_out, kTrain);
  if (evaluation_named) return paths;
  for (const char* name : kTests) {
    if (!paths.evaluation.empty() || !is_folder_of_classes(folder / name)) continue;
    paths.evaluation = {(folder / name).string()};
    std::erase(paths.left_out, name);
  }
  for (const std::string& name : paths.left_out) {
    if (!paths.evaluation.empty() || !is_folder_of_classes(folder / name)) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("'{}' lies beside '{}', and is not known: images to evaluate with are "
                            "in {}, or where --eval-data says",
                            name, kTrain, kTestNames));
  }
  return paths;
}

/// The sources for training and evaluation, and the lines about them for the user.
struct Sources {
  std::shared_ptr<const RecordSource> training, evaluation;
  std::vector<std::string> notes = {};
};

// Returns a text such as "a, b, c, d, e and 3 more".
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  const std::size_t shown = std::min(names.size(), kShown);
  const std::size_t more = names.size() - shown;
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + std::ptrdiff_t(shown), ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

void note_left_out(Sources& sources, const std::string& path, const std::string& what) {
  if (!what.empty()) sources.notes.push_back(fmt::format("left out of {}: {}", path, what));
}

void note_images(Sources& sources, const RecordSource& images, const std::string& path) {
  const std::size_t named = images.classes().size();
  const std::int64_t classes = named > 0 ? std::int64_t(named) : RecordFormat{}.classes;
  sources.notes.push_back(fmt::format("{}, from {}", images_in_words(images, classes), path));
  note_left_out(sources, path, images.left_out());
}

// Notes the classes of the training data that have no folder in the data for evaluation.
void note_lacking(Sources& sources, const std::string& path) {
  std::vector<std::string> lacking = sources.training->classes();
  std::erase_if(lacking, [&](const std::string& name) { return is_folder(fs::path(path) / name); });
  if (lacking.empty()) return;
  sources.notes.push_back(fmt::format(
      "{} lacks {}: {}", path, lacking.size() == 1 ? "a class" : "classes", some_of(lacking)));
}

std::shared_ptr<const RecordSource> open_files(const std::vector<std::string>& paths,
                                               const std::vector<std::string>& /*classes*/) {
  return record_files(paths);
}

std::shared_ptr<const RecordSource> open_folder(const std::vector<std::string>& paths,
                                                const std::vector<std::string>& classes) {
  return image_folder(paths.front(), classes);
}

// Calls `open`, which opens what a flag names. Errors except kDataLoss become kUsage errors that
// name the flag.
void open_named(const char* flag, const std::string& path, bool folder,
                const std::function<void()>& open) {
  try {
    open();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kDataLoss) throw;
    throw Error(ErrorCode::kUsage,
                fmt::format("{} {}: {}{}", flag, path, error.what(), folder ? "" : kMakesImages));
  }
}

Sources open_data(const Settings& settings, bool folder) {
  const ImageSettings own;
  const std::string &data = settings[own.data], &eval_data = settings[own.eval_data];
  if (data.empty() && !eval_data.empty()) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("--eval-data {} needs --data: without it images are generated, to train "
                    "on and to evaluate with",
                    eval_data));
  }
  if (data.empty()) {
    return {generated_images(kGeneratedImages, kGeneratedSeed),
            generated_images(kGeneratedImages / 5, kGeneratedSeed, kGeneratedImages),
            {"No --data: the images are generated."}};
  }
  const auto open = folder ? open_folder : open_files;
  Sources sources;
  std::string evaluated = eval_data;
  // In a run that only evaluates, --data and --eval-data name the same images.
  open_named(data == eval_data ? "--eval-data" : "--data", data, folder, [&] {
    const Paths paths = folder ? folder_paths(data, !eval_data.empty()) : binary_paths(data);
    sources.training = open(paths.training, {});
    if (eval_data.empty() && !paths.evaluation.empty()) {
      sources.evaluation = open(paths.evaluation, sources.training->classes());
      evaluated = paths.evaluation.front();
    }
    if (data != eval_data)
      note_images(sources, *sources.training, folder ? paths.training.front() : data);
    note_left_out(sources, data, some_of(paths.left_out));
  });
  if (!eval_data.empty()) {
    open_named("--eval-data", eval_data, folder, [&] {
      const auto files = folder ? std::vector{eval_data} : files_of(eval_data, kBinaryEnding);
      sources.evaluation = open(files, sources.training->classes());
    });
  }
  if (sources.evaluation) note_images(sources, *sources.evaluation, evaluated);
  if (sources.evaluation && folder) note_lacking(sources, evaluated);
  return sources;
}

/// Prints which records are left out. Several pipelines may read the same images and find the same
/// record bad; each bad record is named once.
class LeftOutRecords {
 public:
  void say(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (!said_.insert(what).second) return;
    std::fputs(fmt::format("paceline: left out: {}\n", what).c_str(), stderr);
  }

 private:
  std::mutex mutex_;
  std::set<std::string> said_;
};

// Returns the beginning of the pipelines for training and for evaluation: images as pixels of one
// size, kept in memory.
Pipeline images_of(const std::shared_ptr<const RecordSource>& source, const Settings& settings,
                   const ImageUse& use, bool folder) {
  const ImageSettings own;
  Pipeline images(source);
  if (folder) images.decode({.height = use.size.height, .width = use.size.width});
  const auto left_out = std::make_shared<LeftOutRecords>();
  return images.cache(kCacheBytes)
      .threads(int(settings[own.input_threads]))
      .max_bad(settings[own.max_bad])
      .on_bad([left_out](const std::string& what) { left_out->say(what); });
}

// Returns the size of the shuffle pool. For a folder, the default is all images: they are listed
// class after class, so a small pool would hold a single class.
std::int64_t pool_of(const Settings& settings, const ImageUse& use, const Pipeline& pipeline,
                     bool folder) {
  if (const std::int64_t given = settings[ImageSettings().shuffle_pool]; given > 0) return given;
  if (folder) return std::max<std::int64_t>(1, pipeline.examples());
  return std::max(use.pool, std::int64_t(use.part_in_pool * double(pipeline.examples())) + 1);
}

Pipeline training_pipeline(Pipeline images, const Settings& settings, const ImageUse& use,
                           bool folder, const Cluster& cluster) {
  if (cluster.shares_records()) {
    images.share_out();
  } else {
    images.shard(cluster.task.index, cluster.workers());
  }
  images.interleave(kInterleavedFiles)
      .seed(use.seed)
      .repeat()
      .distort(use.training)
      .batch(use.batch);
  return images.shuffle(pool_of(settings, use, images, folder));
}

Setting<std::string> images_setting() {
  Setting<std::string> data = data_setting("");
  data.help =
      "Images to train on: CIFAR-10's binary files (a folder, a file, or a quoted pattern), "
      "or a folder with a folder of JPEG, PNG or WebP files for each class (default: generated "
      "ones)";
  return data;
}

Setting<std::string> text_setting(const char* name, const char* help, const char* placeholder) {
  return {.name = name, .value = "", .help = help, .flag = true, .placeholder = placeholder};
}

Setting<std::int64_t> count_setting(const char* name, const char* help,
                                    const std::string& default_text, double most = 1e12) {
  return {.name = name,
          .value = 0,
          .help = help,
          .least = 0,
          .most = most,
          .flag = true,
          .placeholder = "N",
          .default_text = default_text};
}

}  // namespace

ImageSettings::ImageSettings(const std::string& pool)
    : data(images_setting()),
      eval_data(text_setting(
          "eval_data",
          "Images to evaluate with; without it test_batch.bin, or the folder test or val, beside "
          "the training data",
          "PATH")),
      dataset{.name = "dataset",
              .value = "auto",
              .help = "What --data holds: binary files, or a folder of images by class",
              .choices = {"auto", "cifar10", "folder"},
              .flag = true},
      shuffle_pool(count_setting("shuffle_pool", "Records among which the next one is drawn",
                                 pool + ", of a folder by class all")),
      input_threads(count_setting("input_threads", "The most threads that make batches",
                                  "one for each core", 1024)),
      max_bad(
          count_setting("max_bad", "Bad records that are left out; one more ends the run", "0")),
      save_images(text_setting(
          "save_images", "Write a picture (PNG) of the first batch as the model sees it", "FILE")) {
}

std::vector<AnySetting> ImageSettings::all() const {
  return {data, eval_data, dataset, shuffle_pool, input_threads, max_bad, save_images};
}

ImageUse ImageUse::cifar10(std::int64_t batch, std::int64_t evaluation_batch, std::uint64_t seed) {
  return {.size = {32, 32, 3},
          .training = cifar10_distortion(true, seed),
          .evaluation = cifar10_distortion(false, seed),
          .batch = batch,
          .evaluation_batch = evaluation_batch,
          .part_in_pool = 0.4,
          .seed = seed};
}

ImageUse ImageUse::airbench(std::int64_t batch, std::int64_t evaluation_batch, std::uint64_t seed) {
  Distortion plain{.random = false, .standardise = false, .seed = seed};
  constexpr double kMeans[] = {0.4914, 0.4822, 0.4465}, kDeviations[] = {0.2470, 0.2435, 0.2616};
  for (std::size_t c = 0; c < 3; ++c) {
    plain.means[c] = 255 * kMeans[c];
    plain.scales[c] = 1 / (255 * kDeviations[c]);
  }
  Distortion moved = plain;
  moved.pad = 2;
  moved.pad_with = PadWith::kReflection;
  moved.mirror = Mirror::kAlternating;
  moved.random = true;
  plain.height = moved.height = plain.width = moved.width = 32;
  return {.size = {32, 32, 3},
          .training = moved,
          .evaluation = plain,
          .batch = batch,
          .evaluation_batch = evaluation_batch,
          .part_in_pool = 1,
          .seed = seed};
}

ImageUse ImageUse::resnet(std::int64_t batch, std::int64_t evaluation_batch, std::uint64_t seed) {
  return {.size = {32, 32, 3},
          .training = resnet_distortion(true, seed),
          .evaluation = resnet_distortion(false, seed),
          .batch = batch,
          .evaluation_batch = evaluation_batch,
          .pool = 16 * batch,
          .seed = seed};
}

NewImages new_images(const std::string& path, const ImageUse& use, std::int64_t batch) {
  const bool binary = holds_binary_files(path);
  std::shared_ptr<const RecordSource> source;
  open_named("--data", path, true, [&] {
    source = binary ? record_files(files_of(path, kBinaryEnding)) : image_files(path);
  });
  Pipeline images(source);
  if (!binary) images.decode({.height = use.size.height, .width = use.size.width});
  const std::int64_t rows = std::min(batch, images.examples());
  images.distort(use.evaluation).batch(rows, LastBatch::kPad);
  return {.images = images, .batch = rows, .left_out = source->left_out()};
}

ImageData image_data(const Settings& settings, const ImageUse& use, const Cluster& cluster) {
  const bool folder = is_folder_of_images(settings);
  const Sources sources = open_data(settings, folder);
  const Pipeline images = images_of(sources.training, settings, use, folder);
  Pipeline undistorted = images;
  ImageData data = {.training = training_pipeline(images, settings, use, folder, cluster),
                    .evaluation = {},
                    .undistorted = undistorted.distort(use.evaluation)};
  if (sources.evaluation != nullptr) {
    data.evaluation = images_of(sources.evaluation, settings, use, folder)
                          .distort(use.evaluation)
                          .batch(use.evaluation_batch, LastBatch::kPad);
  }
  data.notes = sources.notes;
  data.class_names =
      folder ? sources.training->classes() : names_beside(settings[ImageSettings().data]);
  if (folder) data.classes = std::int64_t(data.class_names.size());
  if (!data.class_names.empty()) data.names["classes"] = data.class_names;
  data.names[kImageSteps] = image_steps(use);
  return data;
}

std::vector<std::string> image_steps(const ImageUse& use) {
  const Distortion& eval = use.evaluation;
  std::vector<std::string> steps = {
      fmt::format("{}x{} pixels", use.size.height, use.size.width),
      fmt::format("the {}x{} in the centre", eval.height, eval.width)};
  if (eval.pad > 0) steps.push_back(fmt::format("{} pixels around it", eval.pad));
  if (eval.standardise) steps.emplace_back("standardised");
  steps.push_back(fmt::format("less {:.6g}", fmt::join(eval.means, ", ")));
  steps.push_back(fmt::format("times {:.6g}", fmt::join(eval.scales, ", ")));
  return steps;
}

std::vector<std::string> image_notes(const Settings& settings) {
  return open_data(settings, is_folder_of_images(settings)).notes;
}

void save_images(const Settings& settings, const ImageData& data, const Cluster& cluster) {
  const ImageSettings own;
  const std::string& path = settings[own.save_images];
  if (path.empty() || !cluster.is_chief()) return;
  PipelineReader reader(data.training);
  if (const InputBatch* const batch = reader.next()) write_batch_png(path, *batch);
}

}  // namespace paceline::models
