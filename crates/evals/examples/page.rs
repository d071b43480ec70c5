//! Renders a report as an HTML page: `page REPORT.json [EARLIER.json] > page.html`.
//!
//! The browser tests run this example with reports that contain malicious text.

use std::{env, error::Error, fs, io::Write as _};

use switchboard_evals::report::{Report, page};

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = env::args_os().skip(1);
    let report = files
        .next()
        .ok_or("usage: page REPORT.json [EARLIER.json]")?;
    let report = Report::parse_report(&fs::read_to_string(report)?)?;
    let earlier = match files.next() {
        Some(file) => Some(Report::parse_report(&fs::read_to_string(file)?)?),
        None => None,
    };
    let page = page::render_html(&report, earlier.as_ref())?;
    Ok(std::io::stdout().write_all(page.as_bytes())?)
}
