//! The limit on open files: each client and each backend request takes one, and the usual soft limit is 1024.

/// Raises the soft limit to the hard limit. A failure is logged: the server runs with fewer connections.
#[cfg(unix)]
pub fn raise_limit() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => tracing::debug!(limit, "open files"),
        Err(error) => tracing::warn!(%error, "the limit on open files could not be raised"),
    }
}

#[cfg(not(unix))]
pub fn raise_limit() {}
