//! How a dialect reports faults (`faults:`): the status, type, code, param and message of each.

use super::render::{Scope, render};
use crate::domain::variables::{self, Record};
use crate::domain::{Fault, FaultReporter, Tree};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::dialect_status::ERROR_STATUSES;
use crate::mapping::language::field::scalar_text;

impl FaultReporter for DialectPlan {
    fn report(&self, fault: Fault) -> Fault {
        reported(self, fault)
    }
}

/// The fault as the dialect reports it. Members that `faults:` does not set stay as they are.
pub fn reported(dialect: &DialectPlan, fault: Fault) -> Fault {
    let Some(skeleton) = dialect.faults.as_ref().filter(|_| !fault.is_reported) else { return fault };
    let scope = Scope::default().set(variables::FAULT, Record::Fault(&fault)).with_policies(dialect);
    let members = match render(skeleton, &scope, &dialect.pool) {
        Ok(members) => members.unwrap_or_default(),
        Err(error) => {
            let detail = fault.detail.clone().or(Some(format!("`faults:` could not be rendered: {error}")));
            return Fault { detail, is_reported: true, ..fault };
        }
    };
    let text = |name: &str| members.get(name).and_then(scalar_text);
    // An expression can give any number.
    let status = text("status").and_then(|status| status.parse().ok());
    let status = status.filter(|status| ERROR_STATUSES.contains(&i64::from(*status)));
    Fault {
        status: status.or(fault.status),
        error_type: text("type").or(fault.error_type),
        code: text("code").or(fault.code),
        param: text("param").or(fault.param),
        message: text("message").unwrap_or(fault.message),
        retryable: members.get("retryable").and_then(Tree::as_bool).or(fault.retryable),
        is_reported: true,
        ..fault
    }
}
