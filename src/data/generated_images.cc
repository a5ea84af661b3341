// Generated images: a shape with a texture before a plain ground, in random colours, so that
// neither colour nor place tells the class.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numbers>

#include "base/text_file.h"
#include "data/generated_files.h"
#include "data/random_words.h"
#include "paceline/data.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr int kClasses = 10, kSide = 32, kTrainFiles = 5;
constexpr std::int64_t kLeastImages = 10;
constexpr const char* kImageFiles[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                       "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

using Colour = std::array<double, 3>;

enum class Figure : std::uint8_t { kDisc, kSquare, kTriangle, kRing, kCross };

// x and y are in units of the figure's size, along its own axes.
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
  double x, y, size, angle, period;
  Colour ground, light, dark;
  double noise;
};

Colour random_colour(RandomWords& random) {
  return {random.between(30, 225), random.between(30, 225), random.between(30, 225)};
}

Picture random_picture(int label, RandomWords& random) {
  Picture picture{.figure = Figure(label / 2),
                  .checks = label % 2 != 0,
                  .x = random.between(11, 21),
                  .y = random.between(11, 21),
                  .size = random.between(7, 11),
                  .angle = random.between(0, 2 * std::numbers::pi),
                  .period = random.between(3.5, 5.5),
                  .ground = random_colour(random),
                  .light = random_colour(random),
                  .dark = {},
                  .noise = random.between(5, 25)};
  for (std::size_t c = 0; c < 3; ++c) picture.dark[c] = std::fmod(picture.light[c] + 110, 255);
  return picture;
}

const Colour& colour_at(const Picture& picture, int column, int row) {
  const double dx = column - picture.x, dy = row - picture.y;
  const double x = dx * std::cos(picture.angle) + dy * std::sin(picture.angle);
  const double y = dy * std::cos(picture.angle) - dx * std::sin(picture.angle);
  if (!is_inside(picture.figure, x / picture.size, y / picture.size)) return picture.ground;
  const auto odd = [&](double along) {
    return int(std::floor(along / picture.period * 2)) % 2 != 0;
  };
  const bool light = picture.checks ? odd(x) != odd(y) : odd(x);
  return light ? picture.light : picture.dark;
}

void add_image(std::string& file, int label, RandomWords& random) {
  const Picture picture = random_picture(label, random);
  file.push_back(char(label));
  for (std::size_t c = 0; c < 3; ++c) {
    for (int row = 0; row < kSide; ++row) {
      for (int column = 0; column < kSide; ++column) {
        const double value = colour_at(picture, column, row)[c] +
                             picture.noise * (random.uniform() + random.uniform() - 1);
        file.push_back(char(std::uint8_t(std::clamp(value, 0.0, 255.0))));
      }
    }
  }
}

}  // namespace

void generate_images(const std::string& folder, std::int64_t count, std::uint64_t seed) {
  if (count < kLeastImages) {
    throw Error(ErrorCode::kInvalidArgument, std::to_string(count) +
                                                 " images are too few: the least is " +
                                                 std::to_string(kLeastImages));
  }
  make_folder_for(folder, kImageFiles);
  const std::uint64_t key = random_key(seed, "images");
  std::int64_t made = 0;
  for (int i = 0; i <= kTrainFiles; ++i) {
    const std::int64_t end =
        i < kTrainFiles ? count * (i + 1) / kTrainFiles : count + std::max(count / 5, kLeastImages);
    std::string file;
    for (; made < end; ++made) {
      RandomWords random(key, std::uint64_t(made));
      add_image(file, int(made % kClasses), random);
    }
    const std::string path = (std::filesystem::path(folder) / kImageFiles[i]).string();
    write_text_file("images", path, file);
  }
}

}  // namespace paceline
