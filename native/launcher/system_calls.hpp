// Linux's system calls, sorted by what they are good for. filters.cpp decides who gets which group; a call in
// no group does not exist for anybody.
#pragma once

#include <sys/syscall.h>

#include <vector>

// Headers of older systems do not name the newest calls, but the kernel may have them; from 424 on the
// numbers are the same on every architecture.
#ifndef __NR_quotactl_fd
#define __NR_quotactl_fd 443
#endif
#ifndef __NR_process_mrelease
#define __NR_process_mrelease 448
#endif
#ifndef __NR_set_mempolicy_home_node
#define __NR_set_mempolicy_home_node 450
#endif

namespace outpace::system_calls {

// clang-format off

// What computing takes: memory, clocks, threads' own affairs, and descriptors that are open already.
inline const std::vector<int> computing = {
    __NR_read, __NR_write, __NR_readv, __NR_writev, __NR_lseek, __NR_fstat, __NR_close,
    __NR_sendto, __NR_recvfrom, __NR_recvmsg,
    __NR_munmap, __NR_mremap, __NR_mprotect, __NR_brk,
    __NR_futex, __NR_set_robust_list, __NR_rseq, __NR_membarrier, __NR_sched_yield, __NR_exit, __NR_exit_group,
    __NR_clock_gettime, __NR_clock_getres, __NR_gettimeofday, __NR_nanosleep, __NR_clock_nanosleep,
    // A sleeping call goes on through this one after the judge has stopped and continued the worker.
    __NR_restart_syscall,
    __NR_rt_sigprocmask, __NR_rt_sigreturn, __NR_sigaltstack,
    __NR_getpid, __NR_gettid, __NR_getppid, __NR_getrandom, __NR_getcpu, __NR_getrusage, __NR_sysinfo,
    __NR_uname, __NR_sched_getaffinity,
#if defined(__x86_64__)
    __NR_time, __NR_arch_prctl,
#endif
};

// What the dynamic loader and run-time libraries' constructors take on top of that: looking at files.
// Opening them is not listed, since that depends on how.
inline const std::vector<int> looking = {
    __NR_newfstatat, __NR_pread64, __NR_preadv, __NR_faccessat, __NR_faccessat2, __NR_readlinkat, __NR_statx, __NR_statfs,
    __NR_fstatfs, __NR_getdents64, __NR_getcwd, __NR_dup, __NR_mincore,
    __NR_set_tid_address, __NR_get_robust_list, __NR_getuid, __NR_geteuid, __NR_getgid, __NR_getegid,
    __NR_sched_getscheduler, __NR_sched_getparam, __NR_getpriority, __NR_times,
#if defined(__x86_64__)
    __NR_access, __NR_stat, __NR_lstat, __NR_readlink, __NR_getrlimit,
#endif
};

// What compilers, shells, CPython and ordinary programs take on top of both.
inline const std::vector<int> programs = {
    // files
    __NR_openat, __NR_close_range, __NR_dup3, __NR_pipe2, __NR_umask,
    __NR_pwrite64, __NR_pwritev, __NR_sendfile, __NR_copy_file_range,
    __NR_fsync, __NR_fdatasync, __NR_msync, __NR_truncate, __NR_ftruncate, __NR_readahead,
    __NR_flock, __NR_chdir, __NR_fchdir, __NR_mkdirat, __NR_mknodat, __NR_unlinkat, __NR_symlinkat,
    __NR_linkat, __NR_renameat2, __NR_utimensat, __NR_fchmod, __NR_fchmodat, __NR_fchown, __NR_fchownat,
    __NR_getxattr, __NR_lgetxattr, __NR_fgetxattr, __NR_listxattr, __NR_llistxattr, __NR_flistxattr,
    // waiting
    __NR_ppoll, __NR_pselect6, __NR_epoll_create1, __NR_epoll_ctl, __NR_epoll_pwait, __NR_epoll_pwait2,
    __NR_eventfd2, __NR_signalfd4, __NR_timerfd_settime, __NR_timerfd_gettime, __NR_timer_settime,
    __NR_timer_gettime, __NR_timer_getoverrun, __NR_timer_delete, __NR_getitimer,
    // signals and processes
    __NR_rt_sigaction, __NR_rt_sigpending, __NR_rt_sigtimedwait, __NR_rt_sigsuspend, __NR_wait4, __NR_waitid,
    __NR_setsid, __NR_getsid, __NR_setpgid, __NR_getpgid, __NR_getgroups, __NR_getresuid,
    __NR_getresgid, __NR_capget, __NR_sched_getattr, __NR_sched_get_priority_max,
    __NR_sched_get_priority_min, __NR_sched_rr_get_interval,
    // make starts programs by posix_spawn, which sets the ids to what they are; without capabilities nothing else works.
    __NR_setresuid, __NR_setresgid,
    // memory
    __NR_mlock, __NR_mlock2, __NR_mlockall, __NR_munlock, __NR_munlockall,
    // Given the judge's socket, Python asks what it is. Making and tuning sockets is hostile.
    __NR_getsockname, __NR_getpeername, __NR_getsockopt,
#if defined(__x86_64__)
    __NR_open, __NR_creat, __NR_dup2, __NR_pipe, __NR_mkdir, __NR_mknod, __NR_rmdir, __NR_unlink,
    __NR_symlink, __NR_link, __NR_rename, __NR_chmod, __NR_chown, __NR_lchown, __NR_utime, __NR_utimes,
    __NR_futimesat, __NR_getdents, __NR_poll, __NR_select, __NR_pause, __NR_epoll_create, __NR_epoll_wait,
    __NR_eventfd, __NR_signalfd, __NR_getpgrp,
#endif
#ifdef __NR_renameat
    __NR_renameat,
#endif
};

// Sending signals. The first argument says to whom.
inline const std::vector<int> signalling = {
    __NR_kill, __NR_tkill, __NR_tgkill, __NR_rt_sigqueueinfo, __NR_rt_tgsigqueueinfo,
};

// The same for those who have children.
inline const std::vector<int> signalling_by_descriptor = {__NR_pidfd_open, __NR_pidfd_send_signal};

// Alarms, with which a program could disturb whoever runs after it.
inline const std::vector<int> timers = {
    __NR_timer_create, __NR_setitimer, __NR_timerfd_create,
#if defined(__x86_64__)
    __NR_alarm,
#endif
};

// What no honest candidate needs. Named, so that the answer is a refusal and not an invitation to fall back.
inline const std::vector<int> hostile = {
    // the network, and sockets as a way around the jail
    __NR_socket, __NR_connect, __NR_bind, __NR_listen, __NR_accept, __NR_accept4, __NR_setsockopt,
    __NR_recvmmsg, __NR_sendmmsg,
    // other processes
    __NR_ptrace, __NR_process_vm_readv, __NR_process_vm_writev, __NR_process_madvise, __NR_process_mrelease,
    __NR_pidfd_getfd, __NR_kcmp,
    // namespaces, mounts, roots
    __NR_unshare, __NR_setns, __NR_mount, __NR_umount2, __NR_pivot_root, __NR_chroot, __NR_open_tree,
    __NR_move_mount, __NR_fsopen, __NR_fsconfig, __NR_fsmount, __NR_fspick, __NR_mount_setattr,
    __NR_open_by_handle_at, __NR_name_to_handle_at, __NR_quotactl, __NR_quotactl_fd, __NR_fanotify_init,
    __NR_fanotify_mark,
    // who uses which of the system's files, and when
    __NR_inotify_init1, __NR_inotify_add_watch, __NR_inotify_rm_watch,
    // kernel machinery that does work elsewhere, or for everybody
    __NR_bpf, __NR_perf_event_open, __NR_userfaultfd, __NR_io_uring_setup, __NR_io_uring_enter,
    __NR_io_uring_register, __NR_init_module, __NR_finit_module, __NR_delete_module, __NR_kexec_load,
    __NR_reboot, __NR_swapon, __NR_swapoff, __NR_acct, __NR_syslog, __NR_keyctl, __NR_add_key,
    __NR_request_key, __NR_vhangup, __NR_sync, __NR_syncfs,
    // the clock and the machine
    __NR_clock_settime, __NR_clock_adjtime, __NR_settimeofday, __NR_adjtimex, __NR_sethostname,
    __NR_setdomainname, __NR_personality,
    // scheduling, limits and memory placement, which would move the measurement
    __NR_sched_setaffinity, __NR_sched_setscheduler, __NR_sched_setparam, __NR_sched_setattr,
    __NR_setpriority, __NR_ioprio_set, __NR_setrlimit, __NR_mbind, __NR_set_mempolicy,
    __NR_set_mempolicy_home_node, __NR_migrate_pages, __NR_move_pages,
    // identity
    __NR_setuid, __NR_setgid, __NR_setreuid, __NR_setregid, __NR_setfsuid,
    __NR_setfsgid, __NR_setgroups, __NR_capset,
#if defined(__x86_64__)
    __NR_iopl, __NR_ioperm, __NR_modify_ldt, __NR_inotify_init,
#endif
#ifdef __NR_kexec_file_load
    __NR_kexec_file_load,
#endif
};

// clang-format on

}  // namespace outpace::system_calls
