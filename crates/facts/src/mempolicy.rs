//! Whether this process may ask for memory of a NUMA node. NCCL binds its host buffers to the node
//! of the GPU; the default seccomp profiles of the container engines refuse that without SYS_NICE.
//!
//! Contract: `get_mempolicy` with null pointers writes nothing (Linux man page get_mempolicy(2)); the
//! profiles judge it together with `set_mempolicy` and `mbind`, and it changes nothing.
#![allow(unsafe_code, reason = "the system call has no wrapper")]

use std::ptr::null_mut;

/// `ok`, or why not.
pub(crate) fn ask() -> String {
    // SAFETY: both pointers are null and the size is zero, so the kernel writes nowhere
    let answer = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            null_mut::<libc::c_int>(),
            null_mut::<libc::c_ulong>(),
            0_usize,
            null_mut::<libc::c_void>(),
            0_usize,
        )
    };
    if answer == 0 { "ok".to_owned() } else { std::io::Error::last_os_error().to_string() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_answer_is_always_given() {
        assert!(!super::ask().is_empty());
    }
}
