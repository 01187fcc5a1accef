//! Text in columns, for reports.

/// One line per row, with the columns two spaces apart. A cell that is longer than `max_width` overflows its column;
/// the first column is as wide as its longest cell.
pub fn aligned<R: AsRef<[String]>>(rows: &[R], max_width: usize) -> String {
    let columns = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.as_ref().get(column));
            let widest = cells.map(|cell| cell.trim_end().chars().count()).max().unwrap_or(0);
            if column == 0 { widest } else { widest.min(max_width) }
        })
        .collect();
    let line = |row: &R| {
        let cells = row.as_ref().iter().zip(&widths).map(|(cell, width)| format!("{:<width$}", cell.trim_end()));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}
