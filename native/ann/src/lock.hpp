// Lock: many searches or one change; a waiting change goes first, so that a stream of searches cannot starve
// it.
#pragma once

#include <pthread.h>

namespace outpace::ann {

class ReadWriteLock {
  public:
    ReadWriteLock() {
        pthread_rwlockattr_t attributes;
        pthread_rwlockattr_init(&attributes);
#ifdef __GLIBC__
        pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
        pthread_rwlock_init(&lock_, &attributes);
        pthread_rwlockattr_destroy(&attributes);
    }
    ~ReadWriteLock() { pthread_rwlock_destroy(&lock_); }
    ReadWriteLock(const ReadWriteLock&) = delete;
    ReadWriteLock& operator=(const ReadWriteLock&) = delete;

    // The names the standard lock guards call.
    void lock() { pthread_rwlock_wrlock(&lock_); }
    bool try_lock() { return pthread_rwlock_trywrlock(&lock_) == 0; }
    void unlock() { pthread_rwlock_unlock(&lock_); }
    void lock_shared() { pthread_rwlock_rdlock(&lock_); }
    void unlock_shared() { pthread_rwlock_unlock(&lock_); }

  private:
    pthread_rwlock_t lock_;
};

}  // namespace outpace::ann
