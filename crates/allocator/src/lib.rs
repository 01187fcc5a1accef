//! Returns freed memory to the system. The allocator of glibc keeps what was freed between allocations that are in use:
//! after a set of mappings was loaded, that is a fifth of the memory of the process.

/// Returns the memory that was freed and not allocated again. Without effect where the allocator is not that of glibc.
pub fn return_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` may be called at any time from any thread; it changes no memory that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Resident memory in KiB.
    fn resident() -> usize {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn memory_between_allocations_in_use_is_returned() {
        let mut blocks: Vec<Vec<u8>> = (0..20_000).map(|_| vec![1; 2_000]).collect();
        // The last one is in use, so that the allocator cannot shrink its heap.
        blocks.drain(..19_999);
        let before = resident();
        return_free_memory();
        assert!(resident() + 20_000 < before, "{before} KiB before, {} after", resident());
        assert_eq!(blocks[0][1_999], 1);
    }
}
