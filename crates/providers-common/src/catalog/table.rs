//! The data, searched where it lies.
//!
//! A line is a model, its columns parted by tabs: `provider/name`, the limits, the prices, the
//! abilities, the day of its deprecation, its place among the featured ones. `-` is not known.
//! Lines are in the order of their bytes; those at the start with a `#` are for the reader.

use std::{cmp::Ordering, iter};

use switchboard_domain::ModelCapabilities;

use super::{ModelEntry, Prices};

/// What is not known.
const UNKNOWN: &str = "-";

/// Lines that are sorted by their first column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'t>(&'t str);

impl<'t> Table<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self(text)
    }

    /// The line of a model.
    pub(super) fn find(self, provider: &str, name: &str) -> Option<&'t str> {
        let order = |line: &str| compare(key(line), provider, name);
        let row = lines_of(self.from(|line| order(line) == Ordering::Less)).next()?;
        (order(row) == Ordering::Equal).then_some(row)
    }

    /// The lines of a provider's models whose names begin with `start`.
    pub(super) fn of(self, provider: &str, start: &str) -> impl Iterator<Item = &'t str> {
        let rows = self.from(|line| compare(key(line), provider, start) == Ordering::Less);
        let prefix = format!("{provider}/{start}");
        lines_of(rows).take_while(move |line| key(line).starts_with(&prefix))
    }

    /// What the head says of the source.
    pub(super) fn source(self) -> &'t str {
        self.0
            .lines()
            .find_map(|line| line.strip_prefix("# source: "))
            .unwrap_or_default()
    }

    /// The text from the first line on that is not before what is looked for. All those that are
    /// before it must come first.
    fn from(self, is_before: impl Fn(&str) -> bool) -> &'t str {
        let bytes = self.0.as_bytes();
        // Both are always the start of a line, or the end.
        let (mut low, mut high) = (0, bytes.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let before = &bytes[low..middle];
            let start = before.iter().rposition(|byte| *byte == b'\n');
            let start = start.map_or(low, |at| low + at + 1);
            let end = bytes[start..].iter().position(|byte| *byte == b'\n');
            let end = end.map_or(bytes.len(), |at| start + at + 1);
            // Line feeds are no part of another character, so that these are whole ones.
            let line = self.0.get(start..end).unwrap_or_default();
            if line.starts_with('#') || is_before(line) {
                low = end;
            } else {
                high = start;
            }
        }
        self.0.get(low..).unwrap_or_default()
    }
}

/// How `key` stands to `provider/name`, which need not be put together for it.
fn compare(key: &str, provider: &str, name: &str) -> Ordering {
    let sought = provider.bytes().chain(iter::once(b'/')).chain(name.bytes());
    key.bytes().cmp(sought)
}

fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty())
}

fn key(line: &str) -> &str {
    line.split(['\t', '\r', '\n']).next().unwrap_or_default()
}

/// The model's name of a line, without its provider.
pub(super) fn name(row: &str) -> &str {
    key(row).split_once('/').map_or("", |(_, name)| name)
}

/// The place of a line's model among the featured ones of its provider, from 1.
pub(super) fn rank(row: &str) -> Option<u8> {
    row.rsplit('\t').next()?.parse().ok()
}

/// Reads a line. `None` for what is no line of ours, which a test of the data rules out.
pub(super) fn entry(row: &'static str) -> Option<ModelEntry> {
    let mut columns = row.split('\t');
    let (provider, name) = columns.next()?.split_once('/')?;
    let context_window = number(columns.next()?)?;
    let max_output_tokens = number(columns.next()?)?;
    let prices = Prices {
        input: number(columns.next()?)?,
        output: number(columns.next()?)?,
        cache_read: number(columns.next()?)?,
        cache_write: number(columns.next()?)?,
    };
    let mut capabilities = ModelCapabilities {
        context_window,
        max_output_tokens,
        ..ModelCapabilities::default()
    };
    let abilities = columns.next()?;
    let mut responses_only = false;
    for word in abilities.split(',').filter(|word| *word != UNKNOWN) {
        let (word, can) = match word.strip_prefix('!') {
            Some(word) => (word, false),
            None => (word, true),
        };
        let ability = match word {
            "tools" => &mut capabilities.tools,
            "parallel" => &mut capabilities.parallel_tools,
            "forced" => &mut capabilities.forced_tool_choice,
            "schema" => &mut capabilities.structured_output,
            "sampling" => &mut capabilities.sampling,
            "reasoning" => &mut capabilities.reasoning,
            "images" => &mut capabilities.images,
            "documents" => &mut capabilities.documents,
            "audio" => &mut capabilities.audio,
            "responses-only" => {
                responses_only = can;
                continue;
            }
            _ => return None,
        };
        *ability = Some(can);
    }
    let deprecated_on = Some(columns.next()?).filter(|date| *date != UNKNOWN);
    let featured = columns.next()?;
    let complete = columns.next().is_none() && number::<u8>(featured).is_some();
    complete.then_some(ModelEntry {
        provider,
        name,
        capabilities,
        prices,
        responses_only,
        deprecated_on,
    })
}

/// `Some(None)` for what is not known, `None` for what is no number.
#[expect(clippy::option_option, reason = "two ways of having no number")]
fn number<N: std::str::FromStr>(column: &str) -> Option<Option<N>> {
    if column == UNKNOWN {
        return Some(None);
    }
    column.parse().ok().map(Some)
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
