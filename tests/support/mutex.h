// A mutex that clang's thread-safety analysis understands (-Wthread-safety): state marked
// GUARDED_BY is an error to touch without the lock. With GCC the marks are empty.
#pragma once

#include <mutex>

#if defined(__clang__)
#define IPOVERBS_THREAD_MARK(mark) __attribute__((mark))
#else
#define IPOVERBS_THREAD_MARK(mark)
#endif
#define IPOVERBS_GUARDED_BY(mutex) IPOVERBS_THREAD_MARK(guarded_by(mutex))

namespace ipoverbs::support {

class IPOVERBS_THREAD_MARK(capability("mutex")) Mutex {
 public:
  void lock() IPOVERBS_THREAD_MARK(acquire_capability()) { mutex_.lock(); }
  void unlock() IPOVERBS_THREAD_MARK(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class IPOVERBS_THREAD_MARK(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) IPOVERBS_THREAD_MARK(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() IPOVERBS_THREAD_MARK(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace ipoverbs::support
