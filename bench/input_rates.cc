#include "bench/input_rates.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cores.h"
#include "base/temporary_folder.h"
#include "bench/photo_files.h"
#include "bench/timing.h"
#include "paceline/zoo_data.h"

namespace paceline::bench {
namespace {

constexpr std::int64_t kImages = 50'000, kPhotos = 64;
constexpr std::int64_t kRecordsOfBatch = 128, kPhotosOfBatch = 32, kSideOfPhoto = 224;
constexpr std::int64_t kBytesOfCache = std::int64_t{1} << 30;
constexpr double kSecondsOfRepeat = 0.5;

Pipeline distorted(Pipeline images, const Distortion& distortion) {
  return images.interleave(4).shuffle(20'000).repeat().distort(distortion).batch(kRecordsOfBatch);
}

Pipeline photos_in(const std::string& folder) {
  return Pipeline(image_folder(folder))
      .shuffle(kPhotos)
      .repeat()
      .decode({.height = kSideOfPhoto, .width = kSideOfPhoto, .random = true})
      .distort({.height = kSideOfPhoto, .width = kSideOfPhoto})
      .batch(kPhotosOfBatch);
}

void measure_case(Recorder& recorder, const InputCase& one) {
  recorder.progress(one.name);
  PipelineReader reader(one.pipeline);
  std::vector<double> rates =
      time_calls(recorder.repeats(), kSecondsOfRepeat, [&] { reader.next(); });
  const auto batch = double(one.pipeline.shape()[0]);
  for (double& rate : rates) rate = batch / rate;
  recorder.add(figure_of(one.name, "images_per_s", rates));
}

}  // namespace

std::vector<InputCase> input_cases(const std::string& folder, std::int64_t images,
                                   std::int64_t photos, std::string& note) {
  const std::string binary = folder + "/binary", photo = folder + "/photos";
  generate_images(binary, images, 1);
  const PhotoFiles files = write_photo_files(photo, photos);
  note = fmt::format("{} JPEG files of {}x{} at quality {}, {:.0f} KB each", files.files,
                     files.width, files.height, files.quality, files.mean_bytes / 1e3);
  const Pipeline records(record_files(files_of(binary + "/data_batch_*", ".bin")));
  const Pipeline kept = Pipeline(records).cache(kBytesOfCache);
  std::vector<InputCase> cases = {
      {"cifar10, distorted, from files", distorted(records, cifar10_distortion(true, 1))},
      {"cifar10, distorted, from memory", distorted(kept, cifar10_distortion(true, 1))},
      {"resnet, distorted, from files", distorted(records, resnet_distortion(true, 1))},
      {"resnet, distorted, from memory", distorted(kept, resnet_distortion(true, 1))},
      {"JPEG folder, random 224x224", photos_in(photo)}};
  cases.push_back({"JPEG folder, random 224x224, one thread", photos_in(photo).threads(1)});
  return cases;
}

void measure_input(Recorder& recorder) {
  const TemporaryFolder folder;
  recorder.progress("generating images");
  std::string note;
  const std::vector<InputCase> cases = input_cases(folder.path(), kImages, kPhotos, note);
  recorder.note(fmt::format("{}; {} input threads", note, usable_cores()));
  for (const InputCase& one : cases) measure_case(recorder, one);
}

}  // namespace paceline::bench
