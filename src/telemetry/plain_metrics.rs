//! Metrics in the older text format of Prometheus (0.0.4), from OpenMetrics: counters are declared with the name of
//! their samples, and there is no type `info` and no unit.

/// Scrapers of the older format reject what they do not know. `# EOF` is only a comment there.
pub fn plain_text(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len() + openmetrics.len() / 16);
    // Precedes the type, which decides about the name.
    let mut help = None;
    for line in openmetrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                _ => ("", kind),
            };
            if let Some((_, description)) = help.take() {
                text.push_str(&format!("# HELP {name}{suffix} {description}\n"));
            }
            text.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with("# UNIT ") {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
#[path = "../../tests/unit/telemetry_plain_metrics.rs"]
mod tests;
