// Copies standard input to standard output without the lines that came before.
//
// A line ends at a newline or at the end of the input. Each different line is written once, followed by a
// newline, in the order of first appearance.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace {

// Bytes read at a time by the `fread` option, and collected before they are written by `buffered`.
// outpace: choose 4096 65536 1048576
constexpr size_t kChunk = 65536;

// outpace: alternatives
// outpace: option stream
std::string read_input() { return {std::istreambuf_iterator<char>(std::cin), {}}; }
// outpace: option stream-unsynchronised
//~ std::string read_input() {
//~     std::ios::sync_with_stdio(false);
//~     return {std::istreambuf_iterator<char>(std::cin), {}};
//~ }
// outpace: option fread
//~ std::string read_input() {
//~     std::string text;
//~     size_t size = 0, got;
//~     do {
//~         text.resize(size + kChunk);
//~         got = std::fread(text.data() + size, 1, kChunk, stdin);
//~         size += got;
//~     } while (got > 0);
//~     text.resize(size);
//~     return text;
//~ }
// outpace: end alternatives

// Remembers lines; add() says whether the line is new.
// outpace: alternatives
// outpace: option tree
//~ class Seen {
//~   public:
//~     bool add(std::string_view line) { return lines_.insert(line).second; }
//~   private:
//~     std::set<std::string_view> lines_;
//~ };
// outpace: option hash-set
class Seen {
  public:
    bool add(std::string_view line) { return lines_.insert(line).second; }
  private:
    std::unordered_set<std::string_view> lines_;
};
// outpace: option reserved-hash-set
//~ class Seen {
//~   public:
//~     Seen() { lines_.reserve(20000); }
//~     bool add(std::string_view line) { return lines_.insert(line).second; }
//~   private:
//~     std::unordered_set<std::string_view> lines_;
//~ };
// outpace: option open-table
//~ class Seen {
//~   public:
//~     Seen() : slots_(1 << 12) {}
//~     bool add(std::string_view line) {
//~         if (2 * count_ >= slots_.size()) grow();
//~         size_t hash = std::hash<std::string_view>()(line);
//~         Slot* slot = find(hash, line);
//~         if (slot->line.data() != nullptr) return false;
//~         *slot = {hash, line};
//~         count_++;
//~         return true;
//~     }
//~   private:
//~     struct Slot {
//~         size_t hash = 0;
//~         std::string_view line;
//~         bool holds(size_t wanted_hash, std::string_view wanted) const {
//~             return hash == wanted_hash && line == wanted;
//~         }
//~     };
//~     Slot* find(size_t hash, std::string_view line) {
//~         size_t mask = slots_.size() - 1;
//~         size_t at = hash & mask;
//~         while (slots_[at].line.data() != nullptr && !slots_[at].holds(hash, line)) at = (at + 1) & mask;
//~         return &slots_[at];
//~     }
//~     void grow() {
//~         std::vector<Slot> old(slots_.size() * 2);
//~         old.swap(slots_);
//~         for (const Slot& slot : old) {
//~             if (slot.line.data() != nullptr) *find(slot.hash, slot.line) = slot;
//~         }
//~     }
//~     std::vector<Slot> slots_;
//~     size_t count_ = 0;
//~ };
// outpace: end alternatives

// outpace: alternatives
// outpace: option stream
class Writer {
  public:
    void write(std::string_view line) { std::cout << line << '\n'; }
};
// outpace: option stdio
//~ class Writer {
//~   public:
//~     void write(std::string_view line) {
//~         std::fwrite(line.data(), 1, line.size(), stdout);
//~         std::putchar('\n');
//~     }
//~ };
// outpace: option buffered
//~ class Writer {
//~   public:
//~     Writer() { buffer_.reserve(kChunk + 256); }
//~     ~Writer() { flush(); }
//~     void write(std::string_view line) {
//~         buffer_.append(line).push_back('\n');
//~         if (buffer_.size() >= kChunk) flush();
//~     }
//~   private:
//~     void flush() {
//~         std::fwrite(buffer_.data(), 1, buffer_.size(), stdout);
//~         buffer_.clear();
//~     }
//~     std::string buffer_;
//~ };
// outpace: end alternatives

}  // namespace

int main() {
    const std::string text = read_input();
    Seen seen;
    Writer writer;
    const char* end = text.data() + text.size();
    for (const char* at = text.data(); at < end;) {
        const void* newline = std::memchr(at, '\n', end - at);
        const char* stop = newline ? static_cast<const char*>(newline) : end;
        std::string_view line(at, stop - at);
        if (seen.add(line)) writer.write(line);
        at = stop + 1;
    }
    return 0;
}
