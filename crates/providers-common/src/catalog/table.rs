//! Access to the lines of the model catalog's table, `models.tsv`.
//!
//! Each line is a model. Its columns are separated by tabs: `provider/name`, the limits, the
//! prices, the abilities, the day of deprecation, the rank among the featured models. `-` means
//! unknown. The lines are sorted. Lines that begin with `#` are comments.

use switchboard_domain::ModelCapabilities;

use super::{ModelEntry, Prices};

const UNKNOWN: &str = "-";

/// Table of models, one per line, sorted by the first column.
const MODELS: &str = include_str!("models.tsv");

/// Returns the table line of a model, or `None` if the table does not list the model.
pub(super) fn find_row(provider: &str, model: &str) -> Option<&'static str> {
    find_rows_by_prefix(provider, model).find(|row| model_name(row) == model)
}

/// Returns the table lines of a provider's models whose names begin with `start`.
pub(super) fn find_rows_by_prefix(
    provider: &str,
    start: &str,
) -> impl Iterator<Item = &'static str> + use<> {
    let prefix = format!("{provider}/{start}");
    let lines = MODELS.lines();
    lines.filter(move |line| row_key(line).starts_with(&prefix))
}

/// Returns the source and version of the catalog's data, such as `litellm 1.109.1`. The table
/// states them in a comment line that begins with `# source: `.
pub fn data_source() -> &'static str {
    let mut lines = MODELS.lines();
    lines
        .find_map(|line| line.strip_prefix("# source: "))
        .unwrap_or_default()
}

fn row_key(line: &str) -> &str {
    line.split('\t').next().unwrap_or_default()
}

/// Returns the model's name in a table line, without its provider.
pub(super) fn model_name(row: &str) -> &str {
    row_key(row).split_once('/').map_or("", |(_, name)| name)
}

/// Returns the rank of a table line's model among its provider's featured models; 1 is the best.
/// Returns `None` if the model is not featured.
pub(super) fn featured_rank(row: &str) -> Option<u8> {
    row.rsplit('\t').next()?.parse().ok()
}

/// Parses a table line. Returns `None` if the line is invalid; a test checks that all lines are
/// valid.
pub(super) fn parse_row(row: &'static str) -> Option<ModelEntry> {
    let mut columns = row.split('\t');
    let (provider, name) = columns.next()?.split_once('/')?;
    let context_window = parse_number(columns.next()?)?;
    let max_output_tokens = parse_number(columns.next()?)?;
    let prices = Prices {
        input: parse_number(columns.next()?)?,
        output: parse_number(columns.next()?)?,
        cache_read: parse_number(columns.next()?)?,
        cache_write: parse_number(columns.next()?)?,
    };
    let mut capabilities = ModelCapabilities {
        context_window,
        max_output_tokens,
        ..ModelCapabilities::default()
    };
    let abilities = columns.next()?;
    let mut responses_only = false;
    for ability in abilities.split(',').filter(|it| *it != UNKNOWN) {
        let (name, is_supported) = match ability.strip_prefix('!') {
            Some(name) => (name, false),
            None => (ability, true),
        };
        let ability = match name {
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
                responses_only = is_supported;
                continue;
            }
            _ => return None,
        };
        *ability = Some(is_supported);
    }
    let deprecated_on = Some(columns.next()?).filter(|date| *date != UNKNOWN);
    let featured = columns.next()?;
    let complete = columns.next().is_none() && parse_number::<u8>(featured).is_some();
    complete.then_some(ModelEntry {
        provider,
        name,
        capabilities,
        prices,
        responses_only,
        deprecated_on,
    })
}

/// Parses a number in a column of the table. Returns `Some(None)` for `-`, which means unknown, and
/// `None` for a text that is not a number.
#[expect(clippy::option_option, reason = "unknown and invalid differ")]
fn parse_number<N: std::str::FromStr>(column: &str) -> Option<Option<N>> {
    if column == UNKNOWN {
        return Some(None);
    }
    column.parse().ok().map(Some)
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
