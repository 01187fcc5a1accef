//! Why a request got no response.

use std::error::Error;
use std::fmt;
use std::io;
use std::iter::successors;

pub type BoxError = Box<dyn Error + Send + Sync>;

#[derive(Debug)]
pub enum SendError {
    /// The connection was not open in time.
    ConnectTimeout,
    Connect(BoxError),
    Send(hyper::Error),
}

impl SendError {
    pub fn is_timeout(&self) -> bool {
        let is_timed_out = |cause: &(dyn Error + 'static)| {
            cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
                || cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout)
        };
        matches!(self, SendError::ConnectTimeout) || causes(self).any(is_timed_out)
    }

    pub fn is_connect(&self) -> bool {
        matches!(self, SendError::ConnectTimeout | SendError::Connect(_))
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("error sending request")
    }
}

impl Error for SendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SendError::ConnectTimeout => None,
            SendError::Connect(error) => Some(&**error),
            SendError::Send(error) => Some(error),
        }
    }
}

/// An error and what caused it, from the outside to the inside.
pub fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    successors(Some(error), |error: &&'e (dyn Error + 'static)| (*error).source())
}

/// The innermost error; the outer ones carry no detail.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    causes(error).last().unwrap_or(error).to_string()
}
