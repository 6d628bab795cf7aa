#include "devices.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <string>

namespace outpace {

void forget_device_times() {
    for (const char* name : devices) {
        // Where it may not be set by us, it may not by a candidate either.
        utimensat(AT_FDCWD, (std::string("/dev/") + name).c_str(), nullptr, 0);
    }
}

}  // namespace outpace
