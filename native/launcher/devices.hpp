// The devices of a jail, which are this machine's own.
#pragma once

namespace outpace {

inline constexpr const char* devices[] = {"null", "zero", "full", "random", "urandom"};

// Sets their times to this moment. Anybody may set them, and what one process notes there another could read.
void forget_device_times();

}  // namespace outpace
