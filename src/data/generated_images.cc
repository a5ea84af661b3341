// Generated images: a textured shape in front of a plain ground, in random colours and places, so
// that neither colour nor place tells the class.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "base/text_file.h"
#include "data/generated_files.h"
#include "data/random_words.h"
#include "paceline/data.h"
#include "paceline/error.h"
#include "paceline/zoo_data.h"

namespace paceline {
namespace {

constexpr int kClasses = 10, kSide = 32, kTrainFiles = 5;
constexpr std::size_t kBytes = std::size_t{3} * kSide * kSide;  // of an image
constexpr std::int64_t kLeastImages = 10;
constexpr double kMostTurn = std::numbers::pi / 8;
constexpr const char* kImageFiles[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                       "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

using Colour = std::array<double, 3>;

enum class Figure : std::uint8_t { kDisc, kSquare, kTriangle, kRing, kCross };

// Here x and y are coordinates along the figure's own axes, in units of its size.
bool is_inside(Figure figure, double x, double y) {
  switch (figure) {
    case Figure::kDisc:
      return x * x + y * y < 1;
    case Figure::kSquare:
      return std::abs(x) < 0.85 && std::abs(y) < 0.85;
    case Figure::kTriangle:
      return y > -0.7 && std::abs(x) < (1.1 - y) * 0.6;
    case Figure::kRing:
      return x * x + y * y < 1.1 && x * x + y * y > 0.3;
    case Figure::kCross:
      return std::min(std::abs(x), std::abs(y)) < 0.32 && std::max(std::abs(x), std::abs(y)) < 1.1;
  }
  return false;
}

struct Picture {
  Figure figure;
  bool checks;
  double x, y, size;
  double cosine, sine;  // of the figure's direction
  double period;
  Colour ground, light, dark;
  double noise;
};

Colour random_colour(RandomWords& random) {
  return {random.between(30, 225), random.between(30, 225), random.between(30, 225)};
}

Picture random_picture(int label, RandomWords& random) {
  const double angle = random.between(-kMostTurn, kMostTurn);
  Picture picture{.figure = Figure(label / 2),
                  .checks = label % 2 != 0,
                  .x = random.between(13, 19),
                  .y = random.between(13, 19),
                  .size = random.between(8.5, 11.5),
                  .cosine = std::cos(angle),
                  .sine = std::sin(angle),
                  .period = random.between(3.5, 5.5),
                  .ground = random_colour(random),
                  .light = random_colour(random),
                  .dark = {},
                  .noise = random.between(5, 20)};
  for (std::size_t c = 0; c < 3; ++c) picture.dark[c] = std::fmod(picture.light[c] + 110, 255);
  return picture;
}

const Colour& colour_at(const Picture& picture, int column, int row) {
  const double dx = column - picture.x, dy = row - picture.y;
  const double x = dx * picture.cosine + dy * picture.sine;
  const double y = dy * picture.cosine - dx * picture.sine;
  if (!is_inside(picture.figure, x / picture.size, y / picture.size)) return picture.ground;
  const auto odd = [&](double along) {
    return int(std::floor(along / picture.period * 2)) % 2 != 0;
  };
  const bool light = picture.checks ? odd(x) != odd(y) : odd(x);
  return light ? picture.light : picture.dark;
}

int label_of(std::int64_t image) { return int(image % kClasses); }

// Draws the image with this number, as planes of red, green and blue.
void draw(std::int64_t image, std::uint64_t seed, std::uint8_t* pixels) {
  RandomWords random(random_key(seed, "images"), std::uint64_t(image));
  const Picture picture = random_picture(label_of(image), random);
  for (int i = 0; i < kSide * kSide; ++i) {
    const Colour& colour = colour_at(picture, i % kSide, i / kSide);
    for (std::size_t c = 0; c < 3; ++c) {
      const double noise = picture.noise * (random.uniform() + random.uniform() - 1);
      pixels[c * kSide * kSide + std::size_t(i)] =
          std::uint8_t(std::clamp(colour[c] + noise, 0.0, 255.0));
    }
  }
}

void add_record(std::string& file, std::int64_t image, std::uint64_t seed) {
  file.push_back(char(label_of(image)));
  file.resize(file.size() + kBytes);
  draw(image, seed, reinterpret_cast<std::uint8_t*>(file.data() + file.size() - kBytes));
}

}  // namespace

void generate_images(const std::string& folder, std::int64_t count, std::uint64_t seed) {
  if (count < kLeastImages) {
    throw Error(ErrorCode::kInvalidArgument, std::to_string(count) +
                                                 " images are too few: the least is " +
                                                 std::to_string(kLeastImages));
  }
  constexpr std::int64_t kTestShare = 5;
  make_folder_for(folder, kImageFiles, count, std::int64_t(kBytes + kBytes / kTestShare));
  std::int64_t made = 0;
  for (int i = 0; i <= kTrainFiles; ++i) {
    const std::int64_t end = i < kTrainFiles ? count * (i + 1) / kTrainFiles
                                             : count + std::max(count / kTestShare, kLeastImages);
    std::string file;
    for (; made < end; ++made) add_record(file, made, seed);
    const std::string path = (std::filesystem::path(folder) / kImageFiles[i]).string();
    write_text_file("images", path, file);
  }
}

std::shared_ptr<const RecordSource> generated_images(std::int64_t count, std::uint64_t seed,
                                                     std::int64_t first) {
  std::vector<std::uint8_t> pixels(std::size_t(std::max<std::int64_t>(count, 0)) * kBytes);
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    labels.push_back(label_of(first + i));
    draw(first + i, seed, pixels.data() + std::size_t(i) * kBytes);
  }
  return images_in_memory(std::move(pixels), std::move(labels));
}

}  // namespace paceline
