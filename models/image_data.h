// The images that a model is trained on and evaluated with, as --data, --eval-data and other flags
// describe them.
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
  /// --help shows `pool` as the default of the shuffle pool. A caller that only reads values need
  /// not give it.
  explicit ImageSettings(const std::string& pool = {});
  std::vector<AnySetting> all() const;

  Setting<std::string> data, eval_data, dataset;
  Setting<std::int64_t> shuffle_pool, input_threads, max_bad;
  Setting<std::string> save_images;
};

/// The sizes, distortions and batches in which a model uses its images.
struct ImageUse {
  ImageSize size;                       // of the images before the distortion
  Distortion training, evaluation;      // with the sizes of a batch's images
  std::int64_t batch = 128;             // records of a training step
  std::int64_t evaluation_batch = 100;  // records of an evaluation step
  std::int64_t pool = 0;                // the default shuffle pool in records
  double part_in_pool = 0;              // the least part of the data that the pool holds
  std::uint64_t seed = 1;               // of the order and the distortions

  /// Images of 24×24 pixels, and a default pool of at least 40% of the data. For a folder by class,
  /// the default pool always holds all images.
  static ImageUse cifar10(std::int64_t batch, std::int64_t evaluation_batch, std::uint64_t seed);
  /// Images of 32×32 pixels, reflected at their margins, and a default pool of all images.
  static ImageUse airbench(std::int64_t batch, std::int64_t evaluation_batch, std::uint64_t seed);
  /// Images of 32×32 pixels, and a default pool of 16 batches.
  static ImageUse resnet(std::int64_t batch, std::int64_t evaluation_batch, std::uint64_t seed);
};

/// Pipelines over the data. `training` and `evaluation` have a distortion and batches. `training`
/// repeats and is shuffled; it reads this worker's shard, or the records that the job shares out.
/// `evaluation` is one pass over all records in their order, and fills up its last batch.
struct ImageData {
  Pipeline training;
  std::optional<Pipeline> evaluation;  // empty when there is no data for evaluation
  /// The training images of all workers, distorted as for evaluation, without batches.
  Pipeline undistorted;
  std::int64_t classes = 10;
  /// The names of the classes: those of the folders, or those in batches.meta.txt beside binary
  /// files. Empty when the names are not known.
  std::vector<std::string> class_names = {};
  /// For SessionOptions::data_names: the names of the classes, where they are known, and the steps
  /// by which evaluations prepare an image.
  std::map<std::string, std::vector<std::string>> names = {};
  std::vector<std::string> notes = {};  // image_notes()
};

/// Opens the data:
/// - CIFAR-10's binary files: a file, a quoted pattern, or a folder. The file test_batch.bin in the
///   folder is for evaluation.
/// - Images by class: a folder with one folder for each class. Or a folder that holds two such
///   folders, `train` and `test` (or `val`, `valid`, `validation`).
/// - Without --data, images that are generated.
/// Throws kUsage, naming the flag, when there is nothing at the path, when a folder has parts of
/// other names or is CIFAR's for Python, or when --eval-data comes without --data. Throws
/// kDataLoss, naming the file, when a file is not what it claims to be.
ImageData image_data(const Settings& settings, const ImageUse& use, const Cluster& cluster);

/// New images, whose classes are not known: one pass over all images in their order, distorted as
/// for evaluation, in batches of `batch` images. The last batch is filled up.
struct NewImages {
  Pipeline images;
  std::int64_t batch = 0;  // the number of images in a batch
  /// The files beside the images that are not images: "3 .gif". Empty when there are none.
  std::string left_out = {};
};
/// Opens what --data of an inference names: an image file, a folder with image files at any depth,
/// or CIFAR-10's binary files (a file, a quoted pattern, a folder). Throws as image_data does. A
/// batch has at most `batch` images.
NewImages new_images(const std::string& path, const ImageUse& use, std::int64_t batch);

/// The key in ImageData::names of the steps by which an evaluation prepares an image.
constexpr const char* kImageSteps = "steps of an evaluation's image";
/// Returns these steps in words.
std::vector<std::string> image_steps(const ImageUse& use);

/// Returns lines for the user about the data that the settings name: the numbers of images and
/// classes and where they lie, and what is left out. Throws what image_data throws.
std::vector<std::string> image_notes(const Settings& settings);

/// Writes a picture of the first training batch to the file that --save-images names. Does nothing
/// without the flag, or when this task is not the chief.
void save_images(const Settings& settings, const ImageData& data, const Cluster& cluster);

}  // namespace paceline::models
