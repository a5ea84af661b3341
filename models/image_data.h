// The images that a model is trained on and evaluated with, as --data, --eval-data and other flags
// say it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "paceline/cluster.h"
#include "paceline/data.h"
#include "paceline/program.h"

namespace paceline::models {

/// The flags --data, --eval-data, --dataset, --shuffle-pool, --input-threads, --max-bad and
/// --save-images.
struct ImageSettings {
  /// `pool` describes the default of the shuffle pool in --help. A caller that only reads values
  /// needs none.
  explicit ImageSettings(const std::string& pool = {});
  std::vector<AnySetting> all() const;

  Setting<std::string> data, eval_data, dataset;
  Setting<std::int64_t> shuffle_pool, input_threads, max_bad;
  Setting<std::string> save_images;
};

/// The sizes, distortions and batches in which a model uses its images.
struct ImageUse {
  ImageSize size;                       // of the images that are distorted
  Distortion training, evaluation;      // with the sizes of a batch's images
  std::int64_t batch = 128;             // records of a training step
  std::int64_t evaluation_batch = 100;  // records of an evaluation step
  std::int64_t pool = 0;                // the default shuffle pool in records
  double part_in_pool = 0;              // the pool also holds at least this part of the data
  std::uint64_t seed = 1;               // of orders and distortions

  /// 24×24 images and a pool of at least 40% of the data. A folder by class has a pool of all
  /// images, here and below.
  static ImageUse cifar10(std::int64_t batch, std::int64_t evaluation_batch, std::uint64_t seed);
  /// 32×32 images, reflected at their margins, and a pool of all of them.
  static ImageUse airbench(std::int64_t batch, std::int64_t evaluation_batch, std::uint64_t seed);
  /// 32×32 images and a pool of 16 batches.
  static ImageUse resnet(std::int64_t batch, std::int64_t evaluation_batch, std::uint64_t seed);
};

/// Pipelines over the data. `training` and `evaluation` have a distortion and batches. `training`
/// repeats, is shuffled, and is this worker's shard. `evaluation` is a pass over all records in
/// their order, whose last batch is filled up.
struct ImageData {
  Pipeline training;
  std::optional<Pipeline> evaluation;  // empty: there is no data for evaluation
  /// The training images of all workers, prepared as for evaluation, without batches.
  Pipeline undistorted;
  std::int64_t classes = 10;
  /// The class names of the folders, or of batches.meta.txt beside binary files; empty: not known.
  std::vector<std::string> class_names = {};
  /// SessionOptions::data_names: the classes, where they are known, and what evaluations do to an
  /// image.
  std::map<std::string, std::vector<std::string>> names = {};
  std::vector<std::string> notes = {};  // image_notes()
};

/// Opens the data:
/// - CIFAR-10's binary files: a file, a quoted pattern, or a folder, whose test_batch.bin is then
///   for evaluation.
/// - Images by class: a folder with one folder for each class, or with such folders named `train`
///   and `test` (or `val`).
/// - Without --data, images that are generated.
/// Throws kUsage, naming the flag, when there is nothing at the path, when a folder has parts of
/// other names or is CIFAR's for Python, or when --eval-data comes without --data. Throws
/// kDataLoss, naming the file, when it is not what it claims to be.
ImageData image_data(const Settings& settings, const ImageUse& use, const Cluster& cluster);

/// New images, whose classes are not known: one pass over all of them, in their order, prepared as
/// for evaluation, in batches of at most `batch`. The last batch is filled up.
struct NewImages {
  Pipeline images;
  std::int64_t batch = 0;  // the most images in a batch
  std::string left_out =
      {};  // the files beside the images that are not images: "3 .gif"; empty: none
};
/// Opens what --data of an inference names: an image file, a folder of such files at any depth, or
/// CIFAR-10's binary files (a file, a quoted pattern, a folder). Throws as image_data.
NewImages new_images(const std::string& path, const ImageUse& use, std::int64_t batch);

/// The key of ImageData::names for what an evaluation does to an image.
constexpr const char* kImageSteps = "steps of an evaluation's image";
/// These steps, in words.
std::vector<std::string> image_steps(const ImageUse& use);

/// Lines for the user about the data that the settings name: how many images and classes were found
/// where, and what is left out. Throws what image_data throws.
std::vector<std::string> image_notes(const Settings& settings);

/// Writes the picture of the first training batch that --save-images names. Does nothing without
/// the flag, or when this task is not the chief.
void save_images(const Settings& settings, const ImageData& data, const Cluster& cluster);

}  // namespace paceline::models
