// Data to train on: pipelines that make batches of records and images, and text for language
// models.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "paceline/task_position.h"
#include "paceline/tensor.h"

namespace paceline {

/// The order of the values of an image in memory.
enum class PixelLayout : std::uint8_t {
  kPlanar,       // one channel after the other (C, H, W); batches are NCHW
  kInterleaved,  // the channels of each pixel side by side (H, W, C); batches are NHWC
};

/// The size of an image.
struct ImageSize {
  std::int64_t height = 0;    // rows
  std::int64_t width = 0;     // pixels in a row
  std::int64_t channels = 3;  // values of a pixel
  /// The number of values.
  std::int64_t values() const { return channels * height * width; }
  bool operator==(const ImageSize&) const = default;
};

/// A record on its way through a pipeline. Its bytes lie in the example's own `memory`, or in
/// memory of the source or of a cache, which a stage must not write.
struct Example {
  std::span<const std::uint8_t> bytes;  // pixels, or a file that is still encoded
  /// The size of the pixels; zeros while they are encoded.
  ImageSize size;
  PixelLayout layout = PixelLayout::kPlanar;  // of the pixels
  std::int32_t label = 0;                     // the class, from 0
  std::int64_t index = 0;                     // the record's index in its source, from 0
  std::int64_t epoch = 0;                     // the pass over the source, from 0
  /// The record's place in the order of the epoch, over all shards.
  std::int64_t place = 0;
  std::vector<std::uint8_t> memory;  // the memory in which `bytes` may lie
  std::vector<std::uint8_t> spare;   // working memory of a stage
};

/// Records that can be read in any order. Many threads call the functions of a source at once.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// The number of records in each file of the source. The index of a record counts the records of
  /// all files, from 0.
  virtual std::vector<std::int64_t> files() const = 0;
  /// Reads a record: bytes, size, layout and label. Throws kDataLoss, kNotFound or kUnavailable,
  /// naming the record, when the record cannot be read. A pipeline may then leave the record out
  /// (Pipeline::max_bad).
  virtual void read(std::int64_t index, Example& to) const = 0;
  /// The record's name for messages: "train/cat/0001.jpg", "data_batch_1.bin, record 17".
  virtual std::string name(std::int64_t index) const = 0;
  /// The names of the classes by label; empty when labels have none.
  virtual std::vector<std::string> classes() const { return {}; }
  /// Counts the files and folders that lie beside the records and are no records: "3 .gif, 2
  /// folders". Empty when there are none.
  virtual std::string left_out() const { return {}; }
};

/// The format of files of records of one length: label bytes, then the pixels.
struct RecordFormat {
  /// The bytes before the pixels. The last one is the label.
  std::int64_t label_bytes = 1;
  ImageSize size = {32, 32, 3};               // of each image, one byte a value
  PixelLayout layout = PixelLayout::kPlanar;  // of the pixels
  std::int32_t classes = 10;                  // labels are below this
};

/// The files that `path` names, sorted by name. `path` is a file, a shell pattern (`*`, `?`,
/// `[…]`), or a folder; of a folder, only files whose names end in `ending` are taken. Throws
/// kNotFound when there are no files.
std::vector<std::string> files_of(const std::string& path, std::string_view ending);

/// Records of one length in binary files; the default format is CIFAR-10's
/// (https://www.cs.toronto.edu/~kriz/cifar.html). Files stay open and are read record by record.
/// Throws, naming the file, kDataLoss when a file is empty or holds no whole number of records, and
/// kNotFound when a file cannot be read. Throws kInvalidArgument when `files` is empty or the
/// format is impossible.
std::shared_ptr<const RecordSource> record_files(const std::vector<std::string>& files,
                                                 const RecordFormat& format = {});
/// Images in memory: the uint8 pixels of one image after the other, as `format` lays them out, and
/// a label for each image. Throws kInvalidArgument when the numbers of pixels and labels do not fit
/// together, or when a label is not below the classes of the format.
std::shared_ptr<const RecordSource> images_in_memory(std::vector<std::uint8_t> pixels,
                                                     std::vector<std::int32_t> labels,
                                                     const RecordFormat& format = {});

