//! System call filters.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

use super::kernel::ConfineError;

/// Calls that no agent's command needs and that reach deep into the kernel or other processes. `io_uring` could open sockets past the other
/// rules.
const BLOCKED: [libc::c_long; 46] = [
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_move_pages,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// `ioctl` requests that type into a terminal: TIOCSTI, TIOCLINUX.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

/// The bit of x32 system calls, which are equivalent.
#[cfg(target_arch = "x86_64")]
const X32: libc::c_long = 0x4000_0000;
/// System call numbers that only x32 has: ptrace, kexec_load, process_vm_readv, process_vm_writev, move_pages.
#[cfg(target_arch = "x86_64")]
const X32_ONLY: [libc::c_long; 5] = [521, 528, 539, 540, 533];

/// System calls to block besides those that nothing needs.
#[derive(Clone, Debug)]
pub(crate) struct SyscallRules {
    /// Socket families that may be opened.
    pub(crate) sockets: Vec<libc::c_int>,
    /// Whether to block truncation by path, which old versions of Landlock do not check.
    pub(crate) blocks_truncate: bool,
    /// Whether the command sees the same processes and IPC objects as everybody else, because no namespace hides them.
    pub(crate) shares_namespaces: bool,
}

/// Calls of System V IPC and POSIX message queues, whose objects belong to no directory: other programs of the user share theirs through
/// numbers and names that anybody can guess.
const IPC: [libc::c_long; 15] = [
    libc::SYS_mq_getsetattr,
    libc::SYS_mq_notify,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
];

/// Blocks system calls of the calling thread, and of everything it starts, permanently.
pub(crate) fn block_syscalls(rules: &SyscallRules) -> Result<(), ConfineError> {
    // glibc falls back to the older call if this one is missing; the flags of this one cannot be filtered.
    apply_filter(&program([(libc::SYS_clone3, Vec::new())].into(), libc::ENOSYS)?)?;
    apply_filter(&filter(rules)?)?;
    Ok(())
}

/// Returns the filter as a BPF program, for programs that load it.
pub(crate) fn filter_program(rules: &SyscallRules) -> Result<Vec<u8>, ConfineError> {
    let bytes = |op: &seccompiler::sock_filter| {
        let [code, k] = [u32::from(op.code), op.k];
        let code = (code as u16).to_ne_bytes();
        [&code[..], &[op.jt, op.jf], &k.to_ne_bytes()].concat()
    };
    Ok(filter(rules)?.iter().flat_map(bytes).collect())
}

fn filter(rules: &SyscallRules) -> Result<BpfProgram, ConfineError> {
    let mut blocked: BTreeMap<libc::c_long, Vec<SeccompRule>> = BTreeMap::new();
    for number in BLOCKED {
        blocked.insert(number, Vec::new());
    }
    if rules.blocks_truncate {
        blocked.insert(libc::SYS_truncate, Vec::new());
    }
    if rules.shares_namespaces {
        blocked.extend(IPC.map(|number| (number, Vec::new())));
        // The limits of another process: one second of processor time, for example, kills it.
        let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
        let changes = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
        blocked.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![other, changes])?]);
    }
    let other_sockets: Result<Vec<SeccompCondition>, _> = rules
        .sockets
        .iter()
        .map(|kind| SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, u64::from(kind.unsigned_abs())))
        .collect();
    blocked.insert(libc::SYS_socket, vec![SeccompRule::new(other_sockets?)?]);
    let new_user = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
    let makes_user = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(new_user), new_user)?;
    blocked.insert(libc::SYS_clone, vec![SeccompRule::new(vec![makes_user])?]);
    // Typing into the host's terminal.
    let ioctls = TERMINAL_INPUT
        .map(|code| SeccompRule::new(vec![SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, code)?]));
    blocked.insert(libc::SYS_ioctl, ioctls.into_iter().collect::<Result<_, _>>()?);
    #[cfg(target_arch = "x86_64")]
    {
        let twins: Vec<_> = blocked.iter().map(|(number, rules)| (number | X32, rules.clone())).collect();
        blocked.extend(twins);
        blocked.extend(X32_ONLY.map(|number| (number | X32, Vec::new())));
    }
    program(blocked, libc::EPERM)
}

fn program(blocked: BTreeMap<libc::c_long, Vec<SeccompRule>>, error: libc::c_int) -> Result<BpfProgram, ConfineError> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let error = SeccompAction::Errno(error.unsigned_abs());
    Ok(SeccompFilter::new(blocked, SeccompAction::Allow, error, arch)?.try_into()?)
}
