// The wire: what judge and worker say to each other, over one SOCK_SEQPACKET socket and the first page of the
// output region, and how calls lie in the input region. Little-endian, natural alignment. The feeder shares
// this file; the Python side packs the same structs by hand, so no field may move.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outpace {

// One question: `count` calls whose records stand at `base` in the input region. The next one is written
// only after the answer to this one has been copied out, so no worker ever sees two. A set-up question stays
// where it lies, since whoever is set up may keep pointers into it; those after it lie behind it. Were it
// copied, by the worker, whoever took the worker over would save the copy.
struct Request {
    std::uint32_t nonce;  // never 0, and not to be foretold
    std::uint32_t count;
    std::uint64_t records;  // bytes
    std::uint32_t flags;
    std::uint32_t base;  // a multiple of the page size
};
static_assert(sizeof(Request) == 24);

constexpr std::uint32_t is_setup = 1;     // the record is the set-up call's
constexpr std::uint32_t wants_reply = 2;  // say DONE on the socket too: whoever asks sleeps until then
constexpr std::uint32_t fetches = 4;      // parts of the answer may be left where they lie
constexpr std::uint32_t sleep_next = 8;   // fall asleep at once after the answer
constexpr std::uint32_t converts = 16;    // say on the desk what converting arguments and answers took
constexpr std::uint32_t unchanged = 32;   // and fail where a call has changed its arguments
constexpr std::uint32_t keeps = 64;       // the caller keeps the last answer's arrays for a while
constexpr std::uint32_t lets_go = 128;    // and has let go of all that he kept

// The first page of the output region; answers begin behind it. The feeder lays a question down and writes
// its nonce last; the worker answers and writes the same nonce back last. Then it sleeps: a function worker
// on the question's nonce, the others on their socket, for one byte. Where question and answer
// are small it first looks for the next question for a few microseconds, because to sleep would leave its
// core, and the caches with it, to others. Where they are large, looking would be on its clock while the
// feeder copies, and whoever worked in that time would gain it.
struct Desk {
    alignas(64) Request question;
    alignas(64) std::uint32_t answered;  // the nonce of the last question answered
    std::uint32_t converting;            // nanoseconds of converting once more, where that was asked for
    std::uint64_t bytes;                 // of the answer, where it has no fixed length
    std::uint64_t pieces;                // parts of it that lie elsewhere in the worker's memory
    std::uint64_t calling;               // nanoseconds in the calls themselves, and in converting once more
};

// A part of an answer that the feeder fetches from the worker's own memory. Were a worker to copy its arrays
// into the region, whoever computed them there would save the copy.
struct Piece {
    std::uint64_t offset;   // where it belongs in the answer
    std::uint64_t pointer;  // where its address stands
    std::uint64_t bytes;
};
constexpr std::uint64_t pieces_at = 128;
constexpr std::uint64_t most_pieces = 160;
constexpr std::uint64_t desk_bytes = 4096;
static_assert(sizeof(Desk) == 128);

enum class Status : std::uint32_t {
    done = 0,
    hello = 1,  // limits and the first filter are in force, nothing of the candidate is loaded; value is
                // the CPU time spent so far, from where on everything is on the candidate's account, and text
                // the time of the monotonic clock; a worker that has more to make ready says it once more
    ready = 2,  // the candidate is loaded, the last filter is in force
    load_failed = 3,  // the dynamic loader refused the library; text says why
    forbidden = 4,    // a system call was trapped; detail is its number
    fault = 5,        // the request makes no sense; text says why
    call_failed = 6,  // call number `detail` could not be made; text says why
};

struct Reply {
    std::uint64_t nonce;
    std::uint32_t status;
    std::uint32_t detail;
    std::uint64_t value;
    char text[232];
};
static_assert(sizeof(Reply) == 256);

// A call of a function: the header, then its slots.
struct CallRecord {
    std::uint32_t slots;
    std::uint32_t reserved;
    std::uint64_t bytes;  // header and slots
};
static_assert(sizeof(CallRecord) == 16);

enum class SlotKind : std::uint32_t {
    immediate = 0,  // these 64 bits
    input = 1,      // pointer to this offset of the input region
    output = 2,     // pointer to this offset of the output region
    result = 3,     // no argument: that offset of the output region receives the return value; always last
};

struct Slot {
    std::uint32_t kind;
    std::uint32_t reserved;
    std::uint64_t value;
};
static_assert(sizeof(Slot) == 16);

// A call of a command: the header, its parts, then the data they point to.
struct CommandRecord {
    std::uint32_t parts;
    std::uint32_t reserved;
    std::uint64_t bytes;  // header, parts and data
};
static_assert(sizeof(CommandRecord) == 16);

enum class PartKind : std::uint32_t {
    standard_input = 1,  // content
    file = 2,            // name and content, permission bits in mode
    argument = 3,        // content, appended to the command line in order
    // What comes back lies one after another in the output region, in the order of these parts.
    standard_output = 4,  // length, then the bytes, filled up to a multiple of 8
    output_file = 5,      // name; as for standard_output
    exit_status = 6,      // int64, exit code or 128 + signal
    usage = 7,            // CPU nanoseconds of the tree, wall nanoseconds, its first process's run delay
};

struct Part {
    std::uint32_t kind;
    std::uint32_t mode;
    std::uint64_t offset;  // content, in the input region
    std::uint64_t bytes;
    std::uint64_t reserved;
    std::uint64_t out_bytes;  // at most
    std::uint64_t name_offset;
    std::uint64_t name_bytes;
};
static_assert(sizeof(Part) == 56);

constexpr std::uint64_t output_too_long = UINT64_MAX;
constexpr std::uint64_t output_missing = UINT64_MAX - 1;
constexpr std::uint64_t output_with_holes = UINT64_MAX - 2;
constexpr std::uint64_t output_with_names = UINT64_MAX - 3;  // it has others, or was given as another
constexpr std::uint64_t output_longest = output_with_names - 1;

}  // namespace outpace