/// A folder of images by class: FOLDER/CLASS/NAME.jpg (.jpeg, .jpe, .jfif), .png or .webp. A label
/// is the index of the image's class among the classes, sorted by name. If `classes` is given,
/// labels are indices in that list, such as the classes of the training folder. A file with one of
/// these endings that cannot be read, such as a broken link, is a bad record. Names that begin with
/// a dot are left out, and so are other files and folders (left_out()). Records are encoded files
/// (Pipeline::decode). Throws kNotFound when there is no such folder, or when a broken link stands
/// in place of a class. Throws kInvalidArgument, naming the culprit, for a class without images, a
/// class that is not in `classes`, and fewer than two classes where `classes` is not given.
std::shared_ptr<const RecordSource> image_folder(const std::string& folder,
                                                 const std::vector<std::string>& classes = {});

/// Images without classes. If `path` is a file, it is the only image. If `path` is a folder, the
/// images are the files at any depth in it that have the endings of image_folder, sorted by name
/// within each folder. All labels are 0. Records are encoded files (Pipeline::decode). Throws
/// kNotFound when there is nothing at the path, and kInvalidArgument, naming the path, for a folder
/// without images.
std::shared_ptr<const RecordSource> image_files(const std::string& path);

/// Returns a text such as "50,000 images, 10 classes": the number of images in the source, and the
/// number of classes that the caller gives.
std::string images_in_words(const RecordSource& images, std::int64_t classes);

/// How JPEG, PNG and WebP files become pixels of three channels. Bilinear interpolation brings all
/// images to one size. Images are turned and mirrored as their EXIF data says. Pixels have the
/// values of the file, except that 16 bits are rounded to 8 and transparent pixels are shown on
/// black. A gAMA chunk is ignored. Of a JPEG file only the part that is used is decoded, at the
/// smallest of the scales 1/8, 1/4, 1/2 and 1 at which the part is not smaller than the result.
struct ImageDecoding {
  /// The height of the result. If height or width is 0, the result has the size of the file's
  /// image.
  std::int64_t height = 0;
  std::int64_t width = 0;  // the width of the result
  /// True: a part of the image with random place, area and aspect ratio is taken (Szegedy et al.,
  /// arXiv 1409.4842; usual for ImageNet). Its area is between `least_area` and 1 of the image's
  /// area, its aspect ratio between 3/4 and 4/3. False: the largest part in the centre that has the
  /// result's aspect ratio is taken.
  bool random = false;
  double least_area = 0.08;  // the least share of the image's area
  std::uint64_t seed = 1;    // random numbers are a function of (seed, epoch, place in the epoch)
};

/// Replaces the encoded file that the example holds by its pixels, interleaved. Throws kDataLoss,
/// naming the fault, when the file is no JPEG, PNG or WebP file, is corrupt, or has more than 2²⁶
/// pixels.
void decode_image(const ImageDecoding& decoding, Example& example);

/// Writes `height` rows of `width` pixels, each with three interleaved channels, to a PNG file.
/// Throws kUnavailable, naming the file, when it cannot be written.
void write_png(const std::string& path, std::span<const std::uint8_t> pixels, std::int64_t height,
               std::int64_t width);

struct InputBatch;
/// Writes the images of a batch, which have three channels, side by side to a PNG file that shows
/// what a model sees. The values of each image are scaled so that the least becomes 0 and the
/// greatest 255. Throws kInvalidArgument for values of another shape, and kUnavailable, naming the
/// file, when it cannot be written.
void write_batch_png(const std::string& path, const InputBatch& batch,
                     PixelLayout layout = PixelLayout::kPlanar);

/// The values of the margin with which an image is padded.
enum class PadWith : std::uint8_t {
  kZeros,       // zeros
  kReflection,  // the image mirrored at its outermost pixels, which are not repeated
};

/// The images that a random distortion mirrors from left to right.
enum class Mirror : std::uint8_t {
  kRandom,  // each with probability ½ in each epoch
  /// Each record is mirrored in every second epoch: about half of the records in the first, third,
  /// … epoch, the others in the second, fourth, … (Jordan, arXiv 2404.00498).
  kAlternating,
};

