//! The targets: the table in docs/performance.md with the columns `row`, `chat`, `responses`
//! (the highest ratios that are accepted) and `goal`.

use crate::rows::Api;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// A line of the document that begins the table; the table is the next one below it.
const MARKER: &str = "<!-- targets of ./bench -->";

pub struct Targets(Vec<(String, [Option<f64>; 3])>);

impl Targets {
    pub fn read(path: &Path) -> Result<Targets> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Targets::parse(&text).with_context(|| format!("the targets in {}", path.display()))
    }

    fn parse(text: &str) -> Result<Targets> {
        let (_, below) = text.split_once(MARKER).with_context(|| format!("no line `{MARKER}`"))?;
        let mut rows = Vec::new();
        for line in
            below.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|')).skip(2)
        {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [name, chat, responses, goal] = cells[..] else { bail!("not four columns: {line}") };
            let number = |cell: &str| match cell {
                "–" => Ok(None),
                _ => cell.parse().map(Some).with_context(|| format!("not a number: {line}")),
            };
            rows.push((name.to_owned(), [number(chat)?, number(responses)?, number(goal)?]));
        }
        if rows.is_empty() {
            bail!("no table below `{MARKER}`");
        }
        Ok(Targets(rows))
    }

    /// The ratio to aim for.
    pub fn goal(&self, row: &str) -> Option<f64> {
        self.0.iter().find(|(name, _)| name == row)?.1[2]
    }

    /// The highest ratio to the pass-through that is accepted, by the client's API.
    pub fn limit(&self, row: &str) -> impl Fn(Api) -> Option<f64> {
        let found = self.0.iter().find(|(name, _)| name == row).map(|(_, numbers)| *numbers);
        move |api| {
            let [chat, responses, _] = found?;
            match api {
                Api::Chat => chat,
                Api::Responses => responses,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_by_row_and_api() {
        let text = format!(
            "# P\n{MARKER}\n\n| row | chat | responses | goal |\n|---|--:|--:|--:|\n| a | 2.0 | 3.5 | 1.5 |\n| b | – | 1 | – |\n\nend"
        );
        let targets = Targets::parse(&text).unwrap();
        assert_eq!(targets.limit("a")(Api::Chat), Some(2.0));
        assert_eq!(targets.limit("a")(Api::Responses), Some(3.5));
        assert_eq!(targets.limit("b")(Api::Chat), None);
        assert_eq!((targets.goal("a"), targets.goal("b")), (Some(1.5), None));
        assert_eq!(targets.limit("c")(Api::Chat), None);
    }

    #[test]
    fn a_document_without_targets_is_an_error() {
        assert!(Targets::parse("# P\n").is_err());
        assert!(Targets::parse(&format!("{MARKER}\n")).is_err());
    }
}
