//! Unit tests of `diagnostics::render`.

use super::*;

fn report(text: &str, count: usize) -> String {
    let mut sources = Sources::default();
    let file = sources.add("gateway.yaml", "gateway.yaml", text.into());
    let finding = |at: usize| Diagnostic::new(Code::UnknownKey, Span::new(file, at, at + 1), format!("finding {at}"));
    render_all(&(0..count).map(finding).collect::<Vec<_>>(), &sources, false)
}

#[test]
fn a_report_ends_after_twenty_findings_of_a_file() {
    let report = report(&"key: value\n".repeat(1000), 9000);
    assert_eq!(report.matches("error[").count(), MAX_DIAGNOSTICS_PER_FILE);
    assert!(report.ends_with("\n… and 8980 more\n"), "{report}");
}

#[test]
fn a_very_long_line_is_cut() {
    let report = report(&"x".repeat(1 << 20), 100);
    assert!(report.contains("finding 0") && report.ends_with(" more\n"), "{}", report.len());
    assert!(report.len() < MAX_REPORT_BYTES + 2 * MAX_ONE_BYTES, "{}", report.len());
}