/// Changes images and converts them to float32, by these steps. A step that is not asked for is
/// left out.
/// - The image gets a margin.
/// - A part is cut out, and mirrored from left to right.
/// - A random number is added to all values (brightness; left out before standardisation, which
///   would undo it).
/// - The distance of each value from the mean of its channel is multiplied by a random factor
///   (contrast).
/// - The values are standardised: (x − µ) / max(σ, 1/√N) over all N values of the image
///   (TensorFlow's `per_image_standardization`).
/// - Each channel becomes (x − mean) · scale with given numbers.
/// All random numbers of a record are a function of (seed, epoch, place in the epoch), except that
/// Mirror::kAlternating depends on (seed, epoch, index of the record).
struct Distortion {
  std::int64_t pad = 0;                // pixels added on each of the four sides
  PadWith pad_with = PadWith::kZeros;  // the values of these pixels
  std::int64_t height = 0;             // the height of the part; 0: all of the image
  std::int64_t width = 0;              // the width of the part; 0: all of the image
  /// True: the part lies at a random place and is mirrored at random. False: the part lies in the
  /// centre, and there are no random steps.
  bool random = true;
  Mirror mirror = Mirror::kRandom;              // used if `random` is true
  double brightness = 0;                        // the largest magnitude of the number that is added
  double contrast_low = 1;                      // the least factor of contrast
  double contrast_high = 1;                     // the greatest factor of contrast
  bool standardise = true;                      // true: each image gets mean 0 and deviation 1
  std::array<double, 4> means = {};             // by channel; subtracted from the values
  std::array<double, 4> scales = {1, 1, 1, 1};  // by channel; factors on the differences
  PixelLayout layout = PixelLayout::kPlanar;    // of the result
  std::uint64_t seed = 1;                       // of all random numbers
};

/// Distorts one image, with the example's `spare` as working memory. Throws kInvalidArgument when
/// the example holds no decoded pixels, when the part does not fit into the image and its margin,
/// or when `values` does not have the size of the result.
void distort(const Distortion& distortion, Example& example, std::span<float> values);

/// The fate of the examples that are left when an epoch is divided into batches.
enum class LastBatch : std::uint8_t {
  kDrop,  // they are left out of this epoch
  kPad,   // the examples are one more batch, filled up with zeros
  /// The examples are one more, smaller batch. Dimension 0 of the inputs must be open
  /// (Graph::open).
  kShort,
};

/// The order in which a parallel stage hands on its records.
enum class MapOrder : std::uint8_t {
  /// In the order in which the stage gets the records, so that every run gives the same batches.
  kOrdered,
  /// In the order in which the records are finished, so that no record waits for a slow one.
  kAsFinished,
};

struct PipelinePlan;

/// Describes how batches are made: a source of records, and stages. A pipeline is cheap to copy. A
/// PipelineReader does the work; each of its threads takes records through all stages.
///
///     Pipeline train = Pipeline(record_files(files_of("cifar", ".bin")))
///                          .interleave(5).shard(worker, workers).shuffle(20'000).repeat()
///                          .distort({.pad = 4, .height = 32, .width = 32})
///                          .batch(128).prefetch(2);
///
/// The order of an epoch's records is decided before any is read, from (seed, epoch) alone: files
/// are interleaved, then sharded, then shuffled, in whatever order these stages were named. So two
/// numbers, epoch and record, are the place in the data, and training that is resumed goes on with
/// the very next record, even in the middle of a shuffle pool. (Grain, a loader for JAX, has the
/// same idea.) Functions throw kInvalidArgument for impossible numbers.
class Pipeline {
 public:
  /// All records of the source, once, in the order of their index.
  explicit Pipeline(std::shared_ptr<const RecordSource> source);

