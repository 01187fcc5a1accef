//! `headers:` and `status:` of a dialect: the head of its HTTP responses.

use super::dialect::Compiler;
use super::dialect_status;
use super::request_values::RequestHeaders;
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::variables;
use crate::mapping::grammar::collections::Entries;
use crate::mapping::grammar::notation::{LINE_BREAKS, is_token};
use crate::mapping::language::directives::SkeletonNode;
use crate::mapping::language::skeleton::Skeleton;
use crate::mapping::source::yaml::Entry;

#[derive(Debug, Default)]
pub struct ResponseHead {
    /// By name. A header with a null placeholder is not sent.
    pub headers: Vec<(String, Skeleton)>,
    /// The status of errors.
    pub status: Option<Skeleton>,
}

/// The server writes them, from what it sends.
const RESERVED: &[&str] = &["connection", "content-length", "date", "te", "trailer", "transfer-encoding", "upgrade"];

impl Compiler<'_, '_> {
    pub(super) fn head(&self, headers: &Entries<RequestHeaders>, status: Option<&SkeletonNode>) -> ResponseHead {
        let visible = [variables::REQUEST, variables::REQUEST_ID, variables::FAULT, variables::TURN];
        let scope = self.scope("a header", visible);
        let headers = headers.items.iter().filter(|entry| self.is_valid_header(entry)).filter_map(|entry| {
            let skeleton = self.skeletons.compile(&entry.value, &scope)?;
            Some((entry.key.to_ascii_lowercase(), skeleton))
        });
        let headers = headers.collect();
        let scope = self.scope("`status:`", [variables::REQUEST, variables::REQUEST_ID, variables::FAULT]);
        let status = status.and_then(|status| {
            let skeleton = self.skeletons.compile(status.0, &scope)?;
            dialect_status::check_status(status.0, &skeleton, self.context.cx);
            Some(skeleton)
        });
        ResponseHead { headers, status }
    }

    fn is_valid_header(&self, entry: &Entry) -> bool {
        let cx = self.context.cx;
        if !is_token(&entry.key) {
            cx.error(Code::UnsafeText, entry.key_span, format!("`{}` is not a valid header name", entry.key));
            return false;
        }
        if RESERVED.contains(&entry.key.to_ascii_lowercase().as_str()) {
            let message = format!("`{}` is written by the server", entry.key);
            let help = "remove it: it must match what is sent";
            cx.add(Diagnostic::new(Code::UnsafeText, entry.key_span, message).help(help));
            return false;
        }
        let breaks = entry.value.as_text().is_some_and(|text| text.contains(LINE_BREAKS));
        if breaks {
            let help = "it would end the header and start another one";
            cx.add(Diagnostic::new(Code::UnsafeText, entry.value.span, "a line break in a header").help(help));
        }
        !breaks
    }
}
