// Questions to a command: call records turned into folders, open files and argument lists.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "channel.hpp"
#include "descriptor.hpp"
#include "message.hpp"

namespace outpace {

// Why a request cannot be carried out. A fault is the judge's mistake; a failed call may be the candidate's
// doing, who shares the file system with the server and can fill it up or tear folders down.
struct Trouble {
    Status status;
    std::uint32_t call;
    std::string text;
};

// A file that the call was given. Held open, so that no other can get its number once it is removed.
struct Given {
    std::string name;
    Descriptor file;
    std::string_view content;  // in the input region

    // Whether it still is what was given. Whoever works in his input's place saves memory that his caller has
    // to spend, and his caller wants the input again.
    bool unchanged() const;
};

struct CommandCall {
    Descriptor folder;
    std::vector<Given> files;
    Descriptor standard_input;  // none: as the server's
    std::vector<std::string> arguments;
    std::vector<Part> results;  // parts that receive something afterwards
};

// Where the calls' folders are made: "calls" in $TMPDIR or /tmp.
class CallFolders {
  public:
    CallFolders();

    // Removes what earlier calls left, and says whether nothing is left of it: the next call could read that.
    bool clear();
    Descriptor make();

  private:
    void restore_above() const;

    std::string base_;
    // The folder that it lies in, as it was found.
    std::string above_;
    struct stat found_ = {};
};

// Throws Trouble.
std::vector<CommandCall> load_command_calls(const Request& request, const Region& input,
                                            CallFolders& folders);

}  // namespace outpace