  /// Reads the files in another order in each epoch, `files` files at a time, and takes records
  /// from these files by turns.
  Pipeline& interleave(int files);
  /// Keeps only the records of this task: of each `parts` successive records, the one at index
  /// `part`. Throws kInvalidArgument when no record is left.
  Pipeline& shard(int part, int parts);
  /// The job shares out the records among its workers while they train: a worker takes the next
  /// records when it needs some. So each record is used once in an epoch, even if workers differ in
  /// speed or some are lost (--shard dynamic, Cluster::shares_records). A PipelineFeed takes its
  /// records from Feed::record_blocks(). All workers have the same pipeline, without shard().
  Pipeline& share_out();
  /// Shuffles by a pool of `pool` records: the next record is drawn from the pool at random, and
  /// the next record of the source takes its place in the pool. A pool that holds all records of an
  /// epoch shuffles the epoch as a whole.
  Pipeline& shuffle(std::int64_t pool);
  /// Sets the number of epochs; without a number, epochs never end. A batch of a pipeline that
  /// repeats may have records of two epochs.
  Pipeline& repeat(std::optional<std::int64_t> epochs = {});
  /// Sets the seed by which files are ordered and records drawn from the pool. All workers of a job
  /// give the same seed.
  Pipeline& seed(std::uint64_t seed);
  /// Adds a stage of your own. `function` changes an example in place; many threads call it at
  /// once.
  Pipeline& map(std::string name, std::function<void(Example&)> function,
                MapOrder order = MapOrder::kOrdered);
  /// Keeps the results of the stages so far in memory, up to this number of bytes. Records for
  /// which there is no room are made anew in each epoch. Copies of the pipeline share the cache.
  /// The stages before the cache must not be random.
  Pipeline& cache(std::int64_t bytes);
  /// The stage "decode": JPEG, PNG and WebP files become pixels.
  Pipeline& decode(const ImageDecoding& decoding);
  /// The last stage before batches: `function` writes the example's values, which have this shape,
  /// straight into the memory of the batch.
  Pipeline& into(const Shape& shape, std::string name,
                 std::function<void(Example&, std::span<float>)> function);
  /// The last stage before batches: images are distorted. The distortion must have a height and a
  /// width.
  Pipeline& distort(const Distortion& distortion);
  /// Makes batches of this number of records.
  Pipeline& batch(std::int64_t records, LastBatch last = LastBatch::kDrop);
  /// Sets how many batches are made ahead of the batch in use (default 2).
  Pipeline& prefetch(int batches);
  /// Sets the most threads that make batches; 0, the default: one for each core. A reader measures
  /// how long batches take, and lets only as many threads work as are needed.
  Pipeline& threads(int most);
  /// Sets how many bad records are left out (default: 0). One bad record more ends the run with
  /// kDataLoss. The next good record of the source takes the place of a bad one, with weight 0.
  Pipeline& max_bad(std::int64_t records);
  /// Sets the function that is called once for each bad record that is left out, with its name and
  /// its fault, on any thread.
  Pipeline& on_bad(std::function<void(const std::string&)> say);

  /// The number of records of this task in an epoch.
  std::int64_t examples() const;
  /// The number of batches in one epoch, without repeat().
  std::int64_t batches() const;
  /// The shape of a batch's values: (batch, …). Throws kInvalidArgument before batch() and before
  /// into() or distort().
  Shape shape() const;
  /// True after share_out().
  bool is_shared_out() const;
  /// The source.
  const RecordSource& source() const;
  /// The plan of the stages, for a PipelineReader.
  const std::shared_ptr<const PipelinePlan>& plan() const { return plan_; }

 private:
  PipelinePlan& change();
  std::shared_ptr<const PipelinePlan> plan_;
};

/// A batch that is ready.
struct InputBatch {
  Tensor values;  // float32 (batch, …)
  Tensor labels;  // int32 (batch)
  /// float32 (batch): 1 for a record; 0 for a row that fills up the batch or takes the place of a
  /// bad record.
  Tensor weights;
  std::int64_t records = 0;  // the number of rows with weight 1
  /// The number of rows: that of every batch, or fewer in a short last batch (LastBatch::kShort).
  std::int64_t rows = 0;
};

/// The numbers of one stage of a pipeline since its reader began.
struct StageReport {
  std::string name;          // "read", "decode", "distort"
  std::int64_t records = 0;  // the number that went through
  double seconds = 0;        // the time of all threads in this stage
  double records_per_s = 0;  // one thread's rate while it works in this stage
  /// The share of the stage's buffer that is filled, from 0 to 1. Empty when the stage has no
  /// buffer.
  std::optional<double> fill = {};
  bool operator==(const StageReport&) const = default;
};

/// The numbers of a pipeline since its reader began.
struct InputReport {
  std::vector<StageReport> stages = {};  // in the order in which records go through them
  std::int64_t records = 0;              // good records in batches that were used
  std::int64_t batches = 0;              // batches that were used
  std::int64_t bad = 0;                  // records that were left out
  int threads = 0;                       // threads that make batches now
  int most_threads = 0;                  // threads that can make batches
  double seconds = 0;                    // since the first batch was asked for
  /// The part of `seconds` in which training waited for a batch.
  double waited = 0;
  /// The stage that took the most time of the threads; null when no stage took time.
  const StageReport* slowest() const;
  /// The number of records a second that the pipeline could make with all its threads; 0 before the
  /// first record is made.
  double capacity() const;
  bool operator==(const InputReport&) const = default;
};

