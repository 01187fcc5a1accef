//! The file descriptors of the process: every socket takes one, and there is a limit.

use super::http_client::causes;
use crate::domain::{Fault, FaultKind};
use std::error::Error;
use std::io;

/// `EMFILE` and `ENFILE`: the limit of the process, and that of the machine.
const OUT_OF_DESCRIPTORS: [i32; 2] = [24, 23];

pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| OUT_OF_DESCRIPTORS.contains(&code))
}

/// Whether the cause of an error is that there are none left.
pub fn caused_by_descriptors(error: &(dyn Error + 'static)) -> bool {
    causes(error).filter_map(|error| error.downcast_ref::<io::Error>()).any(is_out_of_descriptors)
}

/// The fault of a request that needs one more. It is the gateway's, and not the backend's.
pub fn fault() -> Fault {
    Fault { retry_after: Some(1), ..Fault::new(FaultKind::Overloaded, "the gateway has too many open connections") }
}