/// Makes the batches of a pipeline, on threads of its own, which end with the reader. Only one
/// thread may call a reader.
class PipelineReader {
 public:
  /// Begins with the record after `position`. Throws kInvalidArgument for a pipeline that has no
  /// batches or whose values have no shape, and for a position that is not of this data.
  explicit PipelineReader(const Pipeline& pipeline, const TaskPosition& position = {},
                          const std::string& name = "data");
  /// Takes records from `blocks`, by which a job shares them out (Pipeline::share_out). Throws
  /// kInvalidArgument for a pipeline with shards, or whose stages hand on records as they are
  /// finished.
  PipelineReader(const Pipeline& pipeline, std::shared_ptr<RecordBlocks> blocks,
                 const std::string& name = "data");
  ~PipelineReader();
  PipelineReader(const PipelineReader&) = delete;
  PipelineReader& operator=(const PipelineReader&) = delete;

  /// Waits for the next batch, which stays valid until the next call; null after the last one.
  /// Throws what a stage has thrown for a record of this batch.
  const InputBatch* next();
  /// Writes the place after the last batch:
  /// - NAME.epoch, NAME.record (the records of this epoch that were used) and NAME.size (the
  ///   records of an epoch).
  /// - NAME.late and NAME.late.1, …: the number of earlier records that are not used yet, and these
  ///   records. There are such records only where a stage hands on its records as they are
  ///   finished.
  /// With data of another size, or another number of workers, a reader goes on after the same part
  /// of the epoch. For records that are shared out, the function writes how many were used
  /// (kTakenRecords), and the place after the furthest of them.
  void tell(TaskPosition& position) const;
  /// True when the job has given this reader's records to other workers (RecordBlocks::revoked). A
  /// new reader must then take its place.
  bool revoked() const;
  /// Returns what the pipeline has done so far. Any thread may call the function.
  InputReport report() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A line of a text.
struct TextLine {
  std::vector<std::int32_t> ids;  // the ids of the line's words, without an "<eos>" for its end
  std::int64_t unknown = 0;       // the number of words that were read as "<unk>"
};

/// The words of a text and their ids. from_file() orders words by falling frequency, and words of
/// the same frequency by their bytes. A newline counts as the word "<eos>".
class Vocabulary {
 public:
  /// The `most` most frequent words of the file. Throws kNotFound when the file cannot be read, and
  /// kDataLoss when it is no text or has no words.
  static Vocabulary from_file(const std::string& path, std::size_t most = 10000);

  /// A vocabulary of these words, whose ids are their indices in the list. The words may come from
  /// a checkpoint (SavedModel::data_names).
  static Vocabulary of(std::vector<std::string> words);

  /// The number of words.
  std::size_t size() const { return words_.size(); }
  /// The word of an id, which must be in [0, size()).
  const std::string& word(std::int32_t id) const { return words_[std::size_t(id)]; }
  /// The id of the word, or that of "<unk>" for an unknown word. Throws kNotFound, naming the word,
  /// when the vocabulary has no "<unk>" either.
  std::int32_t id(std::string_view word) const;
  /// The file as one stream of ids, with "<eos>" at each newline. A token that is not in the
  /// vocabulary is read as "<unk>"; `unknown`, where given, becomes the number of such tokens.
  /// Throws kNotFound when the file cannot be read, kDataLoss when it is no text, and kNotFound,
  /// naming file, line and token, for an unknown token when there is no "<unk>".
  std::vector<std::int32_t> read(const std::string& path, std::int64_t* unknown = nullptr) const;
  /// The lines of the file, in their order. Throws as read() does.
  std::vector<TextLine> read_lines(const std::string& path) const;

 private:
  /// The id of a token in line `line` of the text at `path`. For an unknown token, the id of
  /// "<unk>", and `unknown` grows by 1.
  std::int32_t id_in(std::string_view word, const std::string& path, std::int64_t line,
                     std::int64_t& unknown) const;

  std::vector<std::string> words_;
  struct WordHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const {
      return std::hash<std::string_view>()(word);
    }
  };
  std::unordered_map<std::string, std::int32_t, WordHash, std::equal_to<>> ids_;
};

/// A stream laid out as `batch` rows. Batch i consists of the columns [i·steps, (i+1)·steps), and
/// its targets are the same columns shifted by one (Zaremba et al., arXiv 1409.2329).
class TextBatches {
 public:
  /// `batch` is the number of rows, `steps` the number of columns of a batch. Throws
  /// kInvalidArgument when the stream is too short for one batch.
  TextBatches(std::vector<std::int32_t> stream, std::int64_t batch, std::int64_t steps);
  /// The number of batches.
  std::int64_t size() const { return count_; }
  /// Fills inputs and targets with batch `index`, each (steps, batch) row-major: time first. Throws
  /// kInvalidArgument when there is no such batch, or when `inputs` or `targets` has another size.
  void fill(std::int64_t index, std::span<std::int32_t> inputs,
            std::span<std::int32_t> targets) const;

 private:
  void check(std::int64_t index, std::size_t size) const;

  std::vector<std::int32_t> stream_;
  std::int64_t batch_, steps_, row_, count_;
};

/// Takes the records that a job shares out (Feed::record_blocks) by the rules of RecordBlocks, and
/// waits for records that are not there yet. For one thread.
class RecordTaker {
 public:
  /// `wish` says how large blocks are, and how many to ask for ahead.
  explicit RecordTaker(const RecordBlocks::Wish& wish);
  ~RecordTaker();
  RecordTaker(const RecordTaker&) = delete;
  RecordTaker& operator=(const RecordTaker&) = delete;

  /// Begins to ask `blocks` for records, unless the taker asks the same `blocks` already and its
  /// records still belong to this worker. Throws what RecordBlocks::begin throws.
  void follow(const std::shared_ptr<RecordBlocks>& blocks);
  /// How often the taker has begun to ask. Whenever this number changes, records that were taken
  /// before and not used no longer belong to the caller: the job gives them again, to this worker
  /// or to others.
  int begins() const;
  /// Waits for records, and returns a range of at most `most` of them; the range is empty when
  /// there will be no more. When the job has given the taken records to other workers, the taker
  /// begins anew. During the wait, `check` is called several times a second. The wait ends with an
  /// exception that `check` throws, or when the job fails or is to stop. Call follow() first.
  RecordRange take(std::int64_t most, const std::function<void()>& check = {});
  /// Notes that the next step uses `records` more of the taken records. Returns the number that the
  /// step's position (Feed::position) must then have under kTakenRecords.
  std::int64_t use(std::int64_t records);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A batch of a text that a job shares out.
struct SharedBatch {
  std::int64_t index = 0;  // of TextBatches, from 0
  std::int64_t epoch = 0;  // the pass over the text, from 0
  /// True when the batch does not follow, in the text, the batch that this worker read before; then
  /// recurrent states begin anew.
  bool begins_block = true;
};

/// The batches of a text that a job shares out among its workers (--shard dynamic,
/// Feed::record_blocks): a worker gets a block of successive batches whenever it needs one, so that
/// each batch is read once in an epoch. All workers have the same text, and batches of the same
/// size. For one thread.
///
///     SharedBatches shared(batches.size());
///     session.run([&](Feed& feed) {
///       const auto next = shared.next(feed.record_blocks());
///       if (!next) return feed.stop();
///       shared.use(feed.position());
///       batches.fill(next->index, …);
///     });
class SharedBatches {
 public:
  /// An epoch has `batches` batches, a block at most `block` of them. Without `epochs`, epochs
  /// never end. Throws kInvalidArgument for numbers below 1.
  SharedBatches(std::int64_t batches, std::int64_t block, std::optional<std::int64_t> epochs = {});
  ~SharedBatches();
  SharedBatches(const SharedBatches&) = delete;
  SharedBatches& operator=(const SharedBatches&) = delete;

  /// Waits for this worker's next batch and returns it; returns nothing when there will be no more.
  /// Until use() is called, further calls return the same batch. Throws when the job fails
  /// meanwhile, or is to stop.
  std::optional<SharedBatch> next(const std::shared_ptr<RecordBlocks>& blocks);
  /// Notes that the next step reads the batch that next() returned. `position` is Feed::position.
  void use(TaskPosition& position);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Part `index`, from 0, of `parts` equal contiguous parts of a stream. What does not divide evenly
/// is in no part.
std::vector<std::int32_t> part_of(const std::vector<std::int32_t>& stream, int index, int parts);

}  // namespace paceline
